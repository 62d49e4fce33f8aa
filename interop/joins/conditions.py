"""Conditions on IDs, scans by a condition alone, and keys with other names, against DuckDB: in every format, in tables, by shards."""

import itertools
import tarfile

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from common import tables
from files.iceberg_tables import HERE

TYPES = ["semi", "anti", "inner", "left", "right", "full"]
STRATEGIES = ["auto", "lookup", "broadcast", "reverse", "shuffle"]
LOG = "select (hash(i) % 500)::bigint as user_id, i as n, 'x' || (i % 7) as s from range(20000) t(i)"
IDS = "select case when i % 97 = 0 then null else i * 3 % 600 end::bigint as id, ['DE', 'FR', 'US'][1 + i % 3] as country, i::varchar as v from range(400) t(i)"
NAMES = [("user_id", "n < 7000"), ("uid", "n between 7000 and 13999"), ("ident", "n >= 14000")]


class World:
    """A log and IDs, stored in several ways, and what DuckDB makes of them."""

    def __init__(self, t):
        self.t, self.db, self.ids, self.dir = t, duckdb.connect(), {}, t.path("conditions")
        self.dir.mkdir()
        self.db.execute(f"set timezone = 'UTC'; set threads = 1; create table log as {LOG}; create table ids as {IDS}")
        self.log = self.copy("from log", "log.parquet", "row_group_size 2048")
        for name, options in (("parquet", "row_group_size 2048"), ("csv", "header"), ("ndjson", "format json")):
            self.ids[name] = self.copy("from ids", f"ids.{name}", options)
        self.ids["arrow"] = tables.write(self.db.sql("from ids").to_arrow_table(), self.dir / "ids.arrow", max_chunksize=90)

    def copy(self, query, name, options):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self.db.execute(f"copy ({query}) to '{path}' ({options})")
        return path

    def answer(self, kind, log, ids):
        """Rows, and sums of the log's numbers and the IDs."""
        if kind in ("semi", "anti"):
            has = "" if kind == "semi" else "not"
            return self.one(f"select count(*), sum(n), null from {log} log where {has} exists (select 1 from {ids} i where i.id = log.user_id)")
        return self.one(f"select count(*), sum(n), sum(id) from {log} log {kind} join {ids} i on i.id = log.user_id")

    def one(self, query):
        return self.db.execute(query).fetchall()[0]

    def of(self, out, kind):
        files = f"'{out}/**/*.parquet'" if out.is_dir() else f"'{out}'"
        return self.one(f"select count(*), sum(n), {'null' if kind in ('semi', 'anti') else 'sum(id)'} from {files}")


def on_ids(t):
    w = World(t)
    out, part = w.dir / "out.parquet", w.dir / "out"
    for form, kind in itertools.product(w.ids, TYPES):
        condition = "country <> 'US' AND v > '1'"
        want, got = w.answer(kind, "log", f"(from ids where {condition})"), []
        for n, strategy in enumerate(STRATEGIES):
            memory = ["--memory", "40MiB"] if n % 2 else []
            t.run("join", "--ids", w.ids[form], "--ids-where", condition, "--on", "user_id=id", "--type", kind, "--strategy", strategy, *memory, "--force", "-o", out, w.log)
            got.append(w.of(out, kind))
        t.equal(f"{form}, {kind}", got, [want] * len(STRATEGIES))
    for form in w.ids:
        key = ["--key", "id", *(["--key-type", "int64"] if form in ("csv", "ndjson") else []), "--expect", "400", "--force", "--ids-where", "country = 'DE'"]
        parts = [w.dir / f"{i}.bjf" for i in range(3)]
        for i, p in enumerate(parts):
            t.run("build", *key, "--shard", f"{i}/3", "-o", p, w.ids[form])
        t.run("merge", "--force", "-o", w.dir / "merged.bjf", *parts)
        t.run("build", *key, "-o", w.dir / "whole.bjf", w.ids[form])
        t.equal(f"{form}: shards", (w.dir / "merged.bjf").read_bytes(), (w.dir / "whole.bjf").read_bytes())
        r = t.run("scan", "--filter", w.dir / "whole.bjf", "--key", "user_id", "--count", "--json", w.log).json
        t.equal(f"{form}: filter", r["rows_out"], w.answer("semi", "log", "(from ids where country = 'DE')")[0])
        t.run("build", *key[:-1], "country = 'FR'", "--shard", "1/3", "-o", parts[1], w.ids[form])
        r = t.run("merge", "--force", "-o", w.dir / "merged.bjf", *parts, want=1)
        t.ok(f"{form}: another condition", "merge only partial filters" in r.text, r)
    for i in range(2):
        t.run("join", "--ids", w.ids["csv"], "--ids-where", "country = 'DE'", "--on", "user_id=id", "--shard", f"{i}/2", "-o", f"{part}/", w.log)
    t.equal("sharded join", w.of(part, "semi"), w.answer("semi", "log", "(from ids where country = 'DE')"))
    for kind, name, rows in found(w):
        ids, condition = pq.read_table(rows, partitioning=None), "amount > 2 AND country IS NOT NULL"  # noqa: F841 - DuckDB reads it
        w.db.register("of_table", ids)
        for strategy in STRATEGIES:
            t.run("join", "--ids", name, "--ids-where", condition, "--on", "n=id", "--type", "full", "--strategy", strategy, "--force", "-o", out, w.log)
            want = w.one(f"select count(*), sum(n), sum(id) from log full join (from of_table where {condition}) i on i.id = n")
            t.equal(f"{kind}, {strategy}", w.of(out, "full"), want)


def found(w):
    """Tables with deleted rows, and their rows."""
    for kind, name, newest in (("delta", "vectors", "v5"), ("iceberg", "equality", "newest"), ("iceberg", "positions", "newest")):
        to = w.dir / f"{kind}-{name}"
        if not to.exists():
            with tarfile.open(HERE / kind / f"{name}.tar.xz") as tar:
                tar.extractall(to, filter="data")
        yield f"{kind} {name}", f"{kind}:{to / 'table'}", to / f"rows/{newest}.parquet"


def alone(t):
    w = World(t)
    out, part = w.dir / "out.parquet", w.dir / "out"
    for condition in ("n between 5000 and 8999", "s = 'x3' and n < 10000", "user_id is null", "n >= 0"):
        want = w.one(f"select count(*), sum(n), null from log where {condition}")
        r = t.run("scan", "--where", condition, "--json", "-o", out, "--force", w.log).json
        t.equal(f"{condition}: file", (w.of(out, "semi"), r["rows_out"], r["fpr_predicted"]), (want, want[0], 0))
        t.equal(f"{condition}: order", [n for (n,) in w.db.execute(f"select n from '{out}'").fetchall()], [n for (n,) in w.db.execute(f"select n from log where {condition} order by n").fetchall()])
        t.equal(f"{condition}: count", t.run("scan", "--where", condition, "--count", "--json", w.log).json["rows_out"], want[0])
        for i in range(3):
            t.run("scan", "--where", condition, "--shard", f"{i}/3", "--memory", "40MiB", "-o", f"{part}-{want[0]}/", w.log)
        t.equal(f"{condition}: shards", w.of(w.dir / f"out-{want[0]}", "semi") if want[0] else want, want)
        t.ok(f"{condition}: again", b"already_done" in t.run("scan", "--where", condition, "--json", "-o", out, w.log).out)
    t.ok("inspect", b"rows of a log that satisfy a condition" in t.run("inspect", out).out)
    for kind, name, rows in found(w):
        of_table = pq.read_table(rows, partitioning=None)
        w.db.register("of_table", of_table)
        t.run("scan", "--where", "amount > 2", "--columns", "id,amount", "-o", out, "--force", name)
        t.equal(kind, w.one(f"select count(*), sum(id), sum(amount) from '{out}'"), w.one("select count(*), sum(id), sum(amount) from of_table where amount > 2"))


def names(t):
    w = World(t)
    out = w.dir / "out.parquet"
    sides = {}
    for form, options in (("parquet", "row_group_size 2048"), ("arrow", None)):
        for i, (name, rows) in enumerate(NAMES):
            query = f"select user_id as {name}, n, s from log where {rows}"
            if options:
                w.copy(query, f"named/{form}/{i}.{form}", options)
            else:
                tables.write(w.db.sql(query).to_arrow_table(), w.dir / f"named/{form}/{i}.{form}", max_chunksize=900)
        sides[form] = w.dir / f"named/{form}"
    for i, name in enumerate(["id", "ident"]):
        for form, options in (("csv", "header"), ("ndjson", "format json"), ("parquet", "row_group_size 2048")):
            w.copy(f"select id as {name}, country, v from ids where v::int % 2 = {i}", f"namedids/{form}/{i}.{form}", options)
    where, ids_where = "user_id < 250 and n > 100", "country <> 'US'"
    for (form, log), ids, kind in itertools.product(sides.items(), ["csv", "ndjson", "parquet"], TYPES):
        more = ["--where", where, "--ids-where", ids_where] if kind != "full" else []
        rows = (f"(from log where {where})", f"(from ids where {ids_where})") if more else ("log", "ids")
        got = []
        for strategy in STRATEGIES[1:]:
            on = ["--on", "user_id|uid|ident=id|ident", "--type", kind, "--strategy", strategy]
            t.run("join", "--ids", w.dir / f"namedids/{ids}", *on, *more, "--force", "-o", out, log)
            got.append(w.of(out, kind))
        t.equal(f"{form} with {ids}, {kind}", got, [w.answer(kind, *rows)] * len(got))
    t.run("inputs", "-o", w.dir / "names.jsonl", sides["parquet"])
    t.run("join", "--ids", w.ids["parquet"], "--on", "user_id|uid|ident=id", "--columns", "user_id,n", "--files-from", w.dir / "names.jsonl", "--force", "-o", out)
    t.equal("a list", (pq.read_schema(out).names, w.of(out, "semi")), (["user_id", "n"], w.answer("semi", "log", "ids")))
    for kind, name, rows in found(w):
        w.db.register("of_table", pq.read_table(rows, partitioning=None))
        r = t.run("join", "--ids", name, "--ids-where", "key > 50", "--on", "n=key|id", "--type", "inner", "--count", "--json", w.log).json
        t.equal(kind, r["rows_out"], w.one("select count(*) from log join of_table on n = id where id > 50")[0])
    both = tables.write(pa.table({"user_id": [1], "uid": [2]}), w.dir / "both.parquet")
    r = t.run("join", "--ids", w.ids["parquet"], "--on", "user_id|uid=id", "--count", both, want=1)
    t.ok("two names in a file", "both.parquet: mismatch: columns that are read as user_id: want one, got user_id and uid" in r.text, r)


def run(t, _repository):
    t.group("ids where", on_ids)
    t.group("scan where", alone)
    t.group("other names", names)
