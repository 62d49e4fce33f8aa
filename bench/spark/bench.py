"""Joins of a large log with an ID set on a small cluster: Spark's own ways, and bloomjoin.

    python3 bench.py --data DIR --rows 20000000 --share 0.01 --rounds 5

It makes the log and the IDs in DIR if they are not there, starts a master and two workers of one
core each on this machine, and runs the same inner join in five ways, in turn, once to warm up
and then ``--rounds`` times. Printed are medians of wall seconds per query. Sessions and the
making of data are excluded. All ways must give the same rows.

    shuffle      no broadcast and no runtime filter
    default      Spark's configuration as it is
    runtime      no broadcast; the runtime Bloom filter, with thresholds that make it fire
    broadcast    the IDs are broadcast, whatever their size
    bloomjoin    bloomjoin.spark.join, then Spark's default
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OFF = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
}
SETTINGS: dict[str, dict[str, str]] = {
    "shuffle": OFF,
    "default": {},
    "runtime": {
        **OFF,
        "spark.sql.optimizer.runtime.bloomFilter.enabled": "true",
        "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
        "spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold": "100g",
    },
    "broadcast": {},
    "bloomjoin": {},
}


@dataclass
class Way:
    """What one way of joining took."""

    seconds: list[float] = field(default_factory=list)
    answer: tuple[Any, ...] = ()
    shuffled: list[int] = field(default_factory=list)
    executor_seconds: list[float] = field(default_factory=list)
    report: Any = None


def make(folder: Path, rows: int, share: float) -> tuple[Path, Path]:
    """Write a log of ten columns, and IDs of ``share`` of its users, if they are missing."""
    import numpy as np

    users = max(rows // 10, 100)
    logs, ids = folder / f"log-{rows}.parquet", folder / f"ids-{rows}-{share}.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    if not logs.exists():
        random = np.random.default_rng(1)
        part = folder / (logs.name + ".part")
        writer = None
        for start in range(0, rows, 1_000_000):
            n = min(1_000_000, rows - start)
            table = log_rows(random, n, users, start)
            writer = writer or pq.ParquetWriter(part, table.schema, compression="snappy")
            writer.write_table(table, row_group_size=500_000)
        if writer is not None:
            writer.close()
        part.rename(logs)
    if not ids.exists():
        random = np.random.default_rng(2)
        chosen = random.choice(users, int(users * share), replace=False) * 7919
        table = pa.table({"user_id": chosen, "plan": random.integers(0, 5, len(chosen))})
        pq.write_table(table, ids, row_group_size=500_000)
    return logs, ids


def log_rows(random: Any, n: int, users: int, start: int) -> pa.Table:
    """Return ``n`` rows of a web log."""
    session = random.bytes(n * 8).hex()
    return pa.table(
        {
            "user_id": random.integers(0, users, n) * 7919,
            "session_id": pa.array([session[i : i + 16] for i in range(0, n * 16, 16)]),
            "ts": pa.array(
                1_700_000_000_000_000 + (start + pa.array(range(n)).to_numpy()) * 1000,
                pa.timestamp("us", "UTC"),
            ),
            "url": pa.array([f"/products/{v}/reviews" for v in random.integers(0, 50_000, n)]),
            "status": random.choice([200, 200, 200, 304, 404, 500], n),
            "bytes": random.integers(0, 1 << 20, n),
            "country": pa.array(random.choice(["NO", "DE", "US", "BR", "IN"], n)),
            "agent": pa.array([f"agent/{v}" for v in random.integers(0, 200, n)]),
            "amount": random.random(n).round(2),
            "mobile": pa.array(random.integers(0, 2, n), pa.int8()),
        }
    )


class Stages:
    """Reads shuffle bytes and executor time of the stages that have run, from Spark's own page."""

    def __init__(self, spark: SparkSession) -> None:
        context = spark.sparkContext
        self._url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
        self._seen: set[tuple[int, int]] = set()

    def take(self) -> tuple[int, float]:
        """Return shuffled bytes and executor seconds since the last call."""
        with urllib.request.urlopen(self._url, timeout=60) as answer:
            stages = json.load(answer)
        shuffled, milliseconds = 0, 0
        for stage in stages:
            key = (stage["stageId"], stage["attemptId"])
            if key not in self._seen and stage["status"] in ("COMPLETE", "FAILED"):
                self._seen.add(key)
                shuffled += stage["shuffleWriteBytes"]
                milliseconds += stage["executorRunTime"]
        return shuffled, milliseconds / 1000


def session(cluster: Cluster, memory: str) -> SparkSession:
    """Start the session that all ways share."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(cluster.url)
        .config("spark.executor.memory", memory)
        .config("spark.executor.cores", "1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.port", "0")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(100).selectExpr("sum(id)").collect()
    return spark


def query(spark: SparkSession, way: str, logs: Path, ids: Path, staging: Any) -> DataFrame:
    """Return the join in one of the ways."""
    from pyspark.sql import functions

    if way == "bloomjoin":
        from bloomjoin.spark import join

        memory = os.environ.get("BENCH_MEMORY")
        return join(spark, logs, ids, "user_id", staging=staging, mode="files", memory=memory)
    left, right = (spark.read.parquet(f"file://{p}") for p in (logs, ids))
    if way == "runtime":
        # The filter is made only where the IDs look as if they had been selected.
        right = right.where("user_id >= 0")
    if way == "broadcast":
        right = functions.broadcast(right)
    return left.join(right, "user_id")


def digest(spark: SparkSession, folder: Path) -> tuple[Any, ...]:
    """Count the rows of an answer and add up their hashes."""
    from pyspark.sql import functions

    rows = spark.read.parquet(f"file://{folder}")
    columns = [functions.col(c).cast("string") for c in sorted(rows.columns)]
    total = functions.sum(functions.xxhash64(*columns).cast("decimal(38,0)"))
    return tuple(rows.agg(functions.count(functions.lit(1)), total).collect()[0])


def measure(spark: SparkSession, ways: list[str], rounds: int, run: Callable[[str], Way]) -> None:
    """Run all ways in turn, so that each round compares like with like."""
    for _ in range(rounds):
        for way in ways:
            spark.catalog.clearCache()
            run(way)


def main() -> None:
    """Measure, compare the answers and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--ids", type=Path, help="IDs of your own: user_id, plan")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ways", default=",".join(SETTINGS))
    parser.add_argument("--executor-memory", default="3g")
    options = parser.parse_args()
    ways = options.ways.split(",")
    logs, ids = make(options.data.resolve(), options.rows, options.share)
    ids = options.ids.resolve() if options.ids else ids
    out = options.data.resolve() / "out"
    found = {way: Way() for way in ways}
    from bloomjoin.spark import Staging, report

    with Cluster(2, 1, "4g") as cluster:
        spark = session(cluster, options.executor_memory)
        stages = Stages(spark)

        def run(way: str) -> Way:
            for name in {n for s in SETTINGS.values() for n in s}:
                spark.conf.unset(name)
            for name, value in SETTINGS[way].items():
                spark.conf.set(name, value)
            with Staging(str(options.data.resolve() / "staging")) as staging:
                start = time.monotonic()
                frame = query(spark, way, logs, ids, staging)
                frame.write.mode("overwrite").parquet(f"file://{out}")
                took = time.monotonic() - start
            it = found[way]
            shuffled, busy = stages.take()
            it.seconds.append(took)
            it.shuffled.append(shuffled)
            it.executor_seconds.append(busy)
            it.answer = digest(spark, out)
            stages.take()
            it.report = report(frame) if way == "bloomjoin" else None
            return it

        try:
            measure(spark, ways, options.rounds + 1, run)
        finally:
            spark.stop()
            shutil.rmtree(out, ignore_errors=True)
            shutil.rmtree(options.data.resolve() / "staging", ignore_errors=True)
    show(found)


def show(found: dict[str, Way]) -> None:
    """Print medians without the first round, and fail if answers differ."""
    print("| way | s | of shuffle | executor s | MB shuffled | rows |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    first = next(iter(found.values()))
    base = statistics.median(first.seconds[1:])
    for name, way in found.items():
        seconds = statistics.median(way.seconds[1:])
        busy, shuffled = (statistics.median(v[1:]) for v in (way.executor_seconds, way.shuffled))
        print(
            f"| {name} | {seconds:.2f} | {seconds / base:.2f} | {busy:.1f} "
            f"| {shuffled / 1e6:.1f} | {way.answer[0]} |"
        )
    for way in found.values():
        if way.report is not None:
            print(f"\n{way.report}")
    if len({way.answer for way in found.values()}) != 1:
        sys.exit(f"the answers differ: { {n: w.answer for n, w in found.items()} }")


if __name__ == "__main__":
    main()
