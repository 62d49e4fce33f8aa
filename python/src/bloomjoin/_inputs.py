"""What ids and logs may be: names of files, or streams of Arrow data.

A stream goes to the command's standard input. There is one of these, so of two
streams the smaller one is staged: written to a temporary file.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bloomjoin._arrow import Stream, as_stream, is_arrow
from bloomjoin._errors import UsageError
from bloomjoin._process import Feed

# Above this many characters, names are passed in a file, for systems limit a command line.
_MOST_CHARACTERS = 64 << 10


@dataclass(frozen=True)
class Files:
    """Files, directories, patterns and URLs, as the command takes them."""

    names: tuple[str, ...]


Input = Files | Stream


def as_input(given: Any, what: str, *, unnamed: str = "key") -> Input:
    """Return what ``ids`` or ``logs`` are. Raises UsageError if they cannot be that.

    An array without a name becomes the column ``unnamed``.
    """
    if isinstance(given, (str, os.PathLike)):
        return Files((_name(given, what),))
    if is_arrow(given) and not _is_lazy(given):
        return as_stream(given, unnamed)
    if isinstance(given, (list, tuple)):
        if not given:
            raise UsageError(f"{what}: want a path, a URL or a table, got an empty {_kind(given)}")
        if all(isinstance(one, pa.RecordBatch) for one in given):
            return as_stream(pa.Table.from_batches(given), unnamed)
        if all(isinstance(one, (str, os.PathLike)) for one in given):
            return Files(tuple(_name(one, what) for one in given))
        other = next(one for one in given if not isinstance(one, (str, os.PathLike)))
        raise UsageError(
            f"{what}: want a list of paths and URLs, got a {_kind(other)} in it "
            "(values go into pyarrow.array, rows into pyarrow.table)"
        )
    if isinstance(given, Iterator):
        return _of_iterator(given, what)
    if _is_lazy(given):
        raise UsageError(
            f"{what}: a {_kind(given)} has not been computed "
            "(give what its .collect() or .compute() returns)"
        )
    raise UsageError(
        f"{what}: want paths, URLs, or Arrow data as of pyarrow, pandas, Polars or DuckDB, "
        f"got a {_kind(given)}"
    )


def _of_iterator(batches: Iterator[Any], what: str) -> Stream:
    """Return record batches as a stream, of which the first one tells the schema."""
    first = next(batches, None)
    if not isinstance(first, pa.RecordBatch):
        got = "no batch" if first is None else f"a {_kind(first)}"
        raise UsageError(f"{what}: want an iterator of record batches, got {got} in it")
    return Stream(first.schema, lambda: itertools.chain([first], batches), None)


def for_unnamed(key: str | Iterable[str] | None) -> str:
    """Return the name for a column of IDs that has none: that of the key."""
    name = key if isinstance(key, str) else "".join(key or ())
    name = name.partition("::")[0].strip()
    return name if name.isidentifier() else "key"


@dataclass(frozen=True)
class Placed:
    """How the command gets its inputs: names, and what it reads from standard input."""

    logs: tuple[str, ...]
    ids: tuple[str, ...]
    feed: Feed | None


def place_one(given: Input) -> tuple[tuple[str, ...], Feed | None]:
    """Return the names of an input, and what feeds standard input if it is a stream."""
    if isinstance(given, Files):
        return given.names, None
    return ("-",), given.write


def place(logs: Input, ids: Input, cleanup: ExitStack, *, reread: bool = False) -> Placed:
    """Place the inputs of a join. Staged files are removed by ``cleanup``.

    With ``reread``, the command reads its inputs more than once, and all streams
    are staged as tables.
    """
    if reread:
        return Placed(_tabled(logs, cleanup, "logs"), _tabled(ids, cleanup, "ids"), None)
    if isinstance(logs, Stream) and isinstance(ids, Stream):
        logs, ids = _stage_smaller(logs, ids, cleanup)
    names, feed_logs = place_one(logs)
    id_names, feed_ids = place_one(ids)
    return Placed(names, id_names, feed_logs or feed_ids)


def staged(given: Input, cleanup: ExitStack, name: str) -> tuple[str, ...]:
    """Return the names of an input, which is written to a file if it is a stream."""
    if isinstance(given, Files):
        return given.names
    path = directory(cleanup) / f"{name}.arrows"
    with open(path, "xb") as out:
        given.write(out)
    return (str(path),)


def renamed(given: Input, name: str) -> Stream | None:
    """Return a stream of one column with another name for it; None for other inputs."""
    if isinstance(given, Files) or len(given.schema) != 1:
        return None
    schema = pa.schema([given.schema.field(0).with_name(name)])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in given.batches():
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    return Stream(schema, batches, given.nbytes, given.rows)


def _tabled(given: Input, cleanup: ExitStack, name: str) -> tuple[str, ...]:
    """Stage a stream as a table, which can be sampled, and says how many rows it has."""
    if isinstance(given, Files):
        return given.names
    path = directory(cleanup) / f"{name}.parquet"
    with pq.ParquetWriter(path, given.schema, compression="none") as writer:
        for batch in given.batches():
            writer.write_batch(batch)
    return (str(path),)


def _stage_smaller(logs: Stream, ids: Stream, cleanup: ExitStack) -> tuple[Input, Input]:
    """Stage the smaller of two streams, and return both as inputs.

    Where the sizes are unknown, both are written, a batch at a time to the one
    that is behind, until one of them ends. The other one goes on from its file.
    """
    if logs.nbytes is not None and ids.nbytes is not None:
        if logs.nbytes < ids.nbytes:
            return Files(staged(logs, cleanup, "logs")), ids
        return logs, Files(staged(ids, cleanup, "ids"))
    staging = directory(cleanup)
    a, b = _Copy(logs, staging / "logs.arrows"), _Copy(ids, staging / "ids.arrows")
    with a, b:
        while not (a.ended or b.ended):
            behind = a if a.nbytes < b.nbytes else b
            behind.step()
    if a.ended:
        return Files((str(a.path),)), b.rest()
    return a.rest(), Files((str(b.path),))


class _Copy:
    """A stream that is written to a file as far as it has been read."""

    def __init__(self, stream: Stream, path: Path) -> None:
        self.path = path
        self.nbytes = 0
        self.ended = False
        self._schema = stream.schema
        self._batches = stream.batches()
        self._out = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_stream(self._out, stream.schema)

    def __enter__(self) -> _Copy:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        self._out.close()

    def step(self) -> None:
        """Read a batch and write it."""
        batch = next(self._batches, None)
        if batch is None:
            self.ended = True
            return
        self._writer.write_batch(batch)
        self.nbytes += max(batch.nbytes, 1)

    def rest(self) -> Stream:
        """Return the stream: what is in the file, then what has not been read yet."""

        def batches() -> Iterator[pa.RecordBatch]:
            with pa.OSFile(str(self.path), "rb") as written:
                yield from pa.ipc.open_stream(written)
            yield from self._batches

        return Stream(self._schema, batches, None)


def directory(cleanup: ExitStack) -> Path:
    """Return a new private directory, removed at the end of the run."""
    # TemporaryDirectory would also remove it when a forked process ends.
    directory = tempfile.mkdtemp(prefix="bloomjoin-")
    cleanup.callback(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


def listed(names: Sequence[str], cleanup: ExitStack) -> list[str]:
    """Return arguments that name inputs: in a file, if they are too many for a command line."""
    if sum(map(len, names)) <= _MOST_CHARACTERS or any("\n" in name for name in names):
        return ["--", *names]
    path = directory(cleanup) / "names"
    path.write_bytes(b"".join(os.fsencode(name) + b"\n" for name in names))
    return [f"--files-from={path}"]


def _is_lazy(given: object) -> bool:
    """Report whether rows are yet to be computed, as in a LazyFrame or a Dask collection."""
    lazy = hasattr(given, "collect") or hasattr(given, "compute")
    return lazy and not hasattr(given, "__arrow_c_stream__")


def _name(given: str | os.PathLike[str], what: str) -> str:
    name = os.fsdecode(os.fspath(given))
    if name in ("", "-"):
        raise UsageError(f"{what}: want a path or URL, got {name!r}")
    return name


def _kind(given: object) -> str:
    of = type(given)
    return of.__name__ if of.__module__ == "builtins" else f"{of.__module__}.{of.__name__}"
