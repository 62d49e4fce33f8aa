"""The stages of files mode: list, build, scan. Each is a Spark job or a few."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bloomjoin._errors import UsageError

from . import _jobs, _probe, _task
from ._plain import quoted
from ._resources import Room
from ._staging import Staging
from ._tables import table_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

# A task starts a command, which takes as long as the scan of some tens of MiB.
_TASK_BYTES = 512 << 20
_MERGED_AT_ONCE = 32


@dataclass(frozen=True)
class Frozen:
    """A list of inputs that all tasks share."""

    url: str
    inputs: int
    rows: int
    bytes: int
    row_groups: int
    hive: frozenset[str]
    fingerprint: str
    """Of the inputs' names: `_task.fingerprint`."""
    otherwise: str
    """Why Spark takes columns of the paths for others, or nothing."""
    tables: tuple[dict[str, str], ...]
    """For the first file of each schema, the stored type of each column."""
    firsts: tuple[str, ...]
    """The names of these files."""
    in_paths: frozenset[str]
    """Columns that outputs have in their paths: those of the inputs' paths, or of a table."""
    of_table: bool
    """Whether it is a version of a table, which has one schema."""
    content: str = ""
    """The list, compressed and in base64, if it has no URL."""
    identities: Mapping[str, str] = field(default_factory=dict)
    """Of the local files, if they are few."""


@dataclass(frozen=True)
class Filter:
    """A finished filter in the staging."""

    url: str
    digest: str
    kind: str
    bytes: int


@dataclass(frozen=True)
class Staged:
    """Rows that tasks have copied."""

    files: tuple[str, ...]
    rows_in: int
    rows: int
    bytes: int
    fpr: float | None
    old: bool | None
    """Whether dates or timestamps are so old that files may mean others; None: unknown."""


class Stages:
    """Runs stages in one directory of the staging, and adds up what they took."""

    def __init__(self, spark: SparkSession, staging: Staging, room: Room) -> None:
        self.root = staging.run()
        self.seconds: dict[str, float] = {}
        self.task_seconds: dict[str, float] = {}
        self.peak_bytes = 0
        self._spark = spark
        self._staging = staging
        self.room = room

    def freeze(self, sides: Mapping[str, Sequence[str]]) -> dict[str, Frozen]:
        """List the inputs of each side. Names must be absolute."""
        directories = [f"{self.root}/{d}" for d in ("lists", "filters", "rows")]
        local = directories if self._staging.is_local() else []
        wanted = self.room.listings(sides, self.root, local)
        job = self._counted("list", _jobs.freeze(self._spark, wanted))
        return {side: frozen(done) for side, done in zip(sides, job.tasks, strict=True)}

    def build(
        self, side: str, inputs: Frozen, keys: Sequence[str], *, mapped: bool = False
    ) -> Filter:
        """Build a filter of the keys of the inputs. Keys are references, maybe with a cast.

        A filter to be mapped is stored as it is in memory.
        """
        how = ["--uncompressed"] if mapped else []
        count = self.room.tasks_of(inputs.bytes, inputs.row_groups, _TASK_BYTES)
        command = ["build", "--key", ",".join(keys), "--files-from", inputs.url]
        if count == 1:
            command += how
        else:
            command += ["--shard", f"{_task.SHARD}/{count}"]
        job = self._run(f"build {side}", [command], f"filters/{side}-", ".bjf", count)
        if count > 1:
            job = self._merge(side, job.outputs, how)
        report = job.tasks[0].report
        return Filter(job.outputs[0], report["digest"], report["kind"], report["file_bytes"])

    def _merge(self, side: str, parts: list[str], how: list[str]) -> _jobs.Job:
        """Merge partial filters in rounds, so that no task reads more than a few."""
        stage = f"merge {side}"
        level = 0
        while len(parts) > _MERGED_AT_ONCE:
            groups = [parts[i : i + _MERGED_AT_ONCE] for i in range(0, len(parts), _MERGED_AT_ONCE)]
            commands = [["merge", "--partial", *group] for group in groups]
            prefix = f"filters/{side}-level{level}-"
            parts = self._run(stage, commands, prefix, ".bjf", len(groups)).outputs
            level += 1
        return self._run(stage, [["merge", *how, *parts]], f"filters/{side}-merged-", ".bjf", 1)

    def scan(
        self,
        side: str,
        inputs: Frozen,
        found: Filter,
        keys: Sequence[str],
        columns: Sequence[str],
    ) -> Staged:
        """Copy the rows whose keys the filter lets through."""
        size, groups = inputs.bytes, inputs.row_groups
        count = self.room.tasks_of(size, groups, _TASK_BYTES, all_cores=True)
        command = ["scan", "--files-from", inputs.url, "--shard", f"{_task.SHARD}/{count}"]
        command += ["--columns", ",".join(map(reference, columns))]
        command += ["--filter", _task.FILTER, "--key", ",".join(keys)]
        if len(inputs.tables) > 1:
            command += ["--schema", "union"]
        job = self._run(f"scan {side}", [command], f"rows/{side}-", ".parquet", count, found)
        filled = [t for t in job.tasks if t.report["rows_out"]]
        return Staged(
            files=tuple(t.output for t in filled),
            rows_in=job.total("rows_in"),
            rows=job.total("rows_out"),
            bytes=sum(int(t.report["bytes_written"]) for t in filled),
            fpr=job.tasks[0].report.get("fpr_predicted"),
            old=any(t.detail["old"] for t in filled) if self._staging.is_local() else None,
        )

    def probed(self, logs: DataFrame, key: str, found: Filter) -> DataFrame:
        """Return the rows of a data frame whose key the filter lets through, by probes."""
        wanted = {"url": found.url, "digest": found.digest}
        return _probe.candidates(logs, key, self.room.binary, wanted, self.room.environment)

    def keep_only(self, kept: Sequence[str]) -> None:
        """Remove what lost attempts have left, and all that the answer does not need."""
        self._staging.keep_only(self.root, kept)

    def _run(
        self,
        stage: str,
        commands: list[list[str]],
        prefix: str,
        suffix: str,
        tasks: int,
        found: Filter | None = None,
    ) -> _jobs.Job:
        common = ["--memory", self.room.memory, "--threads", "1", "--quiet", "--json"]
        common += [*self.room.options, *(["-o", _task.OUT] if prefix else [])]
        step = self.room.step(*([verb, *common, *rest] for verb, *rest in commands))
        step["prefix"], step["suffix"] = f"{self.root}/{prefix}" if prefix else "", suffix
        step["filter"] = {"url": found.url, "digest": found.digest} if found else {}
        return self._counted(stage, _jobs.run(self._spark, step, tasks))

    def _counted(self, stage: str, job: _jobs.Job) -> _jobs.Job:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + job.seconds
        self.task_seconds[stage] = self.task_seconds.get(stage, 0.0) + job.task_seconds
        self.peak_bytes = max(self.peak_bytes, job.peak_bytes)
        return job


def listed(
    spark: SparkSession, room: Room, sides: Mapping[str, Sequence[str]]
) -> dict[str, Frozen]:
    """List the inputs of each side, on the driver if possible, into no file."""
    found = listed_here(spark, room, sides)
    if len(found) < len(sides):
        job = _jobs.freeze(spark, room.listings(sides))
        found = {side: frozen(done) for side, done in zip(sides, job.tasks, strict=True)}
    return found


def listed_here(
    spark: SparkSession, room: Room, sides: Mapping[str, Sequence[str]]
) -> dict[str, Frozen]:
    """List the inputs of each side on the driver. Empty: it cannot, or not like a task."""
    job = _jobs.freeze_here(spark, room.listings(sides))
    return {s: frozen(done) for s, done in zip(sides, job.tasks, strict=True)} if job else {}


def frozen(done: _jobs.Done) -> Frozen:
    """Return what a listing has found."""
    header: dict[str, Any] = done.detail["header"]
    files = done.detail["files"]
    for file in files:
        if file["table"]["format"] != "parquet":
            raise UsageError(f"Spark reads Parquet files here, got {file['table']['format']}")
    columns = table_columns(header, files)
    in_paths = frozenset(c["name"] for c in header.get("hive", []))
    tables = tuple({c["name"]: c["type"] for c in f["table"]["columns"]} for f in files)
    return Frozen(
        url=done.output,
        inputs=header["inputs"],
        rows=header["rows"],
        bytes=header["bytes"],
        row_groups=done.report["row_groups"],
        fingerprint=done.detail["fingerprint"],
        otherwise=done.detail["otherwise"],
        hive=in_paths if columns is None else frozenset(),
        tables=tables if columns is None else (columns,),
        firsts=tuple(f["file"] for f in files) if columns is None else (header["arguments"][0],),
        in_paths=in_paths,
        of_table=columns is not None,
        content=done.detail.get("list", ""),
        identities=done.detail["identities"],
    )


def reference(column: str) -> str:
    """Return a name as the command takes it: quoted, because it may have any character."""
    return '"' + column.replace('"', '""') + '"'


def absolute(name: str | os.PathLike[str]) -> str:
    """Return a path that means the same on every machine; URLs are as they were."""
    text = os.fspath(name)
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    return text if "://" in text else os.path.abspath(text) + ("/" if text.endswith("/") else "")


def spark_url(name: str) -> str:
    """Return a name for Spark, whose default file system may be another one."""
    return name if "://" in name else f"file://{name}"


def read_staged(
    spark: SparkSession, staged: Staged, schema: StructType, hive: frozenset[str]
) -> DataFrame:
    """Return staged rows with the types that Spark has for the files they come from."""
    from pyspark.sql import functions
    from pyspark.sql.types import StringType, StructField, StructType

    stored = StructType(
        [StructField(f.name, StringType(), True) if f.name in hive else f for f in schema.fields]
    )
    if not staged.files:
        return spark.createDataFrame([], schema)
    frame = spark.read.schema(stored).parquet(*[spark_url(f) for f in staged.files])
    columns = [
        of_path(f.name, f.dataType) if f.name in hive else functions.col(quoted(f.name))
        for f in schema.fields
    ]
    return frame.select(*columns)


def of_path(name: str, kind: DataType) -> Column:
    """Return a column of strings from paths, in the type that Spark has for them."""
    from pyspark.sql import functions
    from pyspark.sql.types import NullType

    # All directories may say __HIVE_DEFAULT_PARTITION__.
    void = isinstance(kind, NullType)
    return (functions.lit(None) if void else functions.col(quoted(name)).cast(kind)).alias(name)
