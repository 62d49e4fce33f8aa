import sys

import polars as pl

log, ids, out, codec, key, *_ = sys.argv[1:]
users = pl.read_parquet(ids, columns=[key])[key]
pl.scan_parquet(log).filter(pl.col(key).is_in(users.implode())).sink_parquet(out, compression=codec)
