import json
import sys

import chdb

a = json.loads(sys.argv[1])
log = f"file('{a['log']}', Parquet)"
if a["endpoint"]:
    url = a["endpoint"] + "/" + a["log"].removeprefix("s3://")
    log = f"s3('{url}', '{a['access']}', '{a['secret']}', 'Parquet')"
ids, key = f"file('{a['ids']}', Parquet)", a["key"]
rows = f"SELECT * FROM {log} WHERE {key} IN (SELECT {key} FROM {ids})"
if a["type"] == "inner":
    picked = ", ".join(["l.*"] + ["r." + c for c in a["payload"]])
    rows = f"SELECT {picked} FROM {log} AS l INNER JOIN {ids} AS r ON l.{key} = r.{key}"
chdb.query(
    f"INSERT INTO FUNCTION file('{a['out']}', Parquet) {rows} "
    f"SETTINGS max_threads = {a['threads']}, output_format_parquet_compression_method = 'snappy'"
)
