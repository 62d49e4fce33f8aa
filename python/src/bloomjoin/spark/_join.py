"""join and prefilter: what bloomjoin does, what Spark does, and why."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from bloomjoin._errors import UsageError

from ._equality import pairs
from ._plain import spark_join
from ._report import attach
from ._run import Run, Settings, Unsuitable
from ._sides import ids_side, logs_side
from ._staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ._ship import Binaries

Mode = Literal["auto", "files", "probe", "spark"]

_HOW = {
    "inner": "inner",
    "left": "left", "leftouter": "left", "left_outer": "left",
    "right": "right", "rightouter": "right", "right_outer": "right",
    "full": "full", "outer": "full", "fullouter": "full", "full_outer": "full",
    "semi": "left_semi", "leftsemi": "left_semi", "left_semi": "left_semi",
    "anti": "left_anti", "leftanti": "left_anti", "left_anti": "left_anti",
}  # fmt: skip


def join(
    spark: SparkSession,
    logs: DataFrame | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    ids: DataFrame | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    on: str | Sequence[str] | Mapping[str, str],
    *,
    staging: str | Staging,
    how: str = "inner",
    columns: Sequence[str] | None = None,
    mode: Mode = "auto",
    memory: str | None = None,
    tasks: int | None = None,
    both_ways: bool | None = None,
    storage_options: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    binaries: Binaries | None = None,
) -> DataFrame:
    """Join the rows of a log with an ID set, on a cluster.

    The answer is that of ``spark.read.parquet(logs).join(ids, on, how)``. Before Spark joins,
    tasks copy the log's rows whose key may be among the IDs to ``staging``; Spark reads the
    copies instead of the log. The tasks run when this function is called, Spark's join runs when
    the answer is used. ``report`` returns what happened.

    ``logs`` are Parquet files by name: paths, patterns or URLs, that all executors can read. A
    data frame is refused but in mode ``"probe"``, because its filters, masks and views would be
    bypassed. ``ids`` are Parquet files, or a data frame, whose rows are written to the staging
    once. ``on`` names key columns: ``"user_id"``, ``"log_column=id_column"``, a list of those,
    or a mapping. If all keys have one name on both sides, each is one column of the answer.
    ``columns`` are the log's columns to keep; keys are always kept. Name the answer's columns by
    ``col("name")``, not as those of ``ids``, which is read again.

    ``mode`` ``"files"`` filters wherever the answer is Spark's, ``"spark"`` never does, and
    ``"auto"`` only where it is expected to be faster. ``"probe"`` is for a log that is a data
    frame: a UDF drops rows as Spark reads them, and executors need this package.

    ``memory`` is the budget of the command in a task, as ``"1GiB"``; by default the overhead of an
    executor, divided among its cores. ``tasks`` is the number of tasks of a stage. ``both_ways``
    filters the IDs by the candidates' keys, too; by default where there are many more IDs than
    candidates.

    ``storage_options`` are settings of stores, and ``environment`` are variables of the command
    on the executors, for credentials that these do not find by themselves; both travel with the
    tasks. ``binaries`` maps ``x86_64`` and ``aarch64`` to Linux binaries of the command.

    Raises UsageError, DataError (the data is wrong), RetryableError (a file has vanished or
    changed, a full disk) and Spark's own errors.
    """
    known = _HOW.get(how.lower())
    if known is None:
        raise UsageError(f"how: want inner, left, right, full, semi or anti, got {how!r}")
    if mode not in ("auto", "files", "probe", "spark"):
        raise UsageError(f"mode: want auto, files, probe or spark, got {mode!r}")
    settings = Settings(memory, tasks, both_ways, storage_options, environment, binaries)
    left = logs_side(spark, logs, columns, pairs(on), probe=mode == "probe")
    right = ids_side(spark, ids)
    run = Run(spark, left, right, pairs(on), known, _staging(staging), settings)
    try:
        if mode == "spark":
            raise Unsuitable("mode is spark")
        return run.probed() if mode == "probe" else run.answer(auto=mode == "auto")
    except Unsuitable as why:
        run.discard(())
        answer = spark_join(left.frame, run.ids_frame, run.pairs, known)
        return attach(answer, run.report("spark", str(why)))
    except BaseException:
        run.abandon()
        raise


def prefilter(
    spark: SparkSession,
    logs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    ids: DataFrame | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    on: str | Sequence[str] | Mapping[str, str],
    *,
    staging: str | Staging,
    columns: Sequence[str] | None = None,
    memory: str | None = None,
    tasks: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    binaries: Binaries | None = None,
) -> DataFrame:
    """Return the log's rows whose key may be among the IDs, for a join of your own.

    No row that has an ID is missing; a Bloom filter lets a few others through, too. Use inner,
    semi or right joins of the result. Where keys cannot be compared as Spark compares them, the
    result is the whole log, and ``report`` says why. The arguments are those of `join`.
    """
    settings = Settings(memory, tasks, False, storage_options, environment, binaries)
    left = logs_side(spark, logs, columns, pairs(on))
    run = Run(spark, left, ids_side(spark, ids), pairs(on), "inner", _staging(staging), settings)
    try:
        return run.candidates()
    except Unsuitable as why:
        run.discard(())
        return attach(left.frame, run.report("spark", str(why)))
    except BaseException:
        run.abandon()
        raise


def _staging(place: str | Staging) -> Staging:
    return place if isinstance(place, Staging) else Staging(place)
