"""The data of the examples, and DuckDB's answers, with which they compare their own.

50,000 flights of 2001 in three Parquet files and an Arrow file, and the
airports of Texas as IDs: https://github.com/bloomjoin/bloomjoin has more about
them in testdata/flights.
"""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow.ipc

FLIGHTS = Path(__file__).parents[2] / "testdata" / "flights"
LOGS = FLIGHTS / "logs"
TEXAS = FLIGHTS / "airports-tx.csv"


def expected(query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query over the tables logs and texas, without bloomjoin."""
    with pyarrow.ipc.open_file(LOGS / "2001-06.arrow") as file, duckdb.connect() as con:
        con.register("june", file.read_all())
        con.execute(
            f"CREATE VIEW logs AS FROM read_parquet('{LOGS}/*.parquet') UNION ALL BY NAME FROM june"
        )
        con.execute(f"CREATE VIEW texas AS FROM read_csv('{TEXAS}')")
        return con.sql(query).fetchall()
