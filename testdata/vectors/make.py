#!/usr/bin/env python3
"""Make files of this directory: make.py WRITER..., with the writer's version that README.md names. See record.py for the
expectations, which are made by another reader."""

import decimal
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
WRITERS = {}


def writer(f):
    WRITERS[f.__name__] = f
    return f


def holes(values, every=7):
    return [None if i % every == 3 else v for i, v in enumerate(values)]


@writer
def fastparquet():
    """Its default, all of its types, and the options that change pages."""
    import datetime

    import fastparquet as fp
    import numpy as np
    import pandas as pd

    n = 60
    frame = pd.DataFrame(
        {
            "i": np.arange(n),
            "i8": np.arange(n, dtype="int8"),
            "u16": np.arange(n, dtype="uint16") * 1000,
            "i32": np.arange(n, dtype="int32") - 30,
            "nullable": pd.array(holes(range(n)), dtype="Int64"),
            "f": np.arange(n) / 2,
            "f32": (np.arange(n) / 4).astype("float32"),
            "b": [k % 3 == 0 for k in range(n)],
            "s": [f"u{k}" for k in range(n)],
            "gaps": holes([f"text {k % 5}" for k in range(n)]),
            "bytes": [bytes([k, 255 - k]) for k in range(n)],
            "t": pd.date_range("2024-01-01", periods=n, freq="min"),
            "zone": pd.date_range("2024-01-01", periods=n, freq="h", tz="UTC"),
            "delta": pd.to_timedelta(np.arange(n), unit="s"),
            "kind": pd.Categorical([f"c{k % 4}" for k in range(n)]),
            "one": pd.Categorical(["same"] * n),
            "rank": pd.Categorical(holes([k % 3 for k in range(n)])),
        }
    )
    fp.write(HERE / "fastparquet_default.parquet", frame)
    fp.write(HERE / "fastparquet_plain.parquet", frame[["i", "f", "s", "gaps", "kind", "b"]], compression=None, row_group_offsets=[0, 25])
    fp.write(HERE / "fastparquet_required.parquet", frame[["i", "s", "f", "b", "one"]], has_nulls=False, compression="GZIP")


@writer
def pyarrow11():
    """V2 pages of columns with lists: num_rows is the number of values, and pages begin anywhere in a row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = 120
    size = [0, 1, 2, 7, 40]
    lists = holes([list(range(k, k + size[k % 5])) for k in range(n)])
    t = pa.table(
        {
            "id": pa.array(range(n), pa.int64()),
            "list": pa.array(lists, pa.list_(pa.int32())),
            "deep": pa.array([v and [[str(x)] * (x % 3) for x in v[:9]] for v in lists], pa.list_(pa.list_(pa.string()))),
            "map": pa.array([v and [(str(x), x) for x in v[:5]] for v in lists], pa.map_(pa.string(), pa.int64())),
            "single": pa.array([[k] for k in range(n)], pa.list_(pa.int64())),
            "name": [f"name {k % 10}" for k in range(n)],
        }
    )
    options = dict(data_page_version="2.0", write_batch_size=16, data_page_size=64, store_schema=False)
    pq.write_table(t, HERE / "pyarrow11_v2_lists.parquet", compression="snappy", **options)
    pq.write_table(t, HERE / "pyarrow11_v2_plain.parquet", compression="none", use_dictionary=False, row_group_size=70, **options)

    t = pa.table(
        {
            "id": pa.array(range(n), pa.int64()),
            "kind": pa.array(holes([f"k{k % 9}" for k in range(n)])).dictionary_encode(),
            "t": pa.array(holes([k * 10**9 for k in range(n)]), pa.timestamp("us")),
            "none": pa.nulls(n, pa.timestamp("us")),
        }
    )
    pq.write_table(t, HERE / "pyarrow11_v2_nulls.parquet", use_deprecated_int96_timestamps=True, **options)


@writer
def polars():
    """Dictionaries of views."""
    import polars as pl

    frame = pl.DataFrame(
        {
            "cat": pl.Series(["a", "long enough for a buffer", None, "a"], dtype=pl.Categorical),
            "enum": pl.Series(["y", None, "x", "y"], dtype=pl.Enum(["x", "y", "never"])),
            "list": pl.Series([["a"], None, ["a long one, of more than twelve bytes", "a"], []], dtype=pl.List(pl.Categorical)),
        }
    )
    frame.write_ipc(HERE / "polars_categories.arrow")


@writer
def pyarrow():
    """Types that Parquet knows from the Arrow schema only, or by its annotation only; and INT96."""
    import datetime

    import pyarrow as pa
    import pyarrow.ipc as ipc
    import pyarrow.parquet as pq

    small, binary = decimal.Decimal, [b"short", b"longer than twelve bytes"]
    layouts = pa.table(
        {
            "d32": pa.array([small("1.50"), None, small("-99999.99")], pa.decimal32(7, 2)),
            "d64": pa.array([small("-1"), small("123456789012345.678"), None], pa.decimal64(18, 3)),
            "views": pa.array([[1, None], None, []], pa.list_view(pa.int32())),
            "large": pa.array([["a"], [], ["b", "c"]], pa.large_list_view(pa.string())),
            "bin": pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.int8()), pa.array(binary, pa.binary_view())),
            "floats": pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.int8()), pa.array([1.5, -0.5])),
            "null": pa.nulls(3),
        }
    )
    with ipc.new_file(HERE / "pyarrow_layouts.arrow", layouts.schema) as w:
        w.write_table(layouts)

    pairs = pa.map_(pa.string(), pa.large_string(), keys_sorted=True)
    hints = pa.table(
        {
            "k": pa.array(range(5), pa.int64()),
            "fixed": pa.array([[1, 2], None, [3, None], None, [4, 5]], pa.list_(pa.int32(), 2)),
            "nested": pa.array([[[1, 2]], None, [None, [3, 4]], [], [[5, 6]]], pa.list_(pa.list_(pa.int16(), 2))),
            "large": pa.array([["a"], None, [None], [], ["b", "c"]], pa.list_(pa.large_string())),
            "map": pa.array([[("a", "x")], None, [], [("b", None)], [("c", "y"), ("d", "z")]], pairs),
            "time": pa.array([datetime.time(1, 2, 3), None] * 2 + [datetime.time(0)], pa.time64("us")),
            "second": pa.array([datetime.datetime(1969, 12, 31, 23, 59, 59), None] * 2 + [datetime.datetime(2024, 1, 1)], pa.timestamp("s")),
            "wide": pa.array([small("1.5"), None, small("-2"), small("3"), small("4")], pa.decimal256(50, 2)),
            "tensor": pa.ExtensionArray.from_storage(
                pa.fixed_shape_tensor(pa.int32(), [2]), pa.array([[k, -k] for k in range(5)], pa.list_(pa.int32(), 2))
            ),
            "rank": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0, 1], pa.int8()), ["low", "high", "never"], ordered=True),
        }
    )
    pq.write_table(hints, HERE / "pyarrow_hints.parquet", row_group_size=3)

    years = [datetime.datetime(9999, 12, 31), datetime.datetime(1, 1, 1), None, datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)]
    sentinels = pa.table({"id": pa.array(range(4), pa.int64()), "t": pa.array(years, pa.timestamp("us"))})
    pq.write_table(sentinels, HERE / "pyarrow_int96.parquet", use_deprecated_int96_timestamps=True)


@writer
def duckdb():
    """Types by annotations that have parameters."""
    import duckdb as db

    db.sql(
        f"""copy (select i::bigint k, case when i <> 2 then ('POINT(' || i || ' 2)')::geometry end point,
               case when i = 1 then 'text'::variant when i <> 2 then {{'a': i, 'b': [i]}}::variant end variant,
               [('{{"a": ' || i || '}}')::json] docs
            from range(5) r(i)) to '{HERE}/duckdb_annotated.parquet' (format parquet)"""
    )


if __name__ == "__main__":
    for name in sys.argv[1:]:
        WRITERS[name]()
