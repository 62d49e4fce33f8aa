"""Answers as Dask DataFrames: each file of the log is a partition.

Each partition is a run of its own, on the worker that needs it: only the rows
that remain are sent anywhere. Columns that a computation does not need are not
read. Values keep their Arrow types (``pandas.ArrowDtype``), so an integer
column with NULLs stays an integer column. Large strings follow Dask's setting
``dataframe.convert-string``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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

# What decides which files a directory consists of.
_SELECTION = ("include", "exclude")
_ACCESS = ("storage_options", "credentials")
_HIVE = ("hive_partitioning", "hive_types")


@takes_parameters_of(scan)
def scan_dask(**options: Any) -> dd.DataFrame:
    """Return the rows of a log that may match a filter, as a Dask DataFrame.

    Takes the parameters of :func:`bloomjoin.scan`. ``logs`` are paths or URLs
    that the workers can open; they are listed at once, and must have the same
    columns. A Filter is sent to the workers as its path if it has one, and as a
    whole otherwise.

    ``threads`` is 1 by default, since Dask runs several tasks at a time. Each
    of them may use ``memory``.
    """
    return _frame(scan, options)


@takes_parameters_of(join)
def join_dask(**options: Any) -> dd.DataFrame:
    """Return the answer of a join as a Dask DataFrame.

    Takes the parameters of :func:`bloomjoin.join`, and a log like that of
    :func:`scan_dask`. Right and full joins are a UsageError: an ID without a
    row in one file may have one in another. Each task reads the IDs, so a path
    or URL is better than a table, which is sent along with every task.
    """
    how = options.get("how", "semi")
    if how in ("right", "full"):
        raise UsageError(
            f"how: {how}: want semi, anti, inner or left, as a file of the log does not show "
            "which IDs have no row in the others (use bloomjoin.join)"
        )
    return _frame(join, options)


def _frame(verb: Callable[..., Reader], options: Mapping[str, Any]) -> dd.DataFrame:
    if options.get("progress") is not None:
        raise UsageError(
            "progress: a task cannot report to this process (use dask.diagnostics.ProgressBar)"
        )
    for name in ("logs", "ids"):
        if isinstance(options.get(name), (pa.RecordBatchReader, Iterator)):
            raise UsageError(
                f"{name}: want something that every task can read, got a "
                f"{type(options[name]).__name__} (pass a path, a list, or its table, with "
                "read_all())"
            )
    references = References(verb, options)
    schema = references.schema
    chosen = _of(options, *_SELECTION, "uncommitted", "raw_files", *_HIVE, *_ACCESS)
    log = list_log(options["logs"], chosen)
    task_options = {name: value for name, value in options.items() if name not in _SELECTION}
    if log.hive_types:
        task_options["hive_types"] = log.hive_types
    if task_options.get("threads") is None:
        task_options["threads"] = 1
    partition = _Partition(
        verb,
        task_options,
        dict(zip(schema.names, references.of(schema.names), strict=True)),
        schema,
    )
    frame: dd.DataFrame = dd.from_map(
        partition,
        log.names,
        meta=_pandas(schema.empty_table()),
        label=f"bloomjoin-{verb.__name__}",
        enforce_metadata=False,
    )
    return frame


@dataclass(frozen=True)
class _Partition:
    """Runs a verb on one file of the log. Can be pickled if its options can."""

    verb: Callable[..., Reader]
    options: Mapping[str, Any]
    references: Mapping[str, str]
    schema: pa.Schema

    def __call__(self, log: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        options = {**self.options, "logs": log}
        schema = self.schema
        if columns is not None:
            options["columns"] = [self.references[name] for name in columns]
            schema = pa.schema([schema.field(name) for name in columns])
        # That no ID has a row in this file is no reason to warn.
        with self.verb(**options)._without_warnings() as reader:
            table = reader.read_all()
        if table.schema.types != schema.types:
            raise DataError(
                f"{log}: mismatch: want columns of the types {_list(schema)}, got "
                f"{_list(table.schema)} (the file has changed since the DataFrame was made)"
            )
        return _pandas(table.rename_columns(schema.names))


def _pandas(table: pa.Table) -> pd.DataFrame:
    # Pandas metadata of the log's files would bring back their indexes and types.
    bare = table.replace_schema_metadata(None)
    frame = bare.to_pandas(types_mapper=pd.ArrowDtype)
    assert isinstance(frame, pd.DataFrame)
    return frame


def _of(options: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: options[name] for name in names if options.get(name) is not None}


def _list(schema: pa.Schema) -> str:
    return ", ".join(str(t) for t in schema.types)
