"""Answers in DuckDB, pandas, pyarrow.dataset and as a table, against DuckDB's own."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from flights import FLIGHTS, JOINS, LOGS, ON, TEXAS, expected, rows

import bloomjoin

duckdb = pytest.importorskip("duckdb")
pd = pytest.importorskip("pandas")
ds = pytest.importorskip("pyarrow.dataset")


@pytest.mark.parametrize("how", JOINS)
def test_duckdb_reads_a_reader_as_a_relation(how: str) -> None:
    with bloomjoin.join(LOGS, TEXAS, ON, how=how) as reader:
        relation = duckdb.from_arrow(reader)
        got = sorted(relation.fetchall(), key=repr)
    assert got == expected(JOINS[how])


def test_duckdb_finds_the_variable_of_a_reader() -> None:
    with bloomjoin.join(LOGS, TEXAS, ON) as reader:  # noqa: F841
        got = duckdb.sql("SELECT origin, count(*) FROM reader GROUP BY origin").fetchall()
    query = "SELECT origin, count(*) FROM logs SEMI JOIN texas ON origin = iata GROUP BY origin"
    assert sorted(got) == expected(query)


def test_duckdb_relation_is_an_input() -> None:
    ids = duckdb.sql(f"SELECT iata, city FROM '{TEXAS}' WHERE city LIKE 'D%'")
    table = bloomjoin.join(LOGS, ids, ON, how="inner").read_all()
    assert rows(table) == expected(
        "SELECT logs.*, iata, city FROM logs JOIN texas ON origin = iata WHERE city LIKE 'D%'"
    )


def test_duckdb_with_a_limit_ends_the_run(children: Callable[[], set[int]]) -> None:
    reader = bloomjoin.join(LOGS, TEXAS, ON, how="left")
    assert len(children()) == 1
    assert len(duckdb.sql("FROM reader LIMIT 3").fetchall()) == 3
    reader.close()
    assert not children()


def test_an_error_of_the_run_fails_the_query(tmp_path: Path) -> None:
    """An incomplete answer must not look complete to a consumer in C++."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.parquet").write_bytes((LOGS / "2001-04.parquet").read_bytes())
    damaged = bytearray((tmp_path / "b.parquet").read_bytes())
    damaged[30000:32000] = bytes(2000)
    (tmp_path / "b.parquet").write_bytes(damaged)
    reader = bloomjoin.join(tmp_path, TEXAS, ON)
    with reader, pytest.raises(Exception, match=r"b\.parquet"):
        duckdb.sql("SELECT count(*), sum(distance) FROM reader").fetchall()


@pytest.mark.parametrize("how", JOINS)
def test_pandas_keeps_types_and_nulls(how: str) -> None:
    with bloomjoin.join(LOGS, TEXAS, ON, how=how) as reader:
        types = reader.schema.types
        frame = reader.read_pandas(types_mapper=pd.ArrowDtype)
    assert [t.pyarrow_dtype for t in frame.dtypes] == types
    assert rows(pa.Table.from_pandas(frame, preserve_index=False)) == expected(JOINS[how])


def test_pandas_frame_is_an_input() -> None:
    airports = pd.read_csv(FLIGHTS / "airports.csv")
    texas = airports[airports["state"] == "TX"]  # its index has gaps, and is no column
    table = bloomjoin.join(LOGS, texas[["iata"]], ON, how="inner").read_all()
    assert table.column_names[-1] == "iata"
    query = "SELECT logs.*, iata FROM logs JOIN texas ON origin = iata"
    assert rows(table) == expected(query)
    series = bloomjoin.join(LOGS, texas["iata"], ON).read_all()
    assert rows(series) == expected(JOINS["semi"])


def test_a_reader_is_written_as_a_dataset(tmp_path: Path) -> None:
    with bloomjoin.join(LOGS, TEXAS, ON, how="inner") as reader:
        ds.write_dataset(reader, tmp_path / "out", format="parquet", partitioning=["destination"])
        assert reader.report is not None
        assert reader.report.rows_out == 5867
    columns = "date, delay, distance, origin, iata"
    table = ds.dataset(tmp_path / "out", partitioning=["destination"]).to_table()
    assert rows(table.select([*columns.split(", "), "destination"])) == expected(
        f"SELECT {columns}, destination FROM logs JOIN texas ON origin = iata"
    )


def test_a_dataset_scans_a_reader() -> None:
    with bloomjoin.join(LOGS, TEXAS, ON) as reader:
        late = ds.Scanner.from_batches(reader, filter=ds.field("delay") > 60, columns=["delay"])
        table = late.to_table()
    query = "SELECT delay FROM logs SEMI JOIN texas ON origin = iata WHERE delay > 60"
    assert rows(table) == expected(query)


def test_a_dataset_and_its_scanner_are_inputs() -> None:
    log = ds.dataset([str(path) for path in sorted(LOGS.glob("*.parquet"))])
    ids = ds.dataset(TEXAS, format="csv")
    where = "date < '2001-06-01' AND"
    table = bloomjoin.join(log, ids, ON, columns=["origin", "delay"]).read_all()
    assert rows(table) == expected(
        f"SELECT origin, delay FROM logs WHERE {where} origin IN (SELECT iata FROM texas)"
    )
    scanner = log.scanner(["origin", "delay"], filter=ds.field("delay") > 60)
    table = bloomjoin.join(scanner, ids, ON).read_all()
    assert rows(table) == expected(
        f"SELECT origin, delay FROM logs WHERE {where} delay > 60 "
        "AND origin IN (SELECT iata FROM texas)"
    )


def wait_until(done: Callable[[], bool]) -> None:
    """Wait for what another thread or the garbage collector does."""
    deadline = time.monotonic() + 10
    while not done():
        assert time.monotonic() < deadline
        gc.collect()
        time.sleep(0.01)
