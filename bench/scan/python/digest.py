"""Prints a digest of each column of a Parquet file: digest.py FILE."""

import json
import sys

import duckdb

duckdb.execute("SET enable_progress_bar = false")  # which would stand in the answer

file = sys.argv[1]
columns = [(name, type) for name, type, *_ in duckdb.sql(f"DESCRIBE FROM '{file}'").fetchall()]
# Systems differ in whether a timestamp is an instant: its number does not.
value = lambda name, type: f'epoch_us("{name}")' if type.startswith("TIMESTAMP") else f'"{name}"'
sums = ", ".join(f"count(\"{n}\") || ' values, hash ' || coalesce(sum(hash({value(n, t)})), 0)" for n, t in columns)
print(json.dumps(dict(zip([n for n, _ in columns], duckdb.sql(f"SELECT {sums} FROM '{file}'").fetchall()[0]))))
