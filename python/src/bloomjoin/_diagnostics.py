"""What a run prints on standard error: messages, progress, the error and the report."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from bloomjoin._errors import (
    DataError,
    Error,
    GateError,
    InternalError,
    InterruptedRun,
    NotFoundError,
    RetryableError,
    UsageError,
)
from bloomjoin._progress import Line, Listener, Progress

_BY_CODE: Mapping[int, type[Error]] = {
    1: DataError,
    2: GateError,
    64: UsageError,
    75: RetryableError,
}

# Lines kept that are no JSON, as of a crash, and warnings. A run prints few of either.
_MOST_LINES = 200


class Diagnostics:
    """Reads standard error to its end, on a thread, so that a run never waits for it.

    Memory is bounded. ``stop`` ends the run if the listener raises.
    """

    def __init__(
        self, stderr: IO[bytes], listener: Listener | None, stop: Callable[[], object]
    ) -> None:
        self.report: Mapping[str, Any] | None = None
        self.warnings: deque[str] = deque(maxlen=_MOST_LINES)
        self.raised: BaseException | None = None  # by the listener
        self._error: Mapping[str, Any] | None = None
        self._other: deque[str] = deque(maxlen=_MOST_LINES)
        self._listener = listener
        self._stop = stop
        self._thread = threading.Thread(
            target=self._drain, args=(stderr,), name="bloomjoin-stderr", daemon=True
        )
        self._thread.start()

    def join(self) -> None:
        """Wait until all has been read, which is when the run has ended."""
        if self._thread is not threading.current_thread():
            self._thread.join()

    def error(self, code: int, args: Sequence[str]) -> Error | None:
        """Return the error of a run that ended with an exit code."""
        if code == 0:
            return None
        said = self._error or {}
        text = said.get("msg") or "\n".join(self._other) or f"bloomjoin ended with exit code {code}"
        kind = _BY_CODE.get(code, InternalError)
        if code < 0 or code > 128:
            kind = InterruptedRun
        if said.get("class") == "internal":
            kind = InternalError
        if kind is DataError and said.get("not_found"):
            kind = NotFoundError
        if code < 0 and not said:
            text = f"bloomjoin was killed by signal {-code} (by the system, if memory was short)"
        return kind(text, exit_code=code, command=args)

    def _drain(self, stderr: IO[bytes]) -> None:
        for line in stderr:
            if line.startswith(b"{"):
                with contextlib.suppress(ValueError):
                    self._take(json.loads(line))
                    continue
            self._other.append(line.decode("utf-8", "replace").rstrip())
        if isinstance(self._listener, Line):
            self._listener.end()

    def _take(self, said: Mapping[str, Any]) -> None:
        match said.get("level"):
            case None:
                self.report = said
            case "ERROR":
                self._error = said
            case "WARN":
                self.warnings.append(said["msg"])
            case _ if "progress" in said:
                self._progress(said["progress"])

    def _progress(self, figures: Mapping[str, Any]) -> None:
        if self._listener is None or self.raised is not None:
            return
        try:
            self._listener(
                Progress(
                    what=figures["what"],
                    rows=figures["rows"],
                    rows_total=figures.get("rows_total"),
                    seconds=figures["seconds"],
                )
            )
        except BaseException as raised:
            self.raised = raised
            self._stop()
