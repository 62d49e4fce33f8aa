"""Which rows dedup keeps, compared with DuckDB's row numbers; keys of many types, with NULLs, and far times."""

import collections
import datetime
import json
import math
import random

import hypothesis
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq

from common import properties, readers, tables
from files import iceberg_tables
from files import tables as delta

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


EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
# Times of a few ranks, in ascending order, in all types that --time takes; some for a unit.
TIMES = {
    "timestamp[ns]": lambda w: pa.array([None if i is None else (i - 4) * 2**60 + i % 2 for i in w], pa.timestamp("ns")),
    "instant": lambda w: pa.array([None if i is None else (i - 4) * 400 for i in w], pa.timestamp("ms", "Europe/Oslo")),
    "date": lambda w: pa.array([None if i is None else i - 4 for i in w], pa.date32()),
    "--time-unit ns": lambda w: pa.array([None if i is None else (i - 4) * 2**60 + i for i in w], pa.int64()),
    "--time-unit s": lambda w: pa.array([None if i is None else i for i in w], pa.uint8()),
    "text": lambda w: pa.array([None if i is None else (EPOCH + datetime.timedelta(microseconds=i - 4)).astimezone(datetime.timezone(datetime.timedelta(hours=i))).isoformat() for i in w]),
}  # fmt: skip
# Keys as --key has them, with DuckDB's form of their columns.
LAST_KEYS = {"k": ["k"], "s": ["s"], "k,s": ["k", "s"], "z::int64": ["z::BIGINT"], "f": ["f"], "f,k": ["f", "k"], "s --normalize lower,trim": ["lower(trim(s))"]}


def some_rows(d):
    """A table with ranks w of its times, and how it is run."""
    rng, n, few = random.Random(d.number(0, 10_000)), d.choice([0, 1, 7, 300, 2500]), d.choice([1, 3, 20, 600])
    number = lambda none: None if rng.random() < none else rng.randrange(few)
    numbers, none = [number(0.1) for _ in range(n)], d.choice([0, 0.3, 1])
    text = lambda i, case: None if i is None else case(f" Key {i % 9} ") if i % 2 else f"key {i % 9}"
    ranks = [None if rng.random() < none else rng.randrange(8) for _ in range(n)]
    kind, kinds = d.choice(["parquet", "arrow", "csv", "ndjson"]), {}
    for column, values in {
        "k": pa.array(numbers, pa.int32()),
        "s": pa.array([text(number(0.1), str.upper if rng.random() < 0.5 else str) for _ in range(n)], pa.string()),
        "z": pa.array([None if i is None else str(i - 5) for i in numbers], pa.string()),
        "f": pa.array([None if i is None else [math.nan, -0.0, 0.0][i % 3] if i < 6 else i / 3 for i in numbers], pa.float64()),
    }.items():
        kinds[column] = values
    timed = d.choice([None, *(TIMES if kind in ("parquet", "arrow") else ("text", "--time-unit ns"))])
    ts = TIMES[timed or "text"](ranks)
    table = pa.table({"n": pa.array(range(n), pa.int64()), **kinds, "ts": ts, "w": pa.array(ranks, pa.int32())})
    keys = [k for k in LAST_KEYS if "f" not in k or kind in ("parquet", "arrow")]  # texts of a number may differ
    how = ["--threads", d.choice([1, 3]), "--memory", d.choice(["64MiB", "1GiB"])]
    return table, kind, timed, d.choice(keys), d.number(1, 3), how, d.chance(30) and kind in ("parquet", "arrow")


def written(table, kind, path):
    if kind == "parquet":
        return tables.write(table, path, row_group_size=max(table.num_rows // 3, 1))
    if kind == "csv":
        pyarrow.csv.write_csv(table, path)
    elif kind == "arrow":
        with pa.ipc.new_file(path, table.schema) as f:
            f.write_table(table, max_chunksize=200)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.drop_columns(["f"]).to_pylist()))
    return path


def numbers_of(path, kind):
    if kind == "csv":
        return pyarrow.csv.read_csv(path)["n"].to_pylist()
    if kind == "ndjson":
        return [json.loads(line)["n"] for line in path.read_text().splitlines()]
    read = lambda f: pa.ipc.open_file(f).read_all() if f.suffix == ".arrow" else tables.read(f)
    return [n for f in (tables.data_files(path) if path.is_dir() else [path]) for n in read(f)["n"].to_pylist()]


def last(t):
    """With --keep last, DuckDB's last row of each key, or that with the greatest time, in all formats and ways."""
    seen = collections.Counter()

    @hypothesis.given(properties.drawn(some_rows))
    def stay(case):
        table, kind, timed, key, files, how, directory = case
        seen.update(["cases", kind, timed or "order", *["directory"] * directory])
        db, columns, n = readers.connection(), LAST_KEYS[key], table.num_rows
        db.register("log", table)
        null, by = " OR ".join(f"{c} IS NULL" for c in columns), "w DESC NULLS LAST, " if timed else ""
        want = [r[0] for r in db.sql(f"SELECT n FROM log QUALIFY {null} OR row_number() OVER (PARTITION BY {', '.join(columns)} ORDER BY {by}n DESC) = 1 ORDER BY n").fetchall()]
        place = t.path("case")
        place.mkdir()
        cuts = [i * n // files for i in range(files + 1)]
        # Text is read in the order of the arguments, other files by name.
        names = [f"log{9 - i if kind in ('csv', 'ndjson') else i}.{kind}" for i in range(files)]
        logs = [written(table.slice(cuts[i], cuts[i + 1] - cuts[i]), kind, place / name) for i, name in enumerate(names)]
        out = place / ("out" if directory else f"out.{kind}")
        time = ["--time", "ts", *(timed.split() if timed.startswith("--") else [])] if timed else []
        t.run("dedup", "--keep", "last", "--key", *key.split(), *time, *how, "-o", f"{out}/" if directory else out, *logs, opens=False)
        assert numbers_of(out, kind) == want, (numbers_of(out, kind)[:50], want[:50])

    properties.hold(t, "random", stay, 60, 2000)
    properties.varied(t, seen, {"parquet": 0.1, "arrow": 0.1, "csv": 0.1, "ndjson": 0.1, "order": 0.1, "text": 0.1, "directory": 0.05})


def last_spilled(t):
    """Keys that exceed the memory, with few and with many rows of each."""
    rng = random.Random(14)
    numbers = [rng.randrange(150_000) if rng.random() < 0.7 else 7 for _ in range(400_000)]
    times = [rng.randrange(1000) if rng.random() < 0.9 else None for _ in numbers]
    table = pa.table({"n": range(len(numbers)), "k": [f"{i:0128}" for i in numbers], "ts": pa.array(times, pa.timestamp("s"))})
    log, db = tables.write(table, t.path("log.parquet"), row_group_size=50_000), readers.connection()
    db.register("log", table)
    for name, by, flags in (("order", "", ()), ("time", "ts DESC NULLS LAST, ", ("--time", "ts"))):
        want = db.sql(f"SELECT n FROM log QUALIFY row_number() OVER (PARTITION BY k ORDER BY {by}n DESC) = 1 ORDER BY n").to_arrow_table()["n"].to_pylist()
        for memory in ("64MiB", "2GiB"):
            out = t.path(f"{name}-{memory}.parquet")
            t.run("dedup", "--keep", "last", "--key", "k", *flags, "--memory", memory, "-o", out, log)
            t.ok(f"{name}, {memory}", tables.read(out)["n"].to_pylist() == want)


def last_of_tables(t):
    """Rows that a table has deleted are not the newest of their key."""
    vectors, iceberg = delta.Tables(t), iceberg_tables.Tables(t)
    newest = max(vectors.spark("vectors").glob("rows/v*.parquet"), key=lambda f: int(f.stem[1:]))
    cases = {"delta vectors": (f"delta:{vectors.spark('vectors') / 'table'}", pq.read_table(newest, partitioning=None))}
    for name in ("positions", "equality", "vectors"):
        cases[f"iceberg {name}"] = f"iceberg:{iceberg.table(name)}", iceberg.newest(name)
    for name, (table, rows) in cases.items():
        out, groups = t.path("out.parquet"), collections.defaultdict(list)
        t.run("dedup", "--keep", "last", "--key", "country", "--time", "at", "-o", out, table)
        got = delta.read(out).select(["country", "at"]).to_pylist()
        for row in rows.to_pylist():
            groups[row["country"]].append((row["at"] is not None, row["at"]))
        want = [(c, max(times)[1]) for c, times in groups.items() if c is not None] + [(None, at) for _, at in groups[None]]
        t.equal(name, sorted(((r["country"], r["at"]) for r in got), key=repr), sorted(want, key=repr))


def run(t, _repository):
    t.group("duplicates last", last)
    t.group("duplicates last spilled", last_spilled)
    t.group("duplicates last of tables", last_of_tables)
    t.group("duplicates text", text)
    t.group("duplicates far", far)
    for name, make in KEYS.items():
        t.group(f"duplicates {name}", one, make)
