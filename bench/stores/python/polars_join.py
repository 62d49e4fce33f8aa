import json
import sys
from datetime import datetime  # noqa: F401, in conditions

import polars as pl

a, way = json.loads(sys.argv[1]), sys.argv[2]
options = None
if a["endpoint"]:
    options = {
        "aws_endpoint_url": a["endpoint"], "aws_allow_http": "true", "aws_region": a["region"],
        "aws_access_key_id": a["access"], "aws_secret_access_key": a["secret"],
    }
log = pl.scan_parquet(a["log"], storage_options=options)
if a["polars"]:
    log = log.filter(eval(a["polars"]))
if way == "is_in":
    users = pl.read_parquet(a["ids"], columns=[a["key"]])[a["key"]]
    rows = log.filter(pl.col(a["key"]).is_in(users.implode()))
else:
    ids = pl.scan_parquet(a["ids"]).select([a["key"]] + a["payload"])
    rows = log.join(ids, on=a["key"], how=a["type"])
rows.sink_parquet(a["out"], compression="snappy")
