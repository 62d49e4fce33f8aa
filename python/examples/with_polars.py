"""A LazyFrame reads what the query needs: three columns, and only pages of June."""

from datetime import datetime

import polars as pl
from flights import LOGS, TEXAS, expected

import bloomjoin
from bloomjoin.polars import join_lazy, scan_lazy


def main() -> None:
    flights = join_lazy(LOGS, TEXAS, "origin=iata")
    june = (
        flights.filter(pl.col("date") >= datetime(2001, 6, 1))
        .group_by("destination")
        .agg(pl.len().alias("flights"), pl.col("delay").mean().round(2))
        .sort("flights", "destination", descending=[True, False])
        .head(5)
        .collect()
    )
    print(june)
    assert june.rows() == expected(
        """
        SELECT destination, count(*) AS flights, round(avg(delay), 2)
        FROM logs SEMI JOIN texas ON origin = iata WHERE date >= '2001-06-01'
        GROUP BY destination ORDER BY flights DESC, destination LIMIT 5
        """
    )

    # IDs may be a frame, and a filter can be used for several columns.
    airports = pl.read_csv(TEXAS)
    arrivals = scan_lazy(bloomjoin.build(airports, "iata"), LOGS, "destination")
    miles = arrivals.select(pl.col("distance").sum()).collect().item()
    print(f"miles flown to Texas: {miles:,}")
    assert [(miles,)] == expected(
        "SELECT sum(distance) FROM logs SEMI JOIN texas ON destination = iata"
    )


if __name__ == "__main__":
    main()
