"""Fixtures of several test modules."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def children() -> Callable[[], set[int]]:
    """Return a function that lists child processes that the test has started and not reaped."""
    before = _children()
    return lambda: _children() - before


def _children() -> set[int]:
    """Return the processes of all threads of this process (Linux)."""
    found: set[int] = set()
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            found.update(map(int, (task / "children").read_text().split()))
    return found
