"""join_to: tasks join and write, and the driver commits.

Each task runs the command for its part with the directory as its output, as a worker of a job
array does: any number of attempts of a part leave one, and nothing is seen before the commit.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

from bloomjoin._errors import UsageError

from . import _jobs
from ._files import spark_url
from ._join import conditions, known_how, sides
from ._plain import Unsuitable, spark_join
from ._report import SparkReport
from ._resources import Room, Settings
from ._sides import Side
from ._staging import checked, files_below, opened, remove_directory
from ._whole import Whole

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem
    from pyspark.sql import DataFrame, SparkSession

    from ._ship import Binaries


def join_to(
    spark: SparkSession,
    logs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    ids: DataFrame | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    on: str | Sequence[str] | Mapping[str, str],
    path: str | os.PathLike[str],
    *,
    how: str = "inner",
    columns: Sequence[str] | None = None,
    where: str | Sequence[str] = (),
    mode: Literal["auto", "whole", "spark"] = "auto",
    overwrite: bool = False,
    memory: str | None = None,
    tasks: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    binaries: Binaries | None = None,
    filesystem: FileSystem | None = None,
) -> SparkReport:
    """Write an inner, left, semi or anti join to a directory, and return what happened.

    Tasks join and write their parts of the log; no row passes through Spark. The rows are those
    of `join`. Files are written as the log's are, a directory ``name=value`` of the log is one of
    the answer, and files appear together at the end, ``_SUCCESS`` last. A ``path.bloomjoin``
    beside it lists them.

    ``path`` is an absolute path, or a URL, that all executors can write to. If it holds files,
    that is an error, or with ``overwrite`` they are removed when the tasks begin, as Spark does.
    ``mode`` ``"spark"`` has Spark join and write; so does ``"auto"`` where keys are compared by
    Spark alone. ``filesystem`` is as in `Staging`. The other arguments, and errors, are those of
    `join`.
    """
    kind = known_how(how, ("inner", "left", "left_semi", "left_anti"))
    if mode not in ("auto", "whole", "spark"):
        raise UsageError(f"mode: want auto, whole or spark, got {mode!r}")
    place = _Place(checked("path", os.fspath(path)), filesystem)
    settings = Settings(
        memory, tasks, None, conditions(where), storage_options, environment, binaries
    )
    room = Room.of(spark, settings) if mode != "spark" else None
    left, right, pairs = sides(spark, logs, ids, on, columns, room)
    place.check(overwrite, left, right)
    start = time.monotonic()
    try:
        if room is None:
            raise Unsuitable("mode is spark")
        place.check_patterns(left)
        whole = Whole.of(spark, room, left, right, pairs, kind, settings.where)
        listed = time.monotonic()
        place.empty(overwrite)
        try:
            found = _written(whole, place, listed - start)
            if not found.output_files:
                _write_columns(spark_join(left.frame, right.frame, pairs, kind), place.url)
            return found
        except BaseException:
            place.abandon()
            raise
    except Unsuitable as why:
        if settings.where:
            raise UsageError(f"where: Spark has to do this join: {why}") from why
        place.empty(overwrite)
        answer = spark_join(left.frame, right.frame, pairs, kind)
        by = _in_paths(left.frame)
        answer.write.mode("overwrite").partitionBy(*by).parquet(spark_url(place.url))
        return SparkReport("spark", str(why), kind, seconds={"join": time.monotonic() - start})


def _written(whole: Whole, place: _Place, seconds: float) -> SparkReport:
    job = whole.write(place.url)
    start = time.monotonic()
    done = _commit(whole, ["commit", "--json", "--quiet"], place.url)
    if "://" in place.url:
        # Attempts that have lost have left uploads. No other run can be at work: path was empty.
        _commit(
            whole, ["commit", "--sweep", "--older", "0s", "--force", "--json", "--quiet"], place.url
        )
    return replace(
        whole.report("tasks joined and wrote"),
        rows_in=job.total("rows_in"),
        candidates=job.total("candidates"),
        rows_out=int(done["rows_out"]),
        output_files=int(done["files"]),
        output_bytes=int(done["bytes"]),
        seconds={"list": seconds, "join": job.seconds, "commit": time.monotonic() - start},
        task_seconds={"join": job.task_seconds},
        peak_bytes=job.peak_bytes,
    )


def _write_columns(answer: DataFrame, path: str) -> None:
    """Write a file without rows, as Spark does, in which readers find the columns."""
    if len({name.lower() for name in answer.columns}) == len(answer.columns):
        answer.limit(0).write.mode("append").parquet(spark_url(path))


def _commit(whole: Whole, command: list[str], path: str) -> dict[str, int]:
    """Run the command on the driver, or in a task if the driver is no machine for it."""
    step = whole.room.step([*command, *whole.room.options, path + "/"])
    return _jobs.run_here(whole.spark, step).tasks[0].report


class _Place:
    """The directory that is written."""

    def __init__(self, url: str, filesystem: FileSystem | None) -> None:
        if re.fullmatch(r"/*|\w+://[^/]*", url):
            raise UsageError(f"path: {url}: want a directory below it")
        self.url = url if "://" in url else os.path.realpath(url)
        self._filesystem = filesystem

    def check(self, overwrite: bool, *sides: Side) -> None:
        """Raise UsageError if files are there, or inputs."""
        there = [_plain(d) + "/" for d in self._directories()]
        for side in sides:
            for name in [*side.names, *side.files()]:
                source = _plain(name).rstrip("/") + "/"
                if any(source.startswith(d) or d.startswith(source) for d in there):
                    raise UsageError(f"path: {self.url}: this is, or is in, the input {name}")
        if not overwrite:
            self.empty(False)

    def check_patterns(self, logs: Side) -> None:
        """Raise Unsuitable below the directory of a pattern: the command takes it for an input."""
        for name in logs.names:
            root, *pattern = re.split(r"[^/]*[*?\[]", name, maxsplit=1)
            if pattern and _plain(self.url).startswith(_plain(root).rstrip("/") + "/"):
                raise Unsuitable(f"path: {self.url} is in the directory of the pattern {name}")

    def empty(self, overwrite: bool) -> None:
        """Remove what is there, if that is wanted. Raise UsageError if files are left."""
        for directory in self._directories():
            filesystem, root = opened(directory, self._filesystem)
            if overwrite:
                remove_directory(filesystem, root)
            for name in files_below(filesystem, root):
                how = "cannot be removed" if overwrite else "exists (overwrite=True removes it)"
                raise UsageError(f"path: {self.url}: {name} {how}")

    def abandon(self) -> None:
        """Remove what tasks have left, unless there is a whole answer: another run's, maybe."""
        filesystem, root = opened(self.url, self._filesystem)
        if not any(n.endswith("/_SUCCESS") for n in files_below(filesystem, root)):
            for directory in self._directories():
                remove_directory(*opened(directory, self._filesystem))

    def _directories(self) -> tuple[str, str]:
        return self.url, self.url + ".bloomjoin"


def _plain(name: str) -> str:
    """Return the same for s3a:// and s3://, for file: and a path, and for a link and its target."""
    plain = os.path.normpath("/" + re.sub("^([a-z0-9]+:)?/+", "", name))
    return os.path.realpath(plain) if name.startswith(("/", "file:")) else plain


def _in_paths(logs: DataFrame) -> list[str]:
    """Return the columns of a data frame that come from its files' paths."""
    files = logs.inputFiles()
    first = unquote(files[0]) if files else ""
    return [c for c in logs.columns if f"/{c}=" in first]
