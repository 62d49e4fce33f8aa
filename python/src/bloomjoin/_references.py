"""Columns of an answer, as ``columns`` names them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from bloomjoin._reader import Reader


class References:
    """Names the columns of an answer so that a run can be asked for some of them.

    A column of the IDs may have another name in the answer than in ``columns``:
    ``country_ids`` is ``ids.country`` there, and if it is asked for alone, it is
    called ``country`` in the answer. So columns go by position.
    """

    def __init__(self, verb: Callable[..., Reader], options: Mapping[str, Any]) -> None:
        self._verb = verb
        self._options = options

    @property
    def are_of_the_log(self) -> bool:
        """Whether all columns are those of the log, with the log's rows."""
        return "on" not in self._options or self._options.get("how", "semi") in ("semi", "anti")

    @functools.cached_property
    def schema(self) -> pa.Schema:
        """The columns of the answer and their types."""
        return self._schema_of()

    def of(self, names: Sequence[str]) -> list[str]:
        """Return the references of columns of the answer."""
        return [self._by_name[name] for name in names]

    @functools.cached_property
    def _by_name(self) -> dict[str, str]:
        names = self.schema.names
        if "on" not in self._options:  # a scan: its columns are the log's
            return dict(zip(names, names, strict=True))
        asked = self._options.get("columns")
        if asked is not None and not any("*" in text for text in asked):
            return dict(zip(names, asked, strict=True))
        if self.are_of_the_log:
            return {name: _qualified("log", name) for name in names}
        renamed = self._renamed(names)
        twice = set(renamed.values())
        return {
            name: _qualified("ids", renamed[name])
            if name in renamed
            else _qualified("log", name)
            if name in twice
            else _quoted(name)
            for name in names
        }

    def _renamed(self, names: Sequence[str]) -> dict[str, str]:
        """Return the columns of the IDs with a suffix, and their names without.

        A column may be called ``country_ids`` in the IDs. So the names are
        compared with those of an answer with another suffix.
        """
        suffix = self._options.get("suffix") or "_ids"
        if not any(name.endswith(suffix) for name in names):
            return {}
        other = "_"
        while any(name.endswith(other) for name in names):
            other += "_ids"
        renamed = {}
        for name, again in zip(names, self._schema_of(suffix=other).names, strict=True):
            if again != name:
                base = again
                while base.endswith(other):
                    base = base.removesuffix(other)
                renamed[name] = base
        return renamed

    def _schema_of(self, **changes: Any) -> pa.Schema:
        """Return the schema of an answer without rows, for which next to nothing is read."""
        options = {**self._options, **changes}
        where = options.get("where")
        options["where"] = f"({where}) AND FALSE" if where else "FALSE"
        options["progress"] = None
        with self._verb(**options)._without_warnings() as reader:
            return reader.schema


def _qualified(side: str, name: str) -> str:
    return f"{side}.{_quoted(name)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
