"""Probes of keys that go through the command: every class, and keys of several columns."""

from __future__ import annotations

import datetime as dt
import decimal
import multiprocessing as mp
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import golden
import pyarrow as pa
import pytest

from bloomjoin import _process
from bloomjoin._errors import DataError
from bloomjoin._filter import Filter

D = decimal.Decimal
DAY = dt.date(2024, 2, 28)
DAYS = [DAY + dt.timedelta(i) for i in range(0, 900, 3)]
MIDNIGHT = dt.datetime(2024, 2, 28, 23, 59, 59, 999_000)
MOMENTS = [MIDNIGHT + dt.timedelta(0, 7 * i) for i in range(300)]
TIMES = [dt.time(1, 2, 3), dt.time(1, 2, 4)]
ONE_IN_THREE = [D(i) / 4 for i in range(-300, 600, 3)]
ID = "123e4567-e89b-12d3-a456-426614174000"

# ids, flags of build, and columns to look up
CLASSES: dict[str, tuple[pa.Array, list[str], list[pa.Array]]] = {
    "date": (
        pa.array(DAYS),
        [],
        [
            pa.array([DAY + dt.timedelta(i) for i in range(-9, 900)] + [None], of)
            for of in (pa.date32(), pa.date64())
        ],
    ),
    "timestamp": (
        pa.array(MOMENTS, pa.timestamp("ms")),
        [],
        [
            pa.array([*MOMENTS[:40], None, MIDNIGHT - dt.timedelta(1)], pa.timestamp(u))
            for u in ("ms", "us", "ns")
        ],
    ),
    "instant": (
        pa.array(MOMENTS, pa.timestamp("us", "UTC")),
        [],
        [pa.array(MOMENTS[:40], pa.timestamp("ms", "Europe/Berlin"))],
    ),
    "boolean": (pa.array([True]), [], [pa.array([True, False, None])]),
    "decimal": (
        pa.array(ONE_IN_THREE, pa.decimal128(9, 2)),
        [],
        [
            pa.array([D(i) / 8 for i in range(-900, 900)], pa.decimal128(12, 3)),
            pa.array([i / 8 for i in range(-900, 900)]),
            pa.array(range(-90, 90)),
        ],
    ),
    "float": (
        pa.array([float("nan"), -0.0, *(i / 4 for i in range(300))]),
        [],
        [
            pa.array([0.0, -0.0, float("nan"), float("inf"), None, 0.25, 0.3]),
            pa.array([0.25, 1e9, 0.3], pa.float32()),
            pa.array(range(99), pa.uint16()),
        ],
    ),
    "time": (
        pa.array([dt.time(1, 2, 3), dt.time(4)]),
        [],
        [
            pa.array([dt.time(1, 2, 3), dt.time(1, 2, 4)], of)
            for of in (pa.time32("s"), pa.time64("ns"))
        ],
    ),
    "duration": (
        pa.array([dt.timedelta(0, i) for i in range(99)]),
        [],
        [pa.array([dt.timedelta(0, i / 2) for i in range(-9, 99)], pa.duration("ms"))],
    ),
    "integers in other types": (
        pa.array(range(0, 3000, 3)),
        ["--kind", "exact"],
        [
            pa.array([0.0, 3.0, 3.5, float("nan"), None, 1e300, -0.0]),
            pa.array([D("3.00"), D("3.50"), None], pa.decimal128(9, 2)),
        ],
    ),
    "text of a UUID": (
        pa.array([ID]),
        ["--normalize", "uuid"],
        [pa.array([ID, ID.upper(), "{" + ID + "}", f"urn:uuid:{ID}", ID[:-1], None, "no UUID"])],
    ),
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes(tmp_path: Path, name: str) -> None:
    ids, flags, columns = CLASSES[name]
    f = Filter.load(golden.build(tmp_path, ids, *flags))
    assert f.probe(ids).true_count == len(ids)
    for column in columns:
        mask = f.probe(column)
        assert isinstance(mask, pa.BooleanArray)
        assert mask.null_count == 0
        assert mask.to_pylist() == golden.scanned(tmp_path, f, pa.table({"k": column}), "k")
        assert 0 < mask.true_count < len(column) or name == "instant"
        again = pa.chunked_array([column.slice(1, 2), column.slice(0, 0), column])
        assert f.probe(again).to_pylist() == mask.to_pylist()[1:3] + mask.to_pylist()
        assert f.probe(column.dictionary_encode()).equals(mask)
        assert f.probe(column.slice(0, 0)).to_pylist() == []


def composite(tmp_path: Path) -> tuple[Filter, pa.Table]:
    r = random.Random(8)
    table = pa.table(
        {
            "a": [r.randrange(20) for _ in range(500)],
            "b": pa.array([f"x{r.randrange(20)}" for _ in range(500)]).dictionary_encode(),
            "c.d": [DAY + dt.timedelta(r.randrange(20)) for _ in range(500)],
        }
    )
    golden.write_arrow(tmp_path / "ids.arrow", table.slice(0, 100))
    out = tmp_path / "filter.bjf"
    args = ["build", "--key", 'a,b,"c.d"', "--fpr", "0.001", "-o", str(out)]
    _process.run([*args, str(tmp_path / "ids.arrow")])
    return Filter.load(out), table


def test_keys_of_several_columns(tmp_path: Path) -> None:
    f, table = composite(tmp_path)
    want = golden.scanned(tmp_path, f, table, 'a,b,"c.d"')
    assert all(want[:100])
    assert not all(want)
    chunks = f.probe(pa.concat_tables([table.slice(0, 7), table.slice(7)]))
    assert isinstance(chunks, pa.ChunkedArray)
    assert chunks.to_pylist() == want
    mask = f.probe(table.combine_chunks().to_batches()[0].select(["c.d", "b", "a"]))
    assert isinstance(mask, pa.BooleanArray)
    assert mask.to_pylist() == want
    structs = pa.array([*table.slice(0, 2).to_pylist(), None], pa.struct(table.schema))
    assert f.probe(structs).to_pylist() == [True, True, False]
    with pytest.raises(DataError, match="no column 'a'"):
        f.probe(pa.array([1]))


def test_wrong_class_of_a_part(tmp_path: Path) -> None:
    f, table = composite(tmp_path)
    with pytest.raises(DataError, match="key 'a': key class: want integer"):
        f.probe(table.set_column(0, "a", pa.array(["x"] * 500)))


def test_more_than_a_pipe_holds(tmp_path: Path) -> None:
    f = Filter.load(golden.build(tmp_path, pa.array(DAYS)))
    days = pa.array([DAY + dt.timedelta(i % 2000) for i in range(400_000)])
    mask = f.probe(pa.chunked_array([days.slice(i, 9_000) for i in range(0, 400_000, 9_000)]))
    assert mask.combine_chunks().slice(0, 2000).to_pylist() * 200 == mask.to_pylist()


def wrong(f: Filter) -> int:
    days = pa.array([DAY, DAY + dt.timedelta(3), None])
    return sum(f.probe(days).to_pylist() != [True, True, False] for _ in range(10))


def test_threads_and_forked_processes(tmp_path: Path) -> None:
    f = Filter.load(golden.build(tmp_path, pa.array(DAYS)))
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(wrong, f) for _ in range(4)]
        if hasattr(os, "fork"):
            with mp.get_context("fork").Pool(3) as processes:
                assert processes.map_async(wrong, [f] * 6).get(60) == [0] * 6
        assert [run.result(60) for run in runs] == [0] * 4


def test_save(tmp_path: Path) -> None:
    f = Filter.load(golden.build(tmp_path, pa.array(range(0, 10**5, 7)), "--kind", "bloom"))
    out = tmp_path / "saved.bjf"
    f.save(out)
    assert out.stat().st_mode & 0o777 == 0o600
    assert Filter.load(out) == f
    f.save(out, uncompressed=True, force=True)
    assert Filter.load(out)._held().mapped
    other = Filter.load(golden.build(tmp_path, pa.array([1, 2])))
    with pytest.raises(DataError):
        other.save(out)
    assert Filter.load(out) == f
    other.save(out, force=True)
    assert Filter.load(out) == other
