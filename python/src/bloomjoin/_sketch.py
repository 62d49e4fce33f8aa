"""Sketches: how often keys occur, in little memory."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Union

from bloomjoin._errors import DataError, UsageError
from bloomjoin._inputs import as_input, for_unnamed, listed, place_one
from bloomjoin._options import combining
from bloomjoin._progress import Bar, Listener
from bloomjoin._reports import Estimate, Inspection, Report
from bloomjoin._runs import Run
from bloomjoin._stores import Credentials
from bloomjoin._temporary import new_file, remove
from bloomjoin._values import of_class, texts
from bloomjoin._verbs import Names

Path = Union[str, "os.PathLike[str]"]

# Bytes of keys on a command line, which systems limit.
_MOST_BYTES = 24 << 10


def sketch(
    logs: Any,
    key: Names,
    *,
    out: Path | None = None,
    force: bool = False,
    weight: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    range: bool = False,
    shard: str | None = None,
    normalize: Names | None = None,
    include: Names | None = None,
    exclude: Names | None = None,
    uncommitted: bool = False,
    hive_partitioning: Literal["auto", "off"] | None = None,
    hive_types: str | Mapping[str, str] | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credentials: Credentials | None = None,
    progress: Listener | Bar | None = None,
) -> Sketch:
    """Count how often keys occur in a log, or add up ``weight``, a column of integers.

    Estimates are too high by more than ``epsilon`` of the total with the probability
    ``delta``. ``range`` counts ranges, too. Without ``out`` the sketch is temporary.
    """
    with Run("sketch", locals(), ("logs", "key", "out")) as run:
        run.add("key", key)
        names, feed = place_one(as_input(logs, "logs", unnamed=for_unnamed(key)))
        return _written(run, out, listed(names, run.stack), feed, storage_options, credentials)


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
        path: Path,
        *,
        storage_options: Mapping[str, Any] | None = None,
        credentials: Credentials | None = None,
    ) -> Sketch:
        """Open a sketch, a file or one at a URL."""
        name = os.fsdecode(path)
        if "://" not in name:
            return cls._open(name)
        with Run("merge", locals(), ("cls", "path", "name")) as run:
            run.add("union", True)
            return _written(run, None, ["--", name], None, None, None)

    @classmethod
    def _open(cls, path: str, *, owned: bool = False) -> Sketch:
        with Run("inspect", {}, ()) as run:
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

    def estimate(self, keys: Any) -> list[Estimate]:
        """Return how often each key occurs: never more than ``value``.

        A key of several columns is a tuple. ``low`` holds with the probability 1 - delta.
        """
        answers: list[Estimate] = []
        for some in _batches(texts(keys)):
            said = self._ask([f"--value={text}" for text in some])
            answers += map(_estimate, said["values"])
        return answers

    def range(self, low: Any, high: Any) -> Estimate:
        """Return how often keys from ``low`` to ``high``, included, occur."""
        ends = texts([low, high])
        return _estimate(self._ask([f"--range={ends[0]}..{ends[1]}"])["ranges"][0])

    def inner(self, other: Sketch) -> Estimate:
        """Return the rows of the join with another sketch's rows."""
        return _estimate(self._ask([f"--inner={other._path}"])["inner"])

    def heavy(self, share: float, logs: Any = None) -> list[tuple[Any, int]]:
        """Return the keys with a share of the total, and their counts, the heaviest first.

        Counts are estimates, for which the sketch must have ranges; with ``logs``, which
        are read again, they are exact. Keys other than an integer are text.
        """
        unnamed = for_unnamed(self.key_names)
        given = None if logs is None else as_input(logs, "logs", unnamed=unnamed)
        names, feed = place_one(given) if given else ((), None)
        said = self._ask([f"--heavy={share}"], names, feed)
        return [(of_class(k["key"], self.key_classes), k["count"]) for k in said["heavy"]["keys"]]

    def merge(
        self,
        *others: Sketch,
        how: Literal["union", "partials"] = "union",
        out: Path | None = None,
        force: bool = False,
    ) -> Sketch:
        """Add finished sketches up; with ``how="partials"``, all partial ones of one."""
        if how not in ("union", "partials"):
            raise UsageError(f"how: want union or partials, got {how!r}")
        with Run("merge", {"force": force}, ()) as run:
            run.add(*combining(how))
            return _written(
                run, out, ["--", *(one._path for one in (self, *others))], None, None, None
            )

    def _ask(self, flags: list[str], inputs: Any = (), feed: Any = None) -> Mapping[str, Any]:
        # Keys are among the inputs, so that no error repeats them.
        with Run("sketch", {}, ()) as run:
            return run.report(Report, ["query", *flags, "--", self._path, *inputs], feed).raw

    def __reduce__(self) -> tuple[Any, ...]:
        return Sketch.load, (self._path,)

    def __repr__(self) -> str:
        key = ", ".join(self.key_names)
        return f"<bloomjoin.Sketch: key {key}, total {self.total:,}>"


def _written(
    run: Run,
    out: Path | None,
    inputs: Any,
    feed: Any,
    storage_options: Mapping[str, Any] | None,
    credentials: Credentials | None,
) -> Sketch:
    """Run, and return the sketch that it writes."""
    if out is None:
        with new_file("sketch.bjs") as path:
            run.add("output", path)
            run.report(Report, inputs, feed)
            return Sketch._open(path, owned=True)
    run.add("output", out)
    run.report(Report, inputs, feed)
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
