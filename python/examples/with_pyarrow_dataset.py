"""pyarrow.dataset on both ends: a dataset is the log, and the answer becomes a dataset."""

import tempfile

import pyarrow.compute as pc
import pyarrow.dataset as ds
from flights import LOGS, TEXAS, expected

import bloomjoin


def main() -> None:
    # Anything that pyarrow reads can be the log. This needs no scanner for
    # Parquet, which bloomjoin reads faster by itself, but CSV, ORC and JSON do.
    log = ds.dataset([str(path) for path in sorted(LOGS.glob("*.parquet"))])
    late = log.scanner(["origin", "destination", "delay"], filter=pc.field("delay") > 60)

    with (
        tempfile.TemporaryDirectory() as out,
        bloomjoin.join(late, TEXAS, "origin=iata") as flights,
    ):
        ds.write_dataset(flights, out, format="parquet", partitioning=["origin"])
        written = ds.dataset(out, partitioning=["origin"]).to_table()

    origins = written.group_by("origin").aggregate([("delay", "count"), ("delay", "max")])
    origins = origins.sort_by([("delay_count", "descending"), ("origin", "ascending")]).slice(0, 5)
    print(origins.to_pylist())
    assert [tuple(row.values()) for row in origins.to_pylist()] == expected(
        f"""
        SELECT origin, count(*) AS late, max(delay)
        FROM read_parquet('{LOGS}/*.parquet') SEMI JOIN texas ON origin = iata
        WHERE delay > 60 GROUP BY origin ORDER BY late DESC, origin LIMIT 5
        """
    )


if __name__ == "__main__":
    main()
