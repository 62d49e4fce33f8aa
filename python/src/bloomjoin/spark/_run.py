"""One join in files mode, from the checks to Spark's join of what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bloomjoin._stores import access

from . import _ship
from ._default import default
from ._equality import (
    FIRST_SAFE,
    Pair,
    differs,
    otherwise_named,
    resolved,
    stored_otherwise,
    united_otherwise,
)
from ._files import Filter, Frozen, Staged, Stages, read_staged, reference, spark_url
from ._outer import full, with_matched
from ._plain import as_semi_join, quoted, spark_join
from ._probe import filler
from ._report import SparkReport, attach
from ._resources import parallelism, resources
from ._sides import Side, case_sensitive
from ._staging import Staging
from ._strategy import broadcast_limit, memory_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Bytes of the log for each core below which auto leaves a join to Spark: where Spark broadcasts
# the IDs, and where it shuffles the log. From there on, what auto spends to find that most rows
# have an ID is below 5 % of Spark's time.
_SMALL_BROADCAST = 1536 << 20
_SMALL_SHUFFLE = 320 << 20
# From this on, the IDs are worth a filter of the candidates' keys, if they are many times as many.
_MANY_IDS = 16 << 20
_MANY_TIMES = 4

# A plan opens every file of the log, and reads all IDs.
_MOST_PLANNED = 1000
_MOST_IDS_PLANNED = 256 << 20
# Above this share, copying rows costs more than Spark's shuffle of the others.
_LARGE_SHARE = 0.5

# Joins whose answer has rows of the log that have no ID.
_EVERY_ROW = ("left", "full", "left_anti")

_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"
_LOOSE = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
_CONVERTED = "spark.sql.parquet.int96TimestampConversion"


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
        self._reads_log = False
        self._ids_directory = ""

    def answer(self, *, auto: bool) -> DataFrame:
        """Return the join. Raises Unsuitable where Spark should do all of it."""
        if self._how in _EVERY_ROW and self._settings.both_ways is False:
            raise Unsuitable(f"a {self._how} join needs the filter of the IDs, which is off")
        self._check_settings()
        self._check_types()
        if auto:
            self._check_size()
        if self._how in ("left_semi", "left_anti"):
            keys = dict.fromkeys(p.ids for p in self.pairs)
            self.ids_frame = self.ids_frame.select(*map(quoted, keys))
        self._prepare(auto)
        if self._how in _EVERY_ROW:
            return self._every_row()
        candidates = self._candidates()
        if self._how == "left_semi" and self._is_exact():
            return self._whole(candidates)
        ids = self._matched() if self._wants_both_ways() else self.ids_frame
        self._keep(self._staged, self._staged_ids, ids=ids is self.ids_frame)
        answer = spark_join(*self._hinted(candidates, ids), self.pairs, self._how)
        return attach(answer, self.report("files", "the log was filtered before Spark's join"))

    def probed(self) -> DataFrame:
        """Return the join of a data frame, whose keys are probed as Spark reads them."""
        if self._how in _EVERY_ROW:
            raise Unsuitable(f"every row of the log is in the answer of a {self._how} join")
        if len(self.pairs) > 1:
            raise Unsuitable("keys of several columns are not probed")
        self._check_settings()
        self._check_types()
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
        self._check_settings()
        self._check_types()
        self._prepare(False)
        frame = self._candidates()
        self._keep(self._staged)
        return attach(frame, self.report("files", "the log was filtered"))

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
            reads_log=self._reads_log,
            ids_rows=ids.rows if ids else 0,
            ids_bytes=ids.bytes if ids else 0,
            ids_kept=filtered.rows if filtered else None,
            ids_staged_bytes=filtered.bytes if filtered else 0,
            seconds=dict(stages.seconds) if stages else {},
            task_seconds=dict(stages.task_seconds) if stages else {},
            peak_bytes=stages.peak_bytes if stages else 0,
        )

    def _check_settings(self) -> None:
        for name in _LOOSE:
            if str(self._spark.conf.get(name, "false")).lower() == "true":
                raise Unsuitable(f"{name} is on: Spark passes over files that bloomjoin demands")
        if str(self._spark.conf.get(_CONVERTED, "false")).lower() == "true":
            raise Unsuitable(f"{_CONVERTED} is on: it asks which program has written a file")

    def _check_types(self) -> None:
        logs, ids = self._logs.frame.schema, self._ids.frame.schema
        if len(set(self.pairs)) < len(self.pairs):
            raise Unsuitable("a key is named twice")
        for pair in self.pairs:
            why = differs(logs[pair.log], ids[pair.ids])
            if why:
                raise Unsuitable(why)

    def _prepare(self, auto: bool) -> None:
        """List the inputs and build the filter."""
        self._freeze({"logs": self._logs, **({"ids": self._ids} if self._ids.names else {})})
        self._check_stored("logs", self._logs, [p.log for p in self.pairs])
        names = self._list_ids()
        if auto:
            self._check_worth(names)
        self._filter = self._stage().build("ids", self._frozen["ids"], self._ids_keys())

    def _list_ids(self) -> tuple[str, ...]:
        """List the files of the IDs, which are written first if they are a data frame."""
        names = self._ids.names
        if not names:
            names = (self._materialise(),)
            self._freeze({"ids": Side(self.ids_frame, names)})
        else:
            if "ids" not in self._frozen:
                self._freeze({"ids": self._ids})
            self._check_stored("ids", self._ids, [p.ids for p in self.pairs])
        self._check_old_dates()
        return names

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
            files = side.frame.inputFiles()
            if _ship.fingerprint(files) != found[name].fingerprint:
                raise Unsuitable(
                    f"{name}: Spark reads {len(files)} files there, and bloomjoin "
                    f"{found[name].inputs}: name the files or their name=value directories"
                )

    def _check_stored(self, side: str, files: Side, keys: Sequence[str]) -> None:
        """Raise Unsuitable if the files may store keys that Spark takes for others."""
        found, schema = self._frozen[side], files.frame.schema
        if found.otherwise:
            raise Unsuitable(f"{side}: {found.otherwise}")
        exact = case_sensitive(self._spark)
        for table in found.tables:
            why = otherwise_named(schema.names, table, exact)
            if why:
                raise Unsuitable(f"{side}: {why}")
        for name in schema.names:
            stored = [table[name] for table in found.tables if name in table]
            why = united_otherwise(name, stored, exact)
            if why:
                raise Unsuitable(f"{side}: {why}")
        for key in keys:
            if key in found.hive:
                raise Unsuitable(f"{side}: {key} is a column of the paths, not of the files")
            for table in found.tables:
                why = stored_otherwise(schema[key], table.get(key, "nothing"))
                if why:
                    raise Unsuitable(f"{side}: {why}")
        both = found.hive.intersection(set().union(*found.tables))
        if both:
            raise Unsuitable(f"{side}: {', '.join(sorted(both))} is in files and in their paths")

    def _materialise(self) -> str:
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

    def _check_size(self) -> None:
        """Raise Unsuitable if Spark has joined before the tasks pay, by its own plan."""
        joined = spark_join(self._logs.frame, self.ids_frame, self.pairs, self._how)
        plan = default(self._spark, joined)
        if plan.broadcasts and self._how in _EVERY_ROW:
            raise Unsuitable("Spark broadcasts the IDs, and needs every row of the log")
        least = _SMALL_BROADCAST if plan.broadcasts else _SMALL_SHUFFLE
        least *= parallelism(self._spark)
        if plan.log_bytes is not None and plan.log_bytes < least:
            raise Unsuitable(
                f"the log is small: {plan.log_bytes >> 20} MiB, want {least >> 20} MiB where "
                f"Spark {'broadcasts the IDs' if plan.broadcasts else 'shuffles the log'}"
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

    def _every_row(self) -> DataFrame:
        """Join with the IDs that have a row in the log, if these can be broadcast."""
        keys = self._scan([*dict.fromkeys(p.log for p in self.pairs)])
        staged = self._staged
        assert staged is not None
        exact = self._how == "left_anti" and self._is_exact()
        if exact and staged.rows > _LARGE_SHARE * staged.rows_in:
            return self._whole(self._scan(members=False))
        limit = broadcast_limit(self._spark)
        if self._how == "full" and memory_of(keys.schema, staged.rows, staged.bytes) > limit:
            raise Unsuitable(f"{staged.rows} rows may have an ID, too many to broadcast their keys")
        matched, ids = self._matched(), self._staged_ids
        if ids is not None and memory_of(matched.schema, ids.rows, ids.bytes) > limit:
            if exact:
                return self._whole(self._scan(members=False))
            raise Unsuitable(f"{ids.rows} IDs may have a row in the log, too many to broadcast")
        logs, self._reads_log = self._logs.frame, True
        if self._how == "full":
            self._keep(staged, ids, ids=True)
            answer = full(logs, self.ids_frame, matched, keys, self.pairs)
        else:
            self._keep(ids)
            answer = with_matched(logs, matched, self.pairs, self._how)
        return attach(answer, self.report("files", "the IDs were filtered before Spark's join"))

    def _is_exact(self) -> bool:
        return self._filter is not None and self._filter.kind == "exact"

    def _whole(self, frame: DataFrame) -> DataFrame:
        """Return rows that an exact filter has chosen: they are the answer."""
        self._staged_ids = None
        self._keep(self._staged)
        answer = as_semi_join(frame, self.pairs)
        return attach(answer, self.report("files", "the filter is exact: no join is left"))

    def _candidates(self) -> DataFrame:
        return self._scan(self._logs.frame.schema.names)

    def _scan(self, columns: Sequence[str] = (), *, members: bool = True) -> DataFrame:
        logs, schema = self._frozen["logs"], self._logs.frame.schema
        assert self._filter is not None
        wanted = list(columns) or schema.names
        staged = self._stage().scan(
            "logs", logs, self._filter, self._log_keys(), wanted, members=members
        )
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
        if not staged.files:
            self._staged_ids = Staged((), ids.rows, 0, 0, fpr=None, old=False)
            return self.ids_frame.limit(0)
        stages = self._stage()
        rows = stages.freeze({"candidates": staged.files})["candidates"]
        keys = stages.build("candidates", rows, self._log_keys())
        kept = stages.scan("ids", ids, keys, self._ids_keys(), schema.names)
        self._staged_ids = kept
        rows = read_staged(self._spark, kept, schema, ids.hive)
        self._check_calendar("ids", kept, rows)
        return rows

    def _hinted(self, candidates: DataFrame, ids: DataFrame) -> tuple[DataFrame, DataFrame]:
        """Have Spark broadcast the smaller side, if it is small in memory. Spark sees files."""
        from pyspark.sql import functions

        staged, kept = self._staged, self._staged_ids
        known = kept or self._frozen["ids"]
        assert staged is not None
        left = memory_of(candidates.schema, staged.rows, staged.bytes)
        right = memory_of(ids.schema, known.rows, known.bytes)
        limit = broadcast_limit(self._spark)
        if self._how != "right" and right <= min(limit, left if self._how == "inner" else limit):
            return candidates, functions.broadcast(ids)
        if self._how in ("inner", "right") and left <= limit:
            return functions.broadcast(candidates), ids
        return candidates, ids

    def _keep(self, *staged: Staged | None, ids: bool = False) -> None:
        """Remove what the answer does not read. ``ids``: it reads all IDs of a data frame."""
        self.discard([f for s in staged if s for f in s.files], ids=ids)
