import sys

import polars as pl

log, ids, out, codec, key, columns, _ = sys.argv[1:]
rows = pl.scan_parquet(log).join(pl.scan_parquet(ids), on=key, how="semi")
if columns != "*":
    rows = rows.select(columns.split(","))
rows.sink_parquet(out, compression=codec, compression_level=1 if codec == "zstd" else None)
