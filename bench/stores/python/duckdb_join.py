import glob
import json
import sys
from pathlib import Path

import duckdb

a = json.loads(sys.argv[1])
db = duckdb.connect()
db.execute(f"SET threads = {a['threads']}")
db.execute("SET preserve_insertion_order = false")
db.execute(f"SET temp_directory = '{a['scratch']}'")
if a["endpoint"]:
    import duckdb_extension_httpfs

    (extension,) = glob.glob(str(Path(duckdb_extension_httpfs.__file__).parent / "extensions/*/httpfs.duckdb_extension"))
    db.execute(f"SET extension_directory = '{a['scratch']}/extensions'")
    db.execute(f"INSTALL '{extension}'")
    db.execute("LOAD httpfs")
    host = a["endpoint"].removeprefix("http://")
    db.execute(
        f"CREATE SECRET (TYPE s3, KEY_ID '{a['access']}', SECRET '{a['secret']}', REGION '{a['region']}', "
        f"ENDPOINT '{host}', USE_SSL false, URL_STYLE 'path')"
    )
picked = ", ".join(["l.*"] + ["r." + c for c in a["payload"]])
log = f"(FROM read_parquet('{a['log']}') WHERE {a['where'] or 'true'})"
db.execute(
    f"COPY (SELECT {picked} FROM {log} l {a['type']} JOIN read_parquet('{a['ids']}') r ON l.{a['key']} = r.{a['key']}) "
    f"TO '{a['out']}' (FORMAT parquet, COMPRESSION snappy)"
)
