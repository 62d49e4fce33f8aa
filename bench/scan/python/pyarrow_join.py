import sys

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

log, ids, out, codec, key, columns, threads = sys.argv[1:]
pa.set_cpu_count(int(threads))
rows = ds.dataset(log).join(ds.dataset(ids), keys=key, join_type="left semi")
table = rows.to_table(columns=None if columns == "*" else columns.split(","))
pq.write_table(table, out, compression=codec, compression_level=1 if codec == "zstd" else None)
