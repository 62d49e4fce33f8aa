"""Parts of an answer, against DuckDB: the first rows (--limit), and those of a share of the keys (--sample-keys)."""

import decimal
import pathlib
import random

import duckdb
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from common import harness
from files import identity

TYPES = ["semi", "anti", "inner", "left"]
STRATEGIES = ["auto", "lookup", "broadcast", "reverse", "shuffle"]
SQL = {
    "semi": "SELECT log.* FROM log WHERE k IN (SELECT id FROM ids WHERE id IS NOT NULL)",
    "anti": "SELECT log.* FROM log WHERE NOT EXISTS (FROM ids WHERE id = k)",
    "inner": "SELECT * FROM log JOIN ids ON k = id",
    "left": "SELECT * FROM log LEFT JOIN ids ON k = id",
    "right": "SELECT * FROM log RIGHT JOIN ids ON k = id",
    "full": "SELECT * FROM log FULL JOIN ids ON k = id",
}


class Tables:
    """A log in several files and a list of IDs, some of which repeat."""

    def __init__(self, t, seed, sizes=(900, 1, 2500)):
        rng = random.Random(f"parts {seed}")
        self.place, first = identity.fresh(t, "logs"), 0
        self.place.mkdir()
        for i, n in enumerate(sizes):
            keys = [None if rng.random() < 0.05 else rng.randrange(300) for _ in range(n)]
            table = pa.table({"row": range(first, first + n), "k": pa.array(keys, pa.int64()), "s": pa.array(["x" * rng.randrange(30) for _ in range(n)], pa.string())})
            pq.write_table(table, self.place / f"{i}.parquet", row_group_size=rng.choice([100, 400, 5000]), data_page_size=rng.choice([300, 100_000]))
            first += n
        self.ids = pa.table({"id": pa.array([None if rng.random() < 0.05 else rng.randrange(400) for _ in range(250)], pa.int64()), "n": range(250)})
        self.idfile = identity.fresh(t, "ids.parquet")
        pq.write_table(self.ids, self.idfile, row_group_size=90)
        self.db = duckdb.connect()
        self.db.execute(f"CREATE TABLE log AS FROM '{self.place}/*.parquet'")
        ids = self.ids
        self.db.execute("CREATE TABLE ids AS FROM ids")
        del ids

    def rows(self, kind, more="", order="row, n"):
        """What DuckDB answers, in the order of the log, and of the IDs beside one row."""
        only = order if kind not in ("semi", "anti") else "row"
        return self.db.sql(f"FROM ({SQL[kind]}) {more} ORDER BY {only} NULLS LAST").fetchall()


def read(path):
    if path.suffix == ".arrow":
        table = pa.ipc.open_file(path).read_all()
    elif path.suffix == ".parquet":
        table = pq.read_table(path)
    else:
        return duckdb.sql(f"FROM read_csv('{path}', allow_quoted_nulls=false)").fetchall()
    return list(zip(*(c.to_pylist() for c in table.columns), strict=True)) or []


def ordered(rows):
    """Rows whatever their order; decimals as the integers that they are here."""
    return sorted(str([int(v) if isinstance(v, decimal.Decimal) else v for v in row]) for row in rows)


def limits(t):
    for seed in range(6 if harness.FULL else 2):
        d, rng = Tables(t, seed), random.Random(f"limits {seed}")
        for kind in TYPES:
            want = d.rows(kind)
            for n in (1, rng.randrange(2, 900), len(want), len(want) + 1):
                strategy, out = rng.choice(STRATEGIES), identity.fresh(t, "out" + rng.choice([".parquet", ".arrow", ".csv"]))
                name = f"{seed}, {kind}, {'all and one' if n > len(want) else 'all' if n == len(want) else 'one' if n == 1 else 'some'}"
                given = ["join", "--ids", d.idfile, "--on", "k=id", "--type", kind, "--limit", n, "--strategy", strategy]
                r = t.run(*given, "--memory", rng.choice(["32MiB", "1GiB"]), "--threads", rng.choice([1, 2]), "--json", "-o", out, d.place, opens=out.suffix == ".parquet")
                t.equal(f"{name}: rows", read(out), want[:n])
                t.equal(f"{name}: report", (r.json["rows_out"], r.json.get("limit_reached", False)), (len(want[:n]), n <= len(want)))
                r = t.run(*given, "--count", d.place)
                t.equal(f"{name}: count", int(r.out), len(want[:n]))
    d = Tables(t, "others")
    filter_ = identity.fresh(t, "ids.bjf")
    t.run("build", "--key", "id", "--kind", "exact", "-o", filter_, d.idfile)
    out = identity.fresh(t, "out.parquet")
    scan = ["scan", "--filter", filter_, "--key", "k", "--limit", 70]
    t.run(*scan, "-o", out, d.place)
    t.equal("scan", read(out), d.rows("semi")[:70])
    r = t.run(*scan, "--json", "-o", out, d.place)
    t.ok("the same again is done", "already done" in r.text, str(r))
    r = t.run(*scan[:-1], 71, "-o", out, d.place, want=None)
    t.ok("another limit is another run", r.code == 1 and "--force" in r.text, str(r))
    r = t.run(*scan, "--where", "row % 2 = 0", "-o", out, d.place, want=None)
    t.equal("a condition that is none", r.code, 64)
    t.run(*scan, "--where", "row > 1000", "--columns", "s,row", "--force", "-o", out, d.place)
    t.equal("scan, with a condition and columns", read(out), [(s, row) for row, _, s in d.rows("semi", "WHERE row > 1000")[:70]])
    stream = t.run("join", "--ids", d.idfile, "--on", "k=id", "--type", "inner", "--limit", 9, "-o", "-", d.place)
    t.equal("a stream", pa.ipc.open_stream(stream.out).read_all().num_rows, 9)
    for what in (["--shard", "0/2"], ["--type", "right"], ["--type", "full"], ["-o", f"{out}.d/"], ["--max-kept", "50%"], ["--require-ids-matched", "1%"]):
        given = ["join", "--ids", d.idfile, "--on", "k=id", "--limit", 5, *what, d.place]
        r = t.run(*given, *([] if "-o" in what else ["-o", f"{out}.parquet"]), want=None)
        t.ok(f"not with {what[0]} {what[1] if what[0] == '--type' else ''}".strip(), r.code == 64 and "--limit" in r.text, str(r))
    big = identity.fresh(t, "big.parquet")
    texts = pa.array([f"{'x' * 100}{i}" for i in range(300_000)])
    pq.write_table(pa.table({"id": pa.array(range(300_000)), "v": texts}), big, use_dictionary=False, data_page_size=50_000)
    log = identity.fresh(t, "biglog.parquet")
    duckdb.sql(f"COPY (SELECT range AS row, hash(range) % 300000 AS k FROM range(300000)) TO '{log}' (ROW_GROUP_SIZE 300000)")
    r = t.run("join", "--ids", big, "--on", "k=id", "--type", "inner", "--limit", 50, "--memory", "24MiB", "-o", f"{out}.parquet", log, want=None)
    t.ok("IDs of a row group that exceed the memory", r.code == 1 and "--memory" in r.text or r.code == 0 and [v[0] for v in read(pathlib.Path(f"{out}.parquet"))] == list(range(50)), str(r))
    r = t.run("join", "--ids", d.idfile, "--on", "k=id", "--limit", 5, "--require-rows", 6, "-o", f"{out}.parquet", d.place, want=None)
    t.equal("fewer rows than required", r.code, 64)


def samples(t):
    for seed in range(6 if harness.FULL else 2):
        d, rng = Tables(t, f"samples {seed}"), random.Random(f"samples {seed}")
        share = rng.choice(["10%", "0.5"])
        sample = ["--sample-keys", share]
        out = identity.fresh(t, "whole.parquet")
        t.run("join", "--ids", d.idfile, "--on", "k=id", "--type", "full", *sample, "-o", out, d.place)
        members = {k for k in (row[1] if row[1] is not None else row[3] for row in read(out))}
        d.db.execute("CREATE TABLE members AS SELECT unnest(?::BIGINT[]) AS m", [sorted(members)])
        keys = d.db.sql("SELECT count(DISTINCT k) FROM (SELECT k FROM log UNION ALL SELECT id FROM ids)").fetchall()[0][0]
        part = len(members) / keys
        t.ok(f"{seed}: the share", abs(part - (0.1 if share == "10%" else 0.5)) < 0.15 and None not in members, f"{part} of {keys} keys")
        text = identity.fresh(t, "ids.csv")
        duckdb.sql(f"COPY (FROM '{d.idfile}' WHERE id IS NOT NULL) TO '{text}'")
        other = identity.fresh(t, "decimals.parquet")
        duckdb.sql(f"COPY (SELECT id::DECIMAL(12, 2) AS id, n FROM '{d.idfile}') TO '{other}'")
        for kind in [*TYPES, "right", "full"]:
            key = "k" if kind in ("semi", "anti") else "coalesce(k, id)"
            want = d.rows(kind, f"WHERE {key} IN (FROM members)")
            for strategy in STRATEGIES if harness.FULL else rng.sample(STRATEGIES, 2):
                ids = rng.choice([d.idfile, other])
                t.run("join", "--ids", ids, "--on", "k=id", "--type", kind, *sample, "--strategy", strategy, "--memory", "32MiB", "--force", "-o", out, d.place)
                t.equal(f"{seed}, {kind}: {strategy}", ordered(read(out)), ordered(want))
            if kind not in ("right", "full"):
                shards = []
                for i in range(3):
                    t.run("join", "--ids", d.idfile, "--on", "k=id", "--type", kind, *sample, "--shard", f"{i}/3", "--force", "-o", out, d.place)
                    shards += read(out)
                t.equal(f"{seed}, {kind}: shards", ordered(shards), ordered(want))
            r = t.run("join", "--ids", text, "--on", "k=id", "--type", kind, *sample, "--count", d.place)
            fewer = sum(1 for row in d.ids["id"].to_pylist() if row is None)
            t.ok(f"{seed}, {kind}: IDs as text", int(r.out) == len(want) and fewer > 0, f"{r.out} rows, want {len(want)}")
        arrow = identity.fresh(t, "log.arrow")
        with pa.ipc.new_file(arrow, pq.read_schema(d.place / "0.parquet")) as w:
            w.write_table(d.db.sql("FROM log ORDER BY row").arrow().read_all().cast(pq.read_schema(d.place / "0.parquet")))
        r = t.run("join", "--ids", d.idfile, "--on", "k=id", "--type", "anti", *sample, "--count", arrow)
        t.equal(f"{seed}: a log of Arrow", int(r.out), len(d.rows("anti", "WHERE k IN (FROM members)")))
    uuids = identity.fresh(t, "uuids.csv")
    uuids.write_text("id\n00000000-0000-0000-0000-000000000007\nnone\n")
    r = t.run("join", "--ids", uuids, "--on", "s=id", "--normalize", "uuid", "--sample-keys", "50%", "--count", d.place, want=None)
    t.ok("IDs that are none", r.code == 1 and "[E302]" in r.text, str(r))
    hive = identity.fresh(t, "hive")
    for v in range(9):
        (hive / f"u={v}").mkdir(parents=True)
        duckdb.sql(f"COPY (SELECT {v} AS n) TO '{hive}/u={v}/a.parquet'")
    t.run("scan", "--sample-keys", "50%", "--key", "u", "-o", f"{hive}.d/", hive)
    (hive / "u=x").mkdir()
    duckdb.sql(f"COPY (SELECT 9 AS n) TO '{hive}/u=x/a.parquet'")
    r = t.run("scan", "--sample-keys", "50%", "--key", "u", "-o", f"{hive}.d/", hive, want=None)
    t.ok("a key from directories that gets another type", r.code == 1 and "[E406]" in r.text, str(r))
    r = t.run("join", "--ids", d.idfile, "--on", "k=id", "--sample-keys", "0", "-o", out, d.place, want=None)
    t.ok("no share", r.code == 64 and "--sample-keys" in r.text, str(r))
    scans(t, d, members, sample)


def scans(t, d, members, sample):
    """Scans have the same sample, whatever their filter; and two things at once."""
    filter_, out = identity.fresh(t, "ids.bjf"), identity.fresh(t, "scan.parquet")
    t.run("build", "--key", "id", "--kind", "exact", "-o", filter_, d.idfile)
    want = d.rows("semi", "WHERE k IN (FROM members)")
    t.run("scan", "--filter", filter_, "--key", "k", *sample, "-o", out, d.place)
    t.equal("scan", read(out), want)
    t.run("scan", "--filter", filter_, "--key", "k", *sample, "--limit", 7, "--where", "row >= 500", "--force", "-o", out, d.place)
    t.equal("scan, with a limit and a condition", read(out), [row for row in want if row[0] >= 500][:7])
    t.run("join", "--ids", d.idfile, "--on", "k=id", *sample, "--filter", filter_, "--force", "-o", out, d.place)
    t.equal("join with a filter of all IDs", read(out), want)
    t.run("join", "--ids", d.idfile, "--on", "k=id", *sample, "--filter", filter_, "--type", "left", "--limit", 31, "--force", "-o", out, d.place)
    t.equal("left join with a filter of all IDs and a limit", read(out), d.rows("left", "WHERE k IN (FROM members)")[:31])
    table = identity.fresh(t, "table")
    from deltalake import DeltaTable, write_deltalake

    write_deltalake(table, d.db.sql("FROM log ORDER BY row").arrow().read_all())
    DeltaTable(table).delete("row >= 1000 AND row < 1500")
    t.run("join", "--ids", d.idfile, "--on", "k=id", "--type", "anti", *sample, "--force", "-o", out, f"delta:{table}")
    t.equal("a table as the log", ordered(read(out)), ordered(d.rows("anti", "WHERE k IN (FROM members) AND NOT (row >= 1000 AND row < 1500)")))
    t.run("join", "--ids", d.idfile, "--on", "k=id", "--type", "anti", "--limit", 50, "--force", "-o", out, f"delta:{table}")
    rest = {str(row) for row in d.rows("anti", "WHERE NOT (row >= 1000 AND row < 1500)")}
    t.ok("a table as the log, with a limit", len(read(out)) == 50 and all(str(row) in rest for row in read(out)))


def run(t, _):
    t.group("limits", limits)
    t.group("samples of keys", samples)
