"""The page engine from outside: many inputs in one output, giant and tiny row groups, other writers' files, every form
of output, several filters, and outputs that are queried by range.
"""

import datetime
import decimal
import itertools
import random
import uuid

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from common import harness, rawfile, tables
from files import identity, pages


def ids_of(t, values, name="id"):
    return tables.write(pa.table({name: values}), identity.fresh(t, "ids.parquet"))


def exact(t, values, key="k"):
    """An exact filter of integers."""
    flt = identity.fresh(t, "exact.filter")
    t.run("build", "--key", key, "--kind", "exact", "-o", flt, ids_of(t, pa.array(values, pa.int64()), key))
    return flt


def check(t, name, out, want, *logs):
    d = pages.problem(out, want, *logs)
    t.ok(name, not d, d)


def scans(t, name, flt, want, *logs, flags=()):
    """Scans with 1, 2 and 7 threads into one file: the same bytes, the wanted rows. Returns the output."""
    outs = []
    for threads in (1, 2, 7):
        outs.append(identity.fresh(t, f"{threads}.parquet"))
        r = t.run("scan", "--filter", flt, *flags, "--threads", threads, "--json", "-o", outs[-1], *logs).json
        t.equal(f"{name}: engine, {threads} threads", {p["path"] for p in r["path"]}, {"engine"})
        t.equal(f"{name}: rows_out, {threads} threads", r["rows_out"], want.num_rows)
    t.ok(f"{name}: bytes by 1, 2 and 7 threads", len({o.read_bytes() for o in outs}) == 1, "differ")
    check(t, f"{name}: rows", outs[0], want, *logs)
    return outs[0]


def events(n, seed, users=5000):
    """A log in the way of real ones: few hosts, many URLs, user IDs."""
    g = np.random.default_rng(seed)
    user = g.integers(0, users, n)
    return pa.table({
        "k": pa.array(user, pa.int64(), mask=g.random(n) < 0.02),
        "time": pa.array(np.sort(g.integers(0, 10**9, n)) * 1000, pa.timestamp("us")),
        "host": pa.array(np.char.add("host-", g.integers(seed * 3, seed * 3 + 9, n).astype(str))),
        "url": pa.array(np.char.add("/p/", g.integers(0, n, n).astype(str))),
        "bytes": pa.array(g.integers(0, 1 << 40, n)),
        "status": pa.array(g.choice([200, 404, 500], n), pa.int16()),
    })  # fmt: skip


SCALE = 1 if harness.FULL else 2
WRITERS = [
    dict(row_group_size=20_000 // SCALE, use_dictionary=False, compression="zstd", data_page_size=1 << 20),  # pages are copied
    dict(row_group_size=20_000 // SCALE, use_dictionary=False, compression="snappy", data_page_size=100_000),
    dict(row_group_size=7_000 // SCALE),
    dict(row_group_size=30_000 // SCALE, use_dictionary=["host", "status"], data_page_version="2.0", compression="zstd"),
    dict(row_group_size=50_000 // SCALE, dictionary_pagesize_limit=20_000, data_page_size=10_000, compression="gzip"),
]


def several(t):
    """Several files in one, whose dictionaries differ."""
    some = sorted(random.Random(1).sample(range(5000), 900))
    for w, how in enumerate(WRITERS):
        parts = [events(60_000 // SCALE, s) for s in range(3)]
        logs = [tables.write(p, identity.fresh(t, f"log{i}.parquet"), **how) for i, p in enumerate(parts)]
        whole = pa.concat_tables(parts)
        for name, keep in [("some", some), ("most", range(4990)), ("few", some[:2]), ("nobody", [-1])][w % 2 :: 2]:
            want = whole.filter(pc.is_in(whole["k"], pa.array(keep, pa.int64()), skip_nulls=True))
            scans(t, f"writer {w}, {name}", exact(t, keep), want, *logs)
        for log in logs:
            log.unlink()


def mixed_writers(t):
    """Inputs of one schema whose pages differ in every way."""
    parts = [events(40_000 // SCALE, s) for s in range(len(WRITERS))]
    logs = [tables.write(p, identity.fresh(t, "log.parquet"), **how) for p, how in zip(parts, WRITERS, strict=True)]
    whole = pa.concat_tables(parts)
    for name, keep in [("some", range(0, 5000, 7)), ("all", range(5000))]:
        want = whole.filter(pc.is_in(whole["k"], pa.array(keep, pa.int64()), skip_nulls=True))
        scans(t, name, exact(t, keep), want, *logs)


def giant(t):
    """One row group of millions of rows; an output's row groups have at most 1,048,576."""
    n = 3_000_000 if harness.FULL else 1_200_000
    g = np.random.default_rng(9)
    table = pa.table({
        "k": pa.array(g.integers(0, 10**6, n), pa.int64(), mask=np.arange(n) % 50 == 0),
        "row": pa.array(np.arange(n)),
        "host": pa.array(np.char.add("h", (np.arange(n) // 40_000).astype(str))),
    }).append_column("tags", pa.ListArray.from_arrays(np.arange(n + 1, dtype=np.int32) // 3, np.arange(n // 3 + 1)))  # fmt: skip
    log = tables.write(table, identity.fresh(t, "giant.parquet"), row_group_size=n)
    t.equal("row groups", pq.read_metadata(log).num_row_groups, 1)
    sums = "select count(*), sum(row), sum(len(tags)) from {}"
    for name, keep in [("1 %", np.arange(0, 10**6, 100)), ("most", np.arange(0, 999_000)), ("one", [77])]:
        want = table.filter(pc.is_in(table["k"], pa.array(keep, pa.int64()), skip_nulls=True))
        out = identity.fresh(t, "out.parquet")
        r = t.run("scan", "--filter", exact(t, keep), "--json", "-o", out, log).json
        t.equal(f"{name}: rows_in, keys_null", (r["rows_in"], r["keys_null"]), (n, n // 50))
        t.ok(f"{name}: row groups", r["row_groups_skipped"] <= r["row_groups"] == 1, r)
        copy, why = identity.by_pyarrow(out)
        t.equal(f"{name}: pyarrow", why or identity.differences(copy, want), "")
        t.equal(f"{name}: sound", rawfile.sound(rawfile.File(out), rawfile.File(log).bodies())[:5], [])
        t.equal(
            f"{name}: DuckDB",
            tables.sql(sums.format(f"'{out}'")),
            tables.sql(sums.format("w"), w=want),
        )
        out.unlink()
    two = [identity.fresh(t, f"{threads}.parquet") for threads in (1, 7)]
    flt = exact(t, range(0, 10**6, 50))
    for out, threads in zip(two, (1, 7), strict=True):
        t.run("scan", "--filter", flt, "--threads", threads, "-o", out, log)
    t.ok("bytes by 1 and 7 threads", two[0].read_bytes() == two[1].read_bytes(), "differ")


def tiny(t):
    """A thousand row groups of ten rows; empty ones among them."""
    table = events(10_000, 4)
    log = identity.fresh(t, "tiny.parquet")
    with pq.ParquetWriter(log, table.schema) as w:
        for i in range(1000):
            w.write_table(table.slice(10 * i, 10))
            if i % 100 == 0:
                w.write_table(table.slice(0, 0))
    for name, keep in [("some", range(0, 5000, 3)), ("all", range(5000)), ("one", [int(table["k"][3].as_py() or 1)])]:
        want = table.filter(pc.is_in(table["k"], pa.array(keep, pa.int64()), skip_nulls=True))
        out = scans(t, name, exact(t, keep), want, log)
        t.ok(f"{name}: few row groups", len(rawfile.File(out).groups) <= 1, len(rawfile.File(out).groups))


def other_writers(t):
    """Files by DuckDB and Polars."""
    table = events(50_000, 6)
    keep = range(0, 5000, 4)
    for name, how in [
        ("DuckDB", "compression snappy"),
        ("DuckDB zstd, small groups", "compression zstd, row_group_size 2048"),
        ("DuckDB V2", "compression zstd, parquet_version v2"),
        ("DuckDB uncompressed", "compression uncompressed"),
    ]:
        log = identity.fresh(t, "duck.parquet")
        query = """select *, [k, bytes] as list, {'a': url, 'b': status} as pair, map {host: k} as m, k::double / 3 as d,
            uuid() as u, k::decimal(9,2) as c, time::date as day, time::timestamptz as tz from e"""
        tables.sql(f"copy ({query}) to '{log}' (format parquet, {how})", e=table)
        whole = tables.read(log)
        want = whole.filter(pc.is_in(whole["k"], pa.array(keep, pa.int64()), skip_nulls=True))
        scans(t, name, exact(t, keep), want, log)
    for compression in ("zstd", "lz4", "uncompressed"):
        log = identity.fresh(t, "polars.parquet")
        polars.from_arrow(table).with_columns(
            polars.col("host").cast(polars.Categorical), l=polars.concat_list("k", "bytes")
        ).write_parquet(log, compression=compression, row_group_size=7000, data_page_size=5000)
        whole = tables.read(log)
        want = whole.filter(pc.is_in(whole["k"], pa.array(keep, pa.int64()), skip_nulls=True))
        out = identity.fresh(t, "out.parquet")
        t.run("scan", "--filter", exact(t, keep), "-o", out, log)
        check(t, f"Polars {compression}", out, want, log)


def forms(t):
    """A directory, --columns, --count, Arrow, a stream and shards are all one answer."""
    parts = [events(20_000, s) for s in range(3)]
    logs = [
        tables.write(p, identity.fresh(t, f"log{i}.parquet"), row_group_size=3000, data_page_size=3000)
        for i, p in enumerate(parts)
    ]
    keep, whole = range(0, 5000, 5), pa.concat_tables(parts)
    flt = exact(t, keep)
    wanted = lambda table: table.filter(pc.is_in(table["k"], pa.array(keep, pa.int64()), skip_nulls=True))  # noqa: E731
    out = identity.fresh(t, "dir")
    t.run("scan", "--filter", flt, "-o", f"{out}/", *logs)
    for log, part in zip(logs, parts, strict=True):
        alone = identity.fresh(t, "alone.parquet")
        t.run("scan", "--filter", flt, "-o", alone, log)
        check(t, "one file of a directory", out / log.name, wanted(part), log)
        a, b = tables.read(alone), tables.read(out / log.name)
        t.ok("the same as alone", a.equals(b))
    for columns in (["url"], ["status", "k"], ["bytes", "url", "time", "host", "k", "status"]):
        out = identity.fresh(t, "columns.parquet")
        t.run("scan", "--filter", flt, "--columns", ",".join(columns), "-o", out, *logs)
        check(t, f"--columns {columns}", out, wanted(whole).select(columns), *logs)
    r = t.run("scan", "--filter", flt, "--count", "--json", *logs).json
    t.equal("--count", r["rows_out"], wanted(whole).num_rows)
    t.equal(
        "--count, plain",
        t.run("scan", "--filter", flt, "--count", "--quiet", *logs).out.strip().decode(),
        str(wanted(whole).num_rows),
    )
    out = identity.fresh(t, "out.arrow")
    t.run("scan", "--filter", flt, "--format", "arrow", "-o", out, *logs)
    t.equal("Arrow", identity.differences(tables.read(out), wanted(whole)), "")
    got = pa.ipc.open_stream(t.run("scan", "--filter", flt, "-o", "-", *logs).out).read_all()
    t.equal("stream", identity.differences(got, wanted(whole)), "")
    schema = None
    for of in (2, 5, 40):
        got, counts = [], 0
        for i in range(of):
            out = identity.fresh(t, "shard.parquet")
            t.run("scan", "--filter", flt, "--shard", f"{i}/{of}", "-o", out, *logs)
            f = rawfile.File(out)
            schema = schema or f.schema
            t.ok(f"shard {i}/{of}: schema", f.schema == schema, f"want {schema}, got {f.schema}")
            got.append(tables.read(out))
            r = t.run("scan", "--filter", flt, "--shard", f"{i}/{of}", "--count", "--json", *logs).json
            counts += r["rows_out"]
        key = [("time", "ascending"), ("url", "ascending"), ("bytes", "ascending")]
        t.equal(
            f"{of} shards",
            identity.differences(
                pa.concat_tables(got).sort_by(key).combine_chunks(), wanted(whole).sort_by(key).combine_chunks()
            ),
            "",
        )
        t.equal(f"{of} shards counted", counts, wanted(whole).num_rows)


def empty_shard(t):
    """A worker that gets no row group writes the file's schema as the others do."""
    for name in (
        "nested_structs.rust",
        "nonnullable.impala",
        "nullable.impala",
        "repeated_no_annotation",
        "int32_decimal",
        "sort_columns",
        "alltypes_plain",
    ):
        log = t.shared / "corpora/parquet-testing/data" / f"{name}.parquet"
        table, _ = identity.by_pyarrow(log)
        key, kind = next(iter(identity.paths(table.schema)))
        ids = ids_of(t, identity.absent(kind))
        shown = []
        for i in range(3):
            out = identity.fresh(t, "shard.parquet")
            t.run(
                "join",
                "--ids",
                ids,
                "--on",
                f"{identity.quoted(key)}=id",
                "--type",
                "anti",
                "--shard",
                f"{i}/3",
                "-o",
                out,
                log,
            )
            shown.append(rawfile.File(out))
        t.ok(f"{name}: schemas", all(f.schema == shown[0].schema for f in shown), [f.schema for f in shown])
        t.ok(f"{name}: metadata", all(f.metadata == shown[0].metadata for f in shown), [f.metadata for f in shown])


def many_filters(t):
    """--match, --all, --any and --no-match against SQL."""
    rng = random.Random(8)
    n = 30_000
    table = pa.table({
        "row": range(n),
        "a": pa.array([rng.randrange(300) if rng.random() > 0.1 else None for _ in range(n)], pa.int64()),
        "b": pa.array([rng.randrange(300) for _ in range(n)], pa.int32()),
        "c": pa.array([i // 100 if rng.random() > 0.1 else None for i in range(n)], pa.uint16()),
    })  # fmt: skip
    log = tables.write(
        table, identity.fresh(t, "log.parquet"), row_group_size=4000, data_page_size=600, write_page_index=True
    )
    sets = {c: sorted(rng.sample(range(300), k)) for c, k in (("a", 120), ("b", 30), ("c", 100))}
    flt = {c: exact(t, v, c) for c, v in sets.items()}
    said = {c: f"coalesce({c} in ({', '.join(map(str, v))}), false)" for c, v in sets.items()}
    for many in range(1, 4):
        for columns in itertools.permutations("abc", many):
            for split in range(many + 1):
                match, exclude = columns[:split], columns[split:]
                for how in rng.sample(["--all", "--any"], 1):
                    flags = [f for c in match for f in ("--match", f"{c}={flt[c]}")] + [
                        f for c in exclude for f in ("--no-match", f"{c}={flt[c]}")
                    ]
                    some = (" and " if how == "--all" else " or ").join(said[c] for c in match) or "true"
                    none = " and ".join(f"not {said[c]}" for c in exclude) or "true"
                    want = tables.sql(f"select row from t where ({some}) and ({none}) order by row", t=table)
                    out = identity.fresh(t, "out.parquet")
                    t.run("scan", how, *flags, "-o", out, log)
                    got = tables.sql(f"select row from '{out}'")
                    t.ok(f"{how} {match} not {exclude}", got == want, f"{len(got)} rows, want {len(want)}")


def joins(t):
    """Semi and anti joins on keys of every class, against DuckDB."""
    rng, n = random.Random(4), 6000
    pick = lambda f, null=0.1: [None if rng.random() < null else f(rng.randrange(900)) for _ in range(n)]  # noqa: E731
    base = datetime.datetime(2020, 1, 1)
    kinds = {
        "i32": (pa.int32(), lambda i: i - 450),
        "i64": (pa.int64(), lambda i: (i - 450) << 40),
        "u32": (pa.uint32(), lambda i: (1 << 32) - 1 - i),
        "u64": (pa.uint64(), lambda i: (1 << 64) - 1 - i),
        "text": (pa.string(), lambda i: f"user-{i}"),
        "binary": (pa.binary(), lambda i: i.to_bytes(3, "big")),
        "money": (pa.decimal128(18, 3), lambda i: decimal.Decimal(i - 450).scaleb(-3)),
        "huge": (pa.decimal128(38, 0), lambda i: decimal.Decimal((i - 450) * 10**30)),
        "day": (pa.date32(), lambda i: base.date() + datetime.timedelta(i - 450)),
        "us": (pa.timestamp("us"), lambda i: base + datetime.timedelta(seconds=i, microseconds=i)),
        "tz": (pa.timestamp("ms", "UTC"), lambda i: base + datetime.timedelta(milliseconds=i)),
        "uuid": (pa.uuid(), lambda i: uuid.UUID(int=i << 100 | i).bytes),
    }
    columns = {"row": pa.array(range(n))}
    for name, (kind, f) in kinds.items():
        columns[name] = pa.array(pick(f), kind)
    columns["coded"] = columns["text"].dictionary_encode()
    columns["never"] = pa.array([rng.randrange(900) for _ in range(n)], pa.int64())
    fields = [pa.field(name, a.type, nullable=name != "never") for name, a in columns.items()]
    table, db = pa.table(list(columns.values()), schema=pa.schema(fields)), duckdb.connect()
    db.execute("set timezone = 'UTC'; set threads = 1")
    for w, how in enumerate((
        dict(row_group_size=1500, data_page_size=2000, write_page_index=True),
        dict(use_dictionary=False, data_page_size=900, data_page_version="2.0", compression="zstd"),
    )):  # fmt: skip
        log = tables.write(table, identity.fresh(t, "log.parquet"), **how)
        for on in [*list(kinds)[w::2], "coded", "never", "i32,text", "day,coded,u32", "never,uuid"]:
            names = on.split(",")
            ids = table.select(names).take(pa.array(rng.sample(range(n), 150)))
            idfile = tables.write(ids, identity.fresh(t, "ids.parquet"))
            for kind in ("semi", "anti"):
                out = identity.fresh(t, "out.parquet")
                t.run("join", "--ids", idfile, "--on", on, "--type", kind, "-o", out, log)
                condition = " and ".join(f"l.{c} = r.{c}" for c in names)
                want, got = f"select l.* from '{log}' l {kind} join '{idfile}' r on {condition}", f"from '{out}'"
                lost, more = (db.execute(f"({a}) except all ({b}) limit 3").fetchall() for a, b in ((want, got), (got, want)))
                t.ok(f"{kind} on {on}, writer {w}", not lost and not more, f"lost {lost}, too many {more}")


def ranges(t):
    """What readers find by statistics and page index in an output is what a full scan finds."""
    rng = random.Random(12)
    for seed in range(300, 306 if harness.FULL else 301):
        made = pages.columns_of(random.Random(seed), 9000)
        names = [
            "i8",
            "u32",
            "u64",
            "sorted",
            "falling",
            "text",
            "long",
            "bytes",
            "fixed",
            "flag",
            "f32",
            "f64",
            "money",
            "cents",
            "day",
            "ms",
            "us",
            "nothing",
        ]
        table = pa.table({"row": range(9000)} | {n: made[n]() for n in names})
        log = tables.write(
            table, identity.fresh(t, "log.parquet"), row_group_size=[9000, 1000][seed % 2], use_dictionary=seed % 3 == 0
        )
        keep = [range(9000), range(2000, 6000), sorted(rng.sample(range(9000), 3000))][seed % 3]
        out, flt = identity.fresh(t, "out.parquet"), exact(t, keep, "row")
        t.run("scan", "--filter", flt, "--key", "row", "-o", out, log)
        check(t, f"{seed}", out, table.filter(pc.is_in(table["row"], pa.array(keep, pa.int64()))), log)
        copy = tables.read(out)
        db = duckdb.connect()
        db.register("arrow", copy)
        db.execute("create table copy as select * from arrow")  # a filter of Arrow's own has another place for NaN
        for name in names:
            values = copy[name].drop_null()
            values = [v for v in values.to_pylist() if v == v]
            probes = [min(values), max(values), rng.choice(values), rng.choice(values)] if values else []
            unlike = []
            for v in probes:
                for op in ("=", "<", "<=", ">", ">=", "!="):
                    want = db.execute(f"select count(*), sum(row) from copy where {name} {op} ?", [v]).fetchall()
                    got = db.execute(
                        f"select count(*), sum(row) from read_parquet('{out}') where {name} {op} ?", [v]
                    ).fetchall()
                    if got != want:
                        unlike.append(f"DuckDB, {op} {v}: want {want}, got {got}")
                if name in ("f64",):
                    continue  # pyarrow orders NaN otherwise
                for op in ("==", "<=", ">"):
                    field, value = pc.field(name), pa.scalar(v, copy[name].type)
                    where = field == value if op == "==" else field <= value if op == "<=" else field > value
                    got = pq.read_table(out, filters=where, columns=["row"])["row"]
                    if not got.equals(copy.filter(where)["row"]):
                        unlike.append(f"pyarrow, {op} {v}: {len(got)} rows")
            for null in ("is null", "is not null"):
                want = db.execute(f"select count(*) from copy where {name} {null}").fetchall()
                got = db.execute(f"select count(*) from read_parquet('{out}') where {name} {null}").fetchall()
                if got != want:
                    unlike.append(f"DuckDB, {null}: want {want}, got {got}")
            t.equal(f"{seed}: {name}", unlike, [])


def run(t, _repository):
    for f in (several, mixed_writers, giant, tiny, other_writers, forms, empty_shard, many_filters, joins, ranges):
        t.group(f"engine {f.__name__.replace('_', ' ')}", f)
