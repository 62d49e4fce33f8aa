"""Progress of a run, for a callback or a bar of tqdm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


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


def listener(progress: Listener | Bar | None) -> Listener | None:
    """Return the function that a run calls."""
    if progress is None:
        return None
    if isinstance(progress, Bar):
        return _Advance(progress)
    return progress


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
