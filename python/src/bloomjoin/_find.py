"""Which files of a list may hold a key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bloomjoin._listing import unescaped
from bloomjoin._progress import Bar, Listener
from bloomjoin._reports import Report
from bloomjoin._runs import Run
from bloomjoin._stores import Credentials
from bloomjoin._values import texts


@dataclass(frozen=True)
class FoundFile:
    """A file that may hold a key, in ``rows``; None: not counted."""

    name: str
    row_groups: tuple[int, ...]
    rows: int | None


@dataclass(frozen=True)
class FindReport(Report):
    """Of ``find``: of ``inputs`` files, the index named ``candidates``."""

    inputs: int = 0
    candidates: int = 0
    rows: int | None = None
    fpr: float = 0.0

    @property
    def files(self) -> tuple[FoundFile, ...]:
        """The files; with ``verify`` those that hold the key."""
        return tuple(
            FoundFile(unescaped(f["file"]), tuple(f["row_groups"]), f.get("rows"))
            for f in self.raw.get("files") or ()
        )

    @property
    def names(self) -> list[str]:
        """Their names, as logs for ``scan`` and ``join``."""
        return [file.name for file in self.files]

    def _facts(self) -> dict[str, str]:
        return {"files": f"{len(self.files):,} of {self.inputs:,}"}


def find(
    key: Any,
    inputs: str | os.PathLike[str],
    *,
    verify: bool = False,
    memory: str | int | None = None,
    threads: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credentials: Credentials | None = None,
    progress: Listener | Bar | None = None,
) -> FindReport:
    """Return the files that may hold a key or, of a list of keys, one of them.

    ``inputs`` was written by ``bloomjoin inputs --index``. A key of several columns is
    a tuple. ``verify`` reads these files, and counts the rows.
    """
    with Run("find", locals(), ("key", "inputs")) as run:
        # Keys are among the inputs, so that no error repeats them.
        keys = [f"--key={text}" for text in texts(key)]
        return run.report(FindReport, [*keys, "--", os.fsdecode(inputs)])
