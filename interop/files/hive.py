"""Directories named name=value: columns, types and rows as DuckDB's hive_partitioning has them."""

import datetime
import os
import shutil

import duckdb
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

TYPES = ["semi", "anti", "inner", "left", "right", "full"]
NULL = "__HIVE_DEFAULT_PARTITION__"


def tree(t, name, dirs, write=None, rows=60):
    """A directory with one file in each of dirs; row i of the whole has user i % 20. Returns its path."""
    root, n = t.path(name), 0
    for d in dirs:
        (root / d).mkdir(parents=True)
        ids = range(n, n + rows)
        table = pa.table({"row": pa.array(ids, pa.int64()), "user_id": pa.array([i % 20 for i in ids], pa.int64())})
        (write or pq.write_table)(table, root / d / ("part.parquet" if write is None else "part.arrow"))
        n += rows
    return root


def arrow(table, path):
    with pa.OSFile(str(path), "wb") as f, pa.ipc.new_file(f, table.schema) as w:
        w.write_table(table)


def ids(t, name="ids.parquet", **columns):
    path = t.path(name)
    pq.write_table(pa.table(columns or {"user_id": pa.array(range(5), pa.int64())}), path)
    return path


def rows(table):
    return sorted(map(repr, table.to_pylist()))


def sql(query):
    con = duckdb.connect()
    con.execute("set TimeZone = 'UTC'")
    return con.sql(query).to_arrow_table()


def hive(root, **options):
    types = "".join(f", {k} = {v}" for k, v in options.items())
    return f"read_parquet('{root}/**/*.parquet', hive_partitioning = true{types})"


def joined(t, root, out="o.parquet", *flags):
    """The semi join of a log with five users, as pyarrow reads it."""
    out = t.path(out)
    t.run("join", "--ids", ids(t), "--on", "user_id", "-o", out, *flags, root)
    return pq.read_table(out)


def same(t, name, got, want):
    """Columns, types and rows are equal. DuckDB puts the columns of paths in the order of the alphabet; ours are in that of the path."""
    t.equal(f"{name}: names", sorted(got.column_names), sorted(want.column_names))
    want = want.select(got.column_names)
    kinds = [[(f.name, str(f.type).replace("large_", "")) for f in s] for s in (got.schema, want.schema)]
    t.equal(f"{name}: columns and types", *kinds)
    t.equal(f"{name}: rows", rows(got), rows(want))


# Values of one column, whose type is DuckDB's.
AGREED = {
    "integers": ["1", "-5", "0", "9223372036854775807"],
    "leading zeros": ["01", "2"],
    "hours": ["08", "09", "10"],
    "plus": ["+1", "2"],
    "too large": ["9223372036854775808"],
    "strings": ["NO", "SE", "1"],
    "decimals": ["1.5", "2"],
    "booleans": ["true", "false"],
    "dates": ["2024-01-01", "2024-02-29"],
    "no date": ["2024-01-01", "2023-02-29"],
    "timestamps": ["2024-01-01T10:11:12", "2024-01-02 00:00:00.123456"],
    "minutes": ["2024-01-01T10:11"],
    "dates and timestamps": ["2024-01-01", "2024-01-01T10:11:12"],
    "NULL and integers": ["1", NULL],
    "NULL and strings": ["x", NULL],
    "NULL and dates": ["2024-01-01", NULL],
    "only NULL": [NULL],
    "the word NULL and integers": ["1", "NULL", "null"],
    "the word null and strings": ["a", "null"],
    "only the word": ["NULL"],
    "nothing and strings": ["", "x"],
    "nothing and integers": ["", "1"],
    "escapes": ["a%20b%2Fc", "100%", "x+y", "%C3%A9", "%3D"],
}

# Where we differ: (values, our type and values).
LISTED = {
    "a zero with a sign is text": (["-0", "5"], pa.string(), ["-0", "5"]),
    "escaped timestamps are timestamps": (["2024-01-01 10%3A11%3A12"], pa.timestamp("us"), [datetime.datetime(2024, 1, 1, 10, 11, 12)]),
    "short dates are text": (["2024-1-1"], pa.string(), ["2024-1-1"]),
    "far dates are text": (["12345-01-01", "infinity"], pa.string(), ["12345-01-01", "infinity"]),
    "a zone makes text": (["2024-01-01T10:11:12Z"], pa.string(), ["2024-01-01T10:11:12Z"]),
    "spaces make text": ([" 1"], pa.string(), [" 1"]),
    "the first equals sign counts": (["a=b"], pa.string(), ["a=b"]),
}


def types(t):
    for name, values in AGREED.items():
        root = tree(t, "log", [f"p={v}" for v in values])
        same(t, name, joined(t, root), sql(f"select * from {hive(root)} where user_id < 5"))
    for name, (values, kind, want) in LISTED.items():
        got = joined(t, tree(t, "log", [f"p={v}" for v in values])).column("p")
        t.equal(name, (str(got.type), sorted(set(got.to_pylist()))), (str(kind), sorted(want)))
    root = tree(t, "log", ["a%20b=1"])
    t.equal("names are unescaped", joined(t, root).column_names, ["row", "user_id", "a b"])
    for given, duck in [("int16", "smallint"), ("uint64", "ubigint"), ("string", "varchar"), ("decimal(9,2)", "decimal(9,2)"), ("double", "double")]:
        root = tree(t, "log", ["p=1", "p=20", f"p={NULL}"])
        got = joined(t, root, "o.parquet", "--hive-types", f"p:{given}")
        same(t, f"given {given}", got, sql(f"select * from {hive(root, hive_types={'p': duck})} where user_id < 5"))
    root = tree(t, "log", ["p=true", "p=false"])
    got = joined(t, root, "o.parquet", "--hive-types", "p:boolean")
    same(t, "given boolean", got, sql(f"select * from {hive(root, hive_types={'p': 'boolean'})} where user_id < 5"))


def layouts(t):
    root = tree(t, "log", ["dt=2024-01-01/country=NO", "dt=2024-01-02/country=SE", f"dt=2024-01-02/country={NULL}"])
    same(t, "two levels", joined(t, root), sql(f"select * from {hive(root)} where user_id < 5"))
    t.equal("in the order of the path", joined(t, root).column_names, ["row", "user_id", "dt", "country"])
    other = tree(t, "log", ["a=1/b=x", "b=y/a=2", "a=3/x/b=z"])
    same(t, "another order, and names between", joined(t, other), sql(f"select * from {hive(other)} where user_id < 5"))
    mixed = tree(t, "log", ["a=1", "a=1/b=2"])
    r = t.run("join", "--ids", ids(t), "--on", "user_id", "-o", t.path("o.parquet"), mixed, want=1)
    t.ok("mixed levels", "--hive-partitioning off" in r.text and "a=1/b=2" in r.text, r)
    t.equal("mixed levels, off", joined(t, mixed, "o.parquet", "--hive-partitioning", "off").column_names, ["row", "user_id"])
    part = joined(t, root / "dt=2024-01-02")
    same(t, "below a named directory", part, sql(f"select * from {hive(root / 'dt=2024-01-02')} where user_id < 5"))
    got = joined(t, root, "o.parquet", "--columns", "country,row")
    same(t, "--columns", got, sql(f"select country, row from {hive(root)} where user_id < 5"))
    got = joined(t, root, "o.parquet", "--columns", "dt")
    same(t, "--columns of paths only", got, sql(f"select dt from {hive(root)} where user_id < 5"))
    as_arrow = t.path("o.arrow")
    t.run("join", "--ids", ids(t), "--on", "user_id", "-o", as_arrow, root)
    same(t, "an Arrow output", pa.ipc.open_file(as_arrow).read_all(), sql(f"select * from {hive(root)} where user_id < 5"))
    r = t.run("join", "--ids", ids(t), "--on", "user_id", "-o", "-", root)
    same(t, "standard output", pa.ipc.open_stream(r.out).read_all(), sql(f"select * from {hive(root)} where user_id < 5"))
    log = tree(t, "log", ["dt=2024-01-01/country=NO", "dt=2024-01-02/country=SE"], arrow)
    want = sql("select r row, r % 20 user_id, date '2024-01-01' + (r // 60)::int dt, if(r < 60, 'NO', 'SE') country from range(120) x(r) where r % 20 < 5")
    same(t, "Arrow files", joined(t, log), want)
    same(t, "Arrow files, --columns", joined(t, log, "o.parquet", "--columns", "dt,row"), want.select(["dt", "row"]))
    out = str(t.path("out")) + "/"
    t.run("join", "--ids", ids(t), "--on", "user_id", "-o", out, root)
    same(t, "OUT/", sql(f"select * from {hive(out)}"), sql(f"select * from {hive(root)} where user_id < 5"))
    stored = pq.read_schema(next(p for p in (t.work / out).rglob("*.parquet")))
    t.equal("OUT/ has no columns of its directories", stored.names, ["row", "user_id"])
    out = str(t.path("out")) + "/"
    t.run("join", "--ids", ids(t), "--on", "user_id", "--base", root / "dt=2024-01-02", "-o", out, root / "dt=2024-01-02")
    stored = pq.read_schema(next(p for p in (t.work / out).rglob("*.parquet")))
    t.equal("OUT/ has those above --base", stored.names, ["row", "user_id", "dt"])
    parts = []
    for i in range(3):
        parts.append(t.path(f"part{i}.parquet"))
        t.run("join", "--ids", ids(t), "--on", "user_id", "--shard", f"{i}/3", "-o", parts[-1], root)
    same(t, "shards", pa.concat_tables(map(pq.read_table, parts)), sql(f"select * from {hive(root)} where user_id < 5"))


def sides(t):
    """All join types, on a column of the log, of paths, and of both; IDs in directories, too."""
    log = tree(t, "log", ["dt=2024-01-01/country=NO", "dt=2024-01-02/country=SE", f"dt=2024-01-03/country={NULL}"])
    day = pa.array([datetime.date(2024, 1, 2), datetime.date(2024, 1, 3), datetime.date(2030, 1, 1), None])
    days = ids(t, "days.parquet", dt=day, note=["a", "b", "c", "d"])
    places = tree(t, "ids", ["country=SE", "country=DK"], rows=3)
    views = f"create view l as select * from {hive(log)}; create view d as select * from '{days}'; create view p as select row number, user_id, country from {hive(places)};"
    for kind in TYPES:
        for name, on, side, table, other in [
            ("on the path's dt", "dt", days, "d", "note"),
            ("on user and country", "user_id,country", places, "p", "number"),
        ]:
            keys = on.split(",")
            con = duckdb.connect()
            con.execute(views)
            match = " and ".join(f"l.{k} = i.{k}" for k in keys)
            exists = f"exists (from {table} i where {match})"
            shared = ", ".join(f"coalesce(l.{c}, i.{c}) {c}" if c in keys else f"l.{c}" for c in ["row", "user_id", "dt", "country"])
            if kind in ("semi", "anti"):
                query = f"select * from l where {'not ' if kind == 'anti' else ''}{exists}"
            else:
                query = f"select {shared}, i.{other} from l {kind} join {table} i on {match}"
            source = side
            if table == "p":  # DuckDB names the column that we call row otherwise
                source = t.path("numbered")
                shutil.copytree(side, source)
                for f in source.rglob("*.parquet"):
                    pq.write_table(pq.read_table(f, partitioning=None).rename_columns(["number", "user_id"]), f)
            out = t.path("o.parquet")
            t.run("join", "--ids", source, "--on", on, "--type", kind, "-o", out, log)
            same(t, f"{kind} {name}", pq.read_table(out), con.sql(query).to_arrow_table())
            out = str(t.path("out")) + "/"
            if kind in ("right", "full"):
                r = t.run("join", "--ids", source, "--on", on, "--type", kind, "-o", out, log, want=1)
                t.ok(f"{kind} {name} into a directory is refused", "unsupported" in r.text and "--hive-partitioning off" in r.text, r)
                continue
            t.run("join", "--ids", source, "--on", on, "--type", kind, "-o", out, log)
            got = con.sql(f"select * from {hive(out)}").to_arrow_table()
            want = con.sql(query).to_arrow_table()
            t.equal(f"{kind} {name}, OUT/", rows(got.select(want.column_names)), rows(want))
    for kind in ("right", "full"):
        out = str(t.path("out")) + "/"
        some = ids(t, "some.parquet", user_id=pa.array([1, 2, 100], pa.int64()), dt=["x", "y", "z"])
        t.run("join", "--ids", some, "--on", "user_id", "--type", kind, "-o", out, log)
        want = f"select l.row, coalesce(l.user_id, i.user_id) user_id, i.dt dt_ids, l.dt, l.country from {hive(log)} l {kind} join '{some}' i using (user_id)"
        same(t, f"{kind} into a directory", sql(f"select row, user_id, dt_ids, dt, country from {hive(out)}"), sql(want))
    flt = t.path("days.filter")
    t.run("build", "--key", "dt", "-o", flt, days)
    out = t.path("o.parquet")
    r = t.run("scan", "--filter", flt, "--key", "dt", "--json", "-o", out, log)
    same(t, "scan by dt", pq.read_table(out), sql(f"select * from {hive(log)} where dt in (date '2024-01-02', date '2024-01-03')"))
    t.equal("one row group needs no page", (r.json["row_groups_skipped"], r.json["row_groups"]), (1, 3))
    flt = t.path("places.filter")
    t.run("build", "--key", "country", "-o", flt, places)
    out = t.path("o.parquet")
    t.run("scan", "--filter", flt, "--key", "country", "-o", out, log)
    same(t, "build --key of a path", pq.read_table(out), sql(f"select * from {hive(log)} where country in ('SE', 'DK')"))
    r = t.run("scan", "--filter", flt, "--key", "country", "--count", log)
    t.equal("--count", r.out.strip(), b"60")
    lines = t.path("lines")
    for country, users in {"NO": "user_id\n1\n2\n", "SE": "user_id\n3\n"}.items():
        (lines / f"country={country}").mkdir(parents=True)
        (lines / f"country={country}" / "ids.csv").write_text(users)
    out = t.path("o.parquet")
    t.run("join", "--ids", lines, "--on", "user_id,country", "-o", out, log)
    want = "(country = 'NO' and user_id in (1, 2)) or (country = 'SE' and user_id = 3)"
    same(t, "text IDs in directories", pq.read_table(out), sql(f"select * from {hive(log)} where {want}"))


def both(t):
    """A column in the path and in the file."""
    for stats in (True, False):
        root = t.path("log")
        for dt in ("2024-01-01", "2024-01-02"):
            (root / f"dt={dt}").mkdir(parents=True)
            table = pa.table({"dt": pa.array([datetime.date.fromisoformat(dt)] * 50), "user_id": pa.array(range(50), pa.int64())})
            pq.write_table(table, root / f"dt={dt}" / "a.parquet", write_statistics=stats)
        got = joined(t, root)
        t.equal(f"equal, statistics {stats}", (got.column_names, got.num_rows), (["dt", "user_id"], 10))
        bad = pa.table({"dt": pa.array([datetime.date(2024, 1, 2)] * 49 + [datetime.date(2024, 1, 3)]), "user_id": pa.array(range(50), pa.int64())})
        pq.write_table(bad, root / "dt=2024-01-02" / "a.parquet", write_statistics=stats)
        r = t.run("join", "--ids", ids(t), "--on", "user_id", "-o", t.path("o.parquet"), root, want=1)
        t.ok(f"unequal, statistics {stats}", all(w in r.text for w in ("dt=2024-01-02/a.parquet", "column dt", '"2024-01-02"', '"2024-01-03"')), r)
        off = joined(t, root, "o.parquet", "--hive-partitioning", "off")
        t.equal(f"unequal, off, statistics {stats}", off.num_rows, 10)


def growth(t):
    """A log that grows by a value of another type."""
    users = ids(t)
    for first, later, kind, other in [(["hour=10"], "hour=08", "int64", "string"), (["country=1"], "country=NO", "int64", "string"), (["dt=2024-01-01"], "dt=today", "date", "string")]:
        name = first[0].split("=")[0]
        log = tree(t, "log", first)
        file, out = t.path("o.parquet"), str(t.path("out")) + "/"
        args = ["join", "--ids", users, "--on", "user_id"]
        t.run(*args, "-o", file, log)
        t.run(*args, "-o", out, log)
        (log / later).mkdir()
        shutil.copy(log / first[0] / "part.parquet", log / later / "part.parquet")
        r = t.run(*args, "-o", file, log, want=1)
        t.ok(f"{later}, a file", all(w in r.text for w in (f"--hive-types {name}:{kind}", kind, other)), r)
        t.run(*args, "-o", out, log)  # nothing uses the type
        rows = [pq.read_table(f"{out}{d}/part.parquet").num_rows for d in (first[0], later)]
        t.ok(f"{later}, OUT/", rows[0] == rows[1] > 0, rows)
        t.ok(f"{later} alone", "already done" in t.run(*args, "-o", out, log / later).text)
        fits = later.endswith("08")
        where = [*args, "--where", f"{name} IS NOT NULL", "-o", str(t.path("where")) + "/"]
        t.run(*where, log / first[0])
        r = t.run(*where, log, want=None)
        t.ok(f"{later}, used", r.code == (0 if fits else 1) and (fits or f"--hive-types {name}:{kind}" in r.text), r)
        r = t.run(*args, "--hive-types", f"{name}:{kind}", "-o", file, log, "--force", want=None)
        t.equal(f"{later} as {kind}", r.code, 0 if fits else 1)
        if not fits:
            t.ok(f"{later} is named", later in r.text and "--hive-types" in r.text, r)
        t.run(*args, "--hive-types", f"{name}:string", "-o", file, log, "--force")
        t.run(*args, "--hive-types", f"{name}:string", "-o", file, log)  # done before
    log = tree(t, "log", ["a=1"])
    for given, words in {"b:date": "only a", "a": "NAME:TYPE", "a:dat": "dat"}.items():
        r = t.run("join", "--ids", users, "--on", "user_id", "--hive-types", given, "-o", t.path("o.parquet"), log, want=None)
        t.ok(f"--hive-types {given}", r.code == (1 if given == "b:date" else 64) and words in r.text, r)


def run(t, repository):
    del repository
    t.group("hive types", types)
    t.group("hive layouts", layouts)
    t.group("hive sides", sides)
    t.group("hive both", both)
    t.group("hive growth", growth)
