"""Prints what is in a Parquet file, whatever the order of columns and, but for "ordered", of rows: answer.py FILE."""

import json
import sys

import duckdb

duckdb.execute("SET enable_progress_bar = false")  # which would stand in the answer

file = sys.argv[1]
columns = sorted((name, type) for name, type, *_ in duckdb.sql(f"DESCRIBE FROM '{file}'").fetchall())
# Systems differ in whether a timestamp is an instant: its number does not.
values = [f'epoch_us("{name}")' if type.startswith("TIMESTAMP") else f'"{name}"' for name, type in columns]
values = ", ".join(values)
rows, digest, ordered = duckdb.sql(
    f"SELECT count(*), coalesce(sum(hash({values})), 0), coalesce(sum(hash(file_row_number, {values})), 0) "
    f"FROM read_parquet('{file}', file_row_number = true)"
).fetchall()[0]
codecs = [c for (c,) in duckdb.sql(f"SELECT DISTINCT lower(compression) FROM parquet_metadata('{file}') ORDER BY 1").fetchall()]
print(json.dumps({
    "rows": rows, "hash": str(digest), "ordered": str(ordered), "columns": [name for name, _ in columns], "codecs": codecs,
}))
