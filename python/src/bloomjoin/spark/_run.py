"""One join in files mode, from the checks to Spark's join of what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ._checks import check_join, check_listed, check_old_dates, check_stored
from ._choose import check_staged
from ._equality import FIRST_SAFE, Pair
from ._files import Filter, Frozen, Staged, Stages, read_staged, reference, spark_url
from ._outer import full
from ._plain import Unsuitable, quoted, spark_join
from ._probe import filler
from ._report import SparkReport, attach
from ._resources import Room, Settings
from ._sides import Side
from ._staging import Staging
from ._whole import Whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# From this on, the IDs are worth a filter of the candidates' keys, if they are many times as many.
_MANY_IDS = 16 << 20
_MANY_TIMES = 4

_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"


class Run:
    """A join of a log and an ID set."""

    def __init__(
        self,
        spark: SparkSession,
        logs: Side,
        ids: Side,
        on: Sequence[Pair],
        how: str,
        staging: Staging,
        settings: Settings,
    ) -> None:
        self.ids_frame = ids.frame
        self.pairs = on
        self._spark = spark
        self._logs = logs
        self._ids = ids
        self._how = how
        self._staging = staging
        self._settings = settings
        self._stages: Stages | None = None
        self._frozen: dict[str, Frozen] = {}
        self._filter: Filter | None = None
        self._staged: Staged | None = None
        self._staged_ids: Staged | None = None
        self._ids_directory = ""

    def answer(self, *, auto: bool) -> DataFrame:
        """Return the join. Raises Unsuitable where Spark should do all of it."""
        check_join(self._spark, self._logs, self._ids, self.pairs)
        if self._how == "left_semi":
            keys = dict.fromkeys(p.ids for p in self.pairs)
            self.ids_frame = self.ids_frame.select(*map(quoted, keys))
        self._prepare(auto)
        if self._how == "full":
            return self._full()
        candidates = self._scan(self._logs.frame.schema.names)
        ids = self._matched() if self._wants_both_ways() else self.ids_frame
        self._keep(self._staged, self._staged_ids, ids=ids is self.ids_frame)
        answer = spark_join(candidates, ids, self.pairs, self._how)
        return attach(answer, self.report("files", "the log was filtered before Spark's join"))

    def probed(self) -> DataFrame:
        """Return the join of a data frame, whose keys are probed as Spark reads them."""
        if self._how in ("left", "full", "left_anti"):
            raise Unsuitable(f"every row of the log is in the answer of a {self._how} join")
        if len(self.pairs) > 1:
            raise Unsuitable("keys of several columns are not probed")
        check_join(self._spark, self._logs, self._ids, self.pairs)
        (pair,) = self.pairs
        kind = self._logs.frame.schema[pair.log].dataType
        if filler(kind) is None:
            raise Unsuitable(f"keys of type {kind.simpleString()} are not probed")
        if self._how == "left_semi":
            self.ids_frame = self.ids_frame.select(quoted(pair.ids))
        self._list_ids()
        stages = self._stage()
        found = stages.build("ids", self._frozen["ids"], self._ids_keys(), mapped=True)
        self._filter = found
        self.discard([found.url])
        logs = stages.probed(self._logs.frame, pair.log, found)
        answer = spark_join(logs, self.ids_frame, self.pairs, self._how)
        return attach(answer, self.report("probe", "rows are probed as Spark reads them"))

    def candidates(self) -> DataFrame:
        """Return the rows that may have an ID."""
        check_join(self._spark, self._logs, self._ids, self.pairs)
        self._prepare(False)
        frame = self._scan(self._logs.frame.schema.names)
        self._keep(self._staged)
        return attach(frame, self.report("files", "the log was filtered"))

    def spark_join(self) -> DataFrame:
        """Return Spark's own join, of IDs that are evaluated once."""
        return spark_join(self._logs.frame, self.ids_frame, self.pairs, self._how)

    def discard(self, kept: Sequence[str], *, ids: bool = True) -> None:
        """Remove what was staged but for ``kept``, and for the IDs if Spark may still read them."""
        if self._stages is not None:
            needed = [self._ids_directory] if ids and self._ids_directory else []
            self._stages.keep_only([*kept, *needed])

    def abandon(self) -> None:
        """Remove all that was staged, after an error."""
        if self._stages is not None:
            self._stages.keep_only(())

    def report(self, mode: str, why: str) -> SparkReport:
        """Return what has happened so far."""
        stages, staged = self._stages, self._staged
        logs, ids = self._frozen.get("logs"), self._frozen.get("ids")
        found = self._filter
        filtered = self._staged_ids
        return SparkReport(
            mode=mode,
            why=why,
            how=self._how,
            log_files=logs.inputs if logs else 0,
            log_bytes=logs.bytes if logs else 0,
            rows_in=staged.rows_in if staged else 0,
            candidates=staged.rows if staged else 0,
            staged_bytes=staged.bytes if staged else 0,
            filter_kind=found.kind if found else None,
            filter_bytes=found.bytes if found else 0,
            fpr=staged.fpr if staged else None,
            ids_rows=ids.rows if ids else 0,
            ids_bytes=ids.bytes if ids else 0,
            ids_kept=filtered.rows if filtered else None,
            ids_staged_bytes=filtered.bytes if filtered else 0,
            seconds=dict(stages.seconds) if stages else {},
            task_seconds=dict(stages.task_seconds) if stages else {},
            peak_bytes=stages.peak_bytes if stages else 0,
        )

    def _prepare(self, auto: bool) -> None:
        """List the inputs and build the filter."""
        self._freeze({"logs": self._logs, **({"ids": self._ids} if self._ids.names else {})})
        if auto:
            check_staged(self._stage().room.parallelism, self._frozen["logs"].bytes)
        self._check_stored("logs", self._logs, [p.log for p in self.pairs])
        self._list_ids()
        self._filter = self._stage().build("ids", self._frozen["ids"], self._ids_keys())

    def _list_ids(self) -> None:
        """List the files of the IDs, which are written first if they are a data frame."""
        if not self._ids.names:
            self._freeze(
                {"ids": Side(self._spark, self._materialise(), (self._ids_directory + "/",))}
            )
        else:
            if "ids" not in self._frozen:
                self._freeze({"ids": self._ids})
            self._check_stored("ids", self._ids, [p.ids for p in self.pairs])
        check_old_dates(Side(self._spark, self.ids_frame), self.pairs)

    def _stage(self) -> Stages:
        if self._stages is None:
            room = Room.of(self._spark, self._settings)
            self._stages = Stages(self._spark, self._staging, room)
        return self._stages

    def _freeze(self, sides: Mapping[str, Side]) -> None:
        """List the files of the sides, which must be those that Spark reads."""
        self._frozen.update(self._stage().freeze({name: s.names for name, s in sides.items()}))
        for name, side in sides.items():
            check_listed(name, side, self._frozen[name])

    def _check_stored(self, name: str, side: Side, keys: Sequence[str]) -> None:
        check_stored(self._spark, name, side, self._frozen[name], keys)

    def _materialise(self) -> DataFrame:
        """Write the IDs once, because another evaluation of the frame may give other rows."""
        from pyspark.errors import AnalysisException

        stages = self._stage()
        directory = f"{stages.root}/ids"
        schema = self.ids_frame.schema
        short = str(self._spark.conf.get(_TIMESTAMPS)).upper() == "TIMESTAMP_MILLIS"
        if short and "timestamp" in schema.simpleString():
            raise Unsuitable(f"with {_TIMESTAMPS} the IDs lose microseconds when they are written")
        try:
            self.ids_frame.write.parquet(spark_url(directory))
        except AnalysisException as error:
            raise Unsuitable(f"the IDs cannot be written as Parquet: {error}") from error
        except Exception as error:
            # Spark 3.5 asks first. The error of a task has no type of its own here.
            if "WRITE_ANCIENT_DATETIME" not in str(error):
                raise
            raise Unsuitable(
                "the IDs have dates or timestamps of an older calendar, which Spark does not write "
                "unless spark.sql.parquet.datetimeRebaseModeInWrite is CORRECTED"
            ) from error
        self.ids_frame = self._spark.read.schema(schema).parquet(spark_url(directory))
        self._ids_directory = directory
        return self.ids_frame

    def _ids_keys(self) -> list[str]:
        """Return the keys of the IDs, with a cast for timestamps that Spark has written as INT96.

        Those are instants of whole microseconds, which other writers of INT96 do not promise.
        """
        schema, found = self.ids_frame.schema, []
        for pair in self.pairs:
            instant = schema[pair.ids].dataType.simpleString() == "timestamp"
            stored = [t.get(pair.ids, "") for t in self._frozen["ids"].tables]
            int96 = instant and not self._ids.names and not any("tz=" in t for t in stored)
            found.append(reference(pair.ids) + ("::timestamptz" if int96 else ""))
        return found

    def _log_keys(self) -> list[str]:
        return [reference(p.log) for p in self.pairs]

    def _full(self) -> DataFrame:
        """Join by tasks as a left join, and have Spark find the IDs that have no row."""
        ids = Side(self._spark, self.ids_frame, self._ids.names)
        room = self._stage().room
        whole = Whole.of(self._spark, room, self._logs, ids, self.pairs, "left")
        keys = self._scan([*dict.fromkeys(p.log for p in self.pairs)])
        self._keep(self._staged, ids=True)
        answer = full(self._logs.frame, whole.rows(), self.ids_frame, keys, self.pairs)
        return attach(answer, self.report("files", "tasks joined the log, Spark adds other IDs"))

    def _scan(self, wanted: Sequence[str]) -> DataFrame:
        logs, schema = self._frozen["logs"], self._logs.frame.schema
        assert self._filter is not None
        staged = self._stage().scan("logs", logs, self._filter, self._log_keys(), wanted)
        self._staged = staged
        kinds = type(schema)([schema[name] for name in wanted])
        rows = read_staged(self._spark, staged, kinds, logs.hive)
        self._check_calendar("logs", staged, rows)
        return rows

    def _check_calendar(self, side: str, staged: Staged, rows: DataFrame) -> None:
        """Raise Unsuitable if rows of several files mean days by the calendars of their files.

        The files of a data frame were all written by this session, in one calendar.
        """
        if self._frozen[side].inputs < 2 or (side == "ids" and not self._ids.names):
            return
        old = [
            f"{quoted(field.name)} < {FIRST_SAFE[kind]}"
            for field in rows.schema.fields
            if (kind := field.dataType.simpleString()) in FIRST_SAFE
        ]
        if staged.old or (
            staged.old is None and old and not rows.where(" OR ".join(old)).isEmpty()
        ):
            raise Unsuitable(
                f"{side}: dates before 1582-10-16, or timestamps before 1900-01-03: files may "
                "store them in an older calendar"
            )

    def _wants_both_ways(self) -> bool:
        """Report whether a filter of the candidates' keys saves Spark a large shuffle of IDs."""
        ids, staged, wanted = self._frozen["ids"], self._staged, self._settings.both_ways
        if self._how == "right" or staged is None or not staged.files:
            return False
        if wanted is None:
            return ids.bytes >= _MANY_IDS and ids.rows >= _MANY_TIMES * staged.rows
        return wanted

    def _matched(self) -> DataFrame:
        """Return the IDs that may have a row in the log, by a filter of the candidates' keys."""
        ids, staged, schema = self._frozen["ids"], self._staged, self.ids_frame.schema
        assert staged is not None
        stages = self._stage()
        found = stages.freeze({"candidates": staged.files})["candidates"]
        keys = stages.build("candidates", found, self._log_keys())
        kept = stages.scan("ids", ids, keys, self._ids_keys(), schema.names)
        self._staged_ids = kept
        rows = read_staged(self._spark, kept, schema, ids.hive)
        self._check_calendar("ids", kept, rows)
        return rows

    def _keep(self, *staged: Staged | None, ids: bool = False) -> None:
        """Remove what the answer does not read. ``ids``: it reads all IDs of a data frame."""
        self.discard([f for s in staged if s for f in s.files], ids=ids)
