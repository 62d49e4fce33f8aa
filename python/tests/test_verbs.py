"""The functions beside the command's own help, and options that reach it."""

from __future__ import annotations

import inspect
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from flights import LOGS, ON, TEXAS

import bloomjoin
from bloomjoin import _process

# Functions of a verb, and parameters that no flag has the name of.
VERBS: dict[str, tuple[list[Callable[..., object]], set[str]]] = {
    "build": ([bloomjoin.build], {"ids", "out"}),
    "merge": ([bloomjoin.merge], {"filters", "out", "how"}),
    "scan": ([bloomjoin.scan, bloomjoin.scan_to], {"logs", "out"}),
    "join": ([bloomjoin.join, bloomjoin.join_to], {"logs", "out", "how"}),
    "plan": ([bloomjoin.plan], {"logs", "how"}),
    "inspect": ([bloomjoin.inspect], {"files"}),
    "dedup": ([bloomjoin.dedup, bloomjoin.dedup_to], {"rows", "out"}),
    "update": ([bloomjoin.CountingFilter.update], {"self", "out"}),
    "sketch": ([bloomjoin.sketch], {"logs", "out"}),
    "find": ([bloomjoin.find], {"inputs"}),
}

# Flags that are no parameter, and why.
NOT_HERE = {
    "output": "out",
    "type": "how",
    "store-option": "storage_options",
    "files-from": "lists of names are passed as they are",
    "all": "the default, of any",
    "json": "the report is always read",
    "log-format": "messages become exceptions and warnings",
    "progress-interval": "progress",
    "metrics": "the report has the figures",
    "log": "messages become exceptions and warnings",
    "quiet": "messages are not shown",
    "verbose": "messages are not shown",
    "count": "the report has the number of rows",
    "head": "pyarrow and pandas show rows",
    "compare": "merge and inspect are for filters",
    "union": "how",
    "intersect": "how",
    "partial": "a job array's",
    "difference": "how",
    "subtract": "how",
    "from": "CountingFilter.plain",
    "row-groups": "the report has them",
    "dry-run": "size has the figures, and a build that does not fit raises",
    "help": "help() has it",
}
OURS = {"storage_options", "credentials"}


@pytest.mark.parametrize("verb", VERBS)
def test_every_flag_is_a_parameter(verb: str) -> None:
    functions, own = VERBS[verb]
    shown = "".join(
        subprocess.run(
            [_process.binary(), *args], check=True, capture_output=True, text=True
        ).stdout
        for args in ((verb, "--help-all"), ("help", "flags"))
    )
    flags = set(re.findall(r"^ +(?:-\w, |    )--([a-z0-9-]+)", shown, re.M))
    assert len(flags) > 8
    parameters: set[str] = set()
    for function in functions:
        parameters |= inspect.signature(function).parameters.keys()
    missing = {f for f in flags if f.replace("-", "_") not in parameters} - NOT_HERE.keys()
    assert not missing
    assert {p for p in parameters - own - OURS if p.replace("_", "-") not in flags} == set()


def test_options_reach_the_command(tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    report = bloomjoin.join_to(
        LOGS,
        TEXAS,
        {"origin": "iata"},
        how="inner",
        out=out,
        columns=["origin", "ids.city"],
        where="distance > 1000",
        strategy="broadcast",
        compression="zstd:3",
        memory=512 << 20,
        threads=1,
        include=["*.parquet"],
    )
    assert report.strategy == "broadcast"
    table = pq.read_table(out)
    assert table.column_names == ["origin", "city"]
    assert table.num_rows == report.rows_out > 0
    whole = bloomjoin.join(LOGS, TEXAS, ON, where="distance > 1000", include="*.parquet")
    assert whole.read_all().num_rows == report.rows_out


def test_parts_of_an_answer() -> None:
    whole = bloomjoin.join(LOGS, TEXAS, ON).read_all()
    assert bloomjoin.join(LOGS, TEXAS, ON, limit=7).read_all() == whole.slice(0, 7)
    some = bloomjoin.join(LOGS, TEXAS, ON, sample_keys="20%").read_all()
    origins = set(some["origin"].to_pylist())
    assert origins < set(whole["origin"].to_pylist())
    assert some == whole.filter(pc.is_in(whole["origin"], pa.array(origins)))
    filter_ = bloomjoin.build(TEXAS, "iata")
    again = bloomjoin.scan(filter_, LOGS, "origin", sample_keys=0.2, limit=9).read_all()
    assert again == some.slice(0, 9)


def test_same_run_again_is_done_already(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    first = bloomjoin.scan_to(bloomjoin.build(TEXAS, "iata"), LOGS, "origin", out=out)
    again = bloomjoin.scan_to(bloomjoin.build(TEXAS, "iata"), LOGS, "origin", out=out)
    assert (first.already_done, again.already_done) == (False, True)
    assert "earlier run" in str(again)
    assert again.rows_out == again.raw["rows_out"] == first.rows_out > 0
    assert f"rows out: {first.rows_out:,}" in str(again)


def test_filters_of_several_jobs(tmp_path: Path) -> None:
    ids = pa.table({"id": range(10_000)})
    pq.write_table(ids, tmp_path / "ids.parquet", row_group_size=1000)
    parts = [
        bloomjoin.build(tmp_path / "ids.parquet", "id", shard=f"{i}/3", out=tmp_path / f"{i}.bjf")
        for i in range(3)
    ]
    assert not any(part.sealed for part in parts)
    merged = bloomjoin.merge(parts, how="partials")
    assert merged == bloomjoin.build(tmp_path / "ids.parquet", "id")
    with pytest.raises(bloomjoin.DataError):
        bloomjoin.merge(parts[:2], how="partials")
    more = bloomjoin.build(pa.array([20_000]), "id", kind="exact")
    both = merged.merge(more)
    assert both.probe(pa.array([5, 20_000, 20_001])).to_pylist() == [True, True, False]
    assert bloomjoin.merge([merged, more], how="intersect").probe(pa.array([5])).to_pylist() == [
        False
    ]


def test_a_filter_in_place_of_its_path(tmp_path: Path) -> None:
    texas = bloomjoin.build(TEXAS, "iata")
    texas.save(tmp_path / "texas.bjf")
    rows = bloomjoin.scan(texas, LOGS, "origin").read_all()
    assert rows.equals(bloomjoin.scan(tmp_path / "texas.bjf", LOGS, "origin").read_all())
    both = bloomjoin.scan(None, LOGS, match={"origin": texas, "destination": texas})
    assert 0 < both.read_all().num_rows < rows.num_rows


def test_plan_and_join_agree() -> None:
    plan = bloomjoin.plan(LOGS, TEXAS, ON, how="inner")
    reader = bloomjoin.join(LOGS, TEXAS, ON, how="inner")
    rows = reader.read_all().num_rows
    assert plan.join_rows is not None
    assert plan.join_rows.low <= rows <= plan.join_rows.high
    assert reader.report.strategy == plan.strategy
    streams = bloomjoin.plan(
        bloomjoin.join(LOGS, TEXAS, ON), pa.table({"iata": ["IAH", "DFW"]}), ON
    )
    assert streams.selectivity is not None


def test_inspect_describes_and_checks(tmp_path: Path) -> None:
    file = tmp_path / "ids.bjf"
    file.write_bytes(b"")
    bloomjoin.build(pa.array([1, 2, 3]), out=file, force=True)
    found = bloomjoin.inspect([file, LOGS / "2001-04.parquet"], check=True)
    assert [next(n for n in ("filter", "table") if n in f) for f in found.files] == [
        "filter",
        "table",
    ]
    damaged = bytearray(file.read_bytes())
    damaged[-20] ^= 1
    file.write_bytes(damaged)
    with pytest.raises(bloomjoin.DataError, match=r"ids\.bjf"):
        bloomjoin.inspect(file, check=True)


def test_reports_are_escaped_tables() -> None:
    report = bloomjoin.Inspection.of(
        {"files": [{"file": "<b>", "table": {"format": "<i>"}}], "seconds": 1}
    )
    assert "<b>" not in report._repr_html_()
    assert "&lt;i&gt;" in report._repr_html_()
    scanned = bloomjoin.ScanReport.of({"rows_in": 5, "new_field": 1, "seconds": 0.5})
    assert (scanned.rows_in, scanned.raw["new_field"]) == (5, 1)


def test_progress_reaches_the_end() -> None:
    seen: list[bloomjoin.Progress] = []
    bloomjoin.join(LOGS, TEXAS, ON, progress=seen.append).read_all()
    assert seen[-1].rows == seen[-1].rows_total == 50_000


def test_progress_of_a_bar() -> None:
    tqdm = pytest.importorskip("tqdm").tqdm
    with tqdm(disable=False, file=open("/dev/null", "w")) as bar:
        bloomjoin.join(LOGS, TEXAS, ON, progress=bar).read_all()
        assert bar.n == bar.total == 50_000


def test_exception_of_a_callback_ends_the_run() -> None:
    def fail(_: bloomjoin.Progress) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        bloomjoin.join(LOGS, TEXAS, ON, progress=fail).read_all()
