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


if __name__ == "__main__":
    for name in sys.argv[1:]:
        WRITERS[name]()
