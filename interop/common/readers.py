"""Every output is opened by pyarrow, DuckDB and Polars. An output that one of them refuses is a wrong output."""

import pathlib
import re
import threading

import duckdb
import polars
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from common import tables

local = threading.local()


def connection():
    """DuckDB, one connection a thread."""
    if not hasattr(local, "db"):
        local.db = duckdb.connect()
        local.db.execute("set timezone = 'UTC'; set threads = 1")
    return local.db


def quoted(path):
    return "'" + str(path).replace("'", "''") + "'"


def by_pyarrow(path):
    if is_arrow(path):
        with pa.ipc.open_file(path) as f:
            return f.read_all()
    return pq.ParquetFile(path, page_checksum_verification=True, coerce_int96_timestamp_unit="us").read()


def by_duckdb(path):
    return connection().sql(f"select * from read_parquet({quoted(path)})").to_arrow_table()


def by_polars(path):
    if is_arrow(path):
        return polars.read_ipc(path)
    return polars.read_parquet(path, glob=False, hive_partitioning=False)


NESTED_CODES = pa.array([["a"], ["b"]], pa.list_(pa.dictionary(pa.int32(), pa.string())))  # a dictionary in each row group
SPLIT = {"use_dictionary": False, "column_encoding": "BYTE_STREAM_SPLIT"}
READERS = {"pyarrow": by_pyarrow, "DuckDB": by_duckdb, "Polars": by_polars}


def is_arrow(path):
    with open(path, "rb") as f:
        return f.read(6) == b"ARROW1"


def written(args):
    """The files that a run with these arguments has written."""
    if args[0] not in ("scan", "join", "dedup") or "-o" not in args:
        return []
    out = args[args.index("-o") + 1]
    if out == "-":
        return []
    path = pathlib.Path(out)
    return tables.data_files(path) if path.is_dir() else [path] if path.exists() else []


def inputs(args):
    """The files that a run with these arguments has read."""
    out = args.index("-o")
    for a in (*args[:out], *args[out + 2 :]):
        path = pathlib.Path(a)
        if path.is_dir():
            yield from tables.data_files(path)
        elif path.is_file():
            yield path


def refusal(reader, path):
    """Why a reader refuses a file, or None; and the number of rows that it reads."""
    try:
        table = READERS[reader](path)
        return None, table.height if reader == "Polars" else table.num_rows
    except (Exception, polars.exceptions.PanicException) as e:
        return f"{type(e).__name__}: {str(e)[:300]}", None


def problems(path, args):
    """What is wrong with an output: a reader refuses it, or they disagree on the number of rows.

    That a reader refuses it is not, if it is a known limit of that reader and it refuses an input of the run, too.
    """
    counts, wrong = {}, []
    for reader in READERS:
        if reader == "DuckDB" and is_arrow(path):
            continue  # it reads no Arrow files
        why, counts[reader] = refusal(reader, path)
        known = limit(reader, why)
        if why and (known is None or all(limit(reader, refusal(reader, i)[0]) != known for i in inputs(args))):
            wrong.append(f"{reader} refuses {path}: {why}")
    if len(set(counts.values()) - {None}) > 1:
        wrong.append(f"{path}: rows by {counts}")
    return wrong


# What a reader cannot do: its name, its words, and a file that shows it: a column for pyarrow to write, a query for
# DuckDB to store, or a path in the corpora.
LIMITS = [
    ("Polars", "could not import from `month_day_millisecond_interval` type", "select interval '3 days' c", {}),
    ("DuckDB", "TIME values must be within a day", pa.array([90_000_000_000], pa.time64("us")), {}),
    ("Polars", "precision must be between 1 and 38|does not support primitive `Int256`", pa.array([1], pa.decimal256(50, 3)), {}),
    ("pyarrow", "Nested data conversions not implemented for chunked array outputs", NESTED_CODES, {"row_group_size": 1}),
    ("Polars", "unable to parse time zone: '[+]05:30'", pa.array([1], pa.timestamp("us", "+05:30")), {}),
    ("Polars", "LogicalType union has no variant set", "parquet-testing/shredded_variant/case-001.parquet", {}),
    ("Polars", r"Decoding FixedLenByteArray\(\d+\) \"ByteStreamSplit\"", pa.array([b"abc"], pa.binary(3)), SPLIT),
    ("DuckDB", "BYTE_STREAM_SPLIT encoding is only supported for", pa.array([b"abc"], pa.binary(3)), SPLIT),
    ("DuckDB", "the Variant column must have 'metadata' and 'value' as the first two columns", "parquet-testing/shredded_variant/case-041.parquet", {}),
    ("DuckDB", "Calling StructStats::GetChildStats but there are no stats for this index", "parquet-testing/shredded_variant/case-088.parquet", {}),
    ("DuckDB", "Can't convert VARIANT of type 'TIMESTAMP_NANOS_TZ' to Parquet VARIANT", "parquet-testing/shredded_variant/case-033.parquet", {}),
    ("DuckDB", "Partially shredded objects have to encode Object Variants in the 'value'", "parquet-testing/shredded_variant/case-087.parquet", {}),
]


def limit(reader, why):
    """The number of the known limit that a reader's words tell of, or None."""
    return next((i for i, (r, words, _, _) in enumerate(LIMITS) if why and r == reader and re.search(words, why)), None)


def still(t):
    """A limit that a reader no longer has leaves the list."""
    for i, (reader, words, shown, options) in enumerate(LIMITS):
        if isinstance(shown, str) and shown.startswith("select "):
            path = t.path("limit.parquet")
            connection().sql(f"copy ({shown}) to {quoted(path)} (format parquet)")
        elif isinstance(shown, str):
            path = t.shared / "corpora" / shown
        else:
            path = tables.write(pa.table({"c": shown}), t.path("limit.parquet"), **options)
        why, _ = refusal(reader, path)
        t.ok(f"{reader}: {words}", limit(reader, why) == i, why)


def run(t, _repository):
    t.group("known limits of readers", still)
