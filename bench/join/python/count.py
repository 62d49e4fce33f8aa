"""Counts a join: count.py LOG IDS KEY THREADS."""

import json
import sys

import duckdb

log, ids, key, threads = sys.argv[1:]
duckdb.execute("SET enable_progress_bar = false")  # which would stand in the answer
duckdb.execute(f"SET threads = {threads}")
one = lambda sql: duckdb.sql(sql).fetchall()[0][0]
both = lambda how: one(f"SELECT count(*) FROM read_parquet('{log}') l {how} JOIN read_parquet('{ids}') r ON l.{key} = r.{key}")
print(json.dumps({"rows": one(f"SELECT count(*) FROM read_parquet('{log}')"), "matched": both("SEMI"), "pairs": both("INNER")}))
