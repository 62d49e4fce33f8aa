import sys

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

log, ids, out, codec, key, columns, threads = sys.argv[1:]
pa.set_cpu_count(int(threads))
users = pq.read_table(ids)[key]
rows = ds.dataset(log).scanner(
    columns=None if columns == "*" else columns.split(","), filter=ds.field(key).isin(users)
)
with pq.ParquetWriter(
    out, rows.projected_schema, compression=codec, compression_level=1 if codec == "zstd" else None
) as writer:
    writer.write_table(rows.to_table())
