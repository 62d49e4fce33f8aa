"""The two sides of a join, as Spark sees them and as files."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from bloomjoin._errors import UsageError

from ._equality import Pair, column
from ._files import absolute, spark_url
from ._plain import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Names = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class Side:
    """A log or an ID set.

    ``frame`` is what Spark reads, with the columns that are wanted. ``names`` are paths and URLs
    of files, none for a data frame.
    """

    frame: DataFrame
    names: tuple[str, ...]


def logs_side(
    spark: SparkSession,
    logs: DataFrame | _Names,
    columns: Sequence[str] | None,
    on: Sequence[Pair],
    *,
    probe: bool = False,
) -> Side:
    """Read the log's schema, and choose its columns: those named, and the keys.

    The log is a data frame if its keys are to be probed, else files.
    """
    if _is_frame(logs) != probe:
        raise UsageError(
            "logs: want a data frame in mode probe, got names of files"
            if probe
            else "logs: want paths or patterns of Parquet files, got a data frame (tasks read the "
            "files themselves, past the frame's filters, masks and views; mode probe does not)"
        )
    if probe:
        side = Side(cast("DataFrame", logs), ())
    else:
        side = _read(spark, cast("_Names", logs), "logs")
    if columns is None:
        return side
    schema, exact = side.frame.schema, case_sensitive(spark)
    wanted = [column("columns", c, schema, exact) for c in columns]
    keys = [column("logs", p.log, schema, exact) for p in on]
    missing = [k for k in dict.fromkeys(keys) if k not in wanted]
    return Side(side.frame.select(*map(quoted, [*missing, *wanted])), side.names)


def ids_side(spark: SparkSession, ids: DataFrame | _Names) -> Side:
    """Read the schema of the IDs."""
    if _is_frame(ids):
        return Side(cast("DataFrame", ids), ())
    return _read(spark, cast("_Names", ids), "ids")


def case_sensitive(spark: SparkSession) -> bool:
    """Report whether names of columns that differ only in case are different columns."""
    return str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"


def _is_frame(value: object) -> bool:
    return hasattr(value, "mapInArrow")


def _read(spark: SparkSession, names: _Names, side: str) -> Side:
    several = [names] if isinstance(names, (str, os.PathLike)) else list(names)
    if not several:
        raise UsageError(f"{side}: want a path or more, got none")
    found = [absolute(n) for n in several]
    frame = spark.read.parquet(*map(spark_url, found))
    return Side(frame, tuple(c for n in found for c in _choices(n)))


def _choices(name: str) -> list[str]:
    """Return the patterns that a pattern of Spark with ``{a,b}`` stands for."""
    braces = re.search(r"{([^{}]*)}", name)
    if not braces:
        return [name]
    before, after = name[: braces.start()], name[braces.end() :]
    return [c for choice in braces[1].split(",") for c in _choices(before + choice + after)]
