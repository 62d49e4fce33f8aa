"""Rows without those whose key came before."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, Union

from bloomjoin._inputs import Files, as_input, for_unnamed, place_one
from bloomjoin._process import Feed
from bloomjoin._progress import Bar, Listener
from bloomjoin._reader import Reader
from bloomjoin._reports import DedupReport
from bloomjoin._runs import Run
from bloomjoin._stores import Credentials
from bloomjoin._verbs import Names

Path = Union[str, "os.PathLike[str]"]
Late = Literal["keep", "drop", "error"]
TimeUnit = Literal["s", "ms", "us", "ns"]


def dedup(
    rows: Any,
    key: Names,
    *,
    time: str | None = None,
    time_unit: TimeUnit | None = None,
    window: str | timedelta | None = None,
    slots: int | None = None,
    expect: int | None = None,
    rate: float | None = None,
    fpr: float | None = None,
    exact: bool = False,
    late: Late | None = None,
    max_jump: str | timedelta | None = None,
    normalize: Names | None = None,
    ignore_case: bool = False,
    cast_errors: Literal["error", "null"] | None = None,
    temp_dir: Path | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credentials: Credentials | None = None,
    progress: Listener | Bar | None = None,
) -> Reader:
    """Stream the rows whose key did not come before, the first of equal ones.

    ``rows`` are Parquet or Arrow files, or Arrow data, whose batches pass as they
    come. With ``time``, keys are remembered for ``window``, as ``"24h"`` or a timedelta.
    ``expect`` is the number of keys in a window; streams need it, or ``rate`` a second.
    At most ``fpr`` of the rows are wrongly dropped, with ``exact`` none.

    Raises an Error here, and from the Reader for what comes later.
    """
    with Run("dedup", locals(), _OWN) as run:
        names, feed = _inputs(run, rows, key, expect, rate, time)
        return run.reader(DedupReport, names, feed)


def dedup_to(
    rows: Any,
    key: Names,
    *,
    out: Path,
    force: bool = False,
    state: Path | None = None,
    checkpoint: str | timedelta | None = None,
    format: Literal["lines", "csv", "tsv", "ndjson", "arrow"] | None = None,
    time: str | None = None,
    time_unit: TimeUnit | None = None,
    window: str | timedelta | None = None,
    slots: int | None = None,
    expect: int | None = None,
    rate: float | None = None,
    fpr: float | None = None,
    exact: bool = False,
    late: Late | None = None,
    max_jump: str | timedelta | None = None,
    normalize: Names | None = None,
    ignore_case: bool = False,
    cast_errors: Literal["error", "null"] | None = None,
    temp_dir: Path | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credentials: Credentials | None = None,
    progress: Listener | Bar | None = None,
) -> DedupReport:
    """Write the rows whose key did not come before, and return the report.

    ``rows`` may be text, too, which stays text; Arrow data becomes an Arrow stream.
    With the file ``state`` later runs continue. The rest is as for ``dedup``.
    """
    with Run("dedup", locals(), _OWN) as run:
        run.add("output", out)
        names, feed = _inputs(run, rows, key, expect, rate, time, format)
        return run.report(DedupReport, names, feed)


_OWN = ("rows", "key", "out", "expect", "format")


def _inputs(
    run: Run,
    rows: Any,
    key: Names,
    expect: int | None,
    rate: float | None,
    time: str | None,
    form: str | None = None,
) -> tuple[Sequence[str], Feed | None]:
    run.add("key", key)
    given = as_input(rows, "rows", unnamed=for_unnamed(key))
    if not isinstance(given, Files):
        form = "arrow"
        if expect is None and rate is None and time is None and given.rows is not None:
            expect = max(given.rows, 1)
    run.add("format", form)
    run.add("expect", expect)
    names, feed = place_one(given)
    return ["--", *names], feed
