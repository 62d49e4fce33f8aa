"""Filters: open, ask, save and combine them."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeVar, cast, overload

import pyarrow as pa

from bloomjoin import _keys, _pipe, _process
from bloomjoin._arrow import is_value
from bloomjoin._broken import NEWER, Broken
from bloomjoin._classes import check_classes
from bloomjoin._errors import DataError
from bloomjoin._file import File
from bloomjoin._format import COUNTING, KINDS, Header, read_header
from bloomjoin._options import combining
from bloomjoin._options import path as file_name
from bloomjoin._payload import Payload, memory_limit, read_payload
from bloomjoin._show import as_html, as_text
from bloomjoin._stores import Credentials, access
from bloomjoin._temporary import new_file, remove

How = Literal["union", "intersect", "difference", "subtract", "partials"]


_F = TypeVar("_F", bound="Filter")


class Filter:
    """A set of keys that answers which values may be in it.

    ``Filter.load`` opens one, ``bloomjoin.build`` makes one. A filter never
    changes. Threads may share it, it can be pickled, and forked processes may go
    on using it; a large one is in memory once for all of them.

    The file of a filter must not be changed in place while a Filter is in use.
    Replacing it is safe.
    """

    __slots__ = ("__weakref__", "_data", "_header", "_limit", "_payload")

    _data: File
    _header: Header
    _limit: int | None
    _payload: Payload | None

    def __init__(self) -> None:
        raise TypeError("use Filter.load or bloomjoin.build")

    @classmethod
    def load(
        cls: type[_F],
        path: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
        credentials: Credentials | None = None,
        memory_limit: int | None = None,
    ) -> _F:
        """Open a filter file, a local one or one at a URL, and check all of it.

        An uncompressed Bloom filter is mapped and shares its memory with all
        processes that do the same. ``memory_limit`` is in bytes; by default it is
        nine tenths of what the machine or container has. Raises DataError if the
        file is damaged, or was written by a newer version, and MemoryError if the
        filter is above the limit.
        """
        name = file_name(path)
        if "://" not in name:
            loaded = cls._open(name, memory_limit=memory_limit)
        else:
            with new_file() as out:
                _command(
                    ["merge", "--union", "--uncompressed", "-o", out, name],
                    storage_options,
                    credentials,
                )
                loaded = cls._open(out, owned=True, memory_limit=memory_limit)
        loaded._held()
        return loaded

    @classmethod
    def _open(
        cls: type[_F], path: str, *, owned: bool = False, memory_limit: int | None = None
    ) -> _F:
        """Open a local file, and check its header; the payload when it is needed.

        An owned file is temporary, in a directory of its own. Both are removed
        when nothing refers to the filter any more.
        """
        self = cls._of(File.open(path, owned=owned), memory_limit)
        if owned:
            weakref.finalize(self, remove, path, os.getpid())
        return self

    @classmethod
    def _of(cls: type[_F], data: File, limit: int | None) -> _F:
        from bloomjoin._counting import CountingFilter  # a subclass

        try:
            header = read_header(data.view)
        except Broken as broken:
            raise broken.in_file(data.name) from None
        if header.kind == COUNTING:
            cls = cast("type[_F]", CountingFilter)
        elif cls is CountingFilter:
            raise DataError(
                f"{data.name}: kind of filter: want counting, got {KINDS[header.kind]} "
                "(build it with kind='counting')"
            )
        self = object.__new__(cls)
        self._data, self._header, self._limit, self._payload = data, header, limit, None
        return self

    def _held(self) -> Payload:
        """Return the payload, read and checked the first time.

        Two threads may both read it at first. The outcome is the same, and without
        a lock no forked child can find it taken.
        """
        if self._payload is None:
            limit = memory_limit() if self._limit is None else self._limit
            try:
                self._payload = read_payload(self._data.view, self._header, limit)
            except Broken as broken:
                raise broken.in_file(self._data.name) from None
        return self._payload

    @contextlib.contextmanager
    def _file(self) -> Iterator[str]:
        """Give the path of a file with this filter to a child process."""
        if self._data.is_there():
            yield self._data.name
            return
        with new_file() as path:
            try:
                with open(path, "xb", opener=_private) as out:
                    out.write(self._data.view)
                yield path
            finally:
                remove(path, os.getpid())

    @overload
    def probe(self, values: pa.Table | pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]: ...
    @overload
    def probe(self, values: pa.Array[Any] | pa.RecordBatch) -> pa.BooleanArray: ...
    @overload
    def probe(self, values: str | bytes | float | None) -> bool: ...
    @overload
    def probe(self, values: list[Any] | set[Any] | range) -> list[bool]: ...
    @overload
    def probe(self, values: object) -> Any: ...
    def probe(self, values: object) -> Any:
        """Return which values may be in the set.

        The answer is like the question: an Arrow array without NULLs for an Arrow
        array or table (chunked if that is), an array of NumPy for one and for what is of
        pandas, so that ``frame[filter.probe(frame.user_id)]`` works, a Series for what
        is of Polars, a list for a list, set or range, and True or False for one value.
        A key of several columns is probed with a table, a frame, a record batch or a
        struct array that has these columns by name, or with a list of tuples.

        False is certain. True is certain for an exact filter, and wrong at the rate
        ``fpr`` for a Bloom filter. A NULL matches nothing and gives False, so that
        ``~mask`` keeps rows as NOT EXISTS does. Types need not be those of the
        filter: 5, 5.0 and a dictionary of 5 are the same key, and what cannot be
        equal to a key gives False.

        Raises DataError for values of another class, as text against integers, and
        for a partial filter, where a miss means nothing.
        """
        self._check_usable()
        single = self._is_key(values)
        table, form = _keys.as_arrow([values] if single else values, self.key_names)
        key = _keys.select(table, self.key_names)
        check_classes(self.key_names, self.key_classes, self._header.rule, key.schema)
        answer = form(self._probe(key))
        return answer[0] if single else answer

    def __contains__(self, value: object) -> bool:
        """Report whether one value may be in the set."""
        if not self._is_key(value):
            raise TypeError(f"in: want one key, got a {type(value).__name__} (use probe)")
        return bool(self.probe(value))

    def __len__(self) -> int:
        # How many there are is not known exactly.
        raise TypeError("a Filter has no len(): keys is the number that was added, with duplicates")

    def __bool__(self) -> bool:
        return True

    def _is_key(self, value: object) -> bool:
        several = len(self.key_names) > 1
        return (isinstance(value, tuple) if several else isinstance(value, str)) or (
            value is None or is_value(value)
        )

    def _probe(self, key: pa.Table) -> pa.ChunkedArray[Any]:
        classes = self.key_classes
        if len(classes) == 1 and _keys.in_process(
            classes[0], key.schema.field(0).type, self._header.rule
        ):
            payload = self._held()
            with contextlib.suppress(NotImplementedError):  # the command has tables of Unicode
                chunks = [_keys.probe(payload, classes[0], c) for c in key.column(0).chunks]
                return pa.chunked_array(chunks, pa.bool_())
        if key.num_rows == 0:
            return pa.chunked_array([], pa.bool_())
        with self._file() as path:
            return _pipe.probe(path, self.rule, key)

    def _check_usable(self) -> None:
        if not self.sealed:
            raise DataError(
                f"{self._data.name}: want a finished filter, got a partial one, in which keys are "
                "missing (merge all partial filters of the build first)"
            )
        if self._header.normal_form != "1":
            raise DataError(
                f"{self._data.name}: keys in the normal form {self._header.normal_form!r} ({NEWER})"
            )

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        uncompressed: bool = False,
        force: bool = False,
        storage_options: Mapping[str, str] | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        """Write the filter to a file or URL: whole or not at all.

        A local file is readable by its owner only, because a filter reveals its
        keys. With ``uncompressed`` processes can map it. Another filter of that
        name is an error unless ``force`` is set.
        """
        how = ["--union"] if self.sealed else ["--partial"]
        flags = ["--uncompressed"] * uncompressed + ["--force"] * force
        with self._file() as own:
            _command(
                ["merge", *how, *flags, "-o", file_name(path), own], storage_options, credentials
            )

    def merge(self, *others: Filter, how: How = "union") -> Filter:
        """Return the union or the intersection of finished filters.

        The other ways are as for ``bloomjoin.merge``.
        """
        flag, given = combining(how)
        with contextlib.ExitStack() as stack:
            paths = [stack.enter_context(f._file()) for f in (self, *others)]
            out = stack.enter_context(new_file())
            _command(["merge", *[f"--{flag}"] * given, "-o", out, *paths], None, None)
            return Filter._open(out, owned=True)

    @property
    def kind(self) -> Literal["bloom", "exact", "counting"]:
        """A Bloom filter, an exact set of integers, or a CountingFilter."""
        return KINDS[self._header.kind]

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the key's columns, in order."""
        return tuple(column.name for column in self._header.key)

    @property
    def key_classes(self) -> tuple[str, ...]:
        """The classes of the key's columns, as ``integer`` or ``bytes``."""
        return tuple(column.key_class for column in self._header.key)

    @property
    def keys(self) -> int:
        """The number of keys that were added, duplicates included."""
        return self._header.keys

    @property
    def fpr(self) -> float:
        """The false-positive rate by the bits that are set; 0 for an exact set."""
        return self._held().fpr()

    @property
    def fpr_asked(self) -> float:
        """The false-positive rate that was asked for."""
        return self._header.fpr_asked

    @property
    def digest(self) -> str:
        """The identity of the filter in hexadecimal; compression does not matter."""
        return self._header.digest.hex()

    @property
    def sealed(self) -> bool:
        """False for a partial filter, which has the keys of only some shards."""
        return self._header.shards is None

    @property
    def rule(self) -> str:
        """How text is made alike before it is compared, as ``trim,lower``; may be empty.

        It ends with ``ascii-only`` where an earlier version built the filter, or a caller
        asked for it.
        """
        return ",".join(self._header.rules)

    @property
    def nbytes(self) -> int:
        """The size of the set in bytes, before compression."""
        return self._header.payload_bytes

    @property
    def path(self) -> str | None:
        """The absolute path of the file; None if it is temporary or in memory."""
        return None if self._data.owned else self._data.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and self._header.digest == other._header.digest

    def __hash__(self) -> int:
        return hash(self._header.digest)

    def __repr__(self) -> str:
        return as_text(self._header)

    def _repr_html_(self) -> str:
        return as_html(self._header, self.path, self._payload.fpr() if self._payload else None)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is not None:
            return _reopen, (self.path, self.digest, self._limit)
        return _restore, (bytes(self._data.view), self._limit)


def _reopen(path: str, digest: str, limit: int | None) -> Filter:
    """Open the file of a pickled filter."""
    opened = Filter._open(path, memory_limit=limit)
    if opened.digest != digest:
        raise DataError(
            f"{path}: want the filter {digest}, got {opened.digest} (it was replaced after a "
            "Filter of it was pickled: load it again)"
        )
    return opened


def _restore(content: bytes, limit: int | None) -> Filter:
    """Return a pickled filter without a file of its own."""
    return Filter._of(File.of_bytes(content), limit)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _command(
    args: list[str],
    storage_options: Mapping[str, str] | None,
    credentials: Credentials | None,
) -> None:
    """Run the command with access to URLs."""
    with access(storage_options, credentials) as stores:
        _process.run(args, access=stores)
