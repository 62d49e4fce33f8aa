"""Arrow data of any library as a stream of record batches."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from typing import IO, Any, cast
from uuid import UUID

import pyarrow as pa

from bloomjoin import _native


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

    def digest(self) -> str | None:
        """Return a digest of what ``write`` writes, in hexadecimal; None if it is read once."""
        if self.nbytes is None:
            return None
        to = _Digest()
        self.write(cast(IO[bytes], to))
        return f"{to.a:016x}{to.b:016x}"


class _Digest:
    """Two chains of XXH3 hashes of what is written, as a file that pyarrow takes."""

    closed = False

    def __init__(self) -> None:
        self.a, self.b = 0, 1

    def write(self, data: Any) -> int:
        buffer = pa.py_buffer(data)
        self.a = _native.xxh3(buffer.address, buffer.size, self.a)
        self.b = _native.xxh3(buffer.address, buffer.size, self.b)
        return buffer.size

    def flush(self) -> None:
        pass


def is_arrow(given: object) -> bool:
    """Report whether a value is Arrow data, or can be turned into it without a copy."""
    names = ("__arrow_c_stream__", "__arrow_c_array__", "__array__", "to_reader", "scanner")
    return any(hasattr(given, name) for name in names)


_VALUES = (int, float, bytes, Decimal, date, time, timedelta, UUID, pa.Scalar)


class Mixed(Exception):
    """Values that Arrow cannot hold in a column. The text names the column, if any."""


@contextlib.contextmanager
def converting() -> Iterator[None]:
    """Raise Mixed for errors of a conversion, whose texts may have values in them."""
    try:
        yield
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as reason:
        column = re.search(r"failed for column (.*) with type", str(reason))
        raise Mixed(f"column {column[1]}: " if column else "") from None


def is_value(given: object) -> bool:
    """Report whether something is one value, also one of NumPy, and no text."""
    return isinstance(given, _VALUES) or (
        hasattr(given, "__array__") and getattr(given, "ndim", 1) == 0
    )


def as_array(values: Any) -> pa.Array[Any]:
    """Return Python values as an array. Raises Mixed."""
    with converting():
        plain = [one.as_py() if isinstance(one, pa.Scalar) else one for one in values]
        return cast("pa.Array[Any]", pa.array(plain))


def as_stream(given: Any, unnamed: str | None) -> Stream:
    """Return Arrow data as a stream.

    An array is the column ``unnamed``; if that is None, of its own name, or ``key``.
    """
    if isinstance(given, pa.RecordBatchReader):
        return _of_reader(given)
    if isinstance(given, pa.Table):
        return _of_table(given)
    if isinstance(given, pa.RecordBatch):
        return _of_table(pa.Table.from_batches([given]))
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        return _of_column(given, unnamed or "key")
    if hasattr(given, "scanner"):  # a dataset of pyarrow
        return _of_reader(given.scanner().to_reader())
    if hasattr(given, "to_reader"):  # its scanner
        return _of_reader(given.to_reader())
    if _of_pandas(given) and hasattr(given, "columns"):
        with converting():
            return _of_table(pa.Table.from_pandas(given, preserve_index=False))
    if not _is_series(given):
        with contextlib.suppress(pa.ArrowInvalid):  # a stream of arrays, not of batches
            if hasattr(given, "__arrow_c_stream__"):
                height = getattr(given, "height", None)  # of a frame of Polars, or a column
                rows = height if isinstance(height, int) else None
                return replace(_of_reader(_import(given)), rows=rows)
            if hasattr(given, "__arrow_c_array__"):
                return _of_table(pa.Table.from_batches([pa.record_batch(given)]))
    with converting():
        column = _column(given)
    return _of_column(column, unnamed or _named(given) or "key")


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
