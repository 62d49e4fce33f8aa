"""Duplicates, counting filters, known keys, sketches, files of a key; beside Python and DuckDB."""

from __future__ import annotations

import datetime as dt
import pickle
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flights import LOGS, expected

import bloomjoin
from bloomjoin import CountingFilter, Sketch, _process

R = random.Random(5)
ROWS = [R.randrange(300) for _ in range(2000)]
LOG = pa.table({"k": ROWS, "n": range(2000)})


def firsts(keys: list[int]) -> list[int]:
    """Return the rows whose key did not come before."""
    seen = dict.fromkeys(keys)
    return [keys.index(key) for key in seen]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    "kind", ["file", "table", "batches", "iterator", "reader", "polars", "pandas"]
)
def test_first_rows_stay(kind: str, exact: bool, tmp_path: Path) -> None:
    pq.write_table(LOG, tmp_path / "log.parquet")
    batches = LOG.to_batches(max_chunksize=77)
    rows, expect = {
        "file": (tmp_path / "log.parquet", None),
        "table": (LOG, None),
        "batches": (batches, None),
        "iterator": (iter(batches), 2000),
        "reader": (LOG.to_reader(), 2000),
        "polars": (pl.from_arrow(LOG), 2000),
        "pandas": (LOG.to_pandas(), None),
    }[kind]
    with bloomjoin.dedup(rows, "k", expect=expect, fpr=1e-9, exact=exact) as reader:
        assert reader.read_all()["n"].to_pylist() == firsts(ROWS)
    assert (reader.report.rows_in, reader.report.duplicates) == (2000, 2000 - len(set(ROWS)))


def test_tables_lose_no_row() -> None:
    """Whatever is expected; a reader, which is read once, says that too many were dropped."""
    table = pa.table({"k": range(50_000)})
    for rows in (table, table.to_batches(), pl.from_arrow(table)):
        assert bloomjoin.dedup(rows, "k", expect=1000).read_all().num_rows == 50_000
    assert bloomjoin.dedup(table, "k", approximate=True, fpr=0.1).read_all().num_rows < 50_000
    with pytest.raises(bloomjoin.GateError, match="fpr"):
        bloomjoin.dedup(table.to_reader(), "k", expect=1000).read_all()


def test_batches_stream() -> None:
    """Rows come out while the producer still has some."""
    produced = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal produced
        for i in range(10_000):
            produced += 1
            yield pa.record_batch({"k": [i] * 1000, "text": ["x" * 100] * 1000})

    with bloomjoin.dedup(batches(), "k", expect=10_000, fpr=1e-9) as reader:
        assert reader.read_next_batch().num_rows == 1
        assert produced < 9_000


def test_window(tmp_path: Path) -> None:
    """With one slot a second: a key that came within the window is dropped."""
    log = LOG.append_column("at", pa.array(range(2000), pa.timestamp("s")))
    window = dt.timedelta(seconds=60)
    want, last = [], dict[int, int]()
    for i, key in enumerate(ROWS):
        if i - last.get(key, -100) >= 60:
            want.append(i)
            last[key] = i
    arguments = {"time": "at", "window": window, "slots": 60, "expect": 60, "fpr": 1e-9}
    assert bloomjoin.dedup(log, "k", **arguments).read_all()["n"].to_pylist() == want
    report = bloomjoin.dedup_to(log, "k", out=tmp_path / "rows.arrows", **arguments)
    with pa.ipc.open_stream(tmp_path / "rows.arrows") as written:
        assert written.read_all()["n"].to_pylist() == want
    assert report.rows_out == len(want)
    assert "duplicates" in str(report)


@pytest.mark.parametrize("kind", ["file", "table", "pandas", "batches"])
def test_last_rows_stay(kind: str, tmp_path: Path) -> None:
    """As in pandas, for the order of the rows and for that of their times."""
    times = [R.randrange(9) for _ in ROWS]
    log = LOG.append_column("at", pa.array(times, pa.timestamp("s")))
    frame = log.to_pandas()
    rows: Any = {"table": log, "pandas": frame, "batches": log.to_reader()}.get(kind)
    if kind == "file":
        pq.write_table(log, rows := tmp_path / "log.parquet")
    newest = frame.sort_values("at", kind="stable")
    for options, want in (({}, frame), ({"time": "at"}, newest)):
        if kind == "batches":
            with pytest.raises(bloomjoin.UsageError, match="exact"):
                bloomjoin.dedup(log.to_reader(), "k", keep="last", expect=300, **options)
            rows, options = log.to_reader(), {"exact": True, **options}
        got = bloomjoin.dedup(rows, "k", keep="last", **options).read_all()["n"].to_pylist()
        assert got == sorted(want.drop_duplicates("k", keep="last")["n"])


def test_dedup_of_logs_as_duckdb(tmp_path: Path) -> None:
    out = tmp_path / "routes.parquet"
    report = bloomjoin.dedup_to(LOGS, ["origin", "destination"], out=out, exact=True)
    ((routes,),) = expected("SELECT count(*) FROM (SELECT DISTINCT origin, destination FROM logs)")
    assert report.rows_out == pq.read_table(out).num_rows == routes
    assert bloomjoin.dedup_to(LOGS, ["origin", "destination"], out=out, exact=True).already_done


def test_text_stays_text(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("k,n\n1,1\n1,2\n2,3\n")
    with pytest.raises(bloomjoin.UsageError, match="dedup_to"):
        bloomjoin.dedup(tmp_path / "log.csv", "k", expect=9)
    bloomjoin.dedup_to(tmp_path / "log.csv", "k", expect=9, out=tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "k,n\n1,1\n2,3\n"


def test_wrong_iterators() -> None:
    for given in (iter([]), iter([1]), (b for b in [LOG])):
        with pytest.raises(bloomjoin.UsageError, match="rows: want"):
            bloomjoin.dedup(given, "k")

    def fails() -> Iterator[pa.RecordBatch]:
        yield LOG.to_batches()[0]
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        bloomjoin.dedup(fails(), "k", expect=9).read_all()


@pytest.mark.parametrize("multiset", [False, True])
def test_updates(multiset: bool, tmp_path: Path) -> None:
    """A Counter, or a set, has the same keys; its Bloom filter is that of a build."""
    r = random.Random(3)
    options = {"capacity": 2000, "fpr": 1e-9}
    keys = Counter(range(500))
    held = CountingFilter.build(pa.array(range(500)), multiset=multiset, **options)
    for i in range(4):
        gone = r.sample(sorted(keys), 100)
        more = [r.randrange(3000) for _ in range(150)]
        keys -= Counter(gone)
        keys.update(more)
        if not multiset:
            keys = Counter(set(keys))
            more = sorted(set(more))
        out = tmp_path / f"{i}.bjf" if i % 2 else None
        held = held.update(remove=pd.Series(gone), add=pa.table({"other": more}), out=out)
        assert held.probe(pa.array(range(3000))).to_pylist() == [k in keys for k in range(3000)]
    assert (held.kind, held.multiset, held.saturated) == ("counting", multiset, 0)
    assert held.keys == keys.total()
    rest = bloomjoin.build(
        pa.array(sorted(keys.elements())), kind="bloom", geometry="split-256", **options
    )
    probes = pa.array(range(100_000))
    assert held.plain(tmp_path / "plain.bjf").kind == "bloom"
    assert held.plain().probe(probes) == rest.probe(probes) == held.probe(probes)
    assert type(pickle.loads(pickle.dumps(held))) is CountingFilter


def test_subtract_and_union() -> None:
    options = {"capacity": 100, "fpr": 1e-6, "multiset": True}
    both = CountingFilter.build(pa.array([1, 2, 3, 3]), **options)
    one = CountingFilter.build(pa.array([3, 1]), **options)
    less = both.subtract(one)
    assert less.probe(pa.array([1, 2, 3])).to_pylist() == [False, True, True]
    assert less == bloomjoin.merge([both, one], how="subtract")
    assert less.merge(one).probe(pa.array([1, 2, 3])).to_pylist() == [True] * 3
    with pytest.raises(bloomjoin.DataError):
        one.subtract(both)
    sets = [bloomjoin.build(pa.array(ids), kind="exact") for ids in ([1, 2, 3], [2])]
    left = bloomjoin.merge(sets, how="difference")
    assert left.probe(pa.array([1, 2, 3])).to_pylist() == [True, False, True]


def test_keys_that_are_not_in_are_refused(tmp_path: Path) -> None:
    held = CountingFilter.build(pa.array([1, 2, 3]), fpr=1e-9)
    with pytest.raises(bloomjoin.DataError, match="1 of 2") as caught:
        held.update(remove=pa.array([1, 987654]))
    assert "987654" not in str(caught.value)
    rest = held.update(remove=pa.array([1, 987654]), ignore_missing=True, key="k")
    assert rest.probe(pa.array([1, 2])).to_pylist() == [False, True]
    with pytest.raises(bloomjoin.UsageError):
        held.update()
    bloomjoin.build(pa.array([1]), out=tmp_path / "exact.bjf")
    with pytest.raises(bloomjoin.DataError, match="want counting, got exact"):
        CountingFilter.load(tmp_path / "exact.bjf")


def test_no_known_key_passes(tmp_path: Path) -> None:
    ids = pa.array(range(0, 3000, 3))
    known = pa.array([v for v in range(2000, 60_000) if v % 3 or v >= 3000])
    others = pa.array(range(60_000, 100_000))
    files = [tmp_path / "ids.parquet", tmp_path / "known.parquet"]
    for file, keys in zip(files, (ids, known), strict=True):
        pq.write_table(pa.table({"k": keys}), file)
    options = {"kind": "bloom", "fpr": 0.05}
    without = bloomjoin.build(ids, **options)
    assert without.probe(known).true_count > 1000
    for held in (
        bloomjoin.build(ids, against=known, **options),
        bloomjoin.build(files[0], "k", against=[files[1]], **options),
    ):
        assert held.probe(known).true_count == 0
        assert held.probe(ids).true_count == 1000
        assert held.probe(others) == without.probe(others)


def test_urls_and_hosts() -> None:
    urls = bloomjoin.build(pa.array(["http://a.example/%7Ex"]), normalize="url", fpr=1e-9)
    asked = pa.array(["HTTP://A.example:80/~x", "http://a.example/y", None])
    assert urls.probe(asked).to_pylist() == [True, False, False]
    assert urls.probe(asked.dictionary_encode()).to_pylist() == [True, False, False]
    hosts = bloomjoin.build(pa.array(["bad.example"]), normalize=["url-host"], fpr=1e-9)
    asked = pa.chunked_array([["https://www.BAD.example/x"], ["bad.example", "ad.example"]])
    assert hosts.probe(asked).to_pylist() == [True, True, False]


def test_sketch_as_a_counter() -> None:
    counts = Counter(ROWS)
    sketch = bloomjoin.sketch(LOG, "k", range=True)
    for given in (range(400), pa.array(range(400)), pd.Series(range(400)), pl.Series(range(400))):
        answers = sketch.estimate(given)
        for key, one in zip(range(400), answers, strict=True):
            assert one.low <= counts[key] <= one.value == one.high
    assert sketch.range(10, 19).value >= sum(counts[key] for key in range(10, 20))
    common = [(k, n) for k, n in counts.most_common() if n >= 0.005 * len(ROWS)]
    assert 0 < len(common) < len(counts)
    assert set(sketch.heavy(0.005, LOG)) == set(common) <= set(sketch.heavy(0.005))
    assert sketch.total == 2000
    unnamed = bloomjoin.sketch(pa.array(ROWS), "k")
    assert set(unnamed.heavy(0.005, pa.array(ROWS))) == set(common)
    assert sketch.merge(sketch).estimate(ROWS[0])[0].value == 2 * sketch.estimate(ROWS[0])[0].value


def test_sketch_of_flights_as_duckdb(tmp_path: Path) -> None:
    key = ["origin", "destination"]
    sketch = bloomjoin.sketch(LOGS, key, out=tmp_path / "routes.bjs")
    routes = expected("SELECT origin, destination, count(*) FROM logs GROUP BY ALL")
    answers = sketch.estimate([(a, b) for a, b, _ in routes])
    assert all(one.low <= n <= one.high for one, (_, _, n) in zip(answers, routes, strict=True))
    again = pickle.loads(pickle.dumps(Sketch.load(tmp_path / "routes.bjs")))
    assert again.estimate(("DFW", "SFO")) == sketch.estimate(("DFW", "SFO"))
    ((joined,),) = expected("SELECT count(*) FROM logs a JOIN logs b USING (origin)")
    origins = bloomjoin.sketch(LOGS, "origin")
    answer = origins.inner(origins)
    assert answer.low <= joined <= answer.high
    parts = [
        bloomjoin.sketch(LOGS, "origin", shard=f"{i}/2", out=tmp_path / f"{i}.bjs") for i in (0, 1)
    ]
    assert not parts[0].sealed
    whole = parts[0].merge(parts[1], how="partials", out=tmp_path / "whole.bjs")
    assert whole.estimate("DFW") == origins.estimate("DFW")


def test_sketch_of_weights_and_types() -> None:
    days = [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
    table = pa.table({"day": days, "text": ["a,b", "-1"], "w": [5, 7]})
    assert [e.value for e in bloomjoin.sketch(table, "day", weight="w").estimate(days)] == [5, 7]
    by_text = bloomjoin.sketch(table, "text")
    assert [e.value for e in by_text.estimate(["a,b", "-1", ""])] == [1, 1, 0]
    assert by_text.heavy(0.4, table) in ([("a,b", 1), ("-1", 1)], [("-1", 1), ("a,b", 1)])
    for wrong in (None, "a\0b"):
        with pytest.raises(bloomjoin.UsageError):
            by_text.estimate([wrong])
    with pytest.raises(bloomjoin.DataError) as caught:
        bloomjoin.sketch(table, "w").estimate(["secret"])
    assert "secret" not in f"{caught.value} {caught.value.command}"


def test_sketch_files(tmp_path: Path) -> None:
    bloomjoin.build(pa.array([1]), out=tmp_path / "filter.bjf")
    with pytest.raises(bloomjoin.DataError, match="want a sketch"):
        Sketch.load(tmp_path / "filter.bjf")
    with pytest.raises(TypeError):
        Sketch()


def test_find(tmp_path: Path) -> None:
    for i in range(4):
        pq.write_table(pa.table({"k": range(i * 10, i * 10 + 15)}), tmp_path / f"{i} %x.parquet")
    listed = tmp_path / "list.jsonl"
    command = [_process.binary(), "inputs", "--index", "k", "-o", str(listed), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    with duckdb.connect() as con:
        files = f"read_parquet('{tmp_path}/*.parquet', filename = true)"
        query = f"SELECT DISTINCT filename FROM {files}"
        for key in (3, 12, 33, 99):
            want = {name for (name,) in con.sql(f"{query} WHERE k = {key}").fetchall()}
            found = bloomjoin.find(key, listed, verify=True)
            assert set(found.names) == want
            assert all(file.rows == 1 for file in found.files)
            assert want <= set(bloomjoin.find(key, listed).names)
    several = bloomjoin.find([3, 27], listed, verify=True)
    assert len(several.files) == 2
    assert several.inputs == 4
    assert "2 of 4" in str(several)
    with pytest.raises(bloomjoin.DataError) as caught:
        bloomjoin.find("secret", listed)
    assert "secret" not in f"{caught.value} {caught.value.command}"
