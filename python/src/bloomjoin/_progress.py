"""Progress of a run, for a callback or a bar of tqdm."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TextIO, runtime_checkable


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    ``what`` it does, as "scanning"; the ``rows`` done, of ``rows_total`` if that
    is known; and the ``seconds`` since this part of the run began.
    """

    what: str
    rows: int
    rows_total: int | None
    seconds: float


Listener = Callable[[Progress], object]


@runtime_checkable
class Bar(Protocol):
    """A progress bar, as ``tqdm()`` returns it."""

    total: Any

    def update(self, n: float | None = 1) -> object:
        """Add n rows."""


def listener(progress: bool | Listener | Bar | None) -> Listener | None:
    """Return the function that a run calls."""
    if progress is None or progress is False:
        return None
    if progress is True:
        return Line(sys.stderr)
    if isinstance(progress, Bar):
        return _Advance(progress)
    return progress


class Line:
    """Shows progress as a line that is written again and again."""

    def __init__(self, to: TextIO) -> None:
        self._to = to
        self._width = 0

    def __call__(self, progress: Progress) -> None:
        of = "" if progress.rows_total is None else f" of {progress.rows_total:,}"
        text = f"{progress.what}: {progress.rows:,}{of} rows, {progress.seconds:.0f} s"
        self._to.write(f"\r{text:<{self._width}}")
        self._to.flush()
        self._width = len(text)

    def end(self) -> None:
        """Leave the line as it is. What is written next begins another one."""
        if self._width > 0:
            self._to.write("\n")
            self._to.flush()


class _Advance:
    """Moves a bar. Each part of a run starts it anew."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._what = ""
        self._rows = 0

    def __call__(self, progress: Progress) -> None:
        if progress.what != self._what:
            self._what, self._rows = progress.what, 0
            if hasattr(self._bar, "reset"):
                self._bar.reset(total=progress.rows_total)
        if self._bar.total != progress.rows_total:
            self._bar.total = progress.rows_total
        self._bar.update(progress.rows - self._rows)
        self._rows = progress.rows
