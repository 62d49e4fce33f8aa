"""Answers as Polars LazyFrames.

A LazyFrame reads no rows until it is collected, and then only what the query
needs: its columns, its first rows, and rows that satisfy its simple conditions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from bloomjoin._lake import pinned
from bloomjoin._predicates import condition
from bloomjoin._reader import Reader
from bloomjoin._references import References
from bloomjoin._signatures import takes_parameters_of
from bloomjoin._verbs import join, scan

__all__ = ["join_lazy", "scan_lazy"]


@takes_parameters_of(scan)
def scan_lazy(**options: Any) -> pl.LazyFrame:
    """Return the rows of a log that may match a filter, as a LazyFrame.

    Takes the parameters of :func:`bloomjoin.scan`. Each collection runs the
    scan again, so the log must be something that can be read again: paths,
    URLs, tables and data frames, but not a RecordBatchReader.

    The columns and their types are found here, so wrong arguments raise an
    Error here. What goes wrong later is an Error of ``collect``.
    """
    return _Source(scan, options).lazy_frame()


@takes_parameters_of(join)
def join_lazy(**options: Any) -> pl.LazyFrame:
    """Return the answer of a join as a LazyFrame.

    Takes the parameters of :func:`bloomjoin.join`, and IDs that can be read
    again, like the log of :func:`scan_lazy`. Conditions of the query reach the
    run in semi and anti joins. In other joins, ``where`` skips more.
    """
    return _Source(join, options).lazy_frame()


class _Source:
    """The IO source of a LazyFrame: opens a run for each collection."""

    def __init__(self, verb: Callable[..., Reader], options: Mapping[str, Any]) -> None:
        for name in ("logs", "ids"):
            if isinstance(options.get(name), (pa.RecordBatchReader, Iterator)):
                raise TypeError(
                    f"{name}: want something that can be read again each time the LazyFrame "
                    f"is collected, got a {type(options[name]).__name__} (pass its table, with "
                    "read_all(), or a list of it)"
                )
        self._verb = verb
        sides = {name: pinned(options[name], name) for name in ("logs", "ids") if name in options}
        self._options = {**options, **sides}
        self._references = References(verb, self._options)

    def lazy_frame(self) -> pl.LazyFrame:
        return register_io_source(
            self.frames, schema=self._schema, validate_schema=True, is_pure=True
        )

    @functools.cached_property
    def _schema(self) -> pl.Schema:
        return _frame(self._references.schema.empty_table()).schema

    def frames(
        self,
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        """Run the verb, as Polars asks for it.

        Frames have the size of the binary's batches; ``batch_size`` is a hint.
        The run ends early when Polars closes the iterator.
        """
        options = dict(self._options)
        if with_columns is not None:
            options["columns"] = self._references.of(with_columns)
        # With n_rows, the predicate applies to the first n_rows rows alone.
        pushed = self._condition(predicate) if n_rows is None else None
        if pushed:
            where = options.get("where")
            options["where"] = f"({where}) AND {pushed}" if where else pushed
        with self._verb(**options) as reader:
            if pushed:  # a warning would be about a condition that nobody has written
                reader._without_warnings()
            for batch in _head(reader, n_rows):
                frame = _frame(batch)
                if with_columns is not None:
                    frame.columns = with_columns
                yield frame if predicate is None else frame.filter(predicate)

    def _condition(self, predicate: pl.Expr | None) -> str | None:
        """Return what of a predicate the run can decide for rows of the log."""
        if predicate is None or not self._references.are_of_the_log:
            return None
        if self._options.get("ignore_case"):
            return None
        return condition(predicate, self._schema)


def _head(reader: Reader, rows: int | None) -> Iterator[pa.RecordBatch]:
    """Yield batches up to a number of rows, and ask for none after them."""
    if rows is None:
        yield from reader
        return
    while rows > 0:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        yield batch.slice(0, rows)
        rows -= batch.num_rows


def _frame(data: pa.RecordBatch | pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(data)
    assert isinstance(frame, pl.DataFrame)
    return frame
