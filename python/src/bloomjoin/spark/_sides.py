"""The two sides of a join, as Spark sees them and as files."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote

from bloomjoin._errors import UsageError

from ._equality import column
from ._files import Frozen, absolute, spark_url
from ._plain import quoted
from ._tables import Table
from ._types import inferred

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Names = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class Side:
    """A log or an ID set: a data frame, or files by ``given`` paths and URLs.

    ``listed`` is what the names stand for, if that is known already. A ``table`` has a data frame,
    and a name.
    """

    def __init__(
        self,
        spark: SparkSession,
        frame: DataFrame | None,
        given: tuple[str, ...] = (),
        listed: Frozen | None = None,
        table: Table | None = None,
    ) -> None:
        self.names = tuple(c for name in given for c in _choices(name))
        self.listed = listed
        self._location = ""
        if table is not None:
            self.names, frame, self._location = (table.name,), table.frame, table.location
        self._spark = spark
        self._frame = frame
        self._given = given
        self._columns: list[str] | None = None
        self._every: StructType | None = None
        # Spark would start a job to find the same.
        self._stored = inferred(spark, listed.firsts) if listed and not table else None

    @functools.cached_property
    def frame(self) -> DataFrame:
        """What Spark reads, with the columns that are wanted."""
        frame = self._frame
        if frame is None:
            reader = self._spark.read.schema(self._stored) if self._stored else self._spark.read
            frame = reader.parquet(*map(spark_url, self._given))
        return frame if self._columns is None else frame.select(*map(quoted, self._columns))

    @functools.cached_property
    def schema(self) -> StructType:
        """The types of the columns that are wanted, if possible without asking Spark."""
        if self._stored is None or (self.listed and self.listed.hive):
            return self.frame.schema
        return type(self._stored)([self._stored[c] for c in self._columns or self._stored.names])

    @property
    def every(self) -> StructType:
        """The types of all columns, also of those that are not wanted."""
        return self._every or self.schema

    def choose(self, columns: Sequence[str], keys: Sequence[str]) -> None:
        """Keep the columns that are named, and the keys."""
        schema = self._every = self.schema
        exact = case_sensitive(self._spark)
        wanted = [column("columns", c, schema, exact) for c in columns]
        found = [column("logs", k, schema, exact) for k in keys]
        missing = [k for k in dict.fromkeys(found) if k not in wanted]
        for cached in ("frame", "schema"):
            self.__dict__.pop(cached, None)
        self._columns = [*missing, *wanted]

    def files(self) -> list[str]:
        """Return the names of all files, as they are listed or as Spark has them, or of a table."""
        if self._location:
            return [self._location]
        listed = list(self.listed.identities) if self.listed else []
        return listed or [unquote(name) for name in self.frame.inputFiles()]

    def names_all(self, found: Frozen) -> bool:
        """Report whether each file of a list is named, and once, or a table that names them."""
        each = sorted(self.names) == sorted(found.identities) and self.names == self._given
        return each or found.of_table


def logs_side(
    spark: SparkSession,
    logs: DataFrame | Names | Table,
    listed: Frozen | None = None,
    *,
    probe: bool,
) -> Side:
    """Return the log, a data frame if its keys are to be probed, else files."""
    if isinstance(logs, Table):
        return Side(spark, None, (), listed, logs)
    if is_frame(logs) != probe:
        raise UsageError(
            "logs: want a data frame in mode probe, got names of files"
            if probe
            else "logs: want paths or patterns of Parquet files, or a table's name, got a data "
            "frame (tasks read files past its filters, masks and views; mode probe does not)"
        )
    return ids_side(spark, logs, listed, "logs")


def ids_side(
    spark: SparkSession, ids: DataFrame | Names, listed: Frozen | None = None, side: str = "ids"
) -> Side:
    """Return the IDs, files or a data frame."""
    if is_frame(ids):
        return Side(spark, cast("DataFrame", ids))
    return Side(spark, None, given_names(side, ids), listed)


def case_sensitive(spark: SparkSession) -> bool:
    """Report whether names of columns that differ only in case are different columns."""
    return str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"


def is_frame(value: object) -> bool:
    """Report whether a side is a data frame, of either kind."""
    return hasattr(value, "mapInArrow")


def given_names(side: str, given: object) -> tuple[str, ...]:
    """Return paths and URLs that mean the same on every machine."""
    several = list(given) if isinstance(given, (list, tuple)) else [given]
    names = [name for name in several if isinstance(name, (str, os.PathLike))]
    if len(names) < len(several):
        kinds = {type(name).__name__ for name in several} - {"str"}
        raise UsageError(
            f"{side}: want paths or a Spark data frame, got {', '.join(sorted(kinds))} "
            "(spark.createDataFrame makes one)"
        )
    if not names:
        raise UsageError(f"{side}: want a path or more, got none")
    return tuple(map(absolute, names))


def names_of(side: str, given: object) -> list[str]:
    """Return what the command takes for such names."""
    if isinstance(given, Table):
        return [given.name]
    return [c for name in given_names(side, given) for c in _choices(name)]


def _choices(name: str) -> list[str]:
    """Return the patterns that a pattern of Spark with ``{a,b}`` stands for."""
    braces = re.search(r"{([^{}]*)}", name)
    if not braces:
        return [name]
    before, after = name[: braces.start()], name[braces.end() :]
    return [c for choice in braces[1].split(",") for c in _choices(before + choice + after)]
