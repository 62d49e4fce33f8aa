"""Writes the rows of a Delta table as DuckDB's extension reads them: python deltascan.py TABLE OUT.

Apart from the checks, in the environment of .ci/requirements-delta.txt: the extension is of an older DuckDB.
"""

import pathlib
import sys

import duckdb
import duckdb_extension_delta


def main():
    table, out = (text.replace("'", "''") for text in sys.argv[1:])
    extension = next(pathlib.Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension"))
    db = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    db.execute(f"load '{extension}'; set threads = 1; set timezone = 'UTC'")
    db.execute(f"copy (from delta_scan('{table}')) to '{out}' (format parquet)")


main()
