import sys

import duckdb

log, ids, out, codec, key, how, payload, threads, scratch, *memory = sys.argv[1:]
level = ", COMPRESSION_LEVEL 1" if codec == "zstd" else ""
rows = f"l.* REPLACE (coalesce(l.{key}, r.{key}) AS {key})" if how in ("right", "full") else "l.*"
picked = ", ".join([rows] + ["r." + c for c in payload.split(",") if c])
db = duckdb.connect()
db.execute(f"SET threads = {threads}")
db.execute("SET preserve_insertion_order = false")
db.execute(f"SET temp_directory = '{scratch}'")
if memory:
    db.execute(f"SET memory_limit = '{memory[0]}'")
db.execute(
    f"COPY (SELECT {picked} FROM read_parquet('{log}') l {how} JOIN read_parquet('{ids}') r ON l.{key} = r.{key}) "
    f"TO '{out}' (FORMAT parquet, COMPRESSION {codec}{level})"
)
