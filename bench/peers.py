"""The other tools' programs, as their users would write them, and the check of answers.

    peers.py FUNCTION JSON     one job, see Attempt in table.go
    peers.py check             answers questions about jobs and files, one JSON object a line
"""

import glob
import json
import os
import sys
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace


def compression(a):
    """Zstandard at its fastest level, as bloomjoin writes it."""
    return {"compression": a.codec, "compression_level": 1 if a.codec == "zstd" else None}


def store(a, db):
    """Make an object store known to DuckDB, if the log is in one."""
    if not a.endpoint:
        return
    import duckdb_extension_httpfs

    (extension,) = glob.glob(str(Path(duckdb_extension_httpfs.__file__).parent / "extensions/*/httpfs.duckdb_extension"))
    db.execute(f"SET extension_directory = '{a.scratch}/extensions'")
    db.execute(f"INSTALL '{extension}'")
    db.execute("LOAD httpfs")
    db.execute(
        f"CREATE SECRET (TYPE s3, KEY_ID '{os.environ['AWS_ACCESS_KEY_ID']}', SECRET '{os.environ['AWS_SECRET_ACCESS_KEY']}', "
        f"REGION '{os.environ['AWS_REGION']}', ENDPOINT '{a.endpoint.removeprefix('http://')}', USE_SSL false, URL_STYLE 'path')"
    )


def duckdb_query(a):
    """The job in SQL."""
    picked = [f"l.{c}" for c in a.columns] or ["l.*"]
    if a.type in ("right", "full"):
        picked = [f"l.* REPLACE (coalesce(l.{a.key}, r.{a.key}) AS {a.key})"]
    picked = ", ".join(picked + [f"r.{c}" for c in a.payload])
    log = f"(FROM read_parquet('{a.log}', union_by_name = {bool(a.union)}, hive_partitioning = false) WHERE {a.where or 'true'})"
    return f"SELECT {picked} FROM {log} l {a.type} JOIN read_parquet('{a.ids}') r ON l.{a.key} = r.{a.key}"


def duckdb_join(a):
    import duckdb

    db = duckdb.connect()
    db.execute(f"SET threads = {a.threads}")
    db.execute("SET preserve_insertion_order = false")
    db.execute(f"SET temp_directory = '{a.scratch}'")
    store(a, db)
    level = ", COMPRESSION_LEVEL 1" if a.codec == "zstd" else ""
    db.execute(f"COPY ({duckdb_query(a)}) TO '{a.out}' (FORMAT parquet, COMPRESSION {a.codec}{level})")


def polars_join(a):
    import polars as pl

    options = None
    if a.endpoint:
        options = {
            "aws_endpoint_url": a.endpoint, "aws_allow_http": "true", "aws_region": os.environ["AWS_REGION"],
            "aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"], "aws_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
        }
    log = pl.scan_parquet(a.log, storage_options=options, hive_partitioning=False)
    if a.polars:
        log = log.filter(eval(a.polars, {"pl": pl, "datetime": datetime}))
    if a.columns:
        log = log.select(a.columns)
    if a.type == "semi" and Path(a.ids).stat().st_size < 1 << 28:  # faster than a join, unless there are many IDs
        users = pl.read_parquet(a.ids, columns=[a.key])[a.key]
        rows = log.filter(pl.col(a.key).is_in(users.implode()))
    else:
        ids = pl.scan_parquet(a.ids).select([a.key] + a.payload)
        rows = log.join(ids, on=a.key, how=a.type, **({"coalesce": True} if a.type in ("left", "right", "full") else {}))
    rows.sink_parquet(a.out, **compression(a))


def pyarrow_join(a):
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    pa.set_cpu_count(a.threads)
    log = ds.dataset(sorted(glob.glob(a.log)))
    ids = ds.dataset(pq.read_table(a.ids, columns=[a.key] + a.payload))
    types = {"semi": "left semi", "anti": "left anti", "inner": "inner", "left": "left outer", "right": "right outer", "full": "full outer"}
    rows = log.join(ids, keys=a.key, join_type=types[a.type])
    pq.write_table(rows.to_table(columns=a.columns or None), a.out, **compression(a))


def pyarrow_bloom(a):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(a.threads)
    table = pq.read_table(a.ids, columns=[a.key])
    # Nothing else is made of what is written, and it goes nowhere.
    pq.write_table(
        table, os.devnull, row_group_size=len(table), compression="none", use_dictionary=False, write_statistics=False,
        bloom_filter_options={a.key: {"ndv": len(table), "fpp": 0.01}},
    )


def datafusion_join(a):
    from datafusion import SessionConfig, SessionContext

    config = SessionConfig().with_target_partitions(a.threads).set("datafusion.execution.parquet.pushdown_filters", "true")
    ctx = SessionContext(config)
    ctx.register_parquet("log", a.log.removesuffix("*.parquet"))
    ctx.register_parquet("ids", a.ids)
    picked = ", ".join([f"log.{c}" for c in a.columns or ["*"]] + [f"ids.{c}" for c in a.payload])
    join = {"semi": "LEFT SEMI", "anti": "LEFT ANTI"}.get(a.type, a.type.upper())
    rows = ctx.sql(f"SELECT {picked} FROM log {join} JOIN ids ON log.{a.key} = ids.{a.key}")
    rows.write_parquet(a.out, **compression(a))


def chdb_join(a):
    import chdb

    log, ids = f"file('{a.log}', Parquet)", f"file('{a.ids}', Parquet)"
    if a.endpoint:
        url = a.endpoint + "/" + a.log.removeprefix("s3://")
        log = f"s3('{url}', '{os.environ['AWS_ACCESS_KEY_ID']}', '{os.environ['AWS_SECRET_ACCESS_KEY']}', 'Parquet')"
    rows = f"SELECT {', '.join(a.columns or ['*'])} FROM {log} WHERE {a.key} IN (SELECT {a.key} FROM {ids})"
    if a.type == "inner":
        picked = ", ".join(["l.*"] + ["r." + c for c in a.payload])
        rows = f"SELECT {picked} FROM {log} AS l INNER JOIN {ids} AS r ON l.{a.key} = r.{a.key}"
    level = ", output_format_compression_level = 1" if a.codec == "zstd" else ""
    chdb.query(
        f"INSERT INTO FUNCTION file('{a.out}', Parquet) {rows} "
        f"SETTINGS max_threads = {a.threads}, output_format_parquet_compression_method = '{a.codec}'{level}"
    )


def bloomjoin_stream(a):
    """Our package for Python: a join as a stream of record batches, which pyarrow writes."""
    import bloomjoin
    import pyarrow.parquet as pq

    with bloomjoin.join(a.log, a.ids, on=a.key, how=a.type, threads=a.threads) as rows:
        with pq.ParquetWriter(a.out, rows.schema, **compression(a)) as out:
            for batch in rows:
                out.write_batch(batch)


def bloomjoin_probe(a):
    """The same with an exact filter, which is probed with the keys of each batch that pyarrow reads."""
    import bloomjoin
    import pyarrow.parquet as pq

    bloomjoin.build(a.ids, key=a.key, kind="exact", out=a.scratch + "/ids.bjf", threads=a.threads)
    ids, log = bloomjoin.Filter.load(a.scratch + "/ids.bjf"), pq.ParquetFile(a.log)
    with pq.ParquetWriter(a.out, log.schema_arrow, **compression(a)) as out:
        for batch in log.iter_batches():
            out.write_batch(batch.filter(ids.probe(batch[a.key])))


def compact(a):
    """Write files as one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.concat_tables(pq.read_table(file, partitioning=None) for file in sorted(a.files)), a.out)


def digest(db, rows):
    """What is in rows, whatever the order of them and of their columns."""
    columns = sorted((name, kind) for name, kind, *_ in db.sql(f"DESCRIBE {rows}").fetchall())
    # Tools differ in whether a timestamp is an instant and in the width of integers: its number does not.
    value = lambda name, kind: (
        f'epoch_us("{name}")' if kind.startswith("TIMESTAMP")
        else f'"{name}"::BLOB' if kind == "VARCHAR"
        else f'"{name}"::HUGEINT' if "INT" in kind
        else f'"{name}"'
    )  # fmt: skip
    values = ", ".join(value(*c) for c in columns)
    count, total = db.sql(f"SELECT count(*), coalesce(sum(hash({values})), 0) FROM ({rows})").fetchall()[0]
    return {"rows": count, "hash": str(total), "columns": [name for name, _ in columns]}


def check():
    import duckdb

    db = duckdb.connect()
    db.execute("SET enable_progress_bar = false")
    db.execute("SET preserve_insertion_order = false")
    db.execute("SET memory_limit = '12GiB'")
    for line in sys.stdin:
        question = json.loads(line)
        try:
            if question["job"]:
                a = SimpleNamespace(**question["job"] | {"union": True})
                db.execute(f"SET temp_directory = '{a.scratch}'")
                answer = digest(db, duckdb_query(a))
            else:
                # What a directory holds for programs begins with a dot or an underscore.
                answer = digest(db, f"FROM read_parquet({question['files']}, union_by_name = true, hive_partitioning = false)")
        except Exception as err:  # answered, so that the harness reports it
            answer = {"error": f"{type(err).__name__}: {err}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "check":
        check()
    else:
        globals()[sys.argv[1]](SimpleNamespace(**json.loads(sys.argv[2])))
