"""IDs from a pandas frame, and the answer into one, with Arrow's types."""

import pandas as pd
from flights import LOGS, TEXAS, expected

import bloomjoin


def main() -> None:
    airports = pd.read_csv(TEXAS)
    airports = airports[airports["city"].isin(["Dallas", "Houston"])]

    with bloomjoin.join(LOGS, airports, "origin=iata", how="right") as reader:
        flights = reader.read_pandas(types_mapper=pd.ArrowDtype)
    print(reader.report)

    # distance has NULLs, of airports without a flight, and is an integer all the same.
    assert flights["distance"].dtype == "int64[pyarrow]"
    summary = flights.groupby("name")["distance"].agg(["count", "max"])
    summary = summary.sort_values("count", ascending=False).head(3)
    print(summary)
    assert list(summary.itertuples(name=None)) == expected(
        """
        SELECT name, count(origin) AS flights, max(distance)
        FROM logs RIGHT JOIN texas ON origin = iata WHERE city IN ('Dallas', 'Houston')
        GROUP BY name ORDER BY flights DESC LIMIT 3
        """
    )


if __name__ == "__main__":
    main()
