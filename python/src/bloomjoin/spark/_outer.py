"""Full joins: the rows of a left join, and the IDs that have no row in the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._equality import Pair
from ._plain import spark_join, using

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def full(
    logs: DataFrame, left: DataFrame, ids: DataFrame, keys: DataFrame, on: Sequence[Pair]
) -> DataFrame:
    """Join fully: ``left`` is the left join, and ``logs`` has the log's columns.

    ``keys`` are the key columns of all rows of the log that may have an ID, so that an ID has no
    row in the log if it has none there.
    """
    schema = spark_join(logs, ids, on, "full").schema
    back = [Pair(p.ids, p.log, p.using) for p in on]
    alone = spark_join(ids, keys, back, "left_anti")
    both = [_typed(left, schema), _typed(_beside_nulls(logs, alone, on), schema)]
    return both[0].union(both[1]).toDF(*schema.names)


def _beside_nulls(logs: DataFrame, ids: DataFrame, on: Sequence[Pair]) -> DataFrame:
    """Return IDs in the place that a full join gives them, and NULL for columns of the log."""
    from pyspark.sql import functions

    columns = numbered(ids)
    places = {
        name: functions.col(new) for name, new in zip(ids.columns, columns.columns, strict=True)
    }
    keys = list(dict.fromkeys(p.ids for p in on)) if using(on) else []
    nulls = [functions.lit(None) for _ in range(len(logs.columns) - len(keys))]
    rest = [c for name, c in places.items() if name not in keys]
    return columns.select(*[places[k] for k in keys], *nulls, *rest)


def _typed(frame: DataFrame, schema: StructType) -> DataFrame:
    """Give columns the types of a schema, by their places."""
    from pyspark.sql import functions

    columns = numbered(frame)
    return columns.select(
        *[
            functions.col(name).cast(field.dataType).alias(name)
            for name, field in zip(columns.columns, schema.fields, strict=True)
        ]
    )


def numbered(frame: DataFrame) -> DataFrame:
    """Name columns by their places, because their own names may not be unique."""
    return frame.toDF(*[f"c{i}" for i in range(len(frame.columns))])
