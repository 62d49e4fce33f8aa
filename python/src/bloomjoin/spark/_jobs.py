"""Runs tasks as Spark jobs. What the driver collects is the commit."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bloomjoin._errors import (
    DataError,
    Error,
    GateError,
    InternalError,
    InterruptedRun,
    RetryableError,
    UsageError,
)

from . import _ship, _task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ERRORS: dict[int, type[Error]] = {1: DataError, 2: GateError, 64: UsageError, 75: RetryableError}


@dataclass(frozen=True)
class Done:
    """What one task has returned: the attempt that counts."""

    shard: int
    host: str
    output: str
    report: dict[str, Any]
    detail: dict[str, Any]
    seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class Job:
    """A finished job, in the order of its shards."""

    tasks: tuple[Done, ...]
    seconds: float

    @property
    def outputs(self) -> list[str]:
        """The outputs of the attempts that count."""
        return [t.output for t in self.tasks if t.output]

    @property
    def task_seconds(self) -> float:
        """The seconds of all tasks together."""
        return sum(t.seconds for t in self.tasks)

    @property
    def peak_bytes(self) -> int:
        """The most memory that a command has held, in bytes."""
        return max((t.peak_bytes for t in self.tasks), default=0)

    def total(self, field: str) -> int:
        """Return the sum of a figure over all tasks."""
        return sum(int(t.report.get(field, 0)) for t in self.tasks)


def run(spark: SparkSession, step: _task.Step, tasks: int) -> Job:
    """Run a step as ``tasks`` tasks, and return what the attempt that won has done in each.

    Raises the error of a task: at once if another attempt would fail as well, else after as
    many attempts as Spark makes.
    """
    return _collected(spark, _ship.each(step), tasks)


def freeze(spark: SparkSession, wanted: Sequence[_task.Listing]) -> Job:
    """List inputs, a task for each list."""
    return _collected(spark, _ship.listings(list(wanted)), len(wanted))


def freeze_here(spark: SparkSession, wanted: Sequence[_task.Listing]) -> Job | None:
    """List inputs on the driver, if it can do what a task can."""
    return _here(spark, _task.freeze, wanted)


def run_here(spark: SparkSession, step: _task.Step) -> Job:
    """Run a step of one task on the driver if it can do that, else by `run`."""
    found = _here(spark, _task.attempt, [step])
    return found or run(spark, step, 1)


def _here(
    spark: SparkSession, do: Callable[[Any, int], dict[str, Any]], each: Sequence[Any]
) -> Job | None:
    if not _ship.can_run(spark):
        return None
    start = time.monotonic()
    with contextlib.suppress(OSError, RuntimeError):
        with ThreadPoolExecutor() as threads:
            rows = list(threads.map(do, each, range(len(each))))
        if not any(row["exit_code"] for row in rows):
            return Job(tuple(map(_done, rows)), time.monotonic() - start)
    return None


def _collected(spark: SparkSession, mapper: _task.Mapper, tasks: int) -> Job:
    start = time.monotonic()
    frame = spark.range(0, tasks, 1, tasks).mapInArrow(mapper, _task.COLUMNS)
    try:
        rows = [row.asDict() for row in frame.collect()]
    except Exception as error:
        raise _failure(error) from error
    rows.sort(key=lambda row: int(row["shard"]))
    for row in rows:
        if row["exit_code"]:
            # A list that no longer fits is made anew when the program runs again.
            kind = RetryableError if "[E207]" in row["text"] else _ERRORS[row["exit_code"]]
            raise kind(row["text"], exit_code=row["exit_code"])
    if [row["shard"] for row in rows] != list(range(tasks)):
        raise InternalError(f"want a result of each of {tasks} tasks, got {len(rows)}")
    return Job(tuple(_done(row) for row in rows), time.monotonic() - start)


def _done(row: dict[str, Any]) -> Done:
    return Done(
        shard=row["shard"],
        host=row["host"],
        output=row["output"],
        report=json.loads(row["report"] or "{}"),
        detail=json.loads(row["detail"] or "{}"),
        seconds=row["seconds"],
        peak_bytes=row["peak_bytes"],
    )


def _failure(error: Exception) -> Exception:
    """Return the error of the command if Spark's has one in its text, else Spark's own."""
    _, mark, rest = str(error).partition(_task.MARK)
    if not mark:
        return error
    try:
        found = json.JSONDecoder().raw_decode(rest)[0]
    except ValueError:
        return error
    code, text = int(found["exit_code"]), str(found["text"])
    interrupted = code < 0 or code > 128
    kind: type[Error] = InterruptedRun if interrupted else _ERRORS.get(code, InternalError)
    return kind(text or f"exit code {code}", exit_code=code)
