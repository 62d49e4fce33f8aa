#!/usr/bin/env python3
"""Make files of this directory: make.py WRITER..., with the writer's version that README.md names. See record.py for the
expectations, which are made by another reader."""

import pathlib
import sys

import edit

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


def ints(values):
    return b"".join(v.to_bytes(8, "little", signed=True) for v in values if v is not None)


def column(name, values, kind=2):
    """A required column of 64-bit integers."""
    return ([name], kind, len(values), [edit.data_page(ints(values), len(values))])


@writer
def by_hand():
    """What no current writer makes."""
    import record
    from edit import bit_packed, data_page, dictionary_page, element, file, prefixed, runs

    def save(name, *args):
        (HERE / f"{name}.parquet").write_bytes(file(*args))

    def expect(name, shows, columns, rows):
        record.write(HERE / name, {"shows": shows, "oracle": "the data it was made of", "columns": columns}, rows)

    n = 20
    k = column("k", range(n))
    root = lambda n: element("schema", children=n)  # noqa: E731
    optional = holes([v * 3 for v in range(n)])
    defined = [v is not None for v in optional]
    save(
        "bit_packed_levels",
        [root(3), element("k", 0, 2), element("v", 1, 2), element("list", 1, children=1, converted=3), element("list", 2, children=1), element("element", 1, 2)],
        n,
        [
            k,
            (["v"], 2, n, [data_page(bit_packed(defined, 1) + ints(optional), n, levels=4)]),
            (
                ["list", "list", "element"],
                2,
                2 * n,
                [data_page(bit_packed([0, 1] * n, 1) + bit_packed([3, 2] * n, 2) + ints(range(n)), 2 * n, levels=4)],
            ),
        ],
    )
    lists = [[i, None] for i in range(n)]
    expect("bit_packed_levels", "definition and repetition levels in the deprecated BIT_PACKED encoding", ["k", "v", "list"], [list(r) for r in zip(range(n), optional, lists)])
    low_first = bytes(sum(d << i for i, d in enumerate(defined[at : at + 8])) for at in range(0, n, 8))
    v = (["v"], 2, n, [data_page(low_first + ints(optional), n, levels=4)])
    save("bit_packed_by_impala", [root(2), element("k", 0, 2), element("v", 1, 2)], n, [k, v], b"impala version 2.5.0")
    rle = prefixed(runs(defined, 1))
    save(
        "converted_null",
        [root(2), element("k", 0, 2), element("nothing", 1, 1, converted=24)],
        n,
        [k, (["nothing"], 1, n, [data_page(prefixed(runs([0] * n, 1)), n)])],
        b"parquet-cpp version 1.5.1-SNAPSHOT",
    )
    expect("converted_null", "the converted type NULL (24) of parquet-cpp 1.3 to 1.5", ["k", "nothing"], [[i, None] for i in range(n)])
    save("root_with_type", [root(2) | element("schema", 0, 2), element("k", 0, 2), element("v", 1, 2)], n, [k, (["v"], 2, n, [data_page(rle + ints(optional), n)])])
    save("root_without_repetition", [root(1), element("k", 0, 2)], n, [k])
    save("column_without_repetition", [root(1), element("k", None, 2)], n, [k])
    save(
        "empty_groups",
        [root(4), element("none", 1, children=0), element("k", 0, 2), element("s", 1, children=2), element("v", 1, 2), element("inner", 0, children=0), element("bare", 0)],
        n,
        [k, (["s", "v"], 2, n, [data_page(prefixed(runs([2 * d for d in defined], 2)) + ints(optional), n)])],
    )
    expect("empty_groups", "groups without children, which hold nothing", ["k", "s"], [[i, None if v is None else {"v": v}] for i, v in enumerate(optional)])
    for name, index in {"repeated_run_of_none": b"\0", "packed_run_of_none": b"\1"}.items():
        record.refused("a run of no values before the page's last, of indices of no bits", HERE / name, "corrupt", ["column v", "invalid run"])
        pages = [dictionary_page(ints([7]), 1), data_page(b"\0" + index + edit.unsigned(n << 1), n, 8)]
        save(name, [root(2), element("k", 0, 2), element("v", 0, 2)], n, [k, (["v"], 2, n, pages)])
    pages = [dictionary_page(ints([7]), 1), data_page(b"\0" + edit.unsigned(n << 1), n, 8)]
    save("indices_of_no_bits", [root(2), element("k", 0, 2), element("v", 0, 2)], n, [k, (["v"], 2, n, pages)])
    m = [element("m", 1, children=1, converted=1), element("map", 2, children=2, converted=2), element("key", 0, 2), element("value", 1, 2)]
    m[1][10] = (edit.STRUCT, {11: (edit.STRUCT, {})})
    each = prefixed(runs([0] * n, 1))
    entries = [
        (["m", "map", "key"], 2, n, [data_page(each + prefixed(runs([2] * n, 2)) + ints(range(n)), n)]),
        (["m", "map", "value"], 2, n, [data_page(each + prefixed(runs([2 + d for d in defined], 2)) + ints(optional), n)]),
    ]
    save("map_annotated_null", [root(2), element("k", 0, 2), *m], n, [k, *entries])
    disagreeing(save, k)


def disagreeing(save, k):
    """Columns of one repeated group that repeat differently, with as many elements in all."""
    import record
    from edit import data_page, element, prefixed, runs

    n = k[2]
    pairs = {"equal_totals": ([0, 1, 0], [0, 0, 1]), "one_element_less": ([0, 1, 0, 1], [0, 1, 0])}
    for name, (one, other) in pairs.items():
        leaves = []
        for leaf, rep in (("key", one), ("value", other)):
            rep = rep + [0] * (n - rep.count(0))
            body = prefixed(runs(rep, 1)) + prefixed(runs([2] * len(rep), 2)) + ints(range(len(rep)))
            leaves.append((["m", "key_value", leaf], 2, len(rep), [data_page(body, len(rep))]))
        m = [element("m", 1, children=1, converted=1), element("key_value", 2, children=2), element("key", 0, 2), element("value", 0, 2)]
        save(f"map_{name}", [element("schema", children=2), element("k", 0, 2), *m], n, [k, *leaves])
        record.refused("a map whose keys and values repeat differently", HERE / f"map_{name}", "corrupt", ["row group 1", "m.key_value.key", "m.key_value.value"])
    # A list of structs, the second of which is NULL for one column only.
    leaves = []
    for leaf, null in (("a", 2), ("b", 1)):
        definition = [3, null] + [3] * (n - 1)
        body = prefixed(runs([0, 1] + [0] * (n - 1), 1)) + prefixed(runs(definition, 2)) + ints(range(definition.count(3)))
        leaves.append((["list", "element", leaf], 2, n + 1, [data_page(body, n + 1)]))
    schema = [element("list", 1, children=1), element("element", 2, children=2), element("a", 1, 2), element("b", 1, 2)]
    save("struct_of_fewer_elements", [element("schema", children=2), element("k", 0, 2), *schema], n, [k, *leaves])
    record.refused("structs in a list, of which one field has an element less", HERE / "struct_of_fewer_elements", "corrupt", ["list.element.a", "list.element.b"])


@writer
def pyarrow():
    """Columns of type null, at the top and in a struct."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = 10
    pair = pa.struct([("n", pa.null()), ("v", pa.int32())])
    t = pa.table({"k": pa.array(range(n), pa.int64()), "nothing": pa.nulls(n), "s": pa.array([{"v": i} for i in range(n)], pair)})
    pq.write_table(t, HERE / "null_column.parquet")
    with pa.ipc.new_file(HERE / "null_column_ipc.arrow", t.schema) as w:
        w.write(t)


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
    pq.write_table(hints, HERE / "pyarrow_hints.parquet", row_group_size=3, write_time_adjusted_to_utc=True)

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
            from range(5) r(i)) to '{HERE}/duckdb_annotated.parquet' (format parquet, geoparquet_version 'BOTH')"""
    )


if __name__ == "__main__":
    for name in sys.argv[1:]:
        WRITERS[name]()
