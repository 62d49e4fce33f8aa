"""Which rows dedup keeps, compared with DuckDB's row numbers; keys of many types, with NULLs, and far times."""

import random

import pyarrow as pa
import pyarrow.csv

from common import readers, tables

ROWS = 20_000
KEYS = {
    "int64": lambda n: pa.array([None if i is None else i - 50 for i in n], pa.int64()),
    "string": lambda n: pa.array([None if i is None else f"key {i}" for i in n]),
    "uuid": lambda n: pa.array([None if i is None else i.to_bytes(16, "big") for i in n], pa.binary(16)),
    "decimal": lambda n: pa.array(n, pa.int32()).cast(pa.decimal128(12, 2)),
    "timestamp": lambda n: pa.array(n, pa.timestamp("ms")),
    "dictionary": lambda n: pa.array([None if i is None else str(i) for i in n]).dictionary_encode(),
}


def one(t, make):
    rng = random.Random(11)
    numbers = [None if rng.random() < 0.02 else rng.randrange(ROWS // 3) for _ in range(ROWS)]
    times = sorted(rng.randrange(100_000) for _ in range(ROWS))
    table = pa.table({"n": range(ROWS), "k": make(numbers), "ts": pa.array(times, pa.timestamp("s"))})
    files = [
        tables.write(table.slice(i * ROWS // 2, ROWS // 2), t.path(f"log{i}.parquet"), row_group_size=700) for i in range(2)
    ]
    for name, flags, also in (
        ("all", (), ""),
        # One slot is dropped whole when the next one begins.
        ("hours", ("--time", "ts", "--window", "1h", "--slots", "1", "--expect", ROWS), ", date_trunc('hour', ts)"),
    ):
        db = readers.connection()
        db.register("log", table)
        want = db.sql(
            f"SELECT n FROM log QUALIFY k IS NULL OR row_number() OVER (PARTITION BY k{also} ORDER BY n) = 1 ORDER BY n"
        ).fetchall()
        for how in ((), ("--exact",), ("--exact", "--fpr", "0.5", "--threads", 1), ("--fpr", "1e-9", "--approximate")):
            out = t.path("out.parquet")
            t.run("dedup", "--key", "k", *map(str, flags), *map(str, how), "--force", "-o", out, *files)
            got = db.sql(f"SELECT n FROM {readers.quoted(out)}").fetchall()
            t.equal(" ".join(map(str, (name, *how))).removesuffix(" --approximate"), got, want)


def text(t):
    """Files of text lose true duplicates only, however few keys are expected."""
    rng = random.Random(12)
    table = pa.table({"n": range(50_000), "k": [str(rng.randrange(40_000)) for _ in range(50_000)]})
    db = readers.connection()
    db.register("log", table)
    want = db.sql("SELECT n FROM log QUALIFY row_number() OVER (PARTITION BY k ORDER BY n) = 1 ORDER BY n").fetchall()
    logs = {"csv": t.path("log.csv"), "ndjson": t.path("log.ndjson")}
    pyarrow.csv.write_csv(table, logs["csv"])
    db.sql(f"COPY (FROM log ORDER BY n) TO {readers.quoted(logs['ndjson'])} (FORMAT json)")
    for kind, read in (("csv", "read_csv"), ("ndjson", "read_json")):
        for name in (f"unique.{kind}", f"unique.{kind}.gz"):
            out = t.path(name)
            t.run("dedup", "--key", "k", "--expect", "10", "-o", out, logs[kind], opens=False)
            t.equal(name, db.sql(f"SELECT n FROM {read}({readers.quoted(out)}) ORDER BY n").fetchall(), want)


def far(t):
    """Times from year 1 to 9999 are in hours of their own, in units of integers that are wrong, too."""
    rng = random.Random(13)
    hours = [rng.randrange(-62_000_000_000, 253_000_000_000) // 3600 * 3600 for _ in range(60)]
    times = sorted(rng.choice(hours) + rng.randrange(3600) for _ in range(3000))
    table = pa.table({"n": range(3000), "k": [rng.randrange(20) for _ in times], "s": times})
    db = readers.connection()
    db.register("log", table)
    want = db.sql(
        "SELECT n FROM log QUALIFY row_number() OVER (PARTITION BY k, floor(s / 3600) ORDER BY n) = 1 ORDER BY n"
    ).fetchall()
    t.ok("hours have duplicates", 500 < len(want) < 2000)
    for name, ts, flags in (
        ("timestamp s", table["s"].cast(pa.timestamp("s")), ()),
        ("timestamp us", pa.array([s * 1_000_000 for s in times], pa.timestamp("us")), ()),
        ("seconds", table["s"], ("--time-unit", "s")),
        ("milliseconds", pa.array([s * 1000 for s in times]), ("--time-unit", "ms")),
    ):
        log = tables.write(table.append_column("ts", ts), t.path("far.parquet"), row_group_size=500)
        window = ("--time", "ts", "--window", "1h", "--slots", "1", *flags)
        out = t.path("out.parquet")
        t.run("dedup", "--key", "k", *window, "-o", out, log)
        t.equal(name, db.sql(f"SELECT n FROM {readers.quoted(out)}").fetchall(), want)


def run(t, _repository):
    t.group("duplicates text", text)
    t.group("duplicates far", far)
    for name, make in KEYS.items():
        t.group(f"duplicates {name}", one, make)
