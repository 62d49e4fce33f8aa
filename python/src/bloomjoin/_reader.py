"""The answer of a run as a stream of record batches."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, cast

import pyarrow as pa

from bloomjoin._errors import InternalError, UsageError
from bloomjoin._process import Child

# The start of a message, and the end of a stream: a message of no bytes (Arrow IPC,
# "Encapsulated message format").
_START = b"\xff\xff\xff\xff"
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class Reader(pa.ipc.RecordBatchStreamReader):
    """Record batches of a running scan, join or dedup, read as they are computed.

    A ``pyarrow.RecordBatchReader``: iterate over it, or give it to whatever takes
    one or the Arrow C stream. It can be read once. The run waits while nothing is
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
        return None if said is None else self._report(said)

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
    one, and stops at an end marker without reading on. So the last bytes of a
    marker are withheld until it is certain that the run has succeeded, and the
    end of the file without a marker is an error.
    """

    def __init__(self, child: Child) -> None:
        self.child = child
        self.closed = False
        self._raw = child.stdout
        self._last = b""  # up to 8 bytes, the last that were returned
        self._ahead = b""  # a byte read after what looked like the marker
        self._started = self._finished = False
        self._reading = threading.RLock()
        self._owner = os.getpid()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> pa.Buffer:
        """Return the next bytes: as many as asked for, fewer at the end of the stream only."""
        with self._reading:
            try:
                return self._read(size)
            except BaseException:
                self.child.end()
                raise

    def _read(self, size: int) -> pa.Buffer:
        if size < 0:
            raise ValueError("want a number of bytes")
        if self._finished or size == 0:
            return pa.py_buffer(b"")
        buffer = pa.allocate_buffer(size)
        view = memoryview(buffer).cast("B")
        done = len(self._ahead)
        view[:done] = self._ahead[:size]
        self._ahead = b""
        while done < size:
            n = self._raw.readinto(view[done:])  # type: ignore[attr-defined]
            if not n:
                break
            done += n
        if not self._started and view[: min(done, len(_START))] != _START[:done]:
            raise UsageError("the answer is text, as the input (write it with dedup_to)")
        self._started = True
        self._last = (self._last + bytes(view[max(0, done - len(_END)) : done]))[-len(_END) :]
        if self._last == _END:
            self._ahead = self._raw.read(1) or b""
        if done < size or (self._last == _END and not self._ahead):
            self._succeeded()
        return buffer.slice(0, done) if done < size else buffer

    def _succeeded(self) -> None:
        """Wait for the run, and raise its error if it has failed."""
        self._finished = True
        self.child.finish()
        if self._last != _END:
            raise InternalError("the answer broke off, although bloomjoin ended without an error")

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
