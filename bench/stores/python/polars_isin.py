import json
import sys
from datetime import datetime  # noqa: F401, in conditions

import polars as pl

a = json.loads(sys.argv[1])
options = None
if a["endpoint"]:
    options = {
        "aws_endpoint_url": a["endpoint"], "aws_allow_http": "true", "aws_region": a["region"],
        "aws_access_key_id": a["access"], "aws_secret_access_key": a["secret"],
    }
log = pl.scan_parquet(a["log"], storage_options=options)
if a["polars"]:
    log = log.filter(eval(a["polars"]))
users = pl.read_parquet(a["ids"], columns=[a["key"]])[a["key"]]
log.filter(pl.col(a["key"]).is_in(users.implode())).sink_parquet(a["out"], compression="snappy")
