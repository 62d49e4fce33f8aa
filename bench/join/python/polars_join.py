import sys

import polars as pl

log, ids, out, codec, key, how, payload, _, _ = sys.argv[1:]
users = pl.scan_parquet(ids).select([key] + [c for c in payload.split(",") if c])
pl.scan_parquet(log).join(users, on=key, how=how).sink_parquet(out, compression=codec, compression_level=1 if codec == "zstd" else None)
