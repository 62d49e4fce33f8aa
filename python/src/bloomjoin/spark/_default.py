"""What Spark would do by itself, by its own estimate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "PiB": 1 << 50}


@dataclass(frozen=True)
class Default:
    """Spark's plan of a join: whether it broadcasts a side, and the size of the log's files."""

    broadcasts: bool
    log_bytes: int | None


def default(spark: SparkSession, joined: DataFrame) -> Default:
    """Return Spark's plan of ``joined``, whose left side is the log. No job is run."""
    # Two columns of a view cannot have one name.
    numbered = joined.toDF(*[f"c{i}" for i in range(len(joined.columns))])
    text = str(spark.sql("EXPLAIN COST SELECT * FROM {joined}", joined=numbered).head()[0])
    logical, _, physical = text.partition("== Physical Plan ==")
    found = re.search(r"Relation.*Statistics\(sizeInBytes=([\d.]+) ([KMGTP]?i?B)", logical)
    size = int(float(found[1]) * _UNITS[found[2]]) if found else None
    return Default("BroadcastHashJoin" in physical, size)
