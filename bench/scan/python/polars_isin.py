import sys

import polars as pl

log, ids, out, codec, key, columns, _ = sys.argv[1:]
users = pl.read_parquet(ids)[key]
rows = pl.scan_parquet(log).filter(pl.col(key).is_in(users.implode()))
if columns != "*":
    rows = rows.select(columns.split(","))
rows.sink_parquet(out, compression=codec, compression_level=1 if codec == "zstd" else None)
