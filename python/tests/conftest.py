"""Fixtures of several test modules."""

from __future__ import annotations

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
    tasks = Path(f"/proc/{os.getpid()}/task")
    return {int(pid) for task in tasks.iterdir() for pid in (task / "children").read_text().split()}
