"""Writing inputs and reading outputs, with pyarrow and DuckDB."""

import pathlib

import duckdb
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq


def write(table, path, **options):
    """Writes Parquet or an Arrow IPC file, by the path's ending."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as out:
            out.write_table(table, **options)
    else:
        pq.write_table(table, path, **options)
    return path


def read(path):
    """Reads one Parquet file or Arrow IPC file with pyarrow."""
    path = pathlib.Path(path)
    if path.suffix == ".arrow":
        with pa.ipc.open_file(path) as f:
            return f.read_all()
    return pq.ParquetFile(path).read()


def data_files(directory):
    """The data files of an output directory, in order of their relative paths."""
    found = pathlib.Path(directory).rglob("*")
    return sorted(p for p in found if p.suffix in (".parquet", ".arrow") and not p.name.startswith(("_", ".")))


def sql(query, **tables):
    """Runs a query in DuckDB, Arrow tables by their names, and returns its rows."""
    db = duckdb.connect()
    db.execute("set timezone = 'UTC'")
    for name, table in tables.items():
        db.register(name, table)
    return db.execute(query).fetchall()


def csv_ids(path, name):
    """A DuckDB source for a CSV file: every column is text, as it is for the tool."""
    return f"read_csv('{path}', header=true, all_varchar=true) {name}"


def rejects(path, columns):
    """The rows of a CSV file that DuckDB takes, and the numbers of the lines that it rejects."""
    with duckdb.connect() as db:
        rows = db.execute(f"from read_csv('{path}', header=true, columns={columns}, store_rejects=true)").fetchall()
        lines = db.execute("select distinct line from reject_errors order by line").fetchall()
        return rows, [n for (n,) in lines]
