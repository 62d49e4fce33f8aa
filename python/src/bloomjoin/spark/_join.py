"""join, count and prefilter: what bloomjoin does, what Spark does, and why."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from bloomjoin._errors import UsageError

from ._choose import NotWorth
from ._equality import Pair, pairs, resolved
from ._files import Frozen, listed_here
from ._plain import Unsuitable, spark_join
from ._report import SparkReport, attach
from ._resources import Room, Settings
from ._run import Run
from ._ship import can_run
from ._sides import Names, Side, case_sensitive, ids_side, is_frame, logs_side, names_of
from ._staging import Staging
from ._tables import Table, is_table, table
from ._whole import Whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ._ship import Binaries

Mode = Literal["auto", "whole", "files", "probe", "spark"]

_HOW = {
    "inner": "inner",
    "left": "left", "leftouter": "left", "left_outer": "left",
    "right": "right", "rightouter": "right", "right_outer": "right",
    "full": "full", "outer": "full", "fullouter": "full", "full_outer": "full",
    "semi": "left_semi", "leftsemi": "left_semi", "left_semi": "left_semi",
    "anti": "left_anti", "leftanti": "left_anti", "left_anti": "left_anti",
}  # fmt: skip
_EVERY_ROW = ("left", "left_anti")
_WHOLE = ("inner", "left_semi", *_EVERY_ROW)
_BY_TASKS = ("auto", "whole", "files")


def join(
    spark: SparkSession,
    logs: DataFrame | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    ids: DataFrame | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    on: str | Sequence[str] | Mapping[str, str],
    *,
    staging: str | Staging | None = None,
    how: str = "inner",
    columns: Sequence[str] | None = None,
    where: str | Sequence[str] = (),
    mode: Mode = "auto",
    memory: str | None = None,
    tasks: int | None = None,
    both_ways: bool | None = None,
    storage_options: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    binaries: Binaries | None = None,
) -> DataFrame:
    """Join the rows of a log with an ID set, on a cluster.

    The answer is that of ``spark.read.parquet(logs).join(ids, on, how)``. ``report`` returns how
    it is made, and why. ``mode`` is

    ``"whole"``   tasks join their part of the log with all IDs when the answer is used: inner,
                  left, semi and anti joins
    ``"files"``   tasks copy the rows that may have an ID to ``staging`` when this function is
                  called, and Spark joins the copies; left and anti joins are done whole
    ``"probe"``   for a log that is a data frame: a UDF drops rows as Spark reads them. Executors
                  need this package
    ``"spark"``   Spark joins
    ``"auto"``    the one that sizes let expect to be the fastest

    Where Spark's answer could be another, Spark joins, whatever the mode.

    ``logs`` are Parquet files by name: paths, patterns or URLs, that all executors can read; or a
    table of the catalog by name, without a slash: Iceberg, Delta, or Parquet without partitions,
    whose files are read in the version that is current when this function is called. A data frame
    is refused but in mode ``"probe"``, because its filters, masks and views would be bypassed, and
    so is a table that may have such. ``ids`` are Parquet files, a table or view, or a data frame,
    which is evaluated once, when this function is called. ``on`` names key columns:
    ``"user_id"``, ``"log_column=id_column"``, a list of those, or a mapping. If all keys have one
    name on both sides, each is one column of the answer. ``columns`` are the log's columns to
    keep; keys are always kept. ``where`` are conditions on the log, in the words of the command's
    ``--where``, for whole joins only. Name the answer's columns by ``col("name")``, not as those of
    ``ids``, which is read again.

    ``memory`` is the budget of the command in a task, as ``"1GiB"``; by default the overhead of an
    executor, divided among its cores. ``tasks`` is the number of tasks of a stage. ``both_ways``
    filters the IDs by the candidates' keys, too, in mode ``"files"``; by default where there are
    many more IDs than candidates.

    ``storage_options`` are settings of stores, and ``environment`` are variables of the command
    on the executors, for credentials that these do not find by themselves; both travel with the
    tasks. ``binaries`` maps ``x86_64`` and ``aarch64`` to Linux binaries of the command.

    Raises UsageError, DataError (the data is wrong), RetryableError (a file has vanished or
    changed, a full disk) and Spark's own errors; so does the use of the answer, as Spark's.
    """
    known = known_how(how)
    if mode not in ("auto", "whole", "files", "probe", "spark"):
        raise UsageError(f"mode: want auto, whole, files, probe or spark, got {mode!r}")
    if staging is None and mode in ("files", "probe"):
        raise UsageError(f"staging: mode {mode} needs a directory or URL for copies")
    settings = Settings(
        memory, tasks, both_ways, conditions(where), storage_options, environment, binaries
    )
    if settings.where and mode in ("files", "probe"):
        raise UsageError(f"where: want mode whole or auto, got {mode}")
    # Only tasks know conditions.
    auto, every = mode == "auto" and not settings.where, known in _EVERY_ROW
    room = Room.of(spark, settings) if mode in _BY_TASKS else None
    listing = room if mode in ("auto", "whole") and known in _WHOLE else None
    left, right, keys = sides(spark, logs, ids, on, columns, listing, probe=mode == "probe")
    why = "mode is spark"
    if room is not None and (mode != "files" or every):
        try:
            whole = Whole.of(
                spark, room, left, right, keys, known, settings.where,
                auto=auto, staging=staging is not None and not every,
            )  # fmt: skip
            return attach(whole.rows(), whole.report("tasks join when the answer is used"))
        except NotWorth as error:
            staging, why = None, str(error)
        except Unsuitable as error:
            why = str(error)
    if settings.where:
        raise UsageError(f"where: Spark has to do this join: {why}")
    if staging is not None and (mode == "probe" or (mode in ("auto", "files") and not every)):
        return _staged(Run(spark, left, right, keys, known, _staging(staging), settings), mode)
    answer = spark_join(left.frame, right.frame, keys, known)
    return attach(answer, SparkReport("spark", why, known))


def _staged(run: Run, mode: Mode) -> DataFrame:
    try:
        return run.probed() if mode == "probe" else run.answer(auto=mode == "auto")
    except Unsuitable as why:
        run.discard(())
        return attach(run.spark_join(), run.report("spark", str(why)))
    except BaseException:
        run.abandon()
        raise


def count(
    spark: SparkSession,
    logs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    ids: DataFrame | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    on: str | Sequence[str] | Mapping[str, str],
    how: str = "inner",
    *,
    where: str | Sequence[str] = (),
    memory: str | None = None,
    tasks: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    binaries: Binaries | None = None,
) -> int:
    """Return the number of rows that `join` would have. Tasks read the keys only.

    Spark counts where it would have to join. The arguments are those of `join`.
    """
    known = known_how(how)
    settings = Settings(
        memory, tasks, None, conditions(where), storage_options, environment, binaries
    )
    room = Room.of(spark, settings)
    left, right, keys = sides(spark, logs, ids, on, (), room)
    try:
        return Whole.of(spark, room, left, right, keys, known, settings.where).count()
    except Unsuitable as why:
        if settings.where:
            raise UsageError(f"where: Spark has to do this join: {why}") from why
        return int(spark_join(left.frame, right.frame, keys, known).count())


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
    settings = Settings(memory, tasks, False, (), storage_options, environment, binaries)
    left, right, keys = sides(spark, logs, ids, on, columns)
    run = Run(spark, left, right, keys, "inner", _staging(staging), settings)
    try:
        return run.candidates()
    except Unsuitable as why:
        run.discard(())
        return attach(left.frame, run.report("spark", str(why)))
    except BaseException:
        run.abandon()
        raise


def known_how(how: str, wanted: Collection[str] = tuple(_HOW.values())) -> str:
    """Return Spark's name of a type of join."""
    known = _HOW.get(how.lower(), "")
    if known not in wanted:
        names = [n.removeprefix("left_") for n in dict.fromkeys(wanted)]
        raise UsageError(f"how: want {', '.join(names[:-1])} or {names[-1]}, got {how!r}")
    return known


def conditions(where: str | Sequence[str]) -> tuple[str, ...]:
    """Return conditions that must all hold."""
    return (where,) if isinstance(where, str) else tuple(where)


def sides(
    spark: SparkSession,
    logs: DataFrame | Names,
    ids: DataFrame | Names,
    on: str | Sequence[str] | Mapping[str, str],
    columns: Sequence[str] | None,
    listing: Room | None = None,
    *,
    probe: bool = False,
) -> tuple[Side, Side, tuple[Pair, ...]]:
    """Return both sides, and pairs of the names that key columns really have.

    With ``listing``, files are listed first if the driver can: their footers have the schema.
    """
    of_logs: DataFrame | Names | Table = logs
    if is_table(spark, logs):
        of_logs = spark.table(str(logs)) if probe else table(spark, str(logs))
    ids = spark.table(str(ids)) if is_table(spark, ids) else ids
    known: dict[str, Frozen] = {}
    if listing is not None and can_run(spark):
        both = {"logs": of_logs, "ids": ids}
        known = listed_here(
            spark, listing, {n: names_of(n, s) for n, s in both.items() if not is_frame(s)}
        )
    wanted = pairs(on)
    left = logs_side(spark, of_logs, known.get("logs"), probe=probe)
    if columns is not None:
        left.choose(columns, [p.log for p in wanted])
    right = ids_side(spark, ids, known.get("ids"))
    return left, right, resolved(wanted, left.schema, right.schema, case_sensitive(spark))


def _staging(place: str | Staging) -> Staging:
    return place if isinstance(place, Staging) else Staging(place)
