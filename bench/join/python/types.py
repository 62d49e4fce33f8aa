"""Writes what the cell types joins, beside the logs of bench/scan: types.py BASE CLUSTERED DIRECTORY.

ids-RATE.parquet are the ID sets of BASE with two more columns, ids-1-twice.parquet has every ID twice, and
ids-range.parquet a thousandth of CLUSTERED's users, next to each other. required.CODEC.parquet is the log of BASE, whose
columns are REQUIRED where they have no NULL.
"""

import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

base, clustered, directory = sys.argv[1:]
KEY, ROW_GROUP = "user_id", 1 << 20
CODECS = {"snappy": {"compression": "snappy"}, "zstd": {"compression": "zstd", "compression_level": 1}}


def ids():
    con = duckdb.connect()
    con.execute("SET threads = 1")
    write = lambda sql, name: con.execute(f"COPY ({sql}) TO '{directory}/{name}.parquet' (FORMAT parquet, COMPRESSION snappy)")
    for rate in "0.01", "1", "10", "50":
        more = f"hash({KEY}) % 10000 / 100 AS score, 'name-' || hash({KEY} + 1) % 100000 AS name"
        write(f"SELECT {KEY}, {more} FROM '{base}/ids-{rate}.parquet'", f"ids-{rate}")
    write(f"SELECT {KEY}, score + i AS score, name FROM '{directory}/ids-1.parquet', range(2) t(i)", "ids-1-twice")
    rows = pq.ParquetFile(f"{clustered}/log.snappy.parquet").metadata.num_rows
    write(f"SELECT {KEY} FROM '{clustered}/ids-10.parquet' ORDER BY {KEY} LIMIT {max(rows // 1000, 1)}", "ids-range")


def required(codec, options):
    log = pq.ParquetFile(f"{base}/log.{codec}.parquet")
    schema = pa.schema([f.with_nullable(f.name == "amount") for f in log.schema_arrow])
    with pq.ParquetWriter(f"{directory}/required.{codec}.parquet", schema, **options, max_rows_per_page=ROW_GROUP) as out:
        for group in range(log.num_row_groups):
            table = log.read_row_group(group)
            out.write_table(pa.Table.from_arrays(table.columns, schema=schema), row_group_size=ROW_GROUP)


ids()
for codec, options in CODECS.items():
    required(codec, options)
