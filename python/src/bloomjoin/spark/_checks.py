"""What must hold before the command may stand in for Spark: settings, types, files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import _ship
from ._equality import (
    FIRST_SAFE,
    Pair,
    differs,
    otherwise_named,
    stored_otherwise,
    united_otherwise,
)
from ._files import Frozen
from ._plain import Unsuitable, quoted
from ._sides import Side, case_sensitive
from ._types import not_carried

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOSE = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
_CONVERTED = "spark.sql.parquet.int96TimestampConversion"


def check_join(spark: SparkSession, logs: Side, ids: Side, on: Sequence[Pair]) -> None:
    """Raise Unsuitable if settings or the types of keys make Spark's answer another."""
    for name in _LOOSE:
        if str(spark.conf.get(name, "false")).lower() == "true":
            raise Unsuitable(f"{name} is on: Spark passes over files that bloomjoin demands")
    if str(spark.conf.get(_CONVERTED, "false")).lower() == "true":
        raise Unsuitable(f"{_CONVERTED} is on: it asks which program has written a file")
    if len(set(on)) < len(on):
        raise Unsuitable("a key is named twice")
    left, right = logs.schema, ids.schema
    for pair in on:
        why = differs(left[pair.log], right[pair.ids])
        if why:
            raise Unsuitable(why)


def check_listed(name: str, side: Side, found: Frozen) -> None:
    """Raise Unsuitable if Spark reads other files than those that were listed."""
    if not found.inputs:
        raise Unsuitable(f"{name}: the table has no files")
    if side.names_all(found):
        return
    files = side.frame.inputFiles()
    if _ship.fingerprint(files) != found.fingerprint:
        raise Unsuitable(
            f"{name}: Spark reads {len(files)} files there, and bloomjoin "
            f"{found.inputs}: name the files or their name=value directories"
        )


def check_stored(
    spark: SparkSession, name: str, side: Side, found: Frozen, keys: Sequence[str]
) -> None:
    """Raise Unsuitable if the files may store columns that Spark takes for others."""
    schema = side.schema
    if found.otherwise:
        raise Unsuitable(f"{name}: {found.otherwise}")
    if found.of_table:
        check_table(name, side, found)
    exact = case_sensitive(spark)
    for table in found.tables:
        why = otherwise_named(schema.names, table, exact)
        if why:
            raise Unsuitable(f"{name}: {why}")
    for column in schema.names:
        stored = [table[column] for table in found.tables if column in table]
        why = united_otherwise(column, stored, exact)
        if why:
            raise Unsuitable(f"{name}: {why}")
    for key in keys:
        if key in found.hive:
            raise Unsuitable(f"{name}: {key} is a column of the paths, not of the files")
        for table, first in zip(found.tables, found.firsts, strict=True):
            if key not in table:
                raise Unsuitable(f"{name}: {first} lacks {key}")
            why = stored_otherwise(schema[key], table[key])
            if why:
                raise Unsuitable(f"{name}: {why}")
    both = found.hive.intersection(set().union(*found.tables))
    if both:
        raise Unsuitable(f"{name}: {', '.join(sorted(both))} is in files and in their paths")


def check_table(name: str, side: Side, found: Frozen) -> None:
    """Raise Unsuitable if a table has other columns than Spark has found, or other types."""
    (table,) = found.tables
    if list(table) != side.every.names:
        raise Unsuitable(f"{name}: the columns of the table have changed")
    for field in side.schema.fields:
        if why := not_carried(field, [table[field.name]]):
            raise Unsuitable(f"{name}: {why}")


def check_old_dates(ids: Side, on: Sequence[Pair]) -> None:
    """Raise Unsuitable if keys of the IDs are days that files may store in another calendar."""
    from pyspark.sql import functions

    for pair in on:
        kind = ids.schema[pair.ids].dataType.simpleString()
        limit = FIRST_SAFE.get(kind)
        old = f"{quoted(pair.ids)} < {limit}"
        if limit and not ids.frame.where(functions.expr(old)).isEmpty():
            raise Unsuitable(
                f"ids: {pair.ids} has values before {limit}, which files may store in an "
                "older calendar"
            )
