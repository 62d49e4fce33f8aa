"""Sketches: how often keys occur, in little memory."""

import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from bloomjoin import _parameters as of
from bloomjoin._arrow import Stream
from bloomjoin._errors import DataError, UsageError
from bloomjoin._inputs import as_input, listed, place_one
from bloomjoin._options import combining
from bloomjoin._options import path as file_name
from bloomjoin._reports import Estimate, Inspection, Report
from bloomjoin._runs import Run
from bloomjoin._signatures import verb
from bloomjoin._stores import Credentials
from bloomjoin._temporary import new_file, remove
from bloomjoin._values import of_class, texts

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Bytes of keys on a command line, which systems limit.
_MOST_BYTES = 24 << 10


@verb(of.SketchOf)
def sketch(
    logs: of.Logs,
    key: Annotated[of.Names, "the columns of the key"],
    *,
    out: Annotated[of.Path | None, "the file to write; without it the sketch is temporary"] = None,
    **options: "Unpack[of.SketchOf]",
) -> "Sketch":
    """Count how often keys occur in a log, or add up ``weight``.

    Estimates are too high by more than ``epsilon`` of the total with the probability
    ``delta``.
    """
    with Run("sketch", options, key=key) as run:
        names, feed = place_one(as_input(logs, "logs", key))
        stores = options.get("storage_options"), options.get("credentials")
        return _written(run, out, listed(names, run.stack), feed, *stores)


class Sketch:
    """How often keys occur. Each question is a run of the command.

    A sketch never changes; threads may share it. Its file must stay.
    """

    __slots__ = ("__weakref__", "_facts", "_owned", "_path")

    _path: str
    _owned: bool
    _facts: Mapping[str, Any]

    def __init__(self) -> None:
        raise TypeError("use Sketch.load or bloomjoin.sketch")

    @classmethod
    def load(
        cls,
        path: of.Path,
        *,
        storage_options: Mapping[str, Any] | None = None,
        credentials: Credentials | None = None,
    ) -> "Sketch":
        """Open a sketch, a file or one at a URL."""
        name = file_name(path)
        if "://" not in name:
            return cls._open(name)
        with Run("merge", {"storage_options": storage_options, "credentials": credentials}) as run:
            run.add("union", True)
            return _written(run, None, ["--", name], None, None, None)

    @classmethod
    def _open(cls, path: str, *, owned: bool = False) -> "Sketch":
        with Run("inspect", {}) as run:
            found = run.report(Inspection, ["--", path]).files[0]
        if "sketch" not in found:
            raise DataError(f"{path}: want a sketch, got another file")
        self = object.__new__(cls)
        self._path, self._facts = os.path.abspath(path), found["sketch"]
        self._owned = owned
        if owned:
            weakref.finalize(self, remove, path, os.getpid())
        return self

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the key's columns, in order."""
        return tuple(column["name"] for column in self._facts["key"])

    @property
    def key_classes(self) -> tuple[str, ...]:
        """The classes of the key's columns, as ``integer`` or ``bytes``."""
        return tuple(column["class"] for column in self._facts["key"])

    @property
    def total(self) -> int:
        """The rows with a key, or their weight."""
        return int(self._facts["total"])

    @property
    def sealed(self) -> bool:
        """False for a partial sketch, which answers no questions."""
        return bool(self._facts["sealed"])

    @property
    def path(self) -> str | None:
        """The absolute path of the file; None if it is temporary."""
        return None if self._owned else self._path

    def estimate(self, keys: object) -> list[Estimate]:
        """Return how often each key occurs: never more than ``value``.

        A key of several columns is a tuple. ``low`` holds with the probability 1 - delta.
        """
        answers: list[Estimate] = []
        for some in _batches(texts(keys)):
            said = self._ask([f"--value={text}" for text in some])
            answers += map(_estimate, said["values"])
        return answers

    def range(self, low: object, high: object) -> Estimate:
        """Return how often keys from ``low`` to ``high``, included, occur."""
        ends = texts([low, high])
        return _estimate(self._ask([f"--range={ends[0]}..{ends[1]}"])["ranges"][0])

    def inner(self, other: "Sketch") -> Estimate:
        """Return the rows of the join with another sketch's rows."""
        return _estimate(self._ask([f"--inner={other._path}"])["inner"])

    def heavy(self, share: float, logs: of.Logs | None = None) -> list[tuple[Any, int]]:
        """Return the keys with a share of the total, and their counts, the heaviest first.

        Counts are estimates, for which the sketch must have ranges; with ``logs``, which
        are read again, they are exact. Keys other than an integer are text.
        """
        given = None if logs is None else as_input(logs, "logs", self.key_names)
        names, feed = place_one(given) if given else ((), None)
        said = self._ask([f"--heavy={share}"], names, feed)
        return [(of_class(k["key"], self.key_classes), k["count"]) for k in said["heavy"]["keys"]]

    def merge(
        self,
        *others: "Sketch",
        how: Literal["union", "partials"] = "union",
        out: of.Path | None = None,
        force: bool = False,
    ) -> "Sketch":
        """Add finished sketches up; with ``how="partials"``, all partial ones of one."""
        if how not in ("union", "partials"):
            raise UsageError(f"how: want union or partials, got {how!r}")
        with Run("merge", {"force": force}) as run:
            run.add(*combining(how))
            return _written(
                run, out, ["--", *(one._path for one in (self, *others))], None, None, None
            )

    def _ask(
        self, flags: list[str], inputs: Sequence[str] = (), feed: Stream | None = None
    ) -> Mapping[str, Any]:
        # Keys are among the inputs, so that no error repeats them.
        with Run("sketch", {}) as run:
            return run.report(Report, ["query", *flags, "--", self._path, *inputs], feed).raw

    def __reduce__(self) -> tuple[Any, ...]:
        return Sketch.load, (self._path,)

    def __repr__(self) -> str:
        key = ", ".join(self.key_names)
        return f"<bloomjoin.Sketch: key {key}, total {self.total:,}>"


def _written(
    run: Run,
    out: of.Path | None,
    inputs: Sequence[str],
    feed: Stream | None,
    storage_options: Mapping[str, Any] | None,
    credentials: Credentials | None,
) -> "Sketch":
    """Run, and return the sketch that it writes."""
    if out is None:
        with new_file("sketch.bjs") as path:
            run.add("output", path)
            run.report(Report, inputs, feed)
            return Sketch._open(path, owned=True)
    run.report(Report, inputs, feed, out=out)
    return Sketch.load(out, storage_options=storage_options, credentials=credentials)


def _estimate(said: Mapping[str, Any]) -> Estimate:
    most = said["most"]
    return Estimate(value=most, low=most - said["error"], high=most)


def _batches(given: list[str]) -> Iterator[list[str]]:
    """Divide texts into lists that fit on a command line."""
    batch: list[str] = []
    size = 0
    for text in given:
        size += len(os.fsencode(text)) + 10
        if batch and size > _MOST_BYTES:
            yield batch
            batch, size = [], len(os.fsencode(text)) + 10
        batch.append(text)
    if batch:
        yield batch
