"""What auto chooses, by sizes that are known before any row is read.

For L bytes of log, b bytes of IDs and W cores, with the rates of one core (measured on one
machine; see `bench/RESULTS.md`), in seconds:

    whole    L / (1.1e9 W) + b / 5e8          each core reads all IDs
    staged   L / (1.1e9 W) + 3 b / (5e8 W) + 2   the IDs are divided, filters are merged
    shuffle  L / (3e7 W) + b / (3e7 W)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._plain import Unsuitable
from ._resources import parallelism

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Bytes of the log for each core, below which starting commands costs more than it saves.
_SMALL = 32 << 20
# From this on, dividing the IDs pays, if there are more than a few cores.
_LARGE_IDS = 2 << 30
_FEW_CORES = 4


class NotWorth(Unsuitable):
    """Spark alone is expected to be faster."""


def check_log(spark: SparkSession, log_bytes: int) -> None:
    """Raise NotWorth if the log is small."""
    least = _SMALL * parallelism(spark)
    if log_bytes < least:
        raise NotWorth(f"the log is small: {log_bytes >> 20} MiB, want {least >> 20} MiB")


def check_ids(spark: SparkSession, ids_bytes: int, log_bytes: int) -> None:
    """Raise NotWorth if there are so many IDs beside the log that a shuffle of both is faster."""
    cores = parallelism(spark)
    if ids_bytes * cores > 16 * log_bytes + (64 << 20) * cores:
        raise NotWorth(f"each core would read {ids_bytes >> 20} MiB of IDs")


def check_divided(spark: SparkSession, ids_bytes: int) -> None:
    """Raise Unsuitable if each core reads so many IDs that it is faster to divide them."""
    if ids_bytes > _LARGE_IDS and parallelism(spark) > _FEW_CORES:
        raise Unsuitable(f"each core would read {ids_bytes >> 20} MiB of IDs")
