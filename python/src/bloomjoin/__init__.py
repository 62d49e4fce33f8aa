"""Find the rows of huge logs whose key is in a set of IDs, and join them.

``join`` gives the exact answer as a stream of record batches, ``join_to`` writes
it to files. ``build`` makes a small filter of the IDs, with which ``scan`` finds
the rows of a log that may match, in as many processes and machines as there are.
``plan`` estimates a join beforehand, and ``inspect`` describes files.

The work is done by the command ``bloomjoin``, which the package contains, as a
child process. Errors are exceptions of one family, by its exit code. Nothing in
the package is global: functions may be called from any thread.
"""

from bloomjoin._counting import CountingFilter
from bloomjoin._dedup import dedup, dedup_to
from bloomjoin._errors import (
    BloomjoinWarning,
    DataError,
    Error,
    GateError,
    InternalError,
    InterruptedRun,
    NotFoundError,
    RetryableError,
    UsageError,
)
from bloomjoin._filter import Filter
from bloomjoin._find import FindReport, FoundFile, find
from bloomjoin._progress import Progress
from bloomjoin._reader import Reader
from bloomjoin._reports import (
    BuildReport,
    DedupReport,
    Estimate,
    Inspection,
    JoinReport,
    Plan,
    Report,
    ScanReport,
)
from bloomjoin._sketch import Sketch, sketch
from bloomjoin._verbs import build, inspect, join, join_to, merge, plan, scan, scan_to

__version__ = "0.1.0"

__all__ = [
    "BloomjoinWarning",
    "BuildReport",
    "CountingFilter",
    "DataError",
    "DedupReport",
    "Error",
    "Estimate",
    "Filter",
    "FindReport",
    "FoundFile",
    "GateError",
    "Inspection",
    "InternalError",
    "InterruptedRun",
    "JoinReport",
    "NotFoundError",
    "Plan",
    "Progress",
    "Reader",
    "Report",
    "RetryableError",
    "ScanReport",
    "Sketch",
    "UsageError",
    "__version__",
    "build",
    "dedup",
    "dedup_to",
    "find",
    "inspect",
    "join",
    "join_to",
    "merge",
    "plan",
    "scan",
    "scan_to",
    "sketch",
]
