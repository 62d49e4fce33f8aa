"""Counting filters: those from which keys can be removed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, Union, cast

from bloomjoin import _options
from bloomjoin._filter import Filter
from bloomjoin._inputs import as_input, for_unnamed, renamed, staged
from bloomjoin._progress import Bar, Listener
from bloomjoin._runs import Run
from bloomjoin._stores import Credentials
from bloomjoin._verbs import Encoding, Names, build

Path = Union[str, "os.PathLike[str]"]


class CountingFilter(Filter):
    """A filter with counters in place of bits, so that keys can be removed.

    Like all filters it never changes: ``update`` returns another one.
    """

    __slots__ = ()

    @classmethod
    def build(cls, ids: Any, key: Names | None = None, **options: Any) -> CountingFilter:
        """Build a counting filter, with options of ``bloomjoin.build``.

        With ``multiset`` each addition of a key is counted; otherwise a key is in once.
        """
        return cast(CountingFilter, build(ids, key, kind="counting", **options))

    @property
    def multiset(self) -> bool:
        """Whether each addition of a key is counted."""
        return self._header.multiset

    @property
    def saturated(self) -> int:
        """The number of counters at their limit of 15, which never fall."""
        return self._header.saturated

    def update(
        self,
        *,
        add: Any = None,
        remove: Any = None,
        ignore_missing: bool = False,
        key: Names | None = None,
        out: Path | None = None,
        force: bool = False,
        ids_format: Literal["lines", "csv", "tsv", "ndjson"] | None = None,
        delimiter: str | None = None,
        no_header: bool = False,
        encoding: Encoding | None = None,
        key_type: str | None = None,
        skip_bad: bool = False,
        temp_dir: Path | None = None,
        memory: str | int | None = None,
        threads: int | None = None,
        storage_options: Mapping[str, Any] | None = None,
        credentials: Credentials | None = None,
        progress: Listener | Bar | None = None,
    ) -> CountingFilter:
        """Return the filter after keys were removed, and then others added.

        Both are paths or Arrow data. ``key`` names their columns; by default they are
        called as in the filter. Raises DataError for removed keys that are certainly
        not in, unless ``ignore_missing`` is set.
        """
        with Run("update", locals(), ("self", "add", "remove", "key", "out")) as run:
            name, named = self.key_names[0], False
            for option, ids in (("remove", remove), ("add", add)):
                if ids is None:
                    continue
                given = as_input(ids, option, unnamed=for_unnamed(key))
                if key is None and len(self.key_names) == 1 and (one := renamed(given, name)):
                    given, named = one, True
                run.add(option, staged(given, run.stack, option))
            run.add("key", _options.quoted(name) if named else key)
            return cast(CountingFilter, run.filter(out, ["--", run.filter_file(self)]))

    def subtract(self, *others: CountingFilter) -> CountingFilter:
        """Return the filter without the keys of others, all of which must be in it."""
        return cast(CountingFilter, self.merge(*others, how="subtract"))

    def plain(
        self, out: Path | None = None, *, force: bool = False, uncompressed: bool = False
    ) -> Filter:
        """Return the Bloom filter of the same keys."""
        with Run("build", locals(), ("self", "out")) as run:
            run.add("from", run.filter_file(self))
            return run.filter(out)
