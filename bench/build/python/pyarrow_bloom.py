"""Reads a column and writes it again as one row group with a Bloom filter, which is how pyarrow makes one.

pyarrow_bloom.py DIRECTORY FPR THREADS
"""

import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq

files, fpr, threads = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
pa.set_cpu_count(threads)
pa.set_io_thread_count(threads)
table = pq.read_table(files, columns=["id"])
# Nothing else is made of what is written, and it goes nowhere.
pq.write_table(table, os.devnull, row_group_size=len(table), compression="none", use_dictionary=False,
               write_statistics=False, bloom_filter_options={"id": {"ndv": len(table), "fpp": fpr}})
