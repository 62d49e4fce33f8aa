"""The flights of testdata, as bloomjoin and as DuckDB see them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.ipc

FLIGHTS = Path(__file__).parents[2] / "testdata" / "flights"
LOGS = FLIGHTS / "logs"
TEXAS = FLIGHTS / "airports-tx.csv"
ON = "origin=iata"

JOINS = {
    "semi": "SELECT * FROM logs SEMI JOIN texas ON origin = iata",
    "anti": "SELECT * FROM logs ANTI JOIN texas ON origin = iata",
    "inner": "SELECT * FROM logs JOIN texas ON origin = iata",
    "left": "SELECT * FROM logs LEFT JOIN texas ON origin = iata",
    "right": "SELECT * FROM logs RIGHT JOIN texas ON origin = iata",
    "full": "SELECT * FROM logs FULL JOIN texas ON origin = iata",
}


def plain() -> duckdb.DuckDBPyConnection:
    """Return a database with the tables logs and texas, made without bloomjoin."""
    con = duckdb.connect()
    with pyarrow.ipc.open_file(LOGS / "2001-06.arrow") as file:
        june = file.read_all()
    con.register("june", june)
    con.execute(
        f"CREATE TABLE logs AS FROM read_parquet('{LOGS}/*.parquet') UNION ALL BY NAME FROM june"
    )
    con.execute(f"CREATE TABLE texas AS FROM read_csv('{TEXAS}', all_varchar = true)")
    return con


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    """Return the rows in an order that depends only on them."""
    columns = [column.to_pylist() for column in table.columns]
    return sorted(zip(*columns, strict=True), key=repr)


def expected(query: str) -> list[tuple[object, ...]]:
    """Return the rows of a query over logs and texas, in the order of rows()."""
    with plain() as con:
        return sorted(con.sql(query).fetchall(), key=repr)
