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


if __name__ == "__main__":
    for name in sys.argv[1:]:
        WRITERS[name]()
