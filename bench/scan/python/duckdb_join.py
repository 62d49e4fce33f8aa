import sys

import duckdb

log, ids, out, codec, key, columns, threads = sys.argv[1:]
level = ", COMPRESSION_LEVEL 1" if codec == "zstd" else ""
picked = ", ".join("l." + c for c in columns.split(","))
db = duckdb.connect()
db.execute(f"SET threads = {threads}")
db.execute("SET preserve_insertion_order = false")
db.execute(
    f"COPY (SELECT {picked} FROM read_parquet('{log}') l SEMI JOIN read_parquet('{ids}') r ON l.{key} = r.{key}) "
    f"TO '{out}' (FORMAT parquet, COMPRESSION {codec}{level})"
)
