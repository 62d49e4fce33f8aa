"""Rows without those whose key came before."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from bloomjoin import _parameters as of
from bloomjoin._arrow import Stream
from bloomjoin._inputs import Files, as_input, place_one
from bloomjoin._reader import Reader
from bloomjoin._reports import DedupReport
from bloomjoin._runs import Run
from bloomjoin._signatures import verb

if TYPE_CHECKING:
    from typing_extensions import Unpack

_Key = Annotated[of.Names, "the columns of the key"]


@verb(of.Dedup)
def dedup(rows: of.Logs, key: _Key, **options: "Unpack[of.Dedup]") -> Reader:
    """Stream the rows whose key did not come before, the first of equal ones.

    ``rows`` are Parquet or Arrow files, or Arrow data. With ``time``, keys are remembered
    for ``window``. With ``keep="last"``, the last row of each key stays instead or, with
    ``time``, the newest. Of files and tables, only true duplicates are dropped. Batches of a
    reader or an iterator pass as they come: about ``fpr`` of the others are dropped, too,
    and many more are an Error at the end. ``exact`` and ``approximate`` choose.

    Raises an Error here, and from the Reader for what comes later.
    """
    with Run("dedup", _without(options)) as run:
        names, feed = _inputs(run, rows, key, options)
        return run.reader(DedupReport, names, feed)


@verb(of.DedupTo)
def dedup_to(
    rows: of.Logs, key: _Key, *, out: of.Out, **options: "Unpack[of.DedupTo]"
) -> DedupReport:
    """Write the rows whose key did not come before, and return the report.

    ``rows`` may be text, too, which stays text; Arrow data becomes an Arrow stream.
    """
    with Run("dedup", _without(options)) as run:
        names, feed = _inputs(run, rows, key, options)
        return run.report(DedupReport, names, feed, out=out)


def _without(options: Mapping[str, Any]) -> dict[str, Any]:
    return {n: v for n, v in options.items() if n not in ("exact", "expect", "format")}


def _inputs(
    run: Run, rows: of.Logs, key: of.Names, options: Mapping[str, Any]
) -> tuple[Sequence[str], Stream | None]:
    run.add("key", key)
    form, expect, exact = (options.get(n) for n in ("format", "expect", "exact"))
    given = as_input(rows, "rows", key)
    if not isinstance(given, Files):
        form = "arrow"
        if given.rows is not None:  # a table, which can be read again
            exact = exact or not (options.get("approximate") or options.get("state"))
            if not any(options.get(n) for n in ("expect", "rate", "time")):
                expect = max(given.rows, 1)
    run.add("format", form)
    run.add("expect", expect)
    run.add("exact", exact)
    names, feed = place_one(given)
    return ["--", *names], feed
