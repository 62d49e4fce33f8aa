"""What ids and logs may be, and what the error says otherwise."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from flights import LOGS, ON, TEXAS

import bloomjoin

np = pytest.importorskip("numpy")

LOG = pa.table({"k": [1, 2, None, 4, 2], "v": ["a", "b", "c", None, "e"]})


def log_inputs(directory: Path) -> dict[str, Any]:
    file = directory / "log.parquet"
    pq.write_table(LOG, file)
    return {
        "path": file,
        "text": str(file),
        "list": [str(file)],
        "pattern": str(directory / "lo*.parquet"),
        "directory": directory,
        "table": LOG,
        "batch": LOG.to_batches()[0],
        "reader": LOG.to_reader(),
        "dataset": ds.dataset(file),
        "scanner": ds.dataset(file).scanner(),
        "pandas": LOG.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": pl.from_arrow(LOG),
        "duckdb": duckdb.from_arrow(LOG),
    }


KINDS = ["path", "text", "list", "pattern", "directory", "table", "batch", "reader"]


@pytest.mark.parametrize("kind", [*KINDS, "dataset", "scanner", "pandas", "polars", "duckdb"])
def test_logs(kind: str, tmp_path: Path) -> None:
    rows = bloomjoin.join(log_inputs(tmp_path)[kind], pa.array([2, 4]), "k").read_all()
    assert rows["k"].to_pylist() == [2, 4, 2]
    assert rows["v"].to_pylist() == ["b", None, "e"]


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([2, 4]),
        pa.chunked_array([[2], [4]]),
        pa.array([2, 4], pa.uint8()),
        np.array([2, 4]),
        pd.Series([2, 4]),
        pd.Series([2, 4], name="other"),
        pl.Series("other", [2, 4]),
        pa.table({"k": [2, 4, 4, None]}),
        pd.DataFrame({"k": [2, 4]}, index=[7, 8]),
        pl.DataFrame({"k": [2, 4]}),
        duckdb.sql("SELECT unnest([2, 4]) AS k"),
        [2, 4],
        (4, None, 2),
        {2, 4},
        range(2, 5, 2),
        dict.fromkeys([2, 4]).keys(),
        [np.int16(2), np.int16(4)],
        [2.0, 4],
        [pa.scalar(2), pa.scalar(4)],
        {"k": [2, 4]},
        pd.Index([2, 4], name="other"),
    ],
    ids=lambda ids: type(ids).__name__,
)
def test_ids(ids: Any) -> None:
    rows = bloomjoin.join(LOG, ids, "k").read_all()  # whatever the name of a Series
    assert rows["k"].to_pylist() == [2, 4, 2]
    named = getattr(ids, "name", None) == "other"
    built = bloomjoin.build(ids)
    assert built.probe(LOG["k"]).to_pylist() == [False, True, False, True, True]
    assert built.key_names[0] == (
        "other" if named else "k" if hasattr(ids, "columns") or isinstance(ids, dict) else "key"
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "empty list"),
        ("-", "'-'"),
        ("", "''"),
        ([1, "a"], "got"),
        (None, "got a NoneType"),
        (pl.LazyFrame({"k": [1]}), "collect"),
        ([LOG], "pyarrow.lib.Table in it"),
    ],
)
def test_what_is_no_input(given: Any, says: str) -> None:
    for call in (
        lambda: bloomjoin.join(given, TEXAS, ON),
        lambda: bloomjoin.join(LOGS, given, ON),
        lambda: bloomjoin.build(given, "k"),
    ):
        with pytest.raises(bloomjoin.UsageError, match=r"^(logs|ids): ") as raised:
            call()
        assert says in str(raised.value)
        assert isinstance(raised.value, ValueError)


def test_a_table_of_several_columns_needs_a_key() -> None:
    with pytest.raises(bloomjoin.Error, match="key"):
        bloomjoin.build(LOG)


@pytest.mark.parametrize("name", ["a b", "a.b", "a,b", 'a "b"', "k::int8", "-k", "é", "a=b", "'"])
def test_columns_are_taken_as_they_are(name: str) -> None:
    table = pa.table({name: [1, 2], "other": [3, 4]})
    ids = bloomjoin.build(table.select([name]))
    assert ids.probe(pa.array([1, 3])).to_pylist() == [True, False]
    quoted = '"' + name.replace('"', '""') + '"'
    assert ids.key_names[0] in (name, quoted)  # a reference, as --key takes it
    kept = bloomjoin.scan(ids, table, quoted, columns=[name]).read_all()
    assert kept.equals(table.select([name]))


@pytest.mark.parametrize("name", ["-o", "--force", "a b", "a,b.parquet", "ü", "a\nb", "a'b"])
def test_names_are_taken_as_they_are(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    file = name if name.endswith(".parquet") else name + ".parquet"
    pq.write_table(LOG, tmp_path / file)
    assert bloomjoin.join(file, pa.array([2]), "k").read_all().num_rows == 2
    assert bloomjoin.join(LOG, file, "k").read_all().num_rows == 4


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes on Linux")
def test_a_name_that_is_not_unicode(tmp_path: Path) -> None:
    file = os.fsencode(tmp_path) + b"/\xff.parquet"
    pq.write_table(LOG, tmp_path / "log.parquet")
    os.rename(tmp_path / "log.parquet", file)
    assert bloomjoin.join(Path(os.fsdecode(file)), pa.array([2]), "k").read_all().num_rows == 2


def test_more_files_than_a_command_line_holds(tmp_path: Path) -> None:
    directory = tmp_path / ("d" * 200)
    directory.mkdir()
    pq.write_table(LOG, directory / "log.parquet")
    names = []
    for n in range(1000):
        os.link(directory / "log.parquet", directory / f"{n}.parquet")
        names.append(directory / f"{n}.parquet")
    reader = bloomjoin.join(names, pa.array([2]), "k")
    assert reader.read_all().num_rows == 2000


def batches(n: int, value: int = 1) -> pa.RecordBatchReader:
    """Return a stream of n batches of 1 MB each."""
    batch = pa.record_batch({"k": np.full(125_000, value)})

    def generate() -> Iterator[pa.RecordBatch]:
        for _ in range(n):
            yield batch

    return pa.RecordBatchReader.from_batches(batch.schema, generate())


@pytest.mark.parametrize(("logs", "ids"), [(40, 2), (2, 40), (1, 1)])
def test_the_smaller_of_two_streams_is_staged(
    logs: int, ids: int, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    reader = bloomjoin.join(batches(logs), batches(ids), "k")
    staged = sum(f.stat().st_size for f in tmp_path.rglob("*.arrows"))
    assert staged <= (min(logs, ids) * 2 + 2) * 1_001_000
    assert reader.read_all().num_rows == logs * 125_000
    assert not list(tmp_path.iterdir())


def test_tables_are_not_staged_by_the_larger(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    reader = bloomjoin.join(batches(20).read_all(), batches(1).read_all(), "k")
    assert [f.name for f in tmp_path.rglob("*.arrows")] == ["ids.arrows"]
    reader.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("stream", ["logs", "ids", "both"])
def test_dictionaries_that_differ_between_batches(stream: str) -> None:
    """Which files of Arrow cannot hold, but streams can."""
    words = [pa.array(w).dictionary_encode() for w in (["a", "b"], ["c"], ["b", "d"])]
    column = pa.chunked_array(words)
    assert len({tuple(c.dictionary.to_pylist()) for c in column.chunks}) == 3
    table, plain = pa.table({"k": column}), pa.table({"k": ["a", "b", "c", "d", "e"]})
    logs = table if stream != "ids" else plain
    ids = table.to_reader() if stream != "logs" else plain
    rows = bloomjoin.join(logs, ids, "k").read_all()["k"].cast(pa.string()).to_pylist()
    assert rows == (["a", "b", "c", "d"] if stream == "ids" else ["a", "b", "c", "b", "d"])
    plan = bloomjoin.plan(logs, table, "k")
    assert plan.selectivity is not None
    assert plan.selectivity.value == len(rows) / logs.num_rows


@pytest.mark.skipif(not os.environ.get("BLOOMJOIN_LONG_TESTS"), reason="a gigabyte")
def test_a_gigabyte_takes_little_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reader = bloomjoin.join(batches(1000), batches(500, 2), "k", how="anti")
    assert sum(b.num_rows for b in reader) == 125_000_000
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 200
