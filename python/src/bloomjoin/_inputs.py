"""What ids and logs may be: names of files and tables, or streams of Arrow data.

A stream goes to the command's standard input. There is one of these, so of two
streams the smaller one is staged: written to a temporary file.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bloomjoin import _options
from bloomjoin._arrow import Mixed, Stream, as_array, as_stream, converting, is_arrow, is_value
from bloomjoin._errors import NotFoundError, UsageError
from bloomjoin._lake import table_name

# Above this many characters, names are passed in a file, for systems limit a command line.
_MOST_CHARACTERS = 64 << 10


@dataclass(frozen=True)
class Files:
    """Files, directories, patterns, URLs and tables, as the command takes them."""

    names: tuple[str, ...]


Input = Files | Stream

# The name of a column of values, where the key does not say one.
UNNAMED = "key"

_NOTHING = object()

# What the command takes for files of tables and of IDs.
_TABLES = (".parquet", ".arrow", ".arrows", ".feather", ".csv", ".tsv")
_ENDINGS = (*_TABLES, ".txt", ".json", ".jsonl", ".ndjson", ".gz", ".zst")


def as_input(given: Any, what: str, key: str | Iterable[str] | None = None) -> Input:
    """Return what ``logs`` are. Raises UsageError if they cannot be that.

    ``key`` are references of its columns. An array, whatever its name, is the column
    of a key that has one column.
    """
    return _as_input(given, what, _options.columns(key), values=False)


def as_ids(given: Any, what: str, key: str | Iterable[str] | None = None) -> Input:
    """Return what ``ids`` are: as for logs, or values, or one of them."""
    return _as_input(given, what, _options.columns(key), values=True)


def _as_input(given: Any, what: str, names: Sequence[str | None], *, values: bool) -> Input:
    if isinstance(given, (Files, Stream)):
        return given
    unnamed = (names[0] if len(names) == 1 else None) or (UNNAMED if names else None)
    given = table_name(given, what) or given
    if isinstance(given, (str, os.PathLike)):
        return _files([given], what, unnamed, values=values)
    if _is_lazy(given):
        raise UsageError(
            f"{what}: a {_kind(given)} has not been computed "
            "(give what its .collect() or .compute() returns)"
        )
    _check_index(given, what, names)
    try:
        if values and is_value(given):
            return as_stream(as_array([given]), unnamed)
        if is_arrow(given):
            return as_stream(given, unnamed)
        if values and isinstance(given, Mapping):
            return as_stream(_table(given), unnamed)
        if isinstance(given, Iterable) and not isinstance(given, (bytes, Mapping)):
            return _of_elements(given, what, unnamed, values=values)
    except Mixed as mixed:
        raise UsageError(
            f"{what}: {mixed}want values of one type that Arrow has, in columns of one length, "
            "got others (convert them, or pass a pyarrow.array or table)"
        ) from None
    raise UsageError(
        f"{what}: want paths, URLs, tables of pyiceberg or deltalake, or Arrow data as of "
        f"pyarrow, pandas, Polars or DuckDB, got a {_kind(given)}"
    )


def _of_elements(given: Iterable[Any], what: str, unnamed: str | None, *, values: bool) -> Input:
    """Return record batches, names of files or values, as the elements are."""
    elements = iter(given)
    first = next(elements, _NOTHING)
    if isinstance(first, pa.RecordBatch) and isinstance(given, Iterator):
        return Stream(first.schema, lambda: itertools.chain([first], elements), None)
    every = [first, *elements] if first is not _NOTHING else []
    if not every:
        none = " (no IDs are an array with a type, as pyarrow.array([], 'int64'))" * values
        raise UsageError(
            f"{what}: want a path, a URL or a table, got an empty {_kind(given)}{none}"
        )
    if all(isinstance(one, pa.RecordBatch) for one in every):
        return as_stream(pa.Table.from_batches(every), unnamed)
    if not (first is None or is_value(first)):
        every = [table_name(one, what) or one for one in every]
    if all(isinstance(one, (str, os.PathLike)) for one in every):
        return _files(every, what, unnamed, values=values)
    if values and all(one is None or is_value(one) for one in every):
        if isinstance(given, Set):  # equal sets are equal streams
            with contextlib.suppress(TypeError):
                every.sort()
        return as_stream(as_array(every), unnamed)
    odd = [one for one in every if not isinstance(one, (str, os.PathLike))]
    unfit = [one for one in odd if not (values and (one is None or is_value(one)))]
    if not unfit:
        raise UsageError(f"{what}: want names of files, or values of one type, got both in one")
    wanted = "paths, record batches or values" if values else "paths or record batches"
    raise UsageError(
        f"{what}: want a list of {wanted}, got a {_kind(unfit[0])} in it "
        "(rows go into a pyarrow.table or a data frame)"
    )


def _table(columns: Mapping[str, Any]) -> pa.Table:
    """Return columns of values by their names. A single value is a column of one row."""
    arrays = {
        name: of
        if is_arrow(of) and not is_value(of)
        else as_array([of] if isinstance(of, str) or is_value(of) else of)
        for name, of in columns.items()
    }
    with converting():
        return pa.table(arrays)


def _files(given: Sequence[Any], what: str, unnamed: str | None, *, values: bool) -> Files:
    """Return names of files. Text that might be meant as values must name a file."""
    names = tuple(_name(one, what) for one in given)
    if values and isinstance(given[0], str) and not _may_be_a_file(names[0]):
        raise NotFoundError(  # without the text, which may be an ID
            f"{what}: no such file or directory (text names files; for IDs that are text, pass "
            f"a column, as {{{unnamed or UNNAMED!r}: [...]}})"
        )
    return Files(names)


def _may_be_a_file(name: str) -> bool:
    """Report whether a name exists, or looks like that of a file."""
    looks = any(c in name for c in "/\\*?[{") or name.lower().endswith(_ENDINGS)
    looks = looks or name.startswith(("delta:", "iceberg:", "rest:"))
    return looks or os.path.lexists(name)


def _check_index(given: Any, what: str, names: Sequence[str | None]) -> None:
    """Fail if a column of the key is the index of a pandas frame, which is never read."""
    index = getattr(getattr(given, "index", None), "names", None)
    if index is None or not hasattr(given, "columns"):
        return
    for name in names:
        if name is not None and name in index and name not in given.columns:
            raise UsageError(
                f"{what}: {name!r} is the index of the frame, and not a column "
                f"(pass {what}.reset_index())"
            )


@dataclass(frozen=True)
class Placed:
    """How the command gets its inputs: names, and what it reads from standard input."""

    logs: tuple[str, ...]
    ids: tuple[str, ...]
    feed: Stream | None


def place_one(given: Input) -> tuple[tuple[str, ...], Stream | None]:
    """Return the names of an input, and itself if it is a stream for standard input."""
    return (given.names, None) if isinstance(given, Files) else (("-",), given)


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
    os.utime(path, (0, 0))  # no later than an output that was made from the same rows before
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
    name = _options.path(given)
    if name in ("", "-"):
        raise UsageError(f"{what}: want a path or URL, got {name!r}")
    return name


def _kind(given: object) -> str:
    of = type(given)
    return of.__name__ if of.__module__ == "builtins" else f"{of.__module__}.{of.__name__}"
