"""Answers as Dask DataFrames: each file of the log is a partition.

Each partition is a run of its own in the worker that needs it, so the log is
never sent over the network. Columns that a computation does not need are not
read. Values keep their Arrow types (``pandas.ArrowDtype``): an integer column
with NULLs stays an integer column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import dask.dataframe as dd
import pandas as pd
import pyarrow as pa

from bloomjoin._errors import DataError, UsageError
from bloomjoin._listing import list_log
from bloomjoin._reader import Reader
from bloomjoin._references import References
from bloomjoin._signatures import takes_parameters_of
from bloomjoin._verbs import join, scan

__all__ = ["join_dask", "scan_dask"]

# Options that select the files of a log, and so are settled when it is listed.
_LISTING = ("include", "exclude", "hive_partitioning", "hive_types", "files_from")


@takes_parameters_of(scan)
def scan_dask(**options: Any) -> dd.DataFrame:
    """Return the rows of a log that may match a filter, as a Dask DataFrame.

    Takes the parameters of :func:`bloomjoin.scan`. ``logs`` must be paths or
    URLs that the workers can open. The files are listed at once, those of a
    directory too, and must have the same columns.

    The filter goes to the workers as its path if it has one, and otherwise as
    a whole. ``threads`` is 1 unless given, since Dask runs several tasks at a
    time. Each task may use as much memory as ``memory`` says.
    """
    return _frame(scan, options)


@takes_parameters_of(join)
def join_dask(**options: Any) -> dd.DataFrame:
    """Return the answer of a join as a Dask DataFrame.

    Takes the parameters of :func:`bloomjoin.join`, except for right and full
    joins: an ID without a row in one file may have one in another. ``logs`` is
    as in :func:`scan_dask`. Each task reads the IDs, so paths or URLs are
    better than a table, which is sent to every task.
    """
    how = options.get("how", "semi")
    if how in ("right", "full"):
        raise UsageError(
            f"how: a {how} join cannot be divided by files of the log "
            "(use bloomjoin.join, or join_dask with how='inner' or 'left')"
        )
    return _frame(join, options)


@dataclass(frozen=True)
class _Partition:
    """Runs the verb on one file of the log. Picklable if its options are."""

    verb: Callable[..., Reader]
    options: Mapping[str, Any]
    references: Mapping[str, str]
    schema: pa.Schema

    def __call__(self, log: str, columns: list[str] | None = None) -> pd.DataFrame:
        options = {**self.options, "logs": log}
        schema = self.schema
        if columns is not None:
            options["columns"] = [self.references[name] for name in columns]
            schema = pa.schema([schema.field(name) for name in columns])
        with self.verb(**options) as reader:
            answer = reader.read_all().rename_columns(schema.names)
        if not answer.schema.equals(schema):
            raise DataError(
                f"{log}: mismatch: want the columns {_types(schema)}, got {_types(answer.schema)} "
                "(the file has changed since the DataFrame was made)"
            )
        return answer.to_pandas(types_mapper=pd.ArrowDtype)


def _frame(verb: Callable[..., Reader], options: dict[str, Any]) -> dd.DataFrame:
    if options.get("progress") is not None:
        raise UsageError("progress: tasks report to Dask (use dask.diagnostics.ProgressBar)")
    for name in ("logs", "ids"):
        if isinstance(options.get(name), pa.RecordBatchReader):
            raise UsageError(f"{name}: every task reads it, and a RecordBatchReader can be read only once")
    listing = {name: options[name] for name in _LISTING if options.get(name) is not None}
    
    log = list_log(options["logs"], ...)
    references = References(verb, options)
    ...
