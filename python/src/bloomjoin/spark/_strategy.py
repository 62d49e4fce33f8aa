"""How Spark joins what tasks have left: which side is broadcast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._resources import size_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

# Spark compares its threshold with the bytes of files. In memory, a row of one integer takes
# about 60 bytes of a hash table, and as little as 5 bytes of a compressed file.
_TIMES = 12
# Of a row in a hash table of Spark: pointers, the header, null bits, the length.
_ROW_BYTES = 48
_WIDE = {"string": 20, "binary": 100}


def broadcast_limit(spark: SparkSession) -> int:
    """Return how many bytes of memory a side may take that is broadcast. 0: none."""
    threshold = size_of(str(spark.conf.get("spark.sql.autoBroadcastJoinThreshold", "10m")))
    return max(threshold, 0) * _TIMES


def memory_of(schema: StructType, rows: int, stored: int) -> int:
    """Estimate the memory of rows in a hash table, in bytes. ``stored`` is their size in files."""
    width = sum(_WIDE.get(f.dataType.simpleString(), 8) for f in schema.fields)
    return max(rows * (_ROW_BYTES + width), stored)
