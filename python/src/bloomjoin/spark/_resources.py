"""What a task may take of an executor, from the session's configuration."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from . import _ship
from ._files import Resources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MIB = 1 << 20
_UNITS = {"b": 1, "k": 1 << 10, "m": _MIB, "g": 1 << 30, "t": 1 << 40}
_LEAST = 64 * _MIB


def resources(spark: SparkSession, memory: str | None, tasks: int | None) -> Resources:
    """Divide an executor's overhead among its cores, unless ``memory`` says otherwise.

    The command runs beside the executor's Java heap, so the overhead is what it may use.
    """
    return Resources(memory or _share(spark), parallelism(spark), tasks)


def _share(spark: SparkSession) -> str:
    heap = _bytes(_get(spark, "spark.executor.memory", "1g"))
    factor = float(_get(spark, "spark.executor.memoryOverheadFactor", "0.1"))
    least = _bytes(_get(spark, "spark.executor.minMemoryOverhead", "384m"))
    stated = _get(spark, "spark.executor.memoryOverhead", "")
    overhead = _bytes(stated) if stated else max(least, int(heap * factor))
    cores = int(_get(spark, "spark.executor.cores", "1"))
    slots = max(1, cores // int(_get(spark, "spark.task.cpus", "1")))
    return f"{max(_LEAST, overhead // slots) // _MIB}MiB"


def parallelism(spark: SparkSession) -> int:
    """Return how many tasks the cluster runs at a time, as Spark knows it."""
    if not _ship.is_connect(spark):
        return int(spark.sparkContext.defaultParallelism)
    from pyspark.sql import functions

    # Spark Connect does not tell; a range has as many partitions.
    numbers = spark.range(1 << 16).select(functions.spark_partition_id().alias("number"))
    found = numbers.agg(functions.max("number")).head()
    return int(found[0]) + 1 if found else 1


def _get(spark: SparkSession, name: str, default: str) -> str:
    found = spark.conf.get(name, default)
    return str(found) if found is not None else default


def _bytes(text: str) -> int:
    """Read a size of memory as Spark does: MiB without a unit."""
    found = re.fullmatch(r"\s*(\d+)\s*([bkmgt]?)i?b?\s*", text.lower())
    if not found:
        return _LEAST
    return int(found[1]) * _UNITS[found[2] or "m"]


def size_of(text: str) -> int:
    """Read a size as Spark does where bytes are the unit. -1 is below any size."""
    found = re.fullmatch(r"\s*(-?\d+)\s*([bkmgt]?)i?b?\s*", text.lower())
    return int(found[1]) * _UNITS[found[2] or "b"] if found else 0
