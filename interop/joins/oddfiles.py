"""Small Parquet files by many writers with what is rare: types, annotations, nesting, layouts, metadata. Each has a column
"id" that is unique, or nearly, and can be a key.
"""

import datetime
import decimal
import json
import random

import duckdb
import fastparquet
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq

from common import tables
from files import pages
from writers import otherfiles, samples

N = 300
YEARS = (1, 1582, 1677, 1678, 2262, 2263, 9999)  # nanoseconds from 1970 in 64 bits have 1677 to 2262 only
FOR_MANY = pa.schema([
    pa.field("id", pa.int64(), False), pa.field("text", pa.string(), False), pa.field("number", pa.float64(), False),
    pa.field("both", pa.struct([pa.field("a", pa.int32(), False), pa.field("b", pa.list_(pa.field("element", pa.int16(), False)))]), False),
    pa.field("items", pa.list_(pa.field("element", pa.struct([pa.field("x", pa.int8(), False), pa.field("y", pa.string())]), False)), False),
])  # fmt: skip


def made(n=N):
    """Name, table and options for pyarrow."""
    yield from sets()
    yield from types(n)
    yield from layouts(n)
    yield from described(n)


def sets():
    for name, way in (
        ("numbers", dict(use_dictionary=False, data_page_version="2.0", compression="zstd")),
        ("strings", dict(dictionary_pagesize_limit=300, data_page_size=2000)),
        ("times", {}),
        ("nested", dict(data_page_version="2.0", data_page_size=500, write_batch_size=30, row_group_size=90)),
        ("wide", dict(write_page_index=True)),
    ):
        table = samples.table(name, "some").slice(0, N)
        if "id" not in table.column_names:
            table = table.append_column("id", pa.array(range(N)))
        yield name, table, way
        if name != "wide":  # with a schema, which an answer has, Polars refuses what it reads without
            yield f"{name} without Arrow's schema", table, dict(store_schema=False)
    old = samples.table("old").slice(0, N)
    yield "INT96", old, dict(use_deprecated_int96_timestamps=True)
    yield "INT96 without Arrow's schema", old, dict(use_deprecated_int96_timestamps=True, store_schema=False, use_dictionary=False)


def types(n):
    ids = pa.array(range(n))
    of = lambda kind, value: pa.array([None if i % 6 == 5 else value(i) for i in range(n)], kind)  # noqa: E731
    far = [datetime.datetime(y, 6, 1 + i, 12, i) for y in YEARS for i in range(9)]
    yield "INT96 beyond nanoseconds", pa.table({"id": ids, "at": of(pa.timestamp("us"), lambda i: far[i % len(far)])}), dict(use_deprecated_int96_timestamps=True)
    item = pa.struct([("a", pa.int32()), ("b", pa.string())])
    yield "lists of a fixed size", pa.table({
        "id": ids, "three": of(pa.list_(pa.int32(), 3), lambda i: [i, None, i + 1]), "two texts": of(pa.list_(pa.string(), 2), lambda i: [f"t{i}", ""]),
        "structs": of(pa.list_(item, 1), lambda i: [{"a": i, "b": None}]), "of lists": of(pa.list_(pa.list_(pa.int8(), 2)), lambda i: [[1, i % 9]] * (i % 3)),
    }), {}  # fmt: skip
    few = of(pa.string(), lambda i: f"word {i % 7}")
    codes = pa.array([None if i % 9 == 4 else i % 5 for i in range(n)], pa.int8())
    words = pa.array(["e", "d", "", "b", "a"])
    yield "dictionaries", pa.table({
        "id": ids, "few": few.dictionary_encode(), "small": pa.DictionaryArray.from_arrays(codes, words),
        "ordered": pa.DictionaryArray.from_arrays(codes, words, ordered=True),
        "large": pa.array(few, pa.large_string()).dictionary_encode(), "bytes": few.cast(pa.binary()).dictionary_encode(),
        "in struct": pa.StructArray.from_arrays([few.dictionary_encode(), ids], ["word", "n"]),
        "in list": pa.ListArray.from_arrays(pa.array(range(n + 1), pa.int32()), few.dictionary_encode()),
    }), {}  # fmt: skip
    yield "what only Arrow's schema tells", pa.table({
        "id": ids, "duration": of(pa.duration("ms"), lambda i: i * 1000), "large list": of(pa.large_list(pa.int64()), lambda i: list(range(i % 4))),
        "large": of(pa.large_string(), str), "large bytes": of(pa.large_binary(), lambda i: b"%d" % i), "seconds": of(pa.timestamp("s", "Asia/Tokyo"), lambda i: i),
        "zone": of(pa.timestamp("us", "Europe/Paris"), lambda i: i * 10**9), "offset": of(pa.timestamp("ns", "+05:30"), lambda i: i * 10**9),
        "date64": of(pa.date64(), lambda i: i * 86_400_000), "view": of(pa.string_view(), lambda i: f"view {i}"),
        "map": of(pa.map_(pa.string(), pa.int32(), keys_sorted=True), lambda i: [("a", i), ("b", None)][: i % 3]),
        "uuid": of(pa.uuid(), lambda i: i.to_bytes(16, "big")), "nothing": pa.nulls(n),
    }), {}  # fmt: skip
    exactly = decimal.Context(prec=80)
    digits = lambda p, s: lambda i: decimal.Decimal((-1) ** i * (10**p - 1 - i % 9)).scaleb(-s, exactly)  # noqa: E731
    money = {f"d{p}_{s}": of(pa.decimal128(p, s), digits(p, s)) for p, s in ((1, 0), (2, 2), (9, 4), (18, 0), (38, 10))}
    yield "decimals as bytes", pa.table({"id": ids, **money}), {}
    yield "decimals as integers", pa.table({"id": ids, **money}), dict(store_decimal_as_integer=True)
    wide = {f"c{i}": pa.array(range(i, i + n)) if i % 3 else pa.array([f"{i} {k}" for k in range(n)]) for i in range(400)}
    yield "400 columns", pa.table({"id": ids, **wide}), dict(row_group_size=100)


def required(n):
    rows = [
        {"id": i, "text": f"text {i % 9}", "number": i / 4, "both": {"a": i, "b": [i, 2][: i % 3]}, "items": [{"x": 1, "y": None}, {"x": 2, "y": "z"}][: i % 3]}
        for i in range(n)
    ]
    return pa.Table.from_pylist(rows, FOR_MANY)


def layouts(n):
    table = required(n)
    yield "REQUIRED columns", table, {}
    yield "REQUIRED columns, V2", table, dict(data_page_version="2.0", row_group_size=70, write_page_checksum=True)
    yield "no rows", table.slice(0, 0), {}
    nulls = pa.table({"id": table["id"], **{f"all NULL {k}": pa.nulls(n, k) for k in (pa.int32(), pa.string(), pa.list_(pa.int8()), pa.struct([("a", pa.string())]))}})
    yield "all NULL", nulls, dict(row_group_size=100)
    yield "lists of the old form", samples.table("nested").slice(0, n), dict(use_compliant_nested_type=False, store_schema=False)
    for seed in range(3):
        rng = random.Random(f"odd {seed}")
        log = pages.log(rng, n)
        yield f"random {seed}", log.rename_columns([{"row": "id"}.get(c, c) for c in log.column_names]), {
            k: v for k, v in pages.options(rng, log).items() if k not in ("column_encoding", "use_dictionary")
        }  # fmt: skip


SPARK = {
    "org.apache.spark.version": "2.4.8", "org.apache.spark.timeZone": "Europe/Berlin", "org.apache.spark.legacyDateTime": "", "org.apache.spark.legacyINT96": "",
    "org.apache.spark.sql.parquet.row.metadata": json.dumps({"type": "struct", "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}}, {"name": "text", "type": "string", "nullable": True, "metadata": {}},
    ]}),
}  # fmt: skip


def described(n):
    """Files whose metadata describe columns."""
    text = pa.array([f"t{i % 8}" for i in range(n)])
    table = pa.table({"id": pa.array(range(n)), "text": text})
    yield "Spark's metadata", table.replace_schema_metadata(SPARK), dict(store_schema=False)
    yield "own metadata", table.replace_schema_metadata({"owner": "me", "json": '{"a": [1]}'}), {}
    fields = pa.schema([f.with_metadata({b"PARQUET:field_id": b"%d" % (i + 1)}) for i, f in enumerate(table.schema)])
    yield "field ids", table.cast(fields), {}
    iceberg = json.dumps({"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]})
    yield "Iceberg's schema", table.cast(fields).replace_schema_metadata({"iceberg.schema": iceberg}), {}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB", "geometry_types": ["Point"]}}}
    points = pa.array([b"\x01\x01\x00\x00\x00" + np.array([i, -i], "<f8").tobytes() for i in range(n)], pa.binary())
    yield "GeoParquet", table.append_column("geometry", points).replace_schema_metadata({"geo": json.dumps(geo)}), {}
    frame = pandas.DataFrame({"id": range(n), "v": [i / 2 for i in range(n)], "c": pandas.Categorical([f"c{i % 3}" for i in range(n)])})
    yield "an index of pandas", pa.Table.from_pandas(frame.set_index([[f"row {i}" for i in range(n)]])), {}
    yield "two indexes of pandas", pa.Table.from_pandas(frame.assign(a=1, b=range(n)).set_index(["a", "b"])), {}


def by_pyarrow(out):
    for name, table, how in made():
        yield name, tables.write(table, out / f"pyarrow {name.replace('/', '-')}.parquet", **how)
    table = required(N)
    path = out / "empty row groups.parquet"
    with pq.ParquetWriter(path, table.schema) as w:
        for lo, hi in ((0, 0), (0, 100), (100, 100), (100, 101), (101, N), (0, 0)):
            w.write_table(table.slice(lo, hi - lo))
    yield "empty row groups", path
    path = out / "no row groups.parquet"
    pq.ParquetWriter(path, table.schema).close()
    yield "no row groups", path


def by_fastparquet(out):
    encoding = {"text": "utf8", "string": "utf8", "binary": "bytes", "json": "json"}
    whole = otherfiles.pandas_frame("some").iloc[:N].drop(columns="delta")  # times beyond a day, which Python lacks
    for name, how in {"": {}, " V1 without NULLs": dict(has_nulls=False), " int96": dict(times="int96")}.items():
        frame = whole if "NULLs" not in name else whole[[c for c in whole if c[0] in "iu" and c[1:].isdigit() or c in ("id", "flag")]]
        path = out / f"fastparquet{name}.parquet"
        fastparquet.write(str(path), frame.copy(), object_encoding=encoding, write_index=False, row_group_offsets=130, **how)
        yield f"fastparquet{name}", path


DUCKDB = {
    "variants": "select range id, case range % 4 when 0 then {'a': range, 'b': ['x', 'y']}::variant when 1 then range::variant when 2 then 'text'::variant end v from range(300)",
    "variants of one form": "select range id, {'a': range, 'b': range || ' b'}::variant v from range(300)",
    "geometry": "select range id, ('POINT(' || range || ' 2)')::geometry g, case when range % 3 > 0 then 'LINESTRING(0 0, 1 1)'::geometry end l from range(300)",
}


def by_duckdb(out):
    with duckdb.connect() as db:
        db.execute("set timezone = 'UTC'; set threads = 1")
        few = sorted({v + "x" for v in samples.table("strings")["few"].to_pylist()})
        db.execute(f"create type enum_of_few as enum ({', '.join(repr(v) for v in few)})")
        queries = dict(DUCKDB)
        for name, columns in otherfiles.DUCKDB_TYPES.items():
            table = samples.table(name, "some").slice(0, N)
            table = table if "id" in table.column_names else table.append_column("id", pa.array(range(N)))
            db.register(f"source_{name}", table)
            queries[name] = f"select {columns} from source_{name}"
        for name, query in queries.items():
            for how in ("compression snappy", "compression zstd, parquet_version v2"):
                path = out / f"DuckDB {name}{' V2' if 'v2' in how else ''}.parquet"
                db.execute(f"copy ({query}) to '{path}' (format parquet, {how})")
                yield path.stem, path


def by_polars(out):
    for name in ("numbers", "strings", "times", "nested"):
        frame = polars.from_arrow(samples.table(name, "some").slice(0, N))
        frame = otherfiles.polars_extra(name, frame)
        frame = frame if "id" in frame.columns else frame.with_row_index("id")
        path = out / f"Polars {name}.parquet"
        frame.write_parquet(path, row_group_size=120, data_page_size=2000)
        yield path.stem, path


def every(out):
    """Name and path of each file."""
    out.mkdir(exist_ok=True)
    for writer in (by_pyarrow, by_fastparquet, by_duckdb, by_polars):
        yield from writer(out)
