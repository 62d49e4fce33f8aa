"""What tasks are given: settings, the command, and a share of an executor."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bloomjoin._errors import UsageError
from bloomjoin._stores import access

from . import _ship, _task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MIB = 1 << 20
_UNITS = {"b": 1, "k": 1 << 10, "m": _MIB, "g": 1 << 30, "t": 1 << 40}
_LEAST = 64 * _MIB


@dataclass(frozen=True)
class Settings:
    """Arguments of `join` that only tasks need."""

    memory: str | None = None
    tasks: int | None = None
    both_ways: bool | None = None
    where: Sequence[str] = ()
    storage_options: Mapping[str, str] | None = None
    environment: Mapping[str, str] | None = None
    binaries: _ship.Binaries | None = None


@dataclass(frozen=True)
class Room:
    """What every task has in common."""

    binary: _task.Binary
    environment: dict[str, str]
    options: list[str]
    """Settings of stores, which any command takes."""
    memory: str
    parallelism: int
    tasks: int | None

    @classmethod
    def of(cls, spark: SparkSession, settings: Settings) -> Room:
        """Divide an executor's overhead among its cores, unless the settings say otherwise.

        The command runs beside the executor's Java heap, so the overhead is what it may use.
        """
        if settings.tasks is not None and settings.tasks < 1:
            raise UsageError(f"tasks: want 1 or more, got {settings.tasks}")
        with access(settings.storage_options, None) as found:
            environment = {**found.env, **(settings.environment or {})}
            options = list(found.flags)
        binary = _ship.ship(spark, settings.binaries)
        memory = settings.memory or _share(spark)
        return cls(binary, environment, options, memory, parallelism(spark), settings.tasks)

    def tasks_of(self, size: int, row_groups: int, each: int, *, all_cores: bool = False) -> int:
        """Return how many tasks share inputs of ``size`` bytes: no task is without a row group.

        ``each`` is the most that one should read. ``all_cores`` asks for as many on each core.
        """
        wanted = self.tasks or math.ceil(size / each)
        if all_cores and not self.tasks:
            wanted = math.ceil(max(wanted, 1) / self.parallelism) * self.parallelism
        return max(1, min(wanted, row_groups))

    def step(self, *commands: Sequence[str]) -> _task.Step:
        """Return a job of one command for each task, or one for all."""
        return {
            "binary": self.binary,
            "environment": self.environment,
            "commands": [list(c) for c in commands],
            "prefix": "",
            "suffix": "",
            "filter": {},
            "list": b"",
            "ids": "",
            "unchanged": {},
        }

    def listings(
        self, sides: Mapping[str, Sequence[str]], root: str = "", directories: Sequence[str] = ()
    ) -> list[_task.Listing]:
        """Return what lists the inputs of each side, into a directory or back to the driver."""
        return [
            {
                "binary": self.binary,
                "environment": self.environment,
                "options": self.options,
                "names": list(names),
                "prefix": root and f"{root}/lists/{side}-",
                "directories": list(directories),
            }
            for side, names in sides.items()
        ]


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
