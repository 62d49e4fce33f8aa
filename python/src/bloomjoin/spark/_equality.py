"""Where bloomjoin's equality of keys is Spark's, and where it is not known to be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bloomjoin._errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

On = "str | Sequence[str] | Mapping[str, str]"

_INTEGERS = ("tinyint", "smallint", "int", "bigint")

# How a key must be stored in Parquet, by its type in Spark.
_STORED = {
    "string": r"(large_)?utf8|(large_)?string",
    "binary": r"(large_)?binary",
    "boolean": r"bool",
    "date": r"date32",
    "timestamp": r"timestamp\[[mu]s, tz=.*\]",
    "timestamp_ntz": r"timestamp\[[mu]s\]",
    "decimal": r"decimal(128|256)?\(.*\)",
}

# Types as files store them that can be united, and a name for what they have in common.
_UNITED = (
    (r"u?int\d+", "integer"),
    (r"float\d*|double", "float"),
    (r"decimal\d*\(\d+, (-?\d+)\)", r"decimal with \1"),
    (r"timestamp\[\w+, tz=.*\]", "instant"),
    (r"timestamp\[(ms|us)\]", "timestamp"),  # with ns, it may be INT96
    (r"(struct|list|map)<.*>", r"\1"),
)

# Before these, values of old files depend on the calendar that Spark reads them with.
FIRST_SAFE = {
    "date": "DATE '1582-10-16'",
    "timestamp": "TIMESTAMP '1900-01-03 00:00:00'",
    "timestamp_ntz": "TIMESTAMP_NTZ '1900-01-03 00:00:00'",
}


@dataclass(frozen=True)
class Pair:
    """A key column of the log and the one of the IDs that it must equal.

    ``using``: both were given by one name, so they are one column of the answer.
    """

    log: str
    ids: str
    using: bool = False


def pairs(on: str | Sequence[str] | Mapping[str, str]) -> tuple[Pair, ...]:
    """Read ``on``: a name, ``"log=ids"``, a list of those, or ``{log: ids}``."""
    if isinstance(on, Mapping):
        found = [Pair(log, ids, log == ids) for log, ids in on.items()]
    else:
        names = [on] if isinstance(on, str) else list(on)
        found = []
        for name in names:
            log, _, ids = name.partition("=")
            log, ids = log.strip(), ids.strip() or log.strip()
            found.append(Pair(log, ids, log == ids))
    if not found or any(not p.log or not p.ids for p in found):
        raise UsageError(f"on: want a key column or more, got {on!r}")
    return tuple(found)


def resolved(
    wanted: Sequence[Pair], logs: StructType, ids: StructType, case_sensitive: bool
) -> tuple[Pair, ...]:
    """Return the pairs with the names that the columns really have."""
    return tuple(
        Pair(
            column("logs", p.log, logs, case_sensitive),
            column("ids", p.ids, ids, case_sensitive),
            p.using,
        )
        for p in wanted
    )


def column(side: str, name: str, schema: StructType, case_sensitive: bool) -> str:
    """Return the column of a schema that a name means, as Spark would find it."""
    found = [
        c for c in schema.names if c == name or (not case_sensitive and c.lower() == name.lower())
    ]
    if not found:
        raise UsageError(f"{side}: no column {name} among {', '.join(schema.names)}")
    if len(found) > 1 and name not in found:
        raise UsageError(f"{side}: {name} may be {' or '.join(found)}")
    return name if name in found else found[0]


def differs(log: StructField, ids: StructField) -> str | None:
    """Return why keys of these fields may be equal to Spark and not to bloomjoin, or None."""
    left, right = log.dataType.simpleString(), ids.dataType.simpleString()
    for field in (log, ids):
        if "__CHAR_VARCHAR_TYPE_STRING" in (field.metadata or {}):
            return f"{field.name} is of type {field.metadata['__CHAR_VARCHAR_TYPE_STRING']}"
    if left in _INTEGERS and right in _INTEGERS:
        return None
    if left != right:
        return f"the key types differ: {log.name} {left}, {ids.name} {right} (cast one of them)"
    if _family(log.dataType) not in _STORED:
        return f"keys of type {left} are compared by Spark alone"
    return None


def stored_otherwise(field: StructField, stored: str) -> str | None:
    """Return why a key as a file stores it may be equal to Spark and not to bloomjoin, or None."""
    family = _family(field.dataType)
    pattern = r"u?int\d+" if family in _INTEGERS else _STORED.get(family, "")
    if re.fullmatch(pattern, stored):
        return None
    return f"{field.name} is stored as {stored}, which may be INT96, where Spark has {family}"


def otherwise_named(
    names: Sequence[str], stored: Iterable[str], case_sensitive: bool
) -> str | None:
    """Return why Spark may find another column in a file than bloomjoin, or None."""
    if case_sensitive:
        return None
    there = set(stored)
    lower: dict[str, str] = {}
    for name in there:
        other = lower.setdefault(name.lower(), name)
        if other != name:
            return f"a file has columns {min(name, other)} and {max(name, other)}"
    for name in names:
        if name not in there and name.lower() in lower:
            return f"{name} is named {lower[name.lower()]} in a file"
    return None


def united_otherwise(name: str, stored: Iterable[str], case_sensitive: bool) -> str | None:
    """Return why a column's types in several files have no union, or one that is not Spark's."""
    kinds = sorted(set(stored))
    if len({_alike(kind) for kind in kinds}) > 1:
        return f"{name} is stored as {' and as '.join(kinds)}"
    fields = {field for kind in kinds for field in re.findall(r"([^<>,: ]+):", kind)}
    if len(kinds) > 1 and not case_sensitive and len({f.lower() for f in fields}) < len(fields):
        return f"{name} has fields whose names differ in case"
    return None


def _alike(kind: str) -> str:
    """Return what types have in common that a union of files may have."""
    for pattern, common in _UNITED:
        if re.fullmatch(pattern, kind):
            return re.sub(pattern, common, kind)
    return kind


def _family(kind: DataType) -> str:
    """Return the type's name without parameters; a collated string keeps its collation."""
    return re.sub(r"^decimal\(.*\)$", "decimal", kind.simpleString())
