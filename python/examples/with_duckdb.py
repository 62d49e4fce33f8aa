"""DuckDB queries the answer as a stream: it is never in memory as a whole."""

import duckdb
from flights import LOGS, TEXAS, expected

import bloomjoin

QUERY = """
    SELECT city, count(*) AS flights, round(avg(delay), 2) AS delay
    FROM {} GROUP BY city ORDER BY flights DESC LIMIT 5
"""


def main() -> None:
    with bloomjoin.join(LOGS, TEXAS, "origin=iata", how="inner") as flights:  # noqa: F841
        # DuckDB finds the variable. Execute such a query once: the stream can be read once.
        rows = duckdb.sql(QUERY.format("flights")).fetchall()
    for city, count, delay in rows:
        print(f"{city:20}{count:6} flights, {delay:.2f} minutes late")
    assert rows == expected(QUERY.format("logs JOIN texas ON origin = iata"))


if __name__ == "__main__":
    main()
