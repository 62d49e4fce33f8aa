"""Which rows dedup --exact keeps, compared with DuckDB's row numbers; keys of many types, with NULLs."""

import random

import pyarrow as pa

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
        for how in (("--exact",), ("--exact", "--fpr", "0.5", "--threads", 1), ("--fpr", "1e-9")):
            out = t.path("out.parquet")
            t.run("dedup", "--key", "k", *map(str, flags), *map(str, how), "--force", "-o", out, *files)
            got = db.sql(f"SELECT n FROM {readers.quoted(out)}").fetchall()
            t.equal(f"{name} {' '.join(map(str, how))}", got, want)


def run(t, _repository):
    for name, make in KEYS.items():
        t.group(f"duplicates {name}", one, make)
