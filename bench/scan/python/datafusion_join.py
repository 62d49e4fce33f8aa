import sys

from datafusion import SessionConfig, SessionContext

log, ids, out, codec, key, columns, threads = sys.argv[1:]
config = (
    SessionConfig()
    .with_target_partitions(int(threads))
    .set("datafusion.execution.parquet.pushdown_filters", "true")
)
ctx = SessionContext(config)
ctx.register_parquet("log", log)
ctx.register_parquet("ids", ids)
picked = ", ".join("log." + c for c in columns.split(","))
rows = ctx.sql(f"SELECT {picked} FROM log LEFT SEMI JOIN ids ON log.{key} = ids.{key}")
rows.write_parquet(out, compression=codec, compression_level=1 if codec == "zstd" else None)
