"""Dask scans each file of the log in a task of its own, in several processes."""

import dask
from flights import LOGS, TEXAS, expected

import bloomjoin
from bloomjoin.dask import scan_dask


def main() -> None:
    texas = bloomjoin.build(TEXAS, "iata")
    flights = scan_dask(texas, LOGS, "origin")
    print(f"{flights.npartitions} partitions")

    delays = flights.groupby("destination")["delay"].agg(["count", "max"])
    with dask.config.set(scheduler="processes", num_workers=2):
        delays = delays.compute()
    delays = delays.reset_index().sort_values(["count", "destination"], ascending=[False, True])
    print(delays.head(5))
    assert list(delays.head(5).itertuples(index=False, name=None)) == expected(
        """
        SELECT destination, count(delay) AS flights, max(delay)
        FROM logs SEMI JOIN texas ON origin = iata
        GROUP BY destination ORDER BY flights DESC, destination LIMIT 5
        """
    )


if __name__ == "__main__":  # processes that are spawned import this file
    main()
