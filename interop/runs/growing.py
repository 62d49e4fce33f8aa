"""Logs that grow: the same command does what is new or changed, keeps the rest, and leaves what a run from nothing leaves."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import shutil

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from common import harness, tables

DAYS = 30 if harness.FULL else 8
ROWS = 300  # of a file
USERS, IDS = 1000, 100  # of the log; those from 0 that are IDs
STRANGERS = range(10**6, 10**6 + 11)  # IDs without a row


def part(seed, rows=ROWS, hits=True, **columns):
    """Rows of a log file. Without hits, no row has an ID."""
    rng = random.Random(seed)
    first = 0 if hits else IDS
    return pa.table({
        "row": pa.array(range(seed * 10_000, seed * 10_000 + rows), pa.int64()),
        "user_id": pa.array([rng.randrange(first, USERS) for _ in range(rows)], pa.int64()),
        "text": pa.array([rng.randbytes(60).hex() for _ in range(rows)]),
        **{name: pa.array(values[:rows]) for name, values in columns.items()},
    })


def dt(day):
    return f"dt=2024-01-{day:02}" if day < 32 else f"dt=2024-02-{day - 31:02}"


def put(log, day, name, hits=True, **columns):
    """Writes a file of a day. The same day and name have the same bytes."""
    seed = day * 30 + ord(name[0]) - ord("a")
    return tables.write(part(seed, hits=hits, **columns), log / dt(day) / f"{name}.parquet", row_group_size=100)


def make_log(t, days=DAYS):
    """A log of days with three files each. The last one of every third day has no ID, and day 9 has none at all."""
    log = t.path("log")
    for day in range(1, days + 1):
        for name in "abc":
            put(log, day, name, hits=day != 9 and (name != "c" or day % 3 > 0))
    return log


def id_file(t, name="ids.parquet", first=0):
    """Some users, and a name for each."""
    users = [*range(first, first + IDS), *STRANGERS]
    return tables.write(pa.table({"user_id": pa.array(users, pa.int64()), "name": [f"u{u}" for u in users]}), t.path(name))


def snapshot(root):
    """What is in a directory: path → (time, inode, digest)."""
    found = {}
    for where, _, names in os.walk(root):
        for p in (pathlib.Path(where, name) for name in names):
            s = p.stat()
            found[str(p.relative_to(root))] = (s.st_mtime_ns, s.st_ino, hashlib.sha256(p.read_bytes()).hexdigest())
    return found


def data(files):
    """The digests of data files in a snapshot."""
    return {name: digest for name, (_, _, digest) in files.items() if name.endswith((".parquet", ".arrow"))}


def answer(source):
    """A query's rows, in order of row and name, whatever the order of their columns."""
    table = duckdb.sql(source).to_arrow_table()
    names = sorted(table.column_names)
    return sorted((tuple(str(r[n]) for n in names) for r in table.to_pylist()), key=str), names


def files_of(roots):
    return ", ".join(f"'{r}/**/*.parquet'" for r in roots)


def wanted(kind, roots, ids, where="true"):
    """The query for the answer of a join over some directories of a log, by DuckDB."""
    log = f"(select * from read_parquet([{files_of(roots)}], hive_partitioning = true, union_by_name = true) where {where}) l"
    match = f"exists (from '{ids}' i where i.user_id = l.user_id)"
    if kind in ("semi", "scan", "anti"):
        return f"select l.* from {log} where {'not ' if kind == 'anti' else ''}{match}"
    return f"select coalesce(l.user_id, i.user_id) user_id, l.* exclude (user_id), i.name from {log} {kind} join '{ids}' i on l.user_id = i.user_id"


def got(out):
    return f"select * from read_parquet('{out}/**/*.parquet', hive_partitioning = true, union_by_name = true)"


class Grown:
    """A log, a command over it, and the directory that it keeps."""

    def __init__(self, t, kind, log, ids, *options, out=None):
        self.t, self.kind, self.log, self.ids, self.options = t, kind, log, ids, options
        self.box = t.path("box")
        self.box.mkdir()
        self.out = out or self.box / "out"
        self.gone = t.path("gone")  # inputs that are gone, and whose outputs are kept
        if kind == "scan":
            self.filter = t.path("ids.bjf")
            t.run("build", "--key", "user_id", "--kind", "exact", "-o", self.filter, ids)

    def command(self, out, *logs):
        if self.kind == "scan":
            head = ["scan", "--filter", self.filter]
        else:
            head = ["join", "--ids", self.ids, "--on", "user_id", "--type", self.kind]
        return [*head, "--json", *self.options, "-o", f"{out}/", *(logs or [self.log])]

    def run(self, *more, logs=(), want=0):
        return self.t.run(*self.command(self.out, *logs), *more, opens=False, want=want)

    def fresh(self):
        """The data files of a run from nothing."""
        out = self.t.path("fresh") / "out"
        self.t.run(*self.command(out), opens=False)
        return data(snapshot(out))

    def same_rows(self, name):
        """The rows are those of DuckDB over the log and what is gone."""
        roots = [self.log] + ([self.gone] if self.gone.exists() else [])
        self.t.equal(f"{name}: rows", answer(got(self.out)), answer(wanted(self.kind, roots, self.ids)))

    def tidy(self, name):
        """Data, an empty _SUCCESS in the root and in each partition of the log, the state beside, and nothing else."""
        found = snapshot(self.out)
        marks = sorted(n for n in found if n not in data(found))
        days = sorted({p.name for root in (self.log, self.gone) if root.exists() for p in root.iterdir() if "=" in p.name and any(p.iterdir())})
        self.t.equal(f"{name}: _SUCCESS", marks, sorted(["_SUCCESS", *(f"{d}/_SUCCESS" for d in days)]))
        self.t.equal(f"{name}: _SUCCESS is empty", [n for n in marks if (self.out / n).stat().st_size], [])
        self.t.equal(f"{name}: beside", beside(self.box), STATE)
        self.t.ok(f"{name}: manifest.json is a copy", copied(self.box / "out.bloomjoin"), sorted(snapshot(self.box)))

    def step(self, name, *changed, more=(), logs=(), fresh=True):
        """The command again. Only outputs whose names begin with one of changed may differ from before, and with fresh all files are as from nothing."""
        before = snapshot(self.out)
        r = self.run(*more, logs=logs)
        after = snapshot(self.out)
        touched = [n for n in before if n != "_SUCCESS" and before[n] != after.get(n) and not n.startswith(changed)]
        self.t.equal(f"{name}: untouched", touched, [])
        self.same_rows(name)
        self.tidy(name)
        if fresh:
            kept = {n: d for n, d in data(after).items() if not (self.gone / n.split("/")[0]).exists()}
            self.t.equal(f"{name}: as from nothing", differing(kept, self.fresh()), [])
        return r

    def unchanged(self, name, *more):
        """The command again does nothing at all, and says so."""
        before = snapshot(self.box)
        r = self.run(*more)
        self.t.ok(f"{name}: already done", "already done" in r.text and r.json.get("already_done") is True, r)
        self.t.equal(f"{name}: untouched", [n for n, s in snapshot(self.box).items() if before.get(n) != s], [])

    def refused(self, name, words, *more, code=1, logs=()):
        """The command fails with these words, and changes nothing that readers see."""
        before = snapshot(self.out)
        r = self.run(*more, logs=logs, want=code)
        self.t.ok(f"{name}: says", all(w in r.text for w in words), f"want {words} in {r}")
        self.t.equal(f"{name}: untouched", snapshot(self.out), before)
        return r


STATE = ["out.bloomjoin/manifest-#.json", "out.bloomjoin/manifest.json"]


def newest(place):
    """The digits of the last generation of the state, or none."""
    return max((p.stem.removeprefix("manifest-") for p in place.glob("manifest-*.json")), default="")


def beside(box):
    """What is there beside out/, with # for the generation of the state, and without what says that its files are published."""
    last = newest(box / "out.bloomjoin")
    names = [n for n in snapshot(box) if not n.startswith("out/") and n != f"out.bloomjoin/settled-{last}.json"]
    return sorted(n.replace(f"/manifest-{last}.", "/manifest-#.") for n in names)


def copied(place):
    """Whether manifest.json is the last generation of the state once its files are published."""
    last = newest(place)
    state = json.loads((place / f"manifest-{last}.json").read_text())
    settled = place / f"settled-{last}.json"
    identities = json.loads(settled.read_text())["identities"] if settled.exists() else {}
    state.pop("removing", None)
    for f in state["files"]:
        if f.pop("staged", None):
            f["identity"] = identities.pop(f["name"], None)
    return not identities and state == json.loads((place / "manifest.json").read_text())


def differing(got, want):
    return sorted({n for n, _ in got.items() ^ want.items()})


def size(*paths):
    """The bytes of files, and of those in directories."""
    return sum(f.stat().st_size for p in paths for f in ([p] if p.is_file() else p.rglob("*.parquet")))


def daily(t, kind):
    """Days, then one more, one compacted, one removed, one with another schema."""
    g = Grown(t, kind, make_log(t), id_file(t))
    t.run(*g.command(g.out))  # opened by all readers
    g.same_rows("from nothing")
    g.tidy("from nothing")
    g.unchanged("again")
    log = g.log

    for name in "abc":
        put(log, 31, name)
    r = g.step("one day more", dt(31))
    t.ok("one day more: is done", "already done" not in r.text, r)
    g.unchanged("one day more, again")

    both = pa.concat_tables(pq.read_table(log / dt(5) / f"{n}.parquet", partitioning=None) for n in "ab")
    tables.write(both, log / dt(5) / "d.parquet", row_group_size=100)
    for name in "ab":
        (log / dt(5) / f"{name}.parquet").unlink()
    g.step("a day compacted", *(f"{dt(5)}/{n}" for n in ("a", "b", "d", "_")))

    g.gone.mkdir()
    shutil.move(log / dt(7), g.gone / dt(7))
    r = g.step("a day removed")
    t.ok("a day removed: is reported", dt(7) in r.text and "--prune" in r.text, r)

    put(log, 32, "a", extra=list(range(ROWS)))
    g.step("another schema", dt(32))

    put(log, 3, "b").rename(log / dt(3) / "tmp")
    tables.write(part(77), log / dt(3) / "b.parquet", row_group_size=100)
    (log / dt(3) / "tmp").unlink()
    g.step("a file changed", f"{dt(3)}/b", f"{dt(3)}/_")

    shutil.rmtree(g.gone)
    g.step("pruned", dt(7), more=["--prune"])
    t.equal("pruned: nothing of the day", [n for n in snapshot(g.out) if n.startswith(dt(7))], [])
    g.unchanged("pruned, again")


def bytes_read(t):
    """Of inputs whose outputs are kept, no more than footers is read. (Below 1 MiB a file is compared as a whole.)"""
    log, big = t.path("log"), {"rows": 12_000}
    for day in range(1, 9):
        tables.write(part(day, **big), log / dt(day) / "a.parquet", row_group_size=4000)
    t.ok("files above 1 MiB", size(log) > 8 << 20, size(log))
    for kind in ("semi", "left"):
        g = Grown(t, kind, log, id_file(t))
        r = g.run()
        t.ok(f"{kind}: from nothing", r.json["bytes_read"] < 2 * size(log), r.json["bytes_read"])
        footers = 10 * (128 << 10) + size(g.ids)
        new = tables.write(part(99, **big), log / dt(9) / "a.parquet", row_group_size=4000)
        r = g.step(f"{kind}: one day more", dt(9))
        t.ok(f"{kind}: one day more: bytes read", r.json["bytes_read"] <= size(new) + footers, r.json["bytes_read"])
        r = g.run()
        t.ok(f"{kind}: again: bytes read", r.json.get("bytes_read", 0) <= footers, r.json)
        shutil.rmtree(new.parent)


def whole(t, kind):
    """Right and full joins do everything again."""
    g = Grown(t, kind, make_log(t, 4), id_file(t), "--hive-partitioning", "off")
    g.run()
    first = data(snapshot(g.out))
    g.unchanged("again")
    put(g.log, 5, "a")
    (g.log / dt(2) / "b.parquet").unlink()
    g.run()
    want = answer(wanted(kind, [g.log], g.ids))
    rows = [(*r[: want[1].index("dt")], *r[want[1].index("dt") + 1 :]) for r in want[0]]
    found, names = answer(got(g.out).replace("hive_partitioning = true", "hive_partitioning = false"))
    t.equal("grown: columns", names, [n for n in want[1] if n != "dt"])
    t.equal("grown: rows", found, sorted(rows, key=str))
    t.equal("grown: as from nothing", differing(data(snapshot(g.out)), g.fresh()), [])
    t.ok("grown: other files", data(snapshot(g.out)) != first)


def day_by_day(t):
    """A run for each day, as Airflow starts them, leaves what one run over all days leaves; also four at a time, and again."""
    log, ids = make_log(t), id_file(t)
    for kind in ("semi", "left"):
        one = Grown(t, kind, log, ids)
        one.run()
        want = data(snapshot(one.out))
        for workers in (1, 4):
            g = Grown(t, kind, log, ids)
            days = [log / dt(day) for day in range(1, DAYS + 1)]
            random.Random(workers).shuffle(days)
            with concurrent.futures.ThreadPoolExecutor(workers) as pool:
                codes = list(pool.map(lambda d, g=g: g.run(logs=[d], want=None), days + days[:3]))
            name = f"{kind}, {workers} at a time"
            t.equal(f"{name}: exit codes", [str(r) for r in codes if r.code], [])
            t.equal(f"{name}: files", differing(data(snapshot(g.out)), want), [])
            g.tidy(name)
            g.same_rows(name)
            g.unchanged(f"{name}, then all at once")
    put(log, 4, "d")
    one.step("a file more, by its day's run", f"{dt(4)}/d", f"{dt(4)}/_", logs=[log / dt(4)])
    (log / dt(4) / "a.parquet").unlink()
    one.run(logs=[log / dt(6)])
    t.ok("a run over another day removes nothing", (one.out / dt(4) / "a.parquet").exists())
    one.run(logs=[log / dt(4) / "b.parquet"])
    t.ok("a run over another file removes nothing", (one.out / dt(4) / "a.parquet").exists())
    one.step("a file less, by its day's run", f"{dt(4)}/a", f"{dt(4)}/_", logs=[log / dt(4)])


def other_ids(t):
    """Other IDs over finished partitions: an error, rerun, or keep. New partitions may have others."""
    log, ids, others = make_log(t, 5), id_file(t), id_file(t, "others.parquet", 50)
    for kind in ("semi", "inner"):
        g = Grown(t, kind, log, ids)
        g.run()
        g.ids = others
        g.refused(f"{kind}: other IDs", ["--ids-changed"])
        put(log, 6, "a")
        g.refused(f"{kind}: other IDs, and a new day", ["--ids-changed"])
        before = snapshot(g.out)
        g.run(logs=[log / dt(6)])
        t.equal(f"{kind}: a new day with other IDs", [n for n in before if n != "_SUCCESS" and snapshot(g.out)[n] != before[n]], [])
        new = data(snapshot(g.out))
        t.ok(f"{kind}: the new day", any(n.startswith(dt(6)) for n in new), new)
        g.refused(f"{kind}: then all", ["--ids-changed"])
        put(log, 7, "a")
        g.run("--ids-changed", "keep")
        now = snapshot(g.out)
        t.equal(f"{kind}: keep", [n for n in before if n != "_SUCCESS" and now[n] != before[n]], [])
        both = [answer(wanted(kind, [log], i, where=f"dt {op} '2024-01-05'"))[0] for i, op in [(ids, "<="), (others, ">")]]
        t.equal(f"{kind}: keep: rows", answer(got(g.out))[0], sorted(both[0] + both[1], key=str))
        g.unchanged(f"{kind}: keep again", "--ids-changed", "keep")
        g.run("--ids-changed", "rerun")
        g.same_rows(f"{kind}: rerun")
        g.tidy(f"{kind}: rerun")
        t.equal(f"{kind}: rerun: as from nothing", differing(data(snapshot(g.out)), g.fresh()), [])
        g.unchanged(f"{kind}: after rerun")
        shutil.rmtree(log / dt(6))
        shutil.rmtree(log / dt(7))


def other_options(t):
    """Other options are refused without --force, which does the inputs named again."""
    log, ids = make_log(t, 3), id_file(t)
    for options in (["--columns", "row,user_id"], ["--compression", "zstd"], ["--where", "row > 5"]):
        g = Grown(t, "semi", log, ids)
        g.run()
        g.options = options
        name = options[0]
        g.refused(name, ["--force"])
        g.refused(f"{name}, one day", ["--force"], logs=[log / dt(2)])
        g.run("--force")
        t.equal(f"{name}, forced", differing(data(snapshot(g.out)), g.fresh()), [])
        g.tidy(f"{name}, forced")
        g.unchanged(f"{name}, again")
    g = Grown(t, "semi", log, ids)
    g.run()
    before = snapshot(g.out)
    g.run("--force")
    after = snapshot(g.out)
    t.equal("forced alone: the same bytes", data(after), data(before))
    t.ok("forced alone: written again", all(after[n] != before[n] for n in data(after)))
    g.kind = "anti"
    g.refused("another type", ["--force"])


def partition_types(t):
    """A value of another type changes a partition column, which the recorded outputs do not have."""
    ids = id_file(t)
    for first, later, given, fits in [("hour=10", "hour=08", "hour:int64", True), ("country=1", "country=NO", "country:int64", False)]:
        column, log = first.split("=")[0], t.path("log")
        tables.write(part(1), log / first / "a.parquet")
        g = Grown(t, "semi", log, ids)
        g.run()
        tables.write(part(2), log / later / "a.parquet")
        before = snapshot(g.out)
        g.run()  # nothing uses the column
        t.equal(f"{later}: kept", [n for n in before if n != "_SUCCESS" and snapshot(g.out)[n] != before[n]], [])
        g.unchanged(f"{later}: again")
        t.ok(f"{later}: alone", "already done" in g.run(logs=[log / later]).text)
        g.options = ["--hive-types", given]
        if fits:
            g.unchanged(f"{given}: again")
        else:
            g.refused(given, [later, "--hive-types"])
        g.options = ["--hive-types", f"{column}:string"]
        g.run("--force")
        t.equal(f"{column}:string, forced", differing(data(snapshot(g.out)), g.fresh()), [])


def flat(t):
    """Without name=value directories nothing goes but by --prune, and a file that was rewritten in place is done again."""
    log, ids = t.path("log"), id_file(t)
    for i, name in enumerate("ab"):
        tables.write(part(i), log / f"{name}.parquet")
    g = Grown(t, "semi", log, ids)
    g.run()
    both = pa.concat_tables(pq.read_table(log / f"{n}.parquet") for n in "ab")
    tables.write(both, log / "c.parquet")
    for name in "ab":
        (log / f"{name}.parquet").unlink()
    r = g.run()
    t.equal("files", sorted(data(snapshot(g.out))), ["a.parquet", "b.parquet", "c.parquet"])
    t.ok("is reported", "a.parquet" in r.text and "--prune" in r.text, r)
    g.run("--prune")
    t.equal("pruned", sorted(data(snapshot(g.out))), ["c.parquet"])
    g.same_rows("pruned")

    log = t.path("log")
    users = pa.array(range(400_000), pa.int64())
    options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    path = tables.write(pa.table({"user_id": users}), log / "a.parquet", **options)
    g = Grown(t, "semi", log, ids)
    g.run()
    footer = lambda: path.read_bytes()[-8 - int.from_bytes(path.read_bytes()[-8:-4], "little") :]  # noqa: E731
    was = footer()
    tables.write(pa.table({"user_id": pa.array(range(50, 400_050), pa.int64())}), path, **options)
    t.equal("the footer is the same", footer(), was)
    g.run()
    g.same_rows("rewritten in place, with the same footer")


def foreign(t):
    """Files of other programs in OUT/ stay, whatever a run does, and nothing is written over them."""
    log, ids = make_log(t, 3), id_file(t)
    g = Grown(t, "semi", log, ids)
    g.run()
    mine = {"notes.txt": b"mine", f"{dt(2)}/mine.parquet": (log / dt(1) / "a.parquet").read_bytes(), "other/x.parquet": b"no"}
    for name, content in mine.items():
        (g.out / name).parent.mkdir(exist_ok=True)
        (g.out / name).write_bytes(content)
    put(log, 4, "a")
    shutil.rmtree(log / dt(2))
    g.run("--prune", "--force", want=None)
    t.equal("they stay", [n for n, content in mine.items() if (g.out / n).read_bytes() != content], [])
    put(log, 5, "a")
    (g.out / dt(5)).mkdir()
    (g.out / dt(5) / "a.parquet").write_bytes(b"mine")
    g.refused("without --force", ["--force"])
    g.refused("in the place of an output, with --force", [f"{dt(5)}/a.parquet"], "--force")


def damage(t):
    """A part that is deleted, cut or changed after _SUCCESS: inspect --check finds it, and the same command heals it."""
    log, ids = make_log(t, 4), id_file(t)
    flip = lambda b: b[:40] + bytes([b[40] ^ 1]) + b[41:]  # noqa: E731
    for kind in ("semi", "left"):
        g = Grown(t, kind, log, ids)
        g.run()
        t.run("inspect", "--check", f"{g.out}/", opens=False)
        whole_ones = snapshot(g.out)
        victim = g.out / dt(2) / "b.parquet"
        for name, harm in {"deleted": None, "cut": lambda b: b[:-9], "changed": flip, "emptied": lambda b: b[:0]}.items():
            b = victim.read_bytes()
            if harm:
                victim.write_bytes(harm(b))
            else:
                victim.unlink()
            r = t.run("inspect", "--check", f"{g.out}/", want=None, opens=False)
            t.ok(f"{kind}, {name}: inspect --check", r.code == 1 and f"{dt(2)}/b.parquet" in r.text + r.out.decode(), r)
            r = g.run()
            now = snapshot(g.out)
            t.equal(f"{kind}, {name}: healed", differing(data(now), data(whole_ones)), [])
            t.equal(f"{kind}, {name}: untouched", [n for n in data(now) if now[n] != whole_ones[n] and not n.startswith(dt(2))], [])
            t.ok(f"{kind}, {name}: is reported", f"{dt(2)}/b.parquet" in r.text, r)
            g.tidy(f"{kind}, {name}")
            t.run("inspect", "--check", f"{g.out}/", opens=False)
            g.unchanged(f"{kind}, {name}: again")
        for mark in ("_SUCCESS", f"{dt(3)}/_SUCCESS"):
            (g.out / mark).unlink()
            g.run()
            g.tidy(f"{kind}, without {mark}")
        victim.write_bytes(flip(victim.read_bytes()))
        g.run(logs=[log / dt(4)], want=None)
        g.run()
        t.equal(f"{kind}: healed after a run over another day", differing(data(snapshot(g.out)), data(whole_ones)), [])


def readers(t):
    """OUT/ as it is, by name, in DuckDB, pyarrow, Polars and pandas."""
    g = Grown(t, "semi", make_log(t, 12), id_file(t))
    g.run()
    put(g.log, 13, "a")
    g.run()
    want = duckdb.sql(f"select count(*), sum(row), count(distinct dt) from ({wanted('semi', [g.log], g.ids)})").fetchall()[0]
    import pandas

    for name, read in {
        "DuckDB": lambda: duckdb.sql(f"from read_parquet('{g.out}/')").to_arrow_table(),
        "pyarrow.dataset": lambda: pyarrow.dataset.dataset(g.out, partitioning="hive").to_table(),
        "pyarrow.parquet": lambda: pq.read_table(g.out),
        "Polars": lambda: polars.read_parquet(f"{g.out}/").to_arrow(),
        "Polars, lazy": lambda: polars.scan_parquet(g.out).collect().to_arrow(),
        "pandas": lambda: pa.Table.from_pandas(pandas.read_parquet(g.out)),
    }.items():
        table = read()
        t.equal(name, (table.num_rows, sum(table["row"].to_pylist()), len(set(map(str, table["dt"].to_pylist())))), want)


def sizes(t):
    """--target-file-size merges within a partition, in input order; --empty write has a file for each input."""
    log, ids = t.path("log"), id_file(t)
    for day in range(1, 6):
        for i in range(40):
            tables.write(part(day * 100 + i, rows=50, hits=i % 10 == 0), log / dt(day) / f"{i:04}.parquet")
    plain = Grown(t, "semi", log, ids)
    plain.run()
    kept = [p for p in tables.data_files(log) if any(u < IDS for u in pq.read_table(p, partitioning=None)["user_id"].to_pylist())]
    t.equal("a file for each input with rows", sorted(data(snapshot(plain.out))), sorted(str(p.relative_to(log)) for p in kept))
    every = Grown(t, "semi", log, ids, "--empty", "write")
    every.run()
    t.equal("--empty write", len(data(snapshot(every.out))), 200)
    every.same_rows("--empty write")
    small = Grown(t, "semi", log, ids, "--target-file-size", "1MiB")
    small.run()
    t.equal("one file a partition", sorted(data(snapshot(small.out))), [f"{dt(d)}/0000.parquet" for d in range(1, 6)])
    rows = pq.read_table(small.out / dt(1) / "0000.parquet", partitioning=None)["row"].to_pylist()
    t.equal("in input order", rows, sorted(rows))
    for g in (plain, every, small):
        g.unchanged("again")
    for g in (plain, every, small):
        g.run()  # what the one before has put back is newer
        alone = g is not small  # what is new gets files of its own, and would share one from nothing
        tables.write(part(900, rows=50), log / dt(6) / "0000.parquet")
        g.step("a day more", dt(6))
        tables.write(part(901, rows=50), log / dt(3) / "0100.parquet")
        g.step("a file more", dt(3), fresh=alone)
        (log / dt(2) / "0000.parquet").unlink()
        g.step("the first file of a day less", dt(2), fresh=alone)
        tables.write(part(903, rows=50, hits=False), log / dt(4) / "0020.parquet")
        g.step("a file without rows", dt(4), fresh=alone)
        shutil.rmtree(log / dt(6))
        (log / dt(3) / "0100.parquet").unlink()
        tables.write(part(200, rows=50), log / dt(2) / "0000.parquet")
        tables.write(part(420, rows=50), log / dt(4) / "0020.parquet")


def gates(t):
    """Requirements are about the whole directory's figures, and what is not met publishes nothing."""
    log, ids = make_log(t, 4), id_file(t)
    total = duckdb.sql(f"select count(*) from ({wanted('semi', [log], ids)})").fetchall()[0][0]
    g = Grown(t, "semi", log, ids, "--require-rows", total)
    g.run()
    g.same_rows("just met")
    g = Grown(t, "semi", log, ids, "--require-rows", total + 1)
    r = g.run(want=2)
    t.ok("just missed", str(total + 1) in r.text, r)
    t.equal("just missed: no data, no _SUCCESS", sorted(snapshot(g.out)) if g.out.exists() else [], [])


def state(t):
    """The state accounts for each input, also for those without rows."""
    g = Grown(t, "semi", make_log(t, 10), id_file(t))
    g.run()
    text = (g.out.parent / "out.bloomjoin" / "manifest.json").read_text()
    json.loads(text)
    t.equal("each input", [n for n in map(str, (p.relative_to(g.log) for p in tables.data_files(g.log))) if f'"{n}"' not in text], [])


def run(t, repository):
    del repository
    for kind in ("semi", "anti", "inner", "left", "scan") if harness.FULL else ("inner", "scan"):  # the others have random histories
        t.group(f"growing {kind}", daily, kind)
    for kind in ("right", "full"):
        t.group(f"growing {kind}", whole, kind)
    for function in (bytes_read, day_by_day, other_ids, other_options, partition_types, flat, foreign, damage, readers, sizes, gates, state):
        t.group(f"growing: {function.__name__.replace('_', ' ')}", function)
