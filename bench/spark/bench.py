"""Joins of a large log with an ID set on a small cluster: Spark's own ways, and bloomjoin.

    python3 bench.py --data DIR --rows 20000000 --share 0.01 --rounds 5

It generates a log and the IDs in DIR, by the harness in bench, if they are not there, starts a master and two
workers (--workers) of one core each on this machine, and runs the same join in several ways, in turn, once
to warm up and then ``--rounds`` times, each round in an order of its own. Printed are medians; of ratios, the median of the rounds'
ratios. Sessions and the making of data are excluded. All ways must give the same rows.

    shuffle      no broadcast and no runtime filter
    default      Spark's configuration as it is
    runtime      no broadcast; the runtime Bloom filter, with thresholds that make it fire
    broadcast    the IDs are broadcast, whatever their size
    join_to      bloomjoin.spark.join_to
    whole        bloomjoin.spark.join in whole mode
    files        bloomjoin.spark.join in files mode, then Spark's default
    auto         bloomjoin.spark.join in auto mode
    probe        the same in probe mode; with --view only
    java         the same filter in a UDF in Java, BloomProbe.java; with --view only, needs javac

With --count the rows are counted in place of written, and join_to is bloomjoin.spark.count.
With --view the log is a view, which a condition and a new column keep from being read as files.

Memory is that of the larger executor: the most that Spark's tasks of a stage held for their
joins and sorts, as Spark tells, and the most that the processes beside Java held, sampled.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import io
import json
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import threading
import time
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PAGE = os.sysconf("SC_PAGE_SIZE")

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
    "join_to": {},
    "whole": {},
    "files": {},
    "auto": {},
    "probe": {},
    "java": {},
}
OURS = ("join_to", "whole", "files", "auto")
FILES, VIEW = list(SETTINGS)[:-2], [w for w in SETTINGS if w not in OURS]


@dataclass
class Way:
    """What one way of joining took."""

    seconds: list[float] = field(default_factory=list)
    answer: tuple[Any, ...] = ()
    shuffled: list[int] = field(default_factory=list)
    executor_seconds: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    beside: list[int] = field(default_factory=list)
    report: Any = None


def make(folder: Path, rows: int, share: float, more: int) -> tuple[Path, Path]:
    """Generate a log, and IDs of ``share`` of its users, if they are missing.

    ``more`` is how many IDs there are at least: users without a row in the log are added.
    """
    members = max(round(rows * share), 1)
    ids = {"kind": "ids", "rows": max(more, members), "users": rows, "members": members, "plain": True}
    return (
        _generate(folder / f"log-{rows}", {"kind": "log", "rows": rows}),
        _generate(folder / f"ids-{rows}-{share}-{more}", ids),
    )


def _generate(folder: Path, data: dict[str, Any]) -> Path:
    """Have the harness write data (Data in bench/data.go) to a folder, which appears when it is whole."""
    if not folder.exists():
        part = folder.with_name(folder.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        command = ["go", "run", ".", "generate", json.dumps(data), str(part.resolve())]
        subprocess.run(command, cwd=Path(__file__).resolve().parents[1], check=True)
        part.rename(folder)
    return folder / f"{data['kind']}.parquet"


@dataclass
class Spent:
    """What stages took, from Spark's own page."""

    shuffled: int = 0
    seconds: float = 0.0
    memory: int = 0
    """The most that the tasks of one stage held, in bytes."""


class Stages:
    """Reads what the stages that have run took."""

    def __init__(self, spark: SparkSession) -> None:
        context = spark.sparkContext
        self._url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
        self._seen: set[tuple[int, int]] = set()

    def take(self) -> Spent:
        """Return what the stages since the last call took."""
        with urllib.request.urlopen(self._url, timeout=60) as answer:
            stages = json.load(answer)
        spent = Spent()
        for stage in stages:
            key = (stage["stageId"], stage["attemptId"])
            if key not in self._seen and stage["status"] in ("COMPLETE", "FAILED"):
                self._seen.add(key)
                spent.shuffled += stage["shuffleWriteBytes"]
                spent.seconds += stage["executorRunTime"] / 1000
                each = stage["peakExecutionMemory"] // max(stage["numTasks"], 1)
                spent.memory = max(spent.memory, each)
        return spent


class Beside:
    """Samples the memory of the processes that executors have started: Python and commands."""

    def __init__(self, workers: list[int]) -> None:
        self._workers = workers
        self._peak = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def take(self) -> int:
        """Return the peak of one worker's processes in bytes, and begin anew."""
        peak, self._peak = self._peak, 0
        return peak

    def stop(self) -> None:
        """End the sampling."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.1):
            children: dict[int, list[int]] = {}
            held: dict[int, int] = {}
            for entry in os.scandir("/proc"):
                with contextlib.suppress(OSError, ValueError):
                    text = Path(f"/proc/{int(entry.name)}/stat").read_text()
                    fields = text.rpartition(")")[2].split()
                    children.setdefault(int(fields[1]), []).append(int(entry.name))
                    # A process that Java is about to start looks as large as Java.
                    if "java" not in os.readlink(f"/proc/{entry.name}/exe"):
                        held[int(entry.name)] = int(fields[21]) * _PAGE
            for worker in self._workers:
                self._peak = max(self._peak, _sum(worker, children, held))


def _sum(process: int, children: dict[int, list[int]], held: dict[int, int]) -> int:
    below = sum(_sum(child, children, held) for child in children.get(process, []))
    return held.get(process, 0) + below


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


def query(
    spark: SparkSession,
    way: str,
    logs: Path,
    ids: Path,
    staging: Any,
    how: str,
    memory: str | None,
    view: bool,
) -> DataFrame:
    """Return the join in one of the ways."""
    from pyspark.sql import functions

    if way in OURS:
        from bloomjoin.spark import join

        mode: Any = way
        place = staging if way == "files" else None
        return join(spark, logs, ids, "user_id", how=how, staging=place, mode=mode, memory=memory)
    left, right = (spark.read.parquet(f"file://{p}") for p in (logs, ids))
    if view:
        left = left.where("status < 500").withColumn("seconds", left.duration_ms / 1000)
    if way == "probe":
        from bloomjoin.spark import join

        return join(
            spark, left, ids, "user_id", how=how, staging=staging, mode="probe", memory=memory
        )
    if way == "runtime":
        # The filter is made only where the IDs look as if they had been selected.
        right = right.where("user_id >= 0")
    if way == "java":
        left = left.where(functions.expr(f"probe(user_id, '{java_filter(ids)}')"))
    if way == "broadcast":
        right = functions.broadcast(right)
    answer = left.join(right, "user_id", how)
    if way == "runtime":
        with contextlib.redirect_stdout(io.StringIO()) as plan:
            answer.explain()
        assert "might_contain" in plan.getvalue(), "Spark makes no filter"
    return answer


def join_all(spark: SparkSession, logs: Path, ids: Path, out: Path, options: Any) -> Any:
    """Write or count the join by tasks alone."""
    from bloomjoin.spark import count, join_to

    if options.count:
        return count(spark, logs, ids, "user_id", options.how, memory=options.memory)
    return join_to(
        spark, logs, ids, "user_id", out, how=options.how, overwrite=True, memory=options.memory
    )


def register_java(spark: SparkSession, folder: Path) -> None:
    """Compile BloomProbe.java, and make it the function probe of a session."""
    import pyspark
    from pyspark.sql.types import BooleanType

    source = Path(__file__).with_name("BloomProbe.java")
    jars = Path(pyspark.__file__).parent / "jars"
    command = ["javac", "--release", "17", "-cp", f"{jars}/*", "-d", str(folder), str(source)]
    subprocess.run(command, check=True)
    jar = folder / "probe.jar"
    with zipfile.ZipFile(jar, "w") as out:
        out.write(folder / "BloomProbe.class", "BloomProbe.class")
    spark.sql(f"ADD JAR '{jar}'")
    spark.udf.registerJavaFunction("probe", "BloomProbe", BooleanType())


def java_filter(ids: Path) -> Path:
    """Build a filter, and write what BloomProbe reads: blocks, the seed's part, the bits."""
    import bloomjoin

    payload = bloomjoin.build(ids, key="user_id", kind="bloom", geometry="split-512")._held()
    assert payload.kind == 2, "BloomProbe has blocks of 512 bits"
    swapped = int.from_bytes((payload.seed & 0xFFFFFFFF).to_bytes(4, "little"), "big") << 32
    flip = ((0x1CAD21F72C81017C ^ 0xDB979083E96DD4DE) - (payload.seed ^ swapped)) % 2**64
    bits = ctypes.string_at(payload.address, payload.blocks * 64)
    path = ids.with_suffix(".bits")
    path.write_bytes(struct.pack("<2Q", payload.blocks, flip) + bits)
    return path


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
        for way in random.sample(ways, len(ways)):
            spark.catalog.clearCache()
            run(way)


def main() -> None:
    """Measure, compare the answers and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--ids", type=int, default=0, help="at least so many IDs")
    parser.add_argument("--how", default="inner")
    parser.add_argument("--memory", help="of a command, for example 1GiB")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--view", action="store_true")
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--ways", default="")
    parser.add_argument("--executor-memory", default="3g")
    options = parser.parse_args()
    ways = options.ways.split(",") if options.ways else VIEW if options.view else FILES
    logs, ids = make(options.data.resolve(), options.rows, options.share, options.ids)
    out = options.data.resolve() / "out"
    found = {way: Way() for way in ways}
    from bloomjoin.spark import Staging, report

    with Cluster(options.workers, 1, "4g") as cluster:
        spark = session(cluster, options.executor_memory)
        if "java" in ways:
            register_java(spark, cluster.directory)
        stages, beside = Stages(spark), Beside(cluster.pids)

        def run(way: str) -> Way:
            for name in {n for s in SETTINGS.values() for n in s}:
                spark.conf.unset(name)
            for name, value in SETTINGS[way].items():
                spark.conf.set(name, value)
            with Staging(str(options.data.resolve() / "staging")) as staging:
                start = time.monotonic()
                it = found[way]
                if way == "join_to":
                    it.report = join_all(spark, logs, ids, out, options)
                else:
                    frame = query(
                        spark, way, logs, ids, staging, options.how, options.memory, options.view
                    )
                    it.report = report(frame) if way in OURS or way == "probe" else None
                    if options.count:
                        it.report, it.answer = None, (frame.count(),)
                    else:
                        frame.write.mode("overwrite").parquet(f"file://{out}")
                took = time.monotonic() - start
            spent = stages.take()
            it.seconds.append(took)
            it.shuffled.append(spent.shuffled)
            it.executor_seconds.append(spent.seconds)
            it.memory.append(spent.memory)
            it.beside.append(beside.take())
            if options.count:
                it.answer, it.report = it.answer or (it.report,), None
            else:
                it.answer = digest(spark, out)
            stages.take()
            beside.take()
            return it

        try:
            measure(spark, ways, options.rounds + 1, run)
        finally:
            beside.stop()
            spark.stop()
            shutil.rmtree(out, ignore_errors=True)
            shutil.rmtree(f"{out}.bloomjoin", ignore_errors=True)
            shutil.rmtree(options.data.resolve() / "staging", ignore_errors=True)
    show(found)


def show(found: dict[str, Way]) -> None:
    """Print medians without the first round, and fail if answers differ."""
    print("| way | s | of ours | executor s | MB shuffled | MB staged | MB in Java | MB beside |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    ours = found.get("join_to") or found.get("probe")
    base = ours or next(iter(found.values()))
    for name, way in found.items():
        ratios = [a / b for a, b in zip(way.seconds[1:], base.seconds[1:], strict=True)]
        staged = way.report.staged_bytes + way.report.ids_staged_bytes if way.report else 0
        print(
            f"| {name} | {middle(way.seconds):.2f} | {statistics.median(ratios):.2f} "
            f"| {middle(way.executor_seconds):.1f} | {middle(way.shuffled) / 1e6:.0f} "
            f"| {staged / 1e6:.0f} | {middle(way.memory) / 1e6:.0f} | {max(way.beside) / 1e6:.0f} |"
        )
    for name, way in found.items():
        print(f"\n{name}: {[round(s, 2) for s in way.seconds]} s, {way.answer[0]} rows")
        if way.report is not None:
            print(way.report)
    if len({way.answer for way in found.values()}) != 1:
        sys.exit(f"the answers differ: { {n: w.answer for n, w in found.items()} }")


def middle(figures: list[Any]) -> float:
    """Return the median without the first round."""
    return float(statistics.median(figures[1:]))


if __name__ == "__main__":
    main()
