"""Arrow data of any library as a stream of record batches."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, cast

import pyarrow as pa


@dataclass(frozen=True)
class Stream:
    """Record batches that are read once.

    ``nbytes`` is their size in memory, ``rows`` their number; None if it is not known.
    """

    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]
    nbytes: int | None
    rows: int | None = None

    def write(self, to: IO[bytes]) -> None:
        """Write an Arrow IPC stream.

        After an exception the end marker is missing, so nobody takes it for complete.
        """
        writer = pa.ipc.new_stream(cast(Any, to), self.schema)
        for batch in self.batches():
            writer.write_batch(batch)
        writer.close()


def is_arrow(given: object) -> bool:
    """Report whether a value is Arrow data, or can be turned into it without a copy."""
    names = ("__arrow_c_stream__", "__arrow_c_array__", "__array__", "to_reader", "scanner")
    return any(hasattr(given, name) for name in names)


def as_stream(given: Any, unnamed: str) -> Stream:
    """Return Arrow data as a stream. An array is a column of its name, or ``unnamed``."""
    if isinstance(given, pa.RecordBatchReader):
        return _of_reader(given)
    if isinstance(given, pa.Table):
        return _of_table(given)
    if isinstance(given, pa.RecordBatch):
        return _of_table(pa.Table.from_batches([given]))
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        return _of_column(given, unnamed)
    if hasattr(given, "scanner"):  # a dataset of pyarrow
        return _of_reader(given.scanner().to_reader())
    if hasattr(given, "to_reader"):  # its scanner
        return _of_reader(given.to_reader())
    if _of_pandas(given) and hasattr(given, "columns"):
        return _of_table(pa.Table.from_pandas(given, preserve_index=False))
    if not _is_series(given):
        with contextlib.suppress(pa.ArrowInvalid):  # a stream of arrays, not of batches
            if hasattr(given, "__arrow_c_stream__"):
                return _of_reader(_import(given))
            if hasattr(given, "__arrow_c_array__"):
                return _of_table(pa.Table.from_batches([pa.record_batch(given)]))
    return _of_column(_column(given), _named(given) or unnamed)


def _import(given: Any) -> pa.RecordBatchReader:
    if hasattr(pa.RecordBatchReader, "from_stream"):  # since pyarrow 15
        return pa.RecordBatchReader.from_stream(given)
    capsule = given.__arrow_c_stream__()
    imported = cast(Any, pa.RecordBatchReader)._import_from_c_capsule(capsule)
    return cast(pa.RecordBatchReader, imported)


def _of_reader(reader: pa.RecordBatchReader) -> Stream:
    return Stream(reader.schema, lambda: iter(reader), None)


def _of_table(table: pa.Table) -> Stream:
    return Stream(table.schema, lambda: iter(table.to_batches()), table.nbytes, table.num_rows)


def _of_column(column: Any, name: str) -> Stream:
    return _of_table(pa.table({name: column}))


def _column(given: Any) -> Any:
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        return given
    if _of_pandas(given):
        return pa.array(given, from_pandas=True)
    if hasattr(given, "__arrow_c_stream__"):
        return pa.chunked_array(given)
    return pa.array(given)


def _of_pandas(given: object) -> bool:
    return type(given).__module__.partition(".")[0] == "pandas"


def _is_series(given: Any) -> bool:
    """Report whether a value is one column, as a Series or a NumPy array."""
    if any(hasattr(given, name) for name in ("columns", "column_names", "schema")):
        return False
    return hasattr(given, "name") or hasattr(given, "__array__")


def _named(given: Any) -> str | None:
    name = getattr(given, "name", None)
    return str(name) if name not in (None, "") else None
