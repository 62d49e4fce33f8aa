import sys

import chdb

log, ids, out, codec, key, columns, threads = sys.argv[1:]
chdb.query(
    f"INSERT INTO FUNCTION file('{out}', Parquet) "
    f"SELECT {columns} FROM file('{log}', Parquet) WHERE {key} IN (SELECT {key} FROM file('{ids}', Parquet)) "
    f"SETTINGS max_threads = {threads}, output_format_parquet_compression_method = '{codec}'"
    + (", output_format_compression_level = 1" if codec == "zstd" else "")
)
