"""Random histories of a log that grows, against a model that knows only files, rows and a set of IDs.

After each run, by one process or several, over the whole log or a part of it, finished or killed and repeated, OUT/ has
the rows that the model has, file by file; what had no reason to change was not written; and in the end all files are as
from nothing.
"""

import collections
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from common import harness, properties, tables
from runs import growing

KINDS = ("semi", "anti", "inner", "left", "scan")
DAYS, NAMES = st.sampled_from(["dt=2024-01-01", "dt=2024-01-02", "dt=2024-01-03"]), st.sampled_from("abc")
USERS = st.lists(st.sampled_from([*range(8), None]), min_size=1, max_size=6)
IDS = st.sets(st.integers(0, 9), min_size=1, max_size=5)
SCHEMA = pa.schema([("row", pa.int64()), ("user_id", pa.int64())])


def machine(t, kind, seen):
    """The state machine for joins of one type, or for scans."""

    class History(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            self.place = pathlib.Path(tempfile.mkdtemp(dir=t.work, prefix="history-"))
            self.log, self.box = self.place / "log", self.place / "box"
            self.out = self.box / "out"
            self.box.mkdir()
            self.log.mkdir()
            self.rows = 0  # written so far: each has a number of its own
            self.files = {}  # of the log, by name: the rows
            self.done = {}  # inputs that OUT/ accounts for: their rows, and the IDs that they were joined with
            self.changed = True  # since the last run over the whole log
            seen["cases"] += 1

        @initialize(ids=IDS, files=st.dictionaries(st.tuples(DAYS, NAMES), USERS, min_size=1, max_size=6), done=st.booleans())
        def begin(self, ids, files, done):
            """A log and IDs, perhaps with what a first run leaves."""
            self.take(ids)
            for (day, name), users in files.items():
                self.write(day, name, users, False, False)
            if done:
                self.run(False)

        # ---- the log

        @rule(day=DAYS, name=NAMES, users=USERS, extra=st.booleans(), then_run=st.booleans())
        def write(self, day, name, users, extra, then_run):
            """A new file, or another one in its place, perhaps with a column that others lack."""
            self.put(f"{day}/{name}.parquet", [(self.rows + i, u) for i, u in enumerate(users)], extra)
            self.then(then_run)

        @rule(data=st.data(), then_run=st.booleans())
        @precondition(lambda self: len(self.files) > 1)
        def remove(self, data, then_run):
            """A file, and its day if it was the last one."""
            self.drop(data.draw(st.sampled_from(sorted(self.files)), "file"))
            self.then(then_run)

        @rule(data=st.data(), then_run=st.booleans())
        @precondition(lambda self: len(self.days()) > 1)
        def remove_day(self, data, then_run):
            day = data.draw(st.sampled_from(self.days()), "day")
            for name in self.of(day, self.files):
                self.drop(name)
            self.then(then_run)

        @rule(data=st.data(), then_run=st.booleans())
        @precondition(lambda self: self.files)
        def compact(self, data, then_run):
            """All files of a day become one, of another name."""
            day = data.draw(st.sampled_from(self.days()), "day")
            rows = [r for name in self.of(day, self.files) for r in self.files[name]]
            old = self.of(day, self.files)
            self.put(f"{day}/d{self.rows}.parquet", rows, False)
            for name in old:
                self.drop(name)
            self.then(then_run)

        def then(self, run):
            if run:
                self.run(False)

        # ---- runs

        @rule(prune=st.booleans())
        @precondition(lambda self: self.files)
        def run(self, prune):
            """Over the whole log, which may say that nothing is to be done."""
            before = growing.snapshot(self.box)
            idle = not self.changed and not (prune and self.gone())
            self.attempt([self.log], self.files, prune, lambda: self.tool(*(["--prune"] if prune else []), str(self.log)))
            seen["runs"] += 1
            if idle:
                assert "already done" in self.said.text, f"nothing had changed: {self.said}"
                after = growing.snapshot(self.box)
                assert before == after, f"nothing had changed: {sorted(n for n in before | after if before.get(n) != after.get(n))}"
                seen["already done"] += 1

        @rule(data=st.data())
        @precondition(lambda self: self.files)
        def run_day(self, data):
            day = data.draw(st.sampled_from(self.days()), "day")
            self.attempt([self.log / day], self.of(day, self.files), False, lambda: self.tool(str(self.log / day)))
            seen["runs over a day"] += 1

        @rule(data=st.data())
        @precondition(lambda self: self.files)
        def run_file(self, data):
            """Of one file, which is no reason to remove others."""
            name = data.draw(st.sampled_from(sorted(self.files)), "file")
            self.attempt([], [name], False, lambda: self.tool(str(self.log / name)))
            seen["runs over a file"] += 1

        @rule(order=st.permutations(range(3)), commit=st.booleans())
        @precondition(lambda self: self.files)
        def run_shards(self, order, commit):
            """By three workers in any order; the last one, or a command of its own, commits."""
            def shards():
                for i in order:
                    self.tool("--shard", f"{i}/3", *(["--no-commit"] if commit else []), str(self.log))
                if commit:
                    t.run("commit", f"{self.out}/", opens=False)

            self.attempt([self.log], self.files, False, shards)
            seen["runs by shards"] += 1

        @rule(shard=st.sampled_from([None, 0, 1, 2]), after=st.integers(0, 4))
        @precondition(lambda self: self.files)
        def kill(self, shard, after):
            """A run is killed once it has made some number of files, and begun again."""
            before, state = self.contents(), growing.newest(self.box / "out.bloomjoin")
            command = self.command(*([] if shard is None else ["--shard", f"{shard}/3"]), str(self.log))
            hit = killed([t.tool, *command], self.box, after)
            seen["killed"] += hit
            future = self.answers(self.files)
            if growing.newest(self.box / "out.bloomjoin") == state:
                assert self.contents() == before, f"killed before its commit, a run has changed {before} to {self.contents()}"
                seen["killed before the commit"] += hit
            for name, rows in self.contents().items():
                assert rows in (before.get(name), future.get(name)), f"after a kill {name} has {rows}, which is neither the old nor the new output"

            def again():
                for i in [None] if shard is None else range(3):
                    self.tool(*([] if i is None else ["--shard", f"{i}/3"]), str(self.log))

            self.attempt([self.log], self.files, False, again, touched=True)

        @rule(data=st.data(), how=st.sampled_from(["delete", "cut", "change"]))
        @precondition(lambda self: not self.changed and self.of_inputs())
        def damage(self, data, how):
            """An output is damaged; the next run heals it."""
            path = self.out / data.draw(st.sampled_from(self.of_inputs()), "output")
            b = path.read_bytes()
            path.unlink()
            if how != "delete":
                path.write_bytes(b[:-9] if how == "cut" else b[:40] + bytes([b[40] ^ 1]) + b[41:])
            self.attempt([self.log], self.files, False, lambda: self.tool(str(self.log)), touched=True)
            seen["healed"] += 1

        @rule(ids=IDS)
        @precondition(lambda self: set(self.done) & set(self.files))
        def other_ids(self, ids):
            """Refused, and then on demand."""
            if ids == self.ids:
                return
            self.take(ids)
            before = growing.snapshot(self.out)
            r = t.run(*self.command(str(self.log)), want=1, opens=False)
            assert "--ids-changed" in r.text, r
            assert growing.snapshot(self.out) == before, "a refused run has changed OUT/"
            self.attempt([self.log], self.files, False, lambda: self.tool("--ids-changed", "rerun", str(self.log)), touched=True)
            seen["other IDs"] += 1

        # ---- what must hold

        @invariant()
        def foreign(self):
            """What is not the tool's stays."""
            note = self.out / "notes.txt"
            if self.done:
                assert note.read_text() == "mine"

        def teardown(self):
            try:
                same = {n: rows for n, rows in self.files.items() if self.done.get(n) == (rows, self.ids)}
                if same:
                    fresh = self.place / "fresh" / "out"
                    t.run(*self.command(*(str(self.log / n) for n in sorted(same)), out=fresh), opens=False)
                    digest = lambda root: {n: hashlib.sha256((root / n).read_bytes()).hexdigest() for n in self.answers(same)}  # noqa: E731
                    assert digest(self.out) == digest(fresh), "not the bytes of a run from nothing"
                    seen["compared with a run from nothing"] += 1
            finally:
                shutil.rmtree(self.place)

        # ---- the model

        def days(self):
            return sorted({n.split("/")[0] for n in self.files})

        def of(self, day, names):
            return sorted(n for n in names if n.startswith(f"{day}/"))

        def gone(self):
            """Inputs whose outputs are kept although their day is gone."""
            return [n for n in self.done if n.split("/")[0] not in self.days()]

        def of_inputs(self):
            """Outputs whose inputs are there."""
            return sorted(n for n in self.answers(self.files) if n in self.done)

        def answer(self, rows, ids):
            """The rows of a file's output."""
            name = lambda u: f"u{u}" if u in ids else None  # noqa: E731
            if kind in ("semi", "scan"):
                return [r for r in rows if r[1] in ids]
            if kind == "anti":
                return [r for r in rows if r[1] not in ids]
            return [(*r, name(r[1])) for r in rows if kind == "left" or r[1] in ids]

        def answers(self, names):
            found = {n: self.answer(self.files[n], self.ids) for n in names}
            return {n: rows for n, rows in found.items() if rows}

        def attempt(self, places, names, prune, run, touched=False):
            """Runs over these directories, which have these files, or over one file. Touched: outputs may be written again without a reason."""
            before = growing.snapshot(self.out)
            known, was = dict(self.done), dict(self.done)
            run()
            seen["with kept outputs of a day that is gone"] += bool(self.gone() and places and not prune)
            for name in list(known):  # what is gone
                day, there = name.split("/")[0], name in self.files
                named = self.log in places or self.log / day in places
                if named and not there and (prune or day in self.days()):
                    del known[name]
            known |= {n: (self.files[n], self.ids) for n in names}
            self.done = known
            self.changed = self.changed and self.log not in places or prune and self.log not in places
            if not (self.out / "notes.txt").exists():
                (self.out / "notes.txt").write_text("mine")
            want = {n: rows for n, (content, ids) in known.items() if (rows := self.answer(content, ids))}
            got = self.contents()
            assert got == want, f"OUT/ has {got}, want {want}"
            seen["rows"] += bool(want)
            after = growing.snapshot(self.out)
            marks = sorted(n for n in after if n.endswith("_SUCCESS"))
            assert marks == sorted({"_SUCCESS", *(f"{n.split('/')[0]}/_SUCCESS" for n in known)}), f"marks of success: {marks}"
            assert set(after) == {*marks, *want, "notes.txt"}, f"stray files: {sorted(after)}"
            assert growing.beside(self.box) == growing.STATE, growing.beside(self.box)
            assert growing.copied(self.box / "out.bloomjoin"), "manifest.json is not a copy"
            written = [n for n in want if not touched and was.get(n) == known[n] and before.get(n) != after[n]]
            assert not written, f"written again without a reason: {written}"
            seen["untouched outputs"] += any(was.get(n) == known[n] for n in want)

        # ---- files

        def put(self, name, rows, extra):
            table = pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in rows], schema=SCHEMA)
            if extra:
                table = table.append_column("extra", pa.array(["x"] * len(rows)))
            tables.write(table, self.log / name)
            self.files[name], self.changed = rows, True
            self.rows += len(rows)

        def drop(self, name):
            path = self.log / name
            path.unlink()
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
            del self.files[name]
            self.changed = True

        def take(self, ids):
            self.ids = ids
            users = pa.array(sorted(ids), pa.int64())
            tables.write(pa.table({"user_id": users, "name": [f"u{u}" for u in sorted(ids)]}), self.place / "ids.parquet")
            if kind == "scan":
                t.run("build", "--force", "--key", "user_id", "--kind", "exact", "-o", self.place / "ids.bjf", self.place / "ids.parquet")

        def command(self, *args, out=None):
            if kind == "scan":
                head = ["scan", "--filter", self.place / "ids.bjf"]
            else:
                head = ["join", "--ids", self.place / "ids.parquet", "--on", "user_id", "--type", kind]
            return [str(a) for a in [*head, "--json", "-o", f"{out or self.out}/", *args]]

        def tool(self, *args):
            self.said = t.run(*self.command(*args), opens=False)

        def contents(self):
            """The rows of each output."""
            if not self.out.exists():
                return {}
            columns = ["row", "user_id"] + ["name"] * (kind in ("inner", "left"))
            return {
                str(p.relative_to(self.out)): list(zip(*pq.ParquetFile(p).read(columns).select(columns).to_pydict().values(), strict=True))
                for p in tables.data_files(self.out)
            }

    History.__qualname__ = History.__name__ = f"History_{kind}"
    return History


def killed(command, box, after):
    """Kills a run once it has made that number of files and directories. Returns whether it was still running."""
    made = lambda: sum(len(dirs) + len(names) for _, dirs, names in os.walk(box))  # noqa: E731
    first = made()
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=harness.ENVIRONMENT)
    while p.poll() is None and made() - first < after:
        time.sleep(0.0002)
    p.kill()
    return p.wait() != 0


def randomly(t):
    seen = collections.Counter()
    for kind in KINDS:
        properties.hold(t, f"{kind}, by a model of files and rows", machine(t, kind, seen), 8, 300, steps=12)
    common = ("rows", "untouched outputs", "compared with a run from nothing", "runs over a day", "runs over a file", "runs by shards")
    rare = ("runs", "already done", "healed", "killed", "killed before the commit", "other IDs", "with kept outputs of a day that is gone")
    properties.varied(t, seen, dict.fromkeys(common, 0.2) | dict.fromkeys(rare, 0.05))


def run(t, _repository):
    t.group("growing random", randomly)
