"""Iceberg tables of a REST catalog, SeaweedFS, which grants credentials: their rows as pyiceberg reads them."""

import concurrent.futures
import contextlib
import datetime
import pathlib
import shutil
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
from common import harness
from files import tables as delta
from files.iceberg import catalog, relay
from files.iceberg_tables import known
from files.tables import CONDITIONS, UTC, batch, every, ordered, plain, read, whole

WEED = pathlib.Path(sys.executable).with_name("weed")


class Tables(delta.Tables):
    """Tables in a catalog, which starts when it is first needed."""

    made, keys = "catalogs", ("id", "n")

    def __init__(self, t, stack):
        super().__init__(t)
        self.stack, self.at = stack, None
        (self.dir / "home").mkdir()

    def __enter__(self):
        """Starts the catalog. Runs have none of AWS's settings, and the catalog's client ID and secret."""
        if self.at is None:
            self.at, self.store = self.stack.enter_context(catalog.server(self.dir / "server", WEED))
            self.client = catalog.pyiceberg(self.at, self.store)
            self.client.create_namespace("web")
        self.use(catalog.environment(self.at))
        return self

    def __exit__(self, *_):
        self.t.environment = harness.ENVIRONMENT

    def use(self, settings):
        """The environment of later runs."""
        own = {k: v for k, v in harness.ENVIRONMENT.items() if not k.startswith(("AWS_", "BLOOMJOIN_REST_"))}
        self.t.environment = own | {"HOME": str(self.dir / "home")} | settings

    def name(self, table, at=None):
        return f"rest:{at or self.at}#{table}"

    def table(self, name, *batches):
        """A table of the catalog. Each batch is a snapshot, and a file for each partition."""
        made = Made(self, self.client.create_table(name, SCHEMA))
        for data in batches:
            made.table.append(data)
        return made


class Made:
    """A table that pyiceberg changes step by step."""

    def __init__(self, tables, table):
        self.table, self.name = table, tables.name(".".join(table.name()))

    def rows(self, snapshot=None):
        return self.table.scan(snapshot_id=snapshot).to_arrow()


SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string()), ("at", pa.timestamp("us", "UTC")), ("amount", pa.float32()), ("url", pa.string()), ("n", pa.int32())])


def some(low, high):
    return batch(low, high, n=lambda i: i).cast(SCHEMA)


def snapshots(t, tables):
    """All ways to read the newest snapshot, and the others by their ids, names and times."""
    from pyiceberg.transforms import DayTransform
    from pyiceberg.types import LongType

    made = tables.table("web.events", some(0, 20))
    with made.table.update_spec() as spec:
        spec.add_field("country", "identity").add_field("at", DayTransform(), "day")
    made.table.append(some(20, 40))
    first, second = (s.snapshot_id for s in made.table.metadata.snapshots)
    made.table.manage_snapshots().create_tag(first, "first").create_branch(second, "side").commit()
    with made.table.update_schema() as columns:
        columns.rename_column("url", "page")
        columns.update_column("n", LongType())
        columns.add_column("more", LongType())
    later = some(40, 60).rename_columns(["id", "country", "at", "amount", "page", "n"]).append_column("more", pa.array(range(20), pa.int64()))
    made.table.append(later.cast(made.table.schema().as_arrow()))
    made.table.delete("id >= 10 and id < 14")
    tables.use(catalog.environment(tables.at) | {"BLOOMJOIN_REST_URI": tables.at})  # for lists
    every(
        tables,
        "newest",
        made.name,
        made.rows(),
        {
            **{k: CONDITIONS[k] for k in ("country is null", "amount > 5", "at >= TIMESTAMPTZ '2026-01-02T00:00:00Z'")},
            "page = '/p/33'": lambda r: r["page"] == "/p/33",
            "more > 5": lambda r: known("more", r) and r["more"] > 5,
        },
    )
    for n, s in enumerate(made.table.metadata.snapshots, 1):
        want = made.rows(s.snapshot_id)
        whole(tables, f"snapshot {n}", f"{made.name}@snapshot={s.snapshot_id}", want)
        at = datetime.datetime.fromtimestamp(s.timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        t.equal(f"time of snapshot {n}", plain(tables.rows([f"{made.name}@{at}"], "id")), plain(want))
    t.equal("a tag", plain(tables.rows([f"{made.name}@tag=first"], "id")), plain(made.rows(first)))
    t.equal("a branch", tables.count([f"{made.name}@branch=side"], "id", "left", tables.nobody("id")), made.rows(second).num_rows)
    no(t, tables, "an unknown branch", f"{made.name}@branch=none", '"none"')
    no(t, tables, "a time before the first snapshot", f"{made.name}@2020-01-01T00:00:00Z", "2020-01-01")


def ways(t, tables):
    """Each way to authorize requests."""
    made = tables.table("web.ways", some(0, 30))
    for how in ("credential", "token", "sigv4"):
        tables.use(catalog.environment(tables.at, how))
        whole(tables, how, made.name, made.rows())
    whole(tables, "an address with /v1/", tables.name("web.ways", f"{tables.at}/v1/"), made.rows())
    whole(tables, "double quotes", tables.name('"web"."ways"'), made.rows())
    tables.client.create_namespace(("web", "eu"))
    nested = tables.table("web.eu.ways", some(5, 9))
    whole(tables, "a namespace of two levels", nested.name, nested.rows())


def together(t, tables):
    """Two tables of a bucket, each read with its own credentials."""
    log, ids = tables.table("web.log", some(0, 40), some(40, 80)), tables.table("web.log2", some(30, 50), some(90, 95))
    rows, keys = log.rows().to_pylist(), {*ids.rows()["id"].to_pylist()}
    with relay.Relay(tables.at, tables.store, valid=3600, tells=3600) as r:
        tables.use(catalog.environment(tables.at))
        names = [tables.name(n, r.catalog) for n in ("web.log", "web.log2")]
        got = tables.rows(names[:1], "id", "semi", names[1])
        t.equal("semi", plain(got), sorted(repr(ordered(row)) for row in rows if row["id"] in keys))
        t.equal("one grant for each", len(r.sessions), 2)
    out = tables.out("pairs.parquet")
    t.run("join", "--ids", ids.name, "--on", "id", "--type", "inner", "--columns", "id", "-o", out, log.name)
    t.equal("inner", sorted(read(out)["id"].to_pylist()), sorted(keys & {row["id"] for row in rows}))
    t.equal("anti", tables.count([log.name], "id", "anti", ids.name), len([row for row in rows if row["id"] not in keys]))
    t.equal("the table with itself", tables.count([log.name], "id", "semi", log.name), len(rows))
    older = f"{log.name}@snapshot={log.table.metadata.snapshots[0].snapshot_id}"
    t.equal("the table without its first snapshot", tables.count([log.name], "id", "anti", older), 40)
    t.equal("both as logs", tables.count([log.name, ids.name], "id", "left", tables.nobody("id")), len(rows) + ids.rows().num_rows)


def lists(t, tables):
    """A list is read by workers that have its catalog's address."""
    made, listed, out = tables.table("web.lists", some(0, 20), some(20, 40)), tables.out("list.jsonl"), tables.out("workers")
    want, args = made.rows(), ("--ids", tables.nobody("id"), "--on", "id", "--type", "left", "--files-from", listed)
    with relay.Relay(tables.at, tables.store, valid=3600, tells=3600) as r:
        settings = catalog.environment(tables.at)
        t.run("inputs", "--index", "id", "-o", listed, tables.name("web.lists", r.catalog))
        made.table.append(some(40, 50))
        for label, own in (("no address", {}), ("another address", {"BLOOMJOIN_REST_URI": tables.at})):
            tables.use(settings | own)
            before = len(r.log)
            p = t.run("join", *args, "-o", tables.out("refused.parquet"), want=None)
            t.ok(f"{label}: refused", p.code not in (0, 2) and "BLOOMJOIN_REST_URI" in p.text and r.catalog in p.text, str(p))
            t.equal(f"{label}: no request was sent", len(r.log), before)
        tables.use(settings | {"BLOOMJOIN_REST_URI": r.catalog + "/v1/"})
        t.equal("rows", plain(tables.rows(["--files-from", listed], "id")), plain(want))
        grants = len(r.sessions)
        for shard in ("0/2", "1/2"):
            t.run("join", *args, "--shard", shard, "-o", f"{out}/")
        t.ok("workers: each asks the catalog", len(r.sessions) > grants)
        t.ok("workers: committed", (out / "_SUCCESS").exists())
        delta.directory(tables, "workers: rows", out, want)
        t.equal("no secret in the list", secret_in(r, listed.read_bytes()), [])


def secret_in(r, *texts):
    """Which secrets of a relay are in texts."""
    return [s for s in (catalog.SECRET, *r.secrets) if any(s.encode() in text for text in texts)]


def reruns(t, tables):
    """A directory is brought up to date, and has no secrets."""
    made, out = tables.table("web.reruns", some(0, 20)), tables.out("grows")
    with relay.Relay(tables.at, tables.store, valid=3600, tells=3600) as r:
        name = tables.name("web.reruns", r.catalog)
        args = ("join", "--ids", tables.nobody("id"), "--on", "id", "--type", "left", "--verbose", "--json", "-o", f"{out}/", name)
        for n in (1, 2):
            made.table.append(some(20 * n, 20 * n + 20))
            p = t.run(*args)
            delta.directory(tables, f"run {n}", out, made.rows())
        t.equal("a run of a further file reads that alone", p.json["rows_in"], 20)
        again = t.run(*args)
        t.ok("nothing is left to do", "already" in again.text or "up to date" in again.text, str(again))
        t.equal("no secrets", secret_in(r, p.out, p.err, again.out, again.err, *(f.read_bytes() for f in out.rglob("*") if f.is_file())), [])
        t.ok("there are secrets", len(r.secrets) > 3)


# What is refused.


def no(t, tables, name, table, *says, code=1, environment=None):
    """An error that says what is wrong, without secrets; nothing is left."""
    out = tables.out("refused.parquet")
    tables.use(catalog.environment(tables.at) if environment is None else environment)
    secrets = [catalog.SECRET, "wrong-secret", "wrong-token"]
    for how, args in (("a log", ("--ids", tables.nobody("id"), "--on", "id", table)), ("IDs", ("--ids", table, "--on", "k=id", tables.log))):
        r = t.run("join", *args, "--json", "--verbose", "-o", out, want=None)
        found = [s for s in secrets if s.encode() in r.out + r.err]
        t.ok(f"{name}: {how}", r.code == code and all(s in r.text for s in says) and not out.exists() and not found, f"want {code}, {says}, no {found}, got {r}")
    tables.use(catalog.environment(tables.at))


def refusals(t, tables):
    tables.table("web.refused", some(0, 9))
    name, own = tables.name("web.refused"), catalog.environment(tables.at)
    place = {k: v for k, v in own.items() if k != "BLOOMJOIN_REST_CREDENTIAL"}
    ways = ("BLOOMJOIN_REST_TOKEN", "BLOOMJOIN_REST_CREDENTIAL", "BLOOMJOIN_REST_SIGV4")
    no(t, tables, "an unknown table", tables.name("web.none"), "web.none", "no table", "BLOOMJOIN_REST_WAREHOUSE")
    no(t, tables, "an unknown namespace", tables.name("none.refused"), "none.refused", "BLOOMJOIN_REST_WAREHOUSE")
    no(t, tables, "an unknown warehouse", name, "BLOOMJOIN_REST_WAREHOUSE", environment=own | {"BLOOMJOIN_REST_WAREHOUSE": "s3://none"})
    no(t, tables, "no settings", name, *ways, environment=place)
    no(t, tables, "a wrong token", name, tables.at, environment=place | {"BLOOMJOIN_REST_TOKEN": "wrong-token"})
    no(t, tables, "a wrong secret", name, tables.at, environment=place | {"BLOOMJOIN_REST_CREDENTIAL": f"{catalog.KEY}:wrong-secret"})
    no(t, tables, "a wrong ID", name, tables.at, environment=place | {"BLOOMJOIN_REST_CREDENTIAL": f"wrong:{catalog.SECRET}"})
    signed = catalog.environment(tables.at, "sigv4")
    no(t, tables, "a wrong key of AWS", name, tables.at, environment=signed | {"AWS_SECRET_ACCESS_KEY": "wrong-secret"})
    no(t, tables, "two settings", name, "BLOOMJOIN_REST_TOKEN and BLOOMJOIN_REST_CREDENTIAL", environment=own | {"BLOOMJOIN_REST_TOKEN": "wrong-token"})
    no(t, tables, "a secret in the address", f"rest:http://{catalog.KEY}:wrong-secret@{tables.at[7:]}#web.refused", "password")
    no(t, tables, "no namespace", tables.name("refused"), "NAMESPACE.TABLE")
    no(t, tables, "no table", f"rest:{tables.at}", "rest:URL#NAMESPACE.TABLE")
    no(t, tables, "another server", tables.name("web.refused", tables.store), tables.store)
    out = tables.out("closed.parquet")
    with relay.Relay(tables.at, tables.store) as r:
        closed = tables.name("web.refused", r.catalog)
    p = t.run("join", "--ids", tables.nobody("id"), "--on", "id", "--store-option", "retries=1", "-o", out, closed, want=75)
    t.ok("no server", r.catalog in p.text and not out.exists(), str(p))


# Tokens that expire.

SLOW = ("--type", "left", "--threads", "1", "--store-option", "requests=1", "--store-option", "retries=2")


def slow(t, tables, r, out):
    """Reads a table of several files, one after the other."""
    args = ("--ids", tables.nobody("id"), "--on", "id", *SLOW, "--verbose", "--json", "-o", out, tables.name("web.slow", r.catalog))
    return t.run("join", *args, opens=False)


def endings(t, tables):
    """Scans that take longer than tokens are valid. These are accepted for some time after they are said to end."""
    made = tables.table("web.slow")
    with made.table.transaction() as transaction:
        for n in range(8):
            transaction.append(some(10 * n, 10 * n + 10))
    want = plain(made.rows())
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for task in [pool.submit(case, t, tables, want) for case in (renewed, renewed_alone, unannounced, busy)]:
            task.result()


def renewed(t, tables, want, label="credentials with the table", what="table", least=3, lists=False):
    out = tables.out(f"slow {what}.parquet")
    with relay.Relay(tables.at, tables.store, valid=4, tells=2, pause=0.6, lists=lists) as r:
        p = slow(t, tables, r, out)
    t.equal(f"{label}: rows", plain(read(out)), want)
    t.ok(f"{label}: asked for again, twice", r.count(what) >= least, str(r.log))
    t.ok(f"{label}: with fresh tokens", r.count("token") >= 3, str(r.log))
    t.equal(f"{label}: none was refused", [e for e in r.log if e[1] in (401, 403)], [])
    t.equal(f"{label}: no secrets", secret_in(r, p.out, p.err, out.read_bytes()), [])


def renewed_alone(t, tables, want):
    renewed(t, tables, want, "credentials alone", "credentials", 2, True)


def unannounced(t, tables, want):
    out, label = tables.out("slow unannounced.parquet"), "an end that is not announced"
    with relay.Relay(tables.at, tables.store, valid=2.5, tells=None, pause=0.6) as r:
        slow(t, tables, r, out)
    t.equal(f"{label}: rows", plain(read(out)), want)
    t.ok(f"{label}: refused", r.count("data", 403) and r.count("table", 401), str(r.log))
    t.ok(f"{label}: asked for again", r.count("table") == 2 and r.count("token") == 2, str(r.log))


def busy(t, tables, want):
    out = tables.out("slow busy.parquet")
    with relay.Relay(tables.at, tables.store, valid=4, tells=2, pause=0.5) as r:
        r.busy = 2
        slow(t, tables, r, out)
    t.equal("a catalog that is busy: rows", plain(read(out)), want)
    t.equal("a catalog that is busy: asked again", r.count("table", 503), 2)


def dying(t, tables):
    """The catalog ends while a table is read: nothing is published, and the next run has all."""
    made, one, out = tables.table("web.dying", *(some(10 * n, 10 * n + 10) for n in range(6))), tables.out("dying.parquet"), tables.out("dying")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for task in [pool.submit(dies, t, tables, *case) for case in (("a file", one, one), ("a directory", out, f"{out}/"))]:
            task.result()
    t.run("join", "--ids", tables.nobody("id"), "--on", "id", *SLOW, "-o", f"{out}/", made.name)
    delta.directory(tables, "a directory: the next run", out, made.rows())


def dies(t, tables, label, path, target):
    with relay.Relay(tables.at, tables.store, valid=2, tells=2, pause=0.6) as r:
        r.dies = 1
        began = time.monotonic()
        p = t.run("join", "--ids", tables.nobody("id"), "--on", "id", *SLOW, "-o", target, tables.name("web.dying", r.catalog), want=75)
    t.ok(f"{label}: the error names the catalog", r.catalog in p.text, str(p))
    t.ok(f"{label}: data was read", r.count("data") > 1, str(r.log))
    t.ok(f"{label}: it is not asked for long", time.monotonic() - began < 20, str(p))
    t.ok(f"{label}: nothing is published", not path.is_file() and not (path / "_SUCCESS").exists())
    t.equal(f"{label}: no secrets", secret_in(r, p.out, p.err), [])


MADE = {
    "snapshots": snapshots, "ways to authorize": ways, "two tables": together, "lists": lists, "reruns": reruns, "refused": refusals, "tokens that end": endings, "a catalog that ends": dying,
}  # fmt: skip


def run(t, _repository):
    with contextlib.ExitStack() as stack:
        tables = Tables(t, stack)
        for name, function in MADE.items():
            t.group(f"catalogs {name}", within, tables, function)
    shutil.rmtree(tables.dir / "server", ignore_errors=True)


def within(t, tables, function):
    with tables:
        function(t, tables)
