"""The verbs of the command as functions.

Their options are in ``_parameters``, under the names of the flags. The command
checks their values.
"""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, cast

from bloomjoin import _options
from bloomjoin import _parameters as of
from bloomjoin._arrow import Stream
from bloomjoin._filter import Filter
from bloomjoin._filter import How as Combine
from bloomjoin._inputs import (
    UNNAMED,
    Files,
    Input,
    Placed,
    as_ids,
    as_input,
    listed,
    place,
    place_one,
    staged,
)
from bloomjoin._parameters import Applied, How, Ids, Key, Logs, On, Out, Path
from bloomjoin._reader import Reader
from bloomjoin._reports import Inspection, JoinReport, Plan, ScanReport
from bloomjoin._runs import Run
from bloomjoin._signatures import verb

if TYPE_CHECKING:
    from typing_extensions import Unpack

_Columns = Annotated[Iterable[str] | None, "columns to keep; all by default"]
_Written = Annotated[
    Path | None, "the file to write; without it the filter is temporary, and goes with the Filter"
]


@verb(of.Build)
def build(
    ids: Ids,
    key: Key = None,
    *,
    out: _Written = None,
    kind: Annotated[
        Literal["auto", "bloom", "exact", "counting"] | None,
        "auto: an exact set of integers where that is smaller than a Bloom filter",
    ] = None,
    against: Annotated[Ids | None, "known good keys, of which none is to pass by mistake"] = None,
    **options: "Unpack[of.Build]",
) -> Filter:
    """Build a filter of the keys of ``ids``.

    An array, a list of values, a table of one column and a file with an ID a line
    need no ``key``.

    With ``shard="i/n"`` the filter is a partial one, of a share of the files;
    ``merge`` puts the n of them together.
    """
    with Run("build", options, kind=kind) as run:
        given = as_ids(ids, "ids", key)
        if key is None and not isinstance(given, Files) and len(given.schema) == 1:
            key = _options.quoted(given.schema.names)
        if against is not None:  # then the IDs are read twice
            run.add("against", staged(as_ids(against, "against", key), run.stack, "against"))
            given = Files(staged(given, run.stack, "ids"))
        names, feed = place_one(given)
        run.add("key", key)
        return run.filter(out, listed(names, run.stack), feed)


@verb(of.Merge)
def merge(
    filters: Annotated[Sequence[Filter | Path], "the filters, or their files"],
    out: _Written = None,
    *,
    how: Annotated[Combine, "union, intersect, difference, subtract or partials"] = "union",
    against: Annotated[
        Path | Sequence[Path] | None, "files of known good keys, as for build; with partials"
    ] = None,
    **options: "Unpack[of.Merge]",
) -> Filter:
    """Return the union or the intersection of finished filters.

    ``difference``, of exact filters, and ``subtract``, of counting ones, take the keys
    of the others from the first. With ``how="partials"``, the finished filter of a
    build's partial ones, all of which are needed, with their ``against``.
    """
    with Run("merge", options, against=against) as run:
        run.add(*_options.combining(how))
        names = [run.filter_file(one) for one in filters]
        return run.filter(out, ["--", *names])


@verb(of.Scan)
def scan(
    filter: Applied,
    logs: Logs,
    key: Key = None,
    *,
    columns: _Columns = None,
    **options: "Unpack[of.Scan]",
) -> Reader:
    """Stream the rows of a log whose key may be in a filter.

    Those of a Bloom filter are candidates: a few of them have another key. Without
    ``key``, the columns have the names that the filter gives.

    The scan runs while the Reader is read. Raises an Error here if the arguments,
    the filter or the first file are wrong, and from the Reader for what comes later.
    """
    with Run("scan", options, filter=filter, key=key) as run:
        names, feed = _scan_inputs(run, logs, columns, key)
        return run.reader(ScanReport, names, feed)


@verb(of.ScanTo)
def scan_to(
    filter: Applied,
    logs: Logs,
    key: Key = None,
    *,
    out: Out,
    columns: _Columns = None,
    **options: "Unpack[of.ScanTo]",
) -> ScanReport:
    """Write the rows of a log whose key may be in a filter, and return the report.

    Outputs appear whole or not at all. The same run again is ``already_done``; any
    other output that exists is an error, unless ``force`` is set.
    """
    with Run("scan", options, filter=filter, key=key) as run:
        names, feed = _scan_inputs(run, logs, columns, key)
        return run.report(ScanReport, names, feed, out=out)


@verb(of.Join)
def join(
    logs: Logs, ids: Ids, on: On, *, how: How = "semi", **options: "Unpack[of.Join]"
) -> Reader:
    """Stream the exact join of a log with IDs.

    The join runs while the Reader is read. Raises an Error here if the arguments or
    the first files are wrong, and from the Reader for what comes later.
    """
    with Run("join", options, how=how) as run:
        placed = _join_inputs(run, logs, ids, on)
        return run.reader(JoinReport, listed(placed.logs, run.stack), placed.feed)


@verb(of.JoinTo)
def join_to(
    logs: Logs, ids: Ids, on: On, *, out: Out, how: How = "semi", **options: "Unpack[of.JoinTo]"
) -> JoinReport:
    """Write the exact join of a log with IDs, and return the report.

    Outputs appear whole or not at all. The same run again is ``already_done``; any
    other output that exists is an error, unless ``force`` is set. Raises GateError,
    and publishes nothing, if a ``require_*`` or ``max_kept`` condition is not met.
    """
    with Run("join", options, how=how) as run:
        placed = _join_inputs(run, logs, ids, on)
        return run.report(JoinReport, listed(placed.logs, run.stack), placed.feed, out=out)


@verb(of.Plans)
def plan(logs: Logs, ids: Ids, on: On, *, how: How = "semi", **options: "Unpack[of.Plans]") -> Plan:
    """Estimate a join: the rows of its answer, the best strategy, and what it saves.

    Reads metadata and a sample of the log. Arrow data is written to a temporary
    file, because it is read more than once.
    """
    with Run("plan", options, how=how) as run:
        placed = _join_inputs(run, logs, ids, on, reread=True)
        return run.report(Plan, listed(placed.logs, run.stack))


@verb(of.Inspect)
def inspect(
    files: Annotated[Filter | Path | Iterable[Filter | Path], "what to describe"],
    **options: "Unpack[of.Inspect]",
) -> Inspection:
    """Describe filters, tables, lists of inputs, and outputs of runs.

    Raises DataError if ``check`` finds one that is damaged.
    """
    with Run("inspect", options) as run:
        one = isinstance(files, (str, os.PathLike, Filter))
        several = [cast("Filter | Path", files)] if one else cast("Iterable[Filter | Path]", files)
        return run.report(Inspection, ["--", *map(run.filter_file, several)])


def _scan_inputs(
    run: Run, logs: Logs, columns: Iterable[str] | None, key: Key
) -> tuple[Sequence[str], Stream | None]:
    if columns is not None:
        run.add("columns", _options.chosen(columns))
    names, feed = place_one(as_input(logs, "logs", key))
    return listed(names, run.stack), feed


def _join_inputs(run: Run, logs: Logs, ids: Ids, on: On, *, reread: bool = False) -> Placed:
    pairs = _options.on(on)
    log_keys, id_keys = _options.sides(pairs)
    log_side = as_input(logs, "logs", log_keys)
    id_side = as_ids(ids, "ids", id_keys)
    if _options.columns(id_keys) == [None] and "=" not in pairs and _is_unnamed(id_side):
        pairs = f"{pairs}={UNNAMED}"  # a field in a struct of the log, and a column of values
    run.add("on", pairs)
    placed = place(log_side, id_side, run.stack, reread=reread)
    run.add("ids", placed.ids)
    return placed


def _is_unnamed(ids: Input) -> bool:
    return not isinstance(ids, Files) and ids.schema.names == [UNNAMED]
