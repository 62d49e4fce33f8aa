"""The answer of a run as a stream of record batches."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pyarrow as pa

from bloomjoin._errors import Error, InternalError, UsageError
from bloomjoin._process import Child
from bloomjoin._signatures import uninterrupted

if TYPE_CHECKING:
    import pandas
    import polars
    from typing_extensions import Self

# The start of a message, and the end of a stream: a message of no bytes (Arrow IPC,
# "Encapsulated message format").
_START = b"\xff\xff\xff\xff"
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class Reader(pa.ipc.RecordBatchStreamReader):
    """Record batches of a running scan, join or dedup, read as they are computed.

    A ``pyarrow.RecordBatchReader``: iterate over it, give it to whatever takes
    one or the Arrow C stream, or turn it into a frame or a table. It can be read
    once, and raises a UsageError after that. The run waits while nothing is
    read, so memory stays small.

    An answer is complete or an error: the end of the stream is passed on only
    after the run has succeeded. ``close``, leaving a ``with`` block, an exception
    while reading, or dropping the last reference ends the run and removes its
    temporary files.

    Not safe for concurrent use, apart from ``close``.
    """

    def __init__(self, child: Child, report: Callable[[Mapping[str, Any]], Any]) -> None:
        self._output = _Output(child)
        self._report = report
        try:
            super().__init__(pa.PythonFile(cast(Any, self._output), mode="r"))
        except BaseException:
            self._output.end()
            raise

    @property
    def report(self) -> Any:
        """The report of the run, as a ScanReport or JoinReport; None before the end."""
        said = self._output.child.report
        return self._report(said) if said is not None and self._output.complete else None

    def to_arrow(self) -> pa.Table:
        """Read the answer to its end, as ``read_all`` does."""
        return self.read_all()

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """Read the answer to its end. The options are those of ``pyarrow.Table.to_pandas``."""
        return self.read_all().to_pandas(**options)

    def to_polars(self) -> polars.DataFrame:
        """Read the answer to its end."""
        import polars

        return cast("polars.DataFrame", polars.from_arrow(self.read_all()))

    pl = to_polars

    def head(self, n: int = 5) -> pa.Table:
        """Return the first n rows, and end the run."""
        if n < 0:
            raise UsageError(f"head: want 0 rows or more, got {n}")
        schema, batches = self.schema, []
        with self:
            while n > 0:
                try:
                    batch = self.read_next_batch()
                except StopIteration:
                    break
                batches.append(batch.slice(0, n))
                n -= batch.num_rows
        return pa.Table.from_batches(batches, schema)

    @uninterrupted
    def read_all(self) -> pa.Table:
        """Read the answer to its end."""
        self._output.check()
        return super().read_all()

    @uninterrupted
    def read_pandas(self, **options: Any) -> pandas.DataFrame:
        """Read the answer to its end, as ``to_pandas`` does."""
        self._output.check()
        return super().read_pandas(**options)

    @uninterrupted
    def read_next_batch(self) -> pa.RecordBatch:
        """Return the next batch. Raises StopIteration at the end, once."""
        return super().read_next_batch()

    def __iter__(self) -> Self:
        self._output.check()
        return self

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        self._output.check()
        return cast(Any, super()).__arrow_c_stream__(requested_schema)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        # pandas and NumPy would take the batches for rows.
        raise TypeError("a Reader is a table and no array: use its to_pandas(), or read_all()")

    def __repr__(self) -> str:
        columns = "".join(f"\n{field.name}: {field.type}" for field in self.schema)
        return f"<bloomjoin.Reader, {self._output.state()}>{columns}"

    def _without_warnings(self) -> Reader:
        """Do not pass on what the run warns of, as it says nothing about a part of an answer."""
        self._output.child.warns = False
        return self

    def close(self) -> None:
        """End the run. What it has computed so far is lost."""
        self._output.end()
        super().close()


class _Output:
    """The standard output of a run, as a file that pyarrow reads.

    pyarrow takes a stream that breaks off between two messages for a complete
    one, and stops at an end marker without reading on. So it never sees the marker:
    where it asks for the start of a message, the end of the file is returned in its
    place, once it is certain that the run has succeeded. Any other end is an error,
    and so is to read on after it.
    """

    def __init__(self, child: Child) -> None:
        self.child = child
        self.closed = self.complete = False
        self._raw = child.stdout
        self._ahead = b""  # what was read to see whether the marker is the end
        self._started = self._finished = False
        self._reading = threading.RLock()
        self._owner = os.getpid()

    def readable(self) -> bool:
        return True

    def state(self) -> str:
        """Return how far the answer has been read, for people."""
        if self.complete:
            return "read"
        return "closed" if self._finished or self.closed else "not read to its end"

    def check(self) -> None:
        """Raise UsageError if the answer has been read, or was closed."""
        if self._finished or self.closed:
            raise UsageError(
                "the Reader has been read or closed, and can be read once (keep its rows, as in "
                "table = reader.read_all(), or run the join again)"
            )

    def read(self, size: int = -1) -> pa.Buffer:
        """Return the next bytes: as many as asked for, fewer at the end of the stream only."""
        with self._reading:
            try:
                return self._read(size)
            except BaseException as raised:
                self.child.end()
                if isinstance(raised, (Error, KeyboardInterrupt)):
                    raised.with_traceback(None)  # other libraries print it within their errors
                raise

    def _read(self, size: int) -> pa.Buffer:
        if size < 0:
            raise ValueError("want a number of bytes")
        self.check()
        if size == 0:
            return pa.py_buffer(b"")
        buffer = pa.allocate_buffer(size)
        view = memoryview(buffer).cast("B")
        done = self._fill(view)
        if not self._started and done > 0 and view[: min(done, len(_START))] != _START[:done]:
            raise UsageError("the answer is text, as the input (write it with dedup_to)")
        if done < size:
            raise self._broken()
        self._started = True
        if size == len(_START) and view == _START and self._is_end():
            self._finished = True
            self.child.finish()
            self.complete = True
            return pa.py_buffer(b"")
        return buffer

    def _fill(self, view: memoryview) -> int:
        """Read until the view is full or the stream at its end. Return the number of bytes."""
        done = min(len(self._ahead), len(view))
        view[:done] = self._ahead[:done]
        self._ahead = self._ahead[done:]
        while done < len(view):
            n = self._raw.readinto(view[done:])  # type: ignore[attr-defined]
            if not n:
                break
            done += n
        return done

    def _is_end(self) -> bool:
        """Report whether the rest of the marker is all that there is. What is read is kept."""
        more = bytearray(len(_END) - len(_START) + 1)
        more = more[: self._fill(memoryview(more))]
        if more == _END[len(_START) :]:
            return True
        self._ahead = bytes(more)
        return False

    def _broken(self) -> Exception:
        """Return the error of an answer that breaks off."""
        self._finished = True
        self.child.finish()
        return InternalError("the answer broke off, although bloomjoin ended without an error")

    def end(self) -> None:
        """End the run, also while another thread reads."""
        if os.getpid() != self._owner:
            return  # a forked process, where the lock may be held for ever
        while not self._reading.acquire(timeout=0.1):
            self.child.stop()
        try:
            self._finished = True
            self.child.end()
        finally:
            self._reading.release()

    def close(self) -> None:
        """End the run: pyarrow closes the file with the reader."""
        self.closed = True
        self.end()
