"""Counting filters: those from which keys can be removed."""

from typing import TYPE_CHECKING, Annotated, cast

from bloomjoin import _options
from bloomjoin import _parameters as of
from bloomjoin._filter import Filter
from bloomjoin._inputs import as_ids, renamed, staged
from bloomjoin._runs import Run
from bloomjoin._signatures import verb
from bloomjoin._verbs import build

if TYPE_CHECKING:
    from typing_extensions import Unpack

_Out = Annotated[
    of.Path | None,
    "the file to write; without it the filter is temporary, and goes with the Filter",
]


class CountingFilter(Filter):
    """A filter with counters in place of bits, so that keys can be removed.

    Like all filters it never changes: ``update`` returns another one.
    """

    __slots__ = ()

    @classmethod
    @verb(of.Build)
    def build(
        cls, ids: of.Ids, key: of.Key = None, *, out: _Out = None, **options: "Unpack[of.Build]"
    ) -> "CountingFilter":
        """Build a counting filter, as ``bloomjoin.build`` does.

        With ``multiset`` each addition of a key is counted; otherwise a key is in once.
        """
        return cast(CountingFilter, build(ids, key, out=out, kind="counting", **options))

    @property
    def multiset(self) -> bool:
        """Whether each addition of a key is counted."""
        return self._header.multiset

    @property
    def saturated(self) -> int:
        """The number of counters at their limit of 15, which never fall."""
        return self._header.saturated

    @verb(of.Update)
    def update(
        self,
        *,
        add: Annotated[of.Ids | None, "keys to add, after the removals"] = None,
        remove: Annotated[of.Ids | None, "keys to remove"] = None,
        key: Annotated[of.Names | None, "their columns; those of the filter otherwise"] = None,
        out: _Out = None,
        **options: "Unpack[of.Update]",
    ) -> "CountingFilter":
        """Return the filter after keys were removed, and then others added.

        Raises DataError for removed keys that are certainly not in, unless
        ``ignore_missing`` is set.
        """
        with Run("update", options) as run:
            name, named = self.key_names[0], False
            for option, ids in (("remove", remove), ("add", add)):
                if ids is None:
                    continue
                given = as_ids(ids, option, key)
                if key is None and len(self.key_names) == 1 and (one := renamed(given, name)):
                    given, named = one, True
                run.add(option, staged(given, run.stack, option))
            run.add("key", _options.quoted(name) if named else key)
            return cast(CountingFilter, run.filter(out, ["--", run.filter_file(self)]))

    def subtract(self, *others: "CountingFilter") -> "CountingFilter":
        """Return the filter without the keys of others, all of which must be in it."""
        return cast(CountingFilter, self.merge(*others, how="subtract"))

    def plain(
        self, out: of.Path | None = None, *, force: bool = False, uncompressed: bool = False
    ) -> Filter:
        """Return the Bloom filter of the same keys."""
        with Run("build", {"force": force, "uncompressed": uncompressed, "from": self}) as run:
            return run.filter(out)
