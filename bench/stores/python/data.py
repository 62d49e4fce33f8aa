"""Writes a log of bench/scan in the layout that is measured, and IDs with two more columns:
data.py KIND SOURCE DIRECTORY.

paged      log.parquet with a page index, ids.parquet: 1 % of the users
clustered  the same, ids.parquet: a thousandth of the users, next to each other
many       log/part-NNNNN.parquet, files of 2,000 rows each, and the IDs of paged
year       log.parquet whose event_time ascends through 365 days, a row group each, from 2024-01-01, the IDs of paged, and few.parquet:
           ten of them, without more columns
"""

import os
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

kind, source, directory = sys.argv[1:]
KEY, FILE_ROWS, DAYS = "user_id", 2000, 365
OPTIONS = {"compression": "snappy", "write_page_index": True}

log = pq.ParquetFile(f"{source}/log.snappy.parquet")


def write_ids():
    rows = log.metadata.num_rows
    chosen = f"FROM '{source}/ids-1.parquet'"
    if kind == "clustered":
        chosen = f"FROM '{source}/ids-10.parquet' ORDER BY {KEY} LIMIT {max(rows // 1000, 1)}"
    con = duckdb.connect()
    con.execute("SET threads = 1")
    more = f"hash({KEY}) % 10000 / 100 AS score, 'name-' || hash({KEY} + 1) % 100000 AS name"
    con.execute(f"COPY (SELECT {KEY}, {more} {chosen}) TO '{directory}/ids.parquet' (FORMAT parquet, COMPRESSION snappy)")
    if kind == "year":
        con.execute(f"COPY (FROM '{source}/ids-1.parquet' LIMIT 10) TO '{directory}/few.parquet' (FORMAT parquet)")


def parts(sizes):
    """The log's rows in tables of these sizes."""
    batches, held, have = log.iter_batches(1 << 18), [], 0
    for size in sizes:
        while have < size:
            batch = next(batches)
            held.append(batch)
            have += batch.num_rows
        table = pa.Table.from_batches(held)
        yield table.slice(0, size)
        rest = table.slice(size)
        held, have = rest.to_batches(), rest.num_rows


def write_one(sizes, change=lambda i, table: table):
    writer = None
    for i, table in enumerate(parts(sizes)):
        table = change(i, table)
        writer = writer or pq.ParquetWriter(f"{directory}/log.parquet", table.schema, **OPTIONS)
        writer.write_table(table, row_group_size=table.num_rows)
    writer.close()


def on_day(i, table):
    """The rows, at times of day i of the year."""
    day = 24 * 3600 * 1_000_000
    first = int(np.datetime64("2024-01-01", "us").astype(np.int64)) + i * day
    at = first + np.arange(table.num_rows) * day // table.num_rows
    return table.set_column(0, "event_time", pa.array(at, pa.timestamp("us")))


write_ids()
groups = [log.metadata.row_group(i).num_rows for i in range(log.num_row_groups)]
rows = log.metadata.num_rows
if kind == "many":
    os.mkdir(f"{directory}/log")
    for i, table in enumerate(parts([FILE_ROWS] * (rows // FILE_ROWS))):
        pq.write_table(table, f"{directory}/log/part-{i:05}.parquet", **OPTIONS)
elif kind == "year":
    write_one([rows * (i + 1) // DAYS - rows * i // DAYS for i in range(DAYS)], on_day)
else:
    write_one(groups)
