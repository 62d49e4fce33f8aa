"""Reads a table by DuckDB's extension: python deltascan.py delta|iceberg TABLE OUT [CONDITION...].

Writes its rows to OUT, or with OUT - prints how many satisfy each condition, as JSON. Apart from the checks, in the
environment of .ci/requirements-delta.txt: the extensions are of an older DuckDB.
"""

import importlib
import json
import pathlib
import sys

import duckdb


def main():
    kind, table, out, *conditions = sys.argv[1:]
    db = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in ["avro", "iceberg"] if kind == "iceberg" else ["delta"]:
        package = importlib.import_module(f"duckdb_extension_{name}")
        db.execute(f"load '{next(pathlib.Path(package.__file__).parent.rglob(f'{name}.duckdb_extension'))}'")
    db.execute("set threads = 1; set timezone = 'UTC'")
    rows = "from {}_scan('{}')".format(kind, table.replace("'", "''"))
    if out == "-":
        print(json.dumps([db.execute(f"select count(*) {rows} where {c}").fetchone()[0] for c in conditions]))
    else:
        db.execute("copy ({}) to '{}' (format parquet)".format(rows, out.replace("'", "''")))


main()
