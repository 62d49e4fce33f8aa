"""Joins on a Spark cluster, by tasks that run the command where the log is read.

``join`` returns the answer, ``join_to`` writes it, ``count`` counts it, ``prefilter`` returns the
rows that may have an ID, and ``report`` what happened. They use Spark's public API only, and work
with Spark Connect.
"""

from ._commit import join_to
from ._join import count, join, prefilter
from ._report import SparkReport, report
from ._staging import Staging

__all__ = ["SparkReport", "Staging", "count", "join", "join_to", "prefilter", "report"]
