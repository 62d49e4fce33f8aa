"""Prints how many bytes the column chunks of a row group have, and the footer: group.py FILE GROUP."""

import json
import sys

import pyarrow.parquet as pq

meta = pq.ParquetFile(sys.argv[1]).metadata
group = meta.row_group(int(sys.argv[2]))
print(json.dumps({
    "chunks": sum(group.column(i).total_compressed_size for i in range(group.num_columns)),
    "footer": meta.serialized_size + 8,
}))
