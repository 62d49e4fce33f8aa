"""The error of a filter file that breaks a rule of the format."""

from __future__ import annotations

from bloomjoin._errors import DataError

DAMAGED = "the file is damaged: copy it again, or build the filter again"
NEWER = "it was written by a newer version of bloomjoin: use that version"


class Broken(Exception):
    """A rule that a file breaks, before it is known which file it is.

    ``newer`` is set if another version may understand the file.
    """

    def __init__(self, problem: str, *, newer: bool = False, hint: str = "") -> None:
        super().__init__(problem)
        self.newer = newer
        self.hint = hint or (NEWER if newer else DAMAGED)

    def in_file(self, name: str) -> DataError:
        """Return the error of the package."""
        return DataError(f"{name}: {self} ({self.hint})")


def unlike(what: str, want: object, got: object) -> Broken:
    """Return the problem that something is not as it has to be."""
    return Broken(f"{what}: want {want}, got {got}")
