"""Joins on a Spark cluster, with tasks that filter the log before Spark joins it.

``join`` returns the answer, ``prefilter`` the rows that may have an ID, and ``report`` what
happened. They use Spark's public API only, and work with Spark Connect.
"""

from ._join import join, prefilter
from ._report import SparkReport, report
from ._staging import Staging

__all__ = ["SparkReport", "Staging", "join", "prefilter", "report"]
