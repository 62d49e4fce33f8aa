"""One join in files mode, from the checks to Spark's join of what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bloomjoin._stores import access

from . import _ship
from ._equality import FIRST_SAFE, Pair, differs, resolved, stored_otherwise
from ._files import Filter, Frozen, Staged, Stages, read_staged, reference, spark_url
from ._plain import as_semi_join, spark_join
from ._report import SparkReport, attach
from ._resources import resources
from ._sides import Side, case_sensitive, quoted
from ._staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Below this, Spark alone has read the log before the tasks have started.
_SMALL_LOG = 64 << 20
# From this on, the IDs are worth a filter of the candidates' keys, if they are many times as many.
_MANY_IDS = 16 << 20
_MANY_TIMES = 4

# A plan opens every file of the log, and reads all IDs.
_MOST_PLANNED = 1000
_MOST_IDS_PLANNED = 256 << 20
# Above this share, copying rows costs more than Spark's shuffle of the others.
_LARGE_SHARE = 0.5


class Unsuitable(Exception):
    """bloomjoin should not or cannot filter."""


@dataclass(frozen=True)
class Settings:
    """Arguments of `join` that only stages need."""

    memory: str | None
    tasks: int | None
    both_ways: bool | None
    storage_options: Mapping[str, str] | None
    environment: Mapping[str, str] | None
    binaries: _ship.Binaries | None


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
        self.pairs = resolved(on, logs.frame.schema, ids.frame.schema, case_sensitive(spark))
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
        if self._how in ("left", "full"):
            raise Unsuitable("every row of the log is in the answer of a left or full join")
        self._check_types()
        if self._how in ("left_semi", "left_anti"):
            keys = dict.fromkeys(p.ids for p in self.pairs)
            self.ids_frame = self.ids_frame.select(*map(quoted, keys))
        if self._how == "left_anti" and len(self.pairs) > 1:
            raise Unsuitable("an anti join by several columns has no exact filter")
        self._prepare(auto)
        if self._how == "left_anti":
            return self._anti()
        candidates = self._candidates()
        if self._how == "left_semi" and self._filter and self._filter.kind == "exact":
            return self._whole(candidates)
        self._filter_ids()
        self._keep()
        answer = spark_join(candidates, self.ids_frame, self.pairs, self._how)
        return attach(answer, self.report("files", "the log was filtered before Spark's join"))

    def candidates(self) -> DataFrame:
        """Return the rows that may have an ID."""
        self._check_types()
        self._prepare(False)
        frame = self._candidates()
        self._keep()
        return attach(frame, self.report("files", "the log was filtered"))

    def discard(self, kept: Sequence[str]) -> None:
        """Remove what was staged but for the IDs, which Spark's join may still read."""
        if self._stages is not None:
            self._stages.keep_only([*kept, *([self._ids_directory] if self._ids_directory else [])])

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
            ids_kept=filtered.rows if filtered else None,
            ids_staged_bytes=filtered.bytes if filtered else 0,
            seconds=dict(stages.seconds) if stages else {},
            task_seconds=dict(stages.task_seconds) if stages else {},
            peak_bytes=stages.peak_bytes if stages else 0,
        )

    def _check_types(self) -> None:
        logs, ids = self._logs.frame.schema, self._ids.frame.schema
        for pair in self.pairs:
            why = differs(logs[pair.log], ids[pair.ids])
            if why:
                raise Unsuitable(why)

    def _prepare(self, auto: bool) -> None:
        """List the inputs and build the filter."""
        self._freeze({"logs": self._logs, **({"ids": self._ids} if self._ids.names else {})})
        if auto and self._frozen["logs"].bytes < _SMALL_LOG:
            raise Unsuitable(f"the log is small: {self._frozen['logs'].bytes} bytes")
        self._check_stored("logs", self._logs, [p.log for p in self.pairs])
        names = self._ids.names
        if names:
            self._check_stored("ids", self._ids, [p.ids for p in self.pairs])
        else:
            names = (self._materialise(),)
            self._freeze({"ids": Side(self.ids_frame, names)})
        self._check_old_dates()
        if auto:
            self._check_worth(names)
        self._filter = self._stage().build("ids", self._frozen["ids"], self._ids_keys())

    def _stage(self) -> Stages:
        if self._stages is None:
            with access(self._settings.storage_options, None) as found:
                environment = {**found.env, **(self._settings.environment or {})}
                options = found.flags
            self._stages = Stages(
                self._spark,
                self._staging,
                _ship.ship(self._spark, self._settings.binaries),
                resources(self._spark, self._settings.memory, self._settings.tasks),
                options,
                environment,
            )
        return self._stages

    def _freeze(self, sides: Mapping[str, Side]) -> None:
        """List the files of the sides, which must be those that Spark reads."""
        found = self._stage().freeze({name: side.names for name, side in sides.items()})
        self._frozen.update(found)
        for name, side in sides.items():
            if side.files and found[name].inputs != side.files:
                raise Unsuitable(
                    f"{name}: Spark reads {side.files} files there, and bloomjoin "
                    f"{found[name].inputs}: name the files or their name=value directories"
                )

    def _check_stored(self, side: str, files: Side, keys: Sequence[str]) -> None:
        """Raise Unsuitable if the files may store keys that Spark takes for others."""
        found, schema = self._frozen[side], files.frame.schema
        for key in keys:
            if key in found.hive:
                raise Unsuitable(f"{side}: {key} is a column of the paths, not of the files")
            for table in found.tables:
                why = stored_otherwise(schema[key], table.get(key, "nothing"))
                if why:
                    raise Unsuitable(f"{side}: {why}")
        both = found.hive.intersection(*found.tables) if found.tables else ()
        if both:
            raise Unsuitable(f"{side}: {', '.join(sorted(both))} is in files and in their paths")

    def _materialise(self) -> str:
        """Write the IDs once, because another evaluation of the frame may give other rows."""
        stages = self._stage()
        directory = f"{stages.root}/ids"
        schema = self.ids_frame.schema
        self.ids_frame.write.parquet(spark_url(directory))
        self.ids_frame = self._spark.read.schema(schema).parquet(spark_url(directory))
        self._ids_directory = directory
        return directory + "/"

    def _check_old_dates(self) -> None:
        from pyspark.sql import functions

        for pair in self.pairs:
            kind = self.ids_frame.schema[pair.ids].dataType.simpleString()
            limit = FIRST_SAFE.get(kind)
            if limit is None:
                continue
            old = self.ids_frame.where(functions.expr(f"{quoted(pair.ids)} < {limit}"))
            if not old.isEmpty():
                raise Unsuitable(
                    f"ids: {pair.ids} has values before {limit}, which files may store in an "
                    "older calendar"
                )

    def _check_worth(self, ids: Sequence[str]) -> None:
        """Raise Unsuitable if most rows have an ID, according to a sample."""
        logs = self._frozen["logs"]
        if logs.inputs > _MOST_PLANNED or self._frozen["ids"].bytes > _MOST_IDS_PLANNED:
            return
        on = ",".join(f"{a}={b}" for a, b in zip(self._log_keys(), self._ids_keys(), strict=True))
        share = self._stage().share(logs, ids, on)
        if share > _LARGE_SHARE:
            raise Unsuitable(f"about {share:.0%} of the log's rows have an ID")

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

    def _anti(self) -> DataFrame:
        found = self._filter
        if found is None or found.kind != "exact":
            raise Unsuitable("the filter is not exact, so an anti join needs every row of the log")
        return self._whole(self._scan(members=False))

    def _whole(self, frame: DataFrame) -> DataFrame:
        """Return rows that an exact filter has chosen: they are the answer."""
        self._keep()
        answer = as_semi_join(frame, self.pairs)
        return attach(answer, self.report("files", "the filter is exact: no join is left"))

    def _candidates(self) -> DataFrame:
        return self._scan(members=True)

    def _scan(self, *, members: bool) -> DataFrame:
        logs, schema = self._frozen["logs"], self._logs.frame.schema
        assert self._filter is not None
        staged = self._stage().scan(
            "logs",
            logs,
            self._filter,
            self._log_keys(),
            schema.names,
            members=members,
        )
        self._check_calendar(staged, self._logs)
        self._staged = staged
        return read_staged(self._spark, staged, schema, logs.hive)

    def _check_calendar(self, staged: Staged, side: Side) -> None:
        kinds = side.frame.schema.simpleString()
        if staged.rebased and ("date" in kinds or "timestamp" in kinds):
            raise Unsuitable("files of the log store dates or timestamps in an older calendar")

    def _filter_ids(self) -> None:
        """Filter the IDs by the keys of the candidates, where that saves Spark a large shuffle."""
        ids, staged = self._frozen["ids"], self._staged
        assert staged is not None
        wanted = self._settings.both_ways
        if wanted is None:
            wanted = ids.bytes >= _MANY_IDS and ids.rows >= _MANY_TIMES * staged.rows
        if not wanted or self._how == "right" or not staged.files:
            return
        stages = self._stage()
        rows = stages.freeze({"candidates": staged.files})["candidates"]
        keys = stages.build("candidates", rows, self._log_keys())
        schema = self.ids_frame.schema
        kept = stages.scan("ids", ids, keys, self._ids_keys(), schema.names)
        self._staged_ids = kept
        self._ids_directory = ""
        self.ids_frame = read_staged(self._spark, kept, schema, ids.hive)

    def _keep(self) -> None:
        files = [f for s in (self._staged, self._staged_ids) if s for f in s.files]
        self.discard(files)
