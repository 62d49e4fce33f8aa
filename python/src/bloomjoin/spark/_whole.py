"""Tasks that do the whole join: each joins its part of the log with all IDs.

Nothing is staged. The rows go to Spark as Arrow batches, or to files that `_commit` publishes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from bloomjoin._errors import UsageError

from . import _jobs, _ship, _task
from ._checks import check_join, check_listed, check_old_dates, check_stored
from ._choose import check_ids
from ._equality import Pair
from ._files import Frozen, listed, of_path, reference
from ._plain import Unsuitable, quoted, using
from ._report import SparkReport
from ._resources import Room
from ._sides import Side
from ._types import arrow_schema, not_carried

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField

# A task reads all IDs, and starts a command: its part of the log should be larger than both.
_TASK_BYTES = 1 << 30
_TIMES_IDS = 8

_TYPES = {"inner": "inner", "left": "left", "left_semi": "semi", "left_anti": "anti"}
_ONE_SIDE = ("left_semi", "left_anti")


@dataclass(frozen=True)
class Whole:
    """A join that tasks can do. Making one has listed the files, and collected a data frame."""

    spark: SparkSession
    logs: Side
    ids: Side
    on: Sequence[Pair]
    how: str
    log: Frozen
    ids_bytes: int
    room: Room
    step: _task.Step
    """What the command of every task has in common."""
    tasks: int

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        room: Room,
        logs: Side,
        ids: Side,
        on: Sequence[Pair],
        how: str,
        where: Sequence[str] = (),
        *,
        auto: bool = False,
        staging: bool = False,
    ) -> Whole:
        """Check and list what is joined. Raises Unsuitable where Spark should do it.

        ``auto``: also where another way is faster, of which one may be to stage rows.
        """
        if how not in _TYPES:
            raise Unsuitable(f"an ID without a row in one task may have one in another: {how}")
        if how not in _ONE_SIDE and not using(on) and any(p.log == p.ids for p in on):
            raise Unsuitable("some keys have one name on both sides, and some have two")
        check_join(spark, logs, ids, on)
        lists = _lists(spark, room, logs, ids, on)
        log = lists["logs"]
        _check_conditions(where, logs, log)
        step = room.step()
        step["list"] = base64.b64decode(log.content)
        named, size = _give_ids(spark, step, ids, lists.get("ids"), on, how)
        if auto:
            check_ids(room.parallelism, log.bytes, size, staging=staging)
        each = max(_TASK_BYTES, _TIMES_IDS * size)
        tasks = room.tasks_of(log.bytes, log.row_groups, each, all_cores=True)
        command = ["join", "--type", _TYPES[how], "--memory", room.memory, "--threads", "1"]
        command += ["--quiet", *room.options, "--files-from", _task.LIST, "--on", _on(on), *named]
        command += [word for condition in where for word in ("--where", condition)]
        step["commands"] = [[*command, "--shard", f"{_task.SHARD}/{tasks}"]]
        return cls(spark, logs, ids, on, how, log, size, room, step, tasks)

    def rows(self) -> DataFrame:
        """Return the answer, which tasks make when it is used."""
        from pyspark.sql.types import StringType, StructField, StructType

        columns, stored = self._columns(), StructType()
        for i, (side, field) in enumerate(columns):
            in_path = side != "ids" and field.name in self.log.hive
            # Names may not be unique.
            stored.add(StructField(f"c{i}", StringType() if in_path else field.dataType, True))
            found = {t.get(field.name, "nothing") for t in self.log.tables}
            if side == "ids" or in_path:
                continue
            if len(found) > 1:
                raise Unsuitable(
                    f"logs: {field.name} is stored as {' and as '.join(sorted(found))}"
                )
            if why := not_carried(field, found):
                raise Unsuitable(f"logs: {why}")
        step = self._with([*_chosen(columns), "-o", "-"])
        mapper = _ship.stream(step, arrow_schema(stored), self._is_corrected())
        rows = self.spark.range(0, self.tasks, 1, self.tasks).mapInArrow(mapper, stored)
        if self.log.hive:
            kinds = zip(stored.names, columns, strict=True)
            rows = rows.select(*(of_path(name, field.dataType) for name, (_, field) in kinds))
        return rows.toDF(*(field.name for _, field in columns))

    def count(self) -> int:
        """Return the number of rows of the answer. Tasks read the keys only."""
        return self._run(["--count"]).total("rows_out")

    def write(self, path: str) -> _jobs.Job:
        """Have tasks write the answer to a directory, and leave the commit to the driver."""
        kept = [c for c in self._columns() if c[0] == "ids" or c[1].name not in self.log.in_paths]
        return self._run([*_chosen(kept), "--no-commit", "-o", path + "/"])

    def report(self, why: str) -> SparkReport:
        """Return what is known before tasks run."""
        return SparkReport(
            mode="whole",
            why=why,
            how=self.how,
            log_files=self.log.inputs,
            log_bytes=self.log.bytes,
            ids_bytes=self.ids_bytes,
        )

    def _run(self, more: Sequence[str]) -> _jobs.Job:
        return _jobs.run(self.spark, self._with([*more, "--json"]), self.tasks)

    def _with(self, more: Sequence[str]) -> _task.Step:
        step = self.step.copy()
        step["commands"] = [[*self.step["commands"][0], *more]]
        return step

    def _columns(self) -> list[tuple[str, StructField]]:
        """Return the columns of the answer in Spark's order, and their side: none for a key."""
        pairs = {p.log: p for p in self.on} if using(self.on) else {}
        kept = {p.ids for p in pairs.values()}
        found = [("" if p.log == p.ids else "log", self.logs.schema[p.log]) for p in pairs.values()]
        found += [("log", f) for f in self.logs.schema.fields if f.name not in pairs]
        for _, field in found:
            if not all(field.name in self.log.hive or field.name in t for t in self.log.tables):
                raise Unsuitable(f"logs: some files lack {field.name}")
        if self.how not in _ONE_SIDE:
            found += [("ids", f) for f in self.ids.schema.fields if f.name not in kept]
        return found

    def _is_corrected(self) -> bool:
        modes = ("datetimeRebaseModeInRead", "int96RebaseModeInRead")
        found = {str(self.spark.conf.get(f"spark.sql.parquet.{m}")).upper() for m in modes}
        remote = any("://" in name for name in self.ids.names)
        return found == {"CORRECTED"} and not remote


def _lists(
    spark: SparkSession, room: Room, logs: Side, ids: Side, on: Sequence[Pair]
) -> dict[str, Frozen]:
    """List the files of both sides, which Spark must read as the command does."""
    sides = {"logs": logs, **({"ids": ids} if ids.names else {})}
    known = {name: side.listed for name, side in sides.items() if side.listed is not None}
    missing = {name: side.names for name, side in sides.items() if name not in known}
    lists = {**known, **listed(spark, room, missing)}
    for name, side in sides.items():
        check_listed(name, side, lists[name])
        keys = [p.log if name == "logs" else p.ids for p in on]
        check_stored(spark, name, side, lists[name], keys)
    return lists


def _give_ids(
    spark: SparkSession,
    step: _task.Step,
    ids: Side,
    found: Frozen | None,
    on: Sequence[Pair],
    how: str,
) -> tuple[list[str], int]:
    """Have a step read the IDs. Return the command's arguments, and the bytes that are read."""
    if found is not None:
        check_old_dates(ids, on)
        if _as_they_are(found, ids, on, how):
            step["unchanged"] = dict(found.identities)
            # A file that is added to their directory later is none of them.
            names = [*found.identities] or ids.names
            return [word for name in names for word in ("--ids", name)], found.bytes
    keys = [p.ids for p in on]
    frame = ids.frame.select(*dict.fromkeys(map(quoted, keys))) if how in _ONE_SIDE else ids.frame
    step["ids"], size = _shipped(spark, frame, keys)
    return ["--ids", _task.IDS], size


def _check_conditions(where: Sequence[str], logs: Side, found: Frozen) -> None:
    """Raise UsageError if conditions may name a number of the paths, which tasks see as text."""
    for name in sorted(found.hive):
        text = logs.every[name].dataType.simpleString() == "string"
        if not text and any(re.search(rf"\b{re.escape(name)}\b", c) for c in where):
            raise UsageError(
                f"where: {name} is no text, but a column of the paths: name fewer paths"
            )


def _chosen(columns: Sequence[tuple[str, StructField]]) -> list[str]:
    names = [f"{side}.{reference(f.name)}" if side else reference(f.name) for side, f in columns]
    return ["--columns", ",".join(names)]


def _on(on: Sequence[Pair]) -> str:
    return ",".join(
        reference(p.log) if p.log == p.ids else f"{reference(p.log)}={reference(p.ids)}" for p in on
    )


def _as_they_are(found: Frozen, ids: Side, on: Sequence[Pair], how: str) -> bool:
    """Report whether every task can read the files of the IDs as Spark does."""
    columns = {p.ids for p in on} if how in _ONE_SIDE else set(ids.schema.names)
    if len(found.tables) > 1 or columns & found.hive:
        return False
    (table,) = found.tables
    return not any(not_carried(ids.schema[c], [table.get(c, "nothing")]) for c in columns)


def _shipped(spark: SparkSession, ids: DataFrame, keys: Sequence[str]) -> tuple[str, int]:
    """Send the rows of a data frame to the executors, and return the file's name and size.

    They are evaluated once: another evaluation may give other rows.
    """
    if len(set(ids.columns)) < len(ids.columns):
        raise Unsuitable("ids: two columns have one name")
    schema = arrow_schema(ids.schema)
    try:
        parts = [row[0] for row in ids.mapInArrow(_ship.packed(), "rows binary").collect()]
    except Exception as error:
        if "maxResultSize" not in str(error):
            raise
        parts = [None]
    if any(part is None for part in parts):
        raise Unsuitable("the IDs are too many to be sent to every executor: write them to files")
    tables = [pa.ipc.open_stream(part).read_all().cast(schema) for part in parts]
    table = pa.concat_tables([schema.empty_table(), *tables])
    if old := [k for k in keys if _task.has_old(table[k])]:
        raise Unsuitable(f"ids: {old[0]} has values that files may store in an older calendar")
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, store_schema=False)
    content = sink.getvalue()
    digest = hashlib.sha256(content).hexdigest()[:32]
    name = _ship.send(
        spark, f"bloomjoin-ids-{digest}.parquet", lambda path: path.write_bytes(content)
    )
    return name, content.size
