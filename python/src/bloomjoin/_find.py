"""Which files of a list may hold a key."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from bloomjoin import _parameters as of
from bloomjoin._listing import unescaped
from bloomjoin._options import path
from bloomjoin._reports import Report
from bloomjoin._runs import Run
from bloomjoin._signatures import verb
from bloomjoin._values import texts

if TYPE_CHECKING:
    from typing_extensions import Unpack


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


@verb(of.Find)
def find(
    key: Annotated[object, "the key, or a list of keys; a tuple is a key of several columns"],
    inputs: Annotated[of.Path, "the list that bloomjoin inputs --index wrote"],
    **options: "Unpack[of.Find]",
) -> FindReport:
    """Return the files that may hold a key or, of a list of keys, one of them."""
    with Run("find", options) as run:
        # Keys are among the inputs, so that no error repeats them.
        keys = [f"--key={text}" for text in texts(key)]
        return run.report(FindReport, [*keys, "--", path(inputs)])
