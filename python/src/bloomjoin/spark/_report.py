"""What happened in a join, beside its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bloomjoin._errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ATTRIBUTE = "_bloomjoin_report"


@dataclass(frozen=True)
class SparkReport:
    """How `join` or `prefilter` has prepared its data frame. Spark's own part runs later.

    ``mode`` is ``"whole"``, ``"files"``, ``"probe"`` or ``"spark"``, and ``why`` the reason. Sizes
    are in bytes. Figures of stages that were not run are 0 or None.
    """

    mode: str
    why: str
    how: str
    log_files: int = 0
    log_bytes: int = 0
    rows_in: int = 0
    candidates: int = 0
    staged_bytes: int = 0
    filter_kind: str | None = None
    filter_bytes: int = 0
    fpr: float | None = None
    """The false-positive rate that the filter's size predicts."""
    rows_out: int = 0
    """Rows that `join_to` has written."""
    output_files: int = 0
    output_bytes: int = 0
    ids_rows: int = 0
    ids_bytes: int = 0
    ids_kept: int | None = None
    """IDs that a filter of the candidates let through; None if the IDs were not filtered."""
    ids_staged_bytes: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Wall time of each stage, in seconds."""
    task_seconds: Mapping[str, float] = field(default_factory=dict)
    """Time of all tasks of each stage together, in seconds."""
    peak_bytes: int = 0
    """The most memory that one command held."""

    @property
    def fallback(self) -> str | None:
        """Why Spark does the whole join, or None if bloomjoin filters."""
        return self.why if self.mode == "spark" else None

    @property
    def bytes_saved(self) -> int:
        """Bytes of files that Spark need not read, less those that it reads instead.

        What it need not shuffle comes on top.
        """
        if self.mode != "files":
            return 0
        log = 0 if self.how == "full" else self.log_bytes
        ids = 0 if self.ids_kept is None or self.how == "full" else self.ids_bytes
        return log + ids - self.staged_bytes - self.ids_staged_bytes


def attach(frame: DataFrame, found: SparkReport) -> DataFrame:
    """Attach a report to a data frame, and return the frame."""
    setattr(frame, _ATTRIBUTE, found)
    return frame


def report(frame: DataFrame) -> SparkReport:
    """Return what happened, for a data frame that `join` or `prefilter` has returned.

    Frames that were derived from it do not have a report.
    """
    found = frame.__dict__.get(_ATTRIBUTE)
    if not isinstance(found, SparkReport):
        raise UsageError("report: want a data frame that join or prefilter has returned")
    return found
