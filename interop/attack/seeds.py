"""Small files of several writers, all types among them, to be changed by interop/attack.

    python interop/attack/seeds.py DIR
"""

import decimal
import pathlib
import sys

import duckdb
import fastparquet
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

ROWS = 700
PARQUET = {
    "v1": dict(compression="snappy", row_group_size=300, data_page_size=600, write_page_checksum=True, write_page_index=True),
    "v2": dict(compression="zstd", row_group_size=350, data_page_size=500, data_page_version="2.0", write_page_checksum=True),
    "plain": dict(compression="none", use_dictionary=False, data_page_size=400, write_page_checksum=True),
    "gzip": dict(compression="gzip", use_dictionary=["s", "i"], data_page_version="2.0", write_page_index=True),
    "delta": dict(
        compression="none", use_dictionary=False, data_page_size=700, data_page_version="2.0",
        column_encoding={
            "i": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY", "f": "BYTE_STREAM_SPLIT", "fixed": "DELTA_BYTE_ARRAY",
            "b": "RLE", "time": "DELTA_BINARY_PACKED", "date": "DELTA_BINARY_PACKED", "d": "BYTE_STREAM_SPLIT",
        },
    ),
    "lengths": dict(compression="none", use_dictionary=False, data_page_size=700, column_encoding={"s": "DELTA_LENGTH_BYTE_ARRAY"}),
}


def nested_and_flat():
    g, n = np.random.default_rng(1), range(ROWS)
    return pa.table({
        "i": g.integers(0, 300, ROWS),
        "u": pa.array(g.integers(0, 9, ROWS).astype("u1")),
        "s": [None if i % 7 == 0 else f"str {i % 50}" for i in n],
        "b": [bool(i % 3) if i % 5 else None for i in n],
        "d": pa.array([decimal.Decimal(i) / 100 for i in n], pa.decimal128(12, 2)),
        "time": pa.array([i * 10**6 for i in n], pa.timestamp("us", tz="UTC")),
        "f": g.random(ROWS),
        "list": [list(range(i % 4)) if i % 6 else None for i in n],
        "lists": [[[f"x{k}" for k in range(j)] for j in range(i % 3)] for i in n],
        "struct": [{"a": i, "b": None if i % 3 else "q", "c": [i, None]} if i % 11 else None for i in n],
        "map": pa.array([[(f"k{j}", j) for j in range(i % 3)] for i in n], pa.map_(pa.string(), pa.int32())),
        "fixed": pa.array([bytes([i % 256] * 16) for i in n], pa.binary(16)),
        "date": pa.array(list(n), pa.date32()),
    })


def layouts(table):
    """The table with columns that only Arrow has."""
    n = range(ROWS)
    for name, column in {
        "dictionary": pa.array([f"d{i % 9}" for i in n]).dictionary_encode(),
        "large": pa.array([f"L{i % 9}" for i in n], pa.large_string()),
        "pairs": pa.array([[i, i + 1] for i in n], pa.list_(pa.int16(), 2)),
        "view": pa.array([f"a longer string view {i % 9}" * (i % 3) for i in n], pa.string_view()),
        "list_view": pa.array([[i] for i in n], pa.list_view(pa.int32())),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([100, ROWS], pa.int32()), pa.array(["x", "y"])),
    }.items():
        table = table.append_column(name, column)
    return table


def main():
    to = pathlib.Path(sys.argv[1])
    to.mkdir(parents=True)
    table = nested_and_flat()
    for name, options in PARQUET.items():
        pq.write_table(table, to / f"pyarrow-{name}.parquet", **options)
    frame = pd.DataFrame({
        "i": table["i"].to_numpy(), "s": [f"s{i % 40}" for i in range(ROWS)], "f": table["f"].to_numpy(),
        "t": pd.date_range("2024-01-01", periods=ROWS, freq="h"), "c": pd.Categorical([f"c{i % 5}" for i in range(ROWS)]),
        "o": [None if i % 4 == 0 else f"v{i}" for i in range(ROWS)],
    })
    for codec in (None, "SNAPPY", "ZSTD", "GZIP"):
        fastparquet.write(str(to / f"fastparquet-{codec}.parquet"), frame, compression=codec, row_group_offsets=[0, 300])
    duckdb.register("t", frame)
    duckdb.sql(f"copy (select * from t) to '{to}/duckdb.parquet' (codec snappy)")
    duckdb.sql(f"copy (select i, {{'a': i, 'l': [s, o]}} st from t) to '{to}/duckdb-v2.parquet' (codec zstd, parquet_version v2)")
    frame = pl.from_arrow(table.drop(["map"]))
    frame.write_parquet(to / "polars.parquet", row_group_size=300, data_page_size=600)
    frame.write_parquet(to / "polars-plain.parquet", compression="uncompressed")
    frame.write_ipc(to / "polars.arrow", compression="lz4")
    wide = layouts(table)
    for kind, columns in {"all": wide, "copied": wide.drop(["runs", "list_view", "view"])}.items():
        for codec in (None, "lz4", "zstd"):
            for ending, new in (("arrow", ipc.new_file), ("arrows", ipc.new_stream)):
                with new(str(to / f"pyarrow-{kind}-{codec}.{ending}"), columns.schema, options=ipc.IpcWriteOptions(compression=codec)) as w:
                    for batch in columns.to_batches(max_chunksize=250):
                        w.write_batch(batch)


main()
