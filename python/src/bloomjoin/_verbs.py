"""The verbs of the command as functions.

The options of each stand in its signature, under the names of their flags. The
command checks their values.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Union

from bloomjoin import _options
from bloomjoin._filter import Filter
from bloomjoin._filter import How as Combine
from bloomjoin._inputs import Files, Placed, as_input, for_unnamed, listed, place, place_one, staged
from bloomjoin._progress import Bar, Listener
from bloomjoin._reader import Reader
from bloomjoin._reports import Inspection, JoinReport, Plan, ScanReport
from bloomjoin._runs import Run
from bloomjoin._stores import Credentials

Path = Union[str, "os.PathLike[str]"]
Names = str | Iterable[str]
On = str | Iterable[str] | Mapping[str, str]
Matches = Mapping[str, Filter | Path]
How = Literal["semi", "anti", "inner", "left", "right", "full"]
Strategy = Literal["auto", "exact", "lookup", "broadcast", "reverse", "shuffle"]
Encoding = Literal["utf-8", "latin1", "windows-1252", "utf-16", "utf-16le", "utf-16be"]


def build(
    ids: Any,
    key: Names | None = None,
    *,
    out: Path | None = None,
    force: bool = False,
    fpr: float | None = None,
    max_size: str | int | None = None,
    kind: Literal["auto", "bloom", "exact", "counting"] | None = None,
    multiset: bool = False,
    geometry: Literal["auto", "split-256", "split-512"] | None = None,
    expect: int | None = None,
    capacity: int | None = None,
    against: Any = None,
    key_range: Literal["auto", "on", "off"] | None = None,
    uncompressed: bool = False,
    strict: bool = False,
    shard: str | None = None,
    ids_format: Literal["lines", "csv", "tsv", "ndjson"] | None = None,
    delimiter: str | None = None,
    no_header: bool = False,
    encoding: Encoding | None = None,
    key_type: str | None = None,
    skip_bad: bool = False,
    normalize: Names | None = None,
    ignore_case: bool = False,
    cast_errors: Literal["error", "null"] | None = None,
    include: Names | None = None,
    exclude: Names | None = None,
    uncommitted: bool = False,
    hive_partitioning: Literal["auto", "off"] | None = None,
    hive_types: str | Mapping[str, str] | None = None,
    temp_dir: Path | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credentials: Credentials | None = None,
    progress: Listener | Bar | None = None,
) -> Filter:
    """Build a filter of the keys of ``ids``.

    ``ids`` are paths or URLs of Parquet, Arrow or text files, or Arrow data: a
    table, frame, stream, Series or array. ``key`` names the columns of the key; an
    array, a table of one column and a file with an ID a line need none. The filter
    is written to ``out``; without that it is temporary, and goes with the last
    reference to the Filter.

    Of the keys ``against``, given like ``ids``, none passes unless it is an ID.

    With ``shard="i/n"`` the filter is a partial one, of a share of the files;
    ``merge`` puts the n of them together.
    """
    with Run("build", locals(), ("ids", "key", "out", "against")) as run:
        given = as_input(ids, "ids", unnamed=for_unnamed(key))
        if key is None and not isinstance(given, Files) and len(given.schema) == 1:
            key = _options.quoted(given.schema.names)
        if against is not None:  # then the IDs are read twice
            known = as_input(against, "against", unnamed=for_unnamed(key))
            run.add("against", staged(known, run.stack, "against"))
            given = Files(staged(given, run.stack, "ids"))
        names, feed = place_one(given)
        run.add("key", key)
        return run.filter(out, listed(names, run.stack), feed)


def merge(
    filters: Sequence[Filter | Path],
    out: Path | None = None,
    *,
    how: Combine = "union",
    against: Path | Sequence[Path] | None = None,
    force: bool = False,
    uncompressed: bool = False,
    strict: bool = False,
    memory: str | int | None = None,
    threads: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credentials: Credentials | None = None,
    progress: Listener | Bar | None = None,
) -> Filter:
    """Return the union or the intersection of finished filters.

    ``difference``, of exact filters, and ``subtract``, of counting ones, take the keys
    of the others from the first. With ``how="partials"``, the finished filter of a
    build's partial ones, all of which are needed, with their ``against``. It is
    written to ``out``; without that it is temporary.
    """
    with Run("merge", locals(), ("filters", "out", "how")) as run:
        run.add(*_options.combining(how))
        names = [run.filter_file(one) for one in filters]
        return run.filter(out, ["--", *names])


def scan(
    filter: Filter | Path | None,
    logs: Any,
    key: Names | None = None,
    *,
    match: Matches | None = None,
    no_match: Matches | None = None,
    any: bool = False,
    columns: Iterable[str] | None = None,
    where: str | None = None,
    shard: str | None = None,
    normalize: Names | None = None,
    ignore_case: bool = False,
    cast_errors: Literal["error", "null"] | None = None,
    missing_key: Literal["error", "skip-file"] | None = None,
    include: Names | None = None,
    exclude: Names | None = None,
    uncommitted: bool = False,
    hive_partitioning: Literal["auto", "off"] | None = None,
    hive_types: str | Mapping[str, str] | None = None,
    allow_empty: bool = False,
    schema: Literal["per-file", "strict", "union"] | None = None,
    schema_from: Path | None = None,
    int96: Literal["us", "ns"] | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credentials: Credentials | None = None,
    progress: Listener | Bar | None = None,
) -> Reader:
    """Stream the rows of a log whose key may be in a filter.

    Those of a Bloom filter are candidates: a few of them have another key. ``key``
    names the columns of the log; by default they have the names that the filter
    gives. ``match`` and ``no_match`` are further filters, by the columns they apply
    to; ``no_match`` drops the members of exact filters.

    The scan runs while the Reader is read. Raises an Error here if the arguments,
    the filter or the first file are wrong, and from the Reader for what comes later.
    """
    with Run("scan", locals(), _SCAN) as run:
        names, feed = _scan_inputs(run, filter, logs, key, columns, match, no_match)
        return run.reader(ScanReport, names, feed)


def scan_to(
    filter: Filter | Path | None,
    logs: Any,
    key: Names | None = None,
    *,
    out: Path,
    force: bool = False,
    format: Literal["parquet", "arrow", "csv", "tsv", "ndjson"] | None = None,
    compression: str | None = None,
    target_file_size: str | int | None = None,
    empty: Literal["skip", "write"] | None = None,
    base: Path | None = None,
    prune: bool = False,
    ids_changed: Literal["rerun", "keep"] | None = None,
    no_commit: bool = False,
    manifest_dir: Path | None = None,
    match: Matches | None = None,
    no_match: Matches | None = None,
    any: bool = False,
    columns: Iterable[str] | None = None,
    where: str | None = None,
    shard: str | None = None,
    normalize: Names | None = None,
    ignore_case: bool = False,
    cast_errors: Literal["error", "null"] | None = None,
    missing_key: Literal["error", "skip-file"] | None = None,
    include: Names | None = None,
    exclude: Names | None = None,
    uncommitted: bool = False,
    hive_partitioning: Literal["auto", "off"] | None = None,
    hive_types: str | Mapping[str, str] | None = None,
    allow_empty: bool = False,
    schema: Literal["per-file", "strict", "union"] | None = None,
    schema_from: Path | None = None,
    int96: Literal["us", "ns"] | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credentials: Credentials | None = None,
    progress: Listener | Bar | None = None,
) -> ScanReport:
    """Write the rows of a log whose key may be in a filter, and return the report.

    ``out`` is a file, or with a slash at the end a directory with a file for each
    input; also at a URL. Files are Parquet, Arrow, CSV, TSV or NDJSON, as ``format``
    or the name says. Outputs appear whole or not at all. An output that exists
    is an error unless the same run made it, or ``force`` is set. The other
    arguments are those of ``scan``.
    """
    with Run("scan", locals(), _SCAN) as run:
        run.add("output", out)
        names, feed = _scan_inputs(run, filter, logs, key, columns, match, no_match)
        return run.report(ScanReport, names, feed)


def join(
    logs: Any,
    ids: Any,
    on: On,
    *,
    how: How = "semi",
    filter: Filter | Path | None = None,
    fpr: float | None = None,
    strategy: Strategy | None = None,
    columns: Names | None = None,
    suffix: str | None = None,
    where: str | None = None,
    shard: str | None = None,
    ids_format: Literal["lines", "csv", "tsv", "ndjson"] | None = None,
    delimiter: str | None = None,
    no_header: bool = False,
    encoding: Encoding | None = None,
    key_type: str | None = None,
    skip_bad: bool = False,
    normalize: Names | None = None,
    ignore_case: bool = False,
    cast_errors: Literal["error", "null"] | None = None,
    missing_key: Literal["error", "skip-file"] | None = None,
    include: Names | None = None,
    exclude: Names | None = None,
    uncommitted: bool = False,
    hive_partitioning: Literal["auto", "off"] | None = None,
    hive_types: str | Mapping[str, str] | None = None,
    allow_empty: bool = False,
    schema: Literal["per-file", "strict", "union"] | None = None,
    schema_from: Path | None = None,
    int96: Literal["us", "ns"] | None = None,
    temp_dir: Path | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credentials: Credentials | None = None,
    progress: Listener | Bar | None = None,
) -> Reader:
    """Stream the exact join of a log with IDs.

    ``on`` is a column of both sides, ``"log_column=id_column"``, a list of these, or
    a mapping from columns of the log to those of the IDs. ``how`` is ``semi`` or
    ``anti``, for rows of the log with or without an ID; or ``inner``, ``left``,
    ``right`` or ``full``, with the columns of the IDs, the log being the left side.

    The join runs while the Reader is read. Raises an Error here if the arguments or
    the first files are wrong, and from the Reader for what comes later.
    """
    with Run("join", locals(), _JOIN) as run:
        placed = _join_inputs(run, logs, ids, on, filter)
        return run.reader(JoinReport, listed(placed.logs, run.stack), placed.feed)


def join_to(
    logs: Any,
    ids: Any,
    on: On,
    *,
    out: Path,
    how: How = "semi",
    force: bool = False,
    format: Literal["parquet", "arrow", "csv", "tsv", "ndjson"] | None = None,
    compression: str | None = None,
    target_file_size: str | int | None = None,
    empty: Literal["skip", "write"] | None = None,
    base: Path | None = None,
    prune: bool = False,
    ids_changed: Literal["rerun", "keep"] | None = None,
    no_commit: bool = False,
    manifest_dir: Path | None = None,
    filter: Filter | Path | None = None,
    fpr: float | None = None,
    strategy: Strategy | None = None,
    columns: Names | None = None,
    suffix: str | None = None,
    where: str | None = None,
    shard: str | None = None,
    ids_format: Literal["lines", "csv", "tsv", "ndjson"] | None = None,
    delimiter: str | None = None,
    no_header: bool = False,
    encoding: Encoding | None = None,
    key_type: str | None = None,
    skip_bad: bool = False,
    normalize: Names | None = None,
    ignore_case: bool = False,
    cast_errors: Literal["error", "null"] | None = None,
    missing_key: Literal["error", "skip-file"] | None = None,
    include: Names | None = None,
    exclude: Names | None = None,
    uncommitted: bool = False,
    hive_partitioning: Literal["auto", "off"] | None = None,
    hive_types: str | Mapping[str, str] | None = None,
    allow_empty: bool = False,
    schema: Literal["per-file", "strict", "union"] | None = None,
    schema_from: Path | None = None,
    int96: Literal["us", "ns"] | None = None,
    require_rows: int | None = None,
    require_ids_matched: str | float | None = None,
    max_kept: str | float | None = None,
    temp_dir: Path | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credentials: Credentials | None = None,
    progress: Listener | Bar | None = None,
) -> JoinReport:
    """Write the exact join of a log with IDs, and return the report.

    ``out`` is as for ``scan_to``, and the other arguments are those of ``join``.
    Raises GateError, and publishes nothing, if a ``require_*`` or ``max_kept``
    condition is not met.
    """
    with Run("join", locals(), _JOIN) as run:
        run.add("output", out)
        placed = _join_inputs(run, logs, ids, on, filter)
        return run.report(JoinReport, listed(placed.logs, run.stack), placed.feed)


def plan(
    logs: Any,
    ids: Any,
    on: On,
    *,
    how: How = "semi",
    filter: Filter | Path | None = None,
    fpr: float | None = None,
    strategy: Strategy | None = None,
    columns: Names | None = None,
    where: str | None = None,
    shard: str | None = None,
    ids_format: Literal["lines", "csv", "tsv", "ndjson"] | None = None,
    delimiter: str | None = None,
    no_header: bool = False,
    encoding: Encoding | None = None,
    key_type: str | None = None,
    skip_bad: bool = False,
    normalize: Names | None = None,
    ignore_case: bool = False,
    cast_errors: Literal["error", "null"] | None = None,
    include: Names | None = None,
    exclude: Names | None = None,
    uncommitted: bool = False,
    hive_partitioning: Literal["auto", "off"] | None = None,
    hive_types: str | Mapping[str, str] | None = None,
    int96: Literal["us", "ns"] | None = None,
    network: str | None = None,
    scan_speed: str | None = None,
    workers: int | None = None,
    sample: int | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credentials: Credentials | None = None,
    progress: Listener | Bar | None = None,
) -> Plan:
    """Estimate a join: the rows of its answer, the best strategy, and what it saves.

    Reads metadata and a sample of the log. Arrow data is written to a temporary
    file, because it is read more than once.
    """
    with Run("plan", locals(), _JOIN) as run:
        placed = _join_inputs(run, logs, ids, on, filter, reread=True)
        return run.report(Plan, listed(placed.logs, run.stack))


def inspect(
    files: Filter | Path | Sequence[Filter | Path],
    *,
    check: bool = False,
    shard: str | None = None,
    manifest_dir: Path | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credentials: Credentials | None = None,
    progress: Listener | Bar | None = None,
) -> Inspection:
    """Describe filters, tables, lists of inputs, and outputs of runs.

    With ``check``, all of each file is read and verified. Raises DataError if one
    is damaged.
    """
    with Run("inspect", locals(), ("files",)) as run:
        several = [files] if isinstance(files, (str, os.PathLike, Filter)) else list(files)
        return run.report(Inspection, ["--", *map(run.filter_file, several)])


# Arguments that are not flags, or not as they are.
_SCAN = ("filter", "logs", "key", "out", "columns", "match", "no_match")
_JOIN = ("logs", "ids", "on", "out", "filter")


def _scan_inputs(
    run: Run,
    filter: Filter | Path | None,
    logs: Any,
    key: Names | None,
    columns: Iterable[str] | None,
    match: Matches | None,
    no_match: Matches | None,
) -> tuple[Sequence[str], Any]:
    if filter is not None:
        run.add("filter", run.filter_file(filter))
    for name, filters in (("match", match), ("no_match", no_match)):
        run.add(name, [f"{of}={run.filter_file(one)}" for of, one in (filters or {}).items()])
    run.add("key", key)
    if columns is not None:
        run.add("columns", _options.quoted(columns))
    names, feed = place_one(as_input(logs, "logs"))
    return listed(names, run.stack), feed


def _join_inputs(
    run: Run,
    logs: Any,
    ids: Any,
    on: On,
    filter: Filter | Path | None,
    *,
    reread: bool = False,
) -> Placed:
    pairs = _options.on(on)
    run.add("on", pairs)
    if filter is not None:
        run.add("filter", run.filter_file(filter))
    log_side = as_input(logs, "logs")
    id_side = as_input(ids, "ids", unnamed=for_unnamed(pairs.partition("=")[2] or pairs))
    placed = place(log_side, id_side, run.stack, reread=reread)
    run.add("ids", placed.ids)
    return placed
