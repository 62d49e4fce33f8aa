"""Log files of different columns, as one log: --schema union in scans and in joins of every type, and what --columns chooses.

The oracles: the union is what pyarrow makes of the files (concat_tables, permissive), the rows are DuckDB's.
"""

import collections
import datetime
import decimal
import json
import shutil

import hypothesis
import pyarrow as pa

from common import properties, tables
from common.properties import drawn
from joins import joins

CASES = 25  # of each type of join

# A column's types in several files, and a function that makes a value of a number.
KINDS = {
    "n": ([pa.int64(), pa.int32(), pa.int16(), pa.int8()], lambda i: i % 100),
    "u": ([pa.int64(), pa.uint32(), pa.uint8()], lambda i: i % 100),
    "f": ([pa.float64(), pa.float32()], lambda i: i / 2),
    "d": ([pa.decimal128(18, 2), pa.decimal128(9, 2), pa.decimal128(30, 2)], lambda i: decimal.Decimal(i) / 4),
    "t": ([pa.timestamp("us"), pa.timestamp("ms")], lambda i: i * 1000),
    "x": ([pa.string(), pa.null()], lambda i: f"x{i % 7}"),
    "l": ([pa.list_(pa.int64()), pa.list_(pa.int32())], lambda i: [i % 5] * (i % 4)),
    "s": (
        [pa.struct([("p", pa.int64()), ("q", pa.string())]), pa.struct([("p", pa.int32())]), pa.struct([("q", pa.string()), ("r", pa.struct([("y", pa.int8())]))])],
        lambda i: {"p": i, "q": f"q{i}", "r": {"y": i % 9} if i % 3 else None},
    ),
}


def column(d, name, rows, start):
    types, value = KINDS[name]
    kind = d.choice(types)
    empty = kind == pa.null()
    fields = {f.name for f in kind} if pa.types.is_struct(kind) else ()
    values = [None if empty or (start + i) % 5 == 0 else value(start + i) for i in range(rows)]
    if fields:
        values = [v and {k: x for k, x in v.items() if k in fields} for v in values]
    return pa.array(values, kind)


class Case:
    """Files of a log, IDs, and a join of them."""

    def __init__(self, d, kind):
        self.kind, self.logs, rows = kind, [], 0
        for _ in range(d.number(2, 4)):
            n = d.choice([30, 7, 1, 0, 300])
            names = d.some(KINDS, 0, 5)
            columns = {c: column(d, c, n, rows) for c in names}
            key = [None if i % 11 == 3 else i * 7 % 13 for i in range(n)]
            first = dict(list(columns.items())[: d.number(0, 2)])
            columns = first | {"k": pa.array(key, d.choice([pa.int64(), pa.int32()]))} | columns
            self.logs.append(pa.table(columns))
            rows += n
        self.log = pa.concat_tables(self.logs, promote_options="permissive")
        n = d.choice([9, 3, 0, 40])
        ids = {"k": pa.array([None if i == 5 else i % 20 for i in range(n)], pa.int64()), "z": pa.array([f"z{i}" for i in range(n)])}
        for c in d.some(["x", "s", "n"], 0, 2):
            ids[c] = column(d, c, n, 1)
        self.ids = pa.table(ids)
        self.options = dict(row_group_size=d.choice([1000, 10]), data_page_size=d.choice([1 << 20, 40]), use_dictionary=d.chance(50), version=d.choice(["2.6", "2.4"]))
        self.directory, self.shards = d.chance(40), 1
        if self.directory and kind not in ("right", "full"):
            self.shards = d.choice([1, 3])
        self.how = [*d.choice([[], ["--strategy", "lookup"], ["--strategy", "shuffle"]]), "--threads", d.choice([1, 4])]
        if self.shards == 1 and d.chance(30):
            self.how += ["--memory", "24MiB"]
        if self.directory and d.chance(30):
            self.how += ["--target-file-size", "1MiB"]

    def __repr__(self):
        return f"{self.kind} {self.how} directory={self.directory} shards={self.shards} {self.options} {[t.to_pydict() for t in self.logs]} {[t.schema for t in self.logs]} {self.ids.to_pydict()}"

    def store(self, t):
        log, ids = t.path("log"), t.path("ids.parquet")
        for i, table in enumerate(self.logs):
            tables.write(table, log / f"{i}.parquet", **self.options)
        return log, tables.write(self.ids, ids, **self.options)

    def run(self, t, log, ids, *more, schema=("--schema", "union")):
        """The answer as one table: of a directory, the files must have one schema."""
        out = t.path("out") if self.directory else t.path("out.parquet")
        for shard in range(self.shards):
            of = ["--shard", f"{shard}/{self.shards}"] if self.shards > 1 else []
            t.run("join", "--ids", ids, "--on", "k", "--type", self.kind, *schema, *self.how, *of, *more, "-o", f"{out}/" if self.directory else out, log)
        got = [tables.read(f) for f in tables.data_files(out)] if self.directory else [tables.read(out)]
        assert len({g.schema for g in got}) <= 1, f"schemas {[g.schema for g in got]}"
        return pa.concat_tables(got) if got else None


def types_wrong(got, log):
    """How the log's columns differ in type from pyarrow's union."""
    return [f"{f.name}: {f.type}, want {log.field(f.name).type}" for f in got.schema if f.name in log.names and not f.type.equals(log.field(f.name).type)]


def one(t, oracle, seen, case):
    log, ids = case.store(t)
    try:
        got = case.run(t, log, ids)
        oracle.take(case.log, case.ids, [("k", "k")])
        want, names = joins.question(case.log.column_names, case.ids.column_names, [("k", "k")], case.kind)
        if got is None:
            wrong = oracle.ask(f"select count(*) from ({want})") != [(0,)] and "no output"
        else:
            wrong = oracle.unlike(got, want, names) or types_wrong(got, case.log.schema)
        assert not wrong, wrong
        seen["cases"] += 1
        seen["rows"] += got is not None and got.num_rows > 0
        seen["directory"] += case.directory
    finally:
        shutil.rmtree(log)
        ids.unlink()


class Chosen(Case):
    """A case with --columns: names, fields of structs, stars and EXCEPT."""

    def __init__(self, d, kind):
        super().__init__(d, kind)
        self.alike = d.chance(40)  # files of one schema, so that nothing is united by --schema
        if self.alike:
            table = self.logs[d.number(0, len(self.logs) - 1)]
            self.logs, self.log = [table, table.slice(0, table.num_rows // 2)], pa.concat_tables([table, table.slice(0, table.num_rows // 2)])
        self.pairs = kind not in ("semi", "anti")
        theirs = [("ids", c) for c in self.ids.column_names if c != "k"] if self.pairs else []
        self.all = [("log", c) for c in self.log.column_names] + theirs
        named = d.some(self.all, 0, 4)
        self.fields = self.paths(d) if ("log", "s") in named and d.chance(70) else []
        items = [self.spelled(d, c) for c in named]
        if self.fields:
            at = named.index(("log", "s"))
            prefix = items[at].removesuffix("s") or d.choice(["", "log."] if ("ids", "s") not in self.all else ["log."])
            items[at : at + 1] = [prefix + "s." + ".".join(f) for f in self.fields]
            named[at : at + 1] = [("log", "s")] * len(self.fields)
        self.items = [(text, [c]) for text, c in zip(items, named, strict=True)]
        for star in d.choice([["*"], [], ["log.*"], ["log.*", "ids.*"], ["ids.*"]] if self.pairs else [["*"], [], ["log.*"]]):
            of = [c for c in self.all if star in ("*", c[0] + ".*")]
            without = d.some([c for c in of if c[0] == "ids" or c[1] != "k" or star != "ids.*"], 0, 2) if of else []
            bare = star != "*" and d.chance(50)
            text = star + (d.choice([" except ", " EXCEPT "]) + ",".join(c[1] if bare else self.spelled(d, c) for c in without) if without else "")
            self.items.insert(d.number(0, len(self.items)), (text, [c for c in of if c not in named and c not in without]))
        self.one = d.chance(50)  # one flag, as far as EXCEPT lets it
        self.output = []
        for _, columns in self.items:
            self.output += [c for c in columns if c not in self.output]

    def paths(self, d):
        kind = self.log.schema.field("s").type
        paths = [[f.name] for f in kind] + ([["r", "y"]] if "r" in {f.name for f in kind} and d.chance(50) else [])
        chosen = d.some([tuple(p) for p in paths], 1, 3)
        return [p for p in chosen if p != ("r",) or ("r", "y") not in chosen]

    def spelled(self, d, c):
        other = ("ids" if c[0] == "log" else "log", c[1])
        if other in self.all:
            return ".".join(c)
        return d.choice([c[1], ".".join(c)])

    def flags(self):
        flags = []
        for text, _ in self.items:
            if self.one and flags and " " not in flags[-1]:
                flags[-1] += "," + text
            else:
                flags.append(text)
        return [f"--columns={f}" for f in flags] + ([] if self.alike else ["--schema", "union"])

    def __repr__(self):
        return f"{self.flags()} {self.fields} {super().__repr__()}"

    def question(self):
        taken = {c for side, c in self.output if side == "log"}
        listed, names = [], []
        for side, c in self.output:
            name = c
            while side == "ids" and name in taken:
                name += "_ids"
            taken.add(name)
            names.append(name)
            listed.append('coalesce(l.k, r.k) as k' if c == "k" and self.pairs else f'{"l" if side == "log" else "r"}."{c}" as "{name}"')
        return f"select {', '.join(listed)} from l {self.kind} join r on l.k = r.k", names


def picked(column, paths):
    """A struct column with some fields alone."""
    tops = {p[0]: [q[1:] for q in paths if q[0] == p[0] and len(q) > 1] for p in paths}

    def narrow(value, tops):
        return value and {k: narrow(value[k], {q[0]: [] for q in below}) if below else value[k] for k, below in tops.items()}

    def kind(of, tops):
        return pa.struct([(f.name, kind(f.type, {q[0]: [] for q in tops[f.name]}) if tops[f.name] else f.type) for f in of if f.name in tops])

    return pa.array([narrow(v, tops) for v in column.to_pylist()], kind(column.type, tops))


def choose(t, oracle, seen, case):
    if not case.output:
        return
    log, ids = case.store(t)
    try:
        got = case.run(t, log, ids, *case.flags(), schema=[])
        whole = case.log
        if case.fields:
            whole = whole.set_column(whole.column_names.index("s"), "s", picked(whole.column("s"), case.fields)).combine_chunks()
        oracle.take(whole, case.ids, [("k", "k")])
        want, names = case.question()
        if got is None:
            wrong = oracle.ask(f"select count(*) from ({want})") != [(0,)] and "no output"
        else:
            wrong = oracle.unlike(got, want, names)
        assert not wrong, wrong
        seen["cases"] += 1
        seen["fields"] += bool(case.fields)
        seen["EXCEPT"] += any("xcept" in f.lower() for f in case.flags())
        seen["rows"] += got is not None and got.num_rows > 0
    finally:
        shutil.rmtree(log)
        ids.unlink()


def columns(t):
    oracle, seen = joins.Oracle(), collections.Counter()
    for kind in joins.TYPES:

        @hypothesis.given(drawn(Chosen, kind))
        def as_others(case):
            choose(t, oracle, seen, case)

        properties.hold(t, f"{kind}, as pyarrow and DuckDB", as_others, CASES, 400)
    properties.varied(t, seen, {"rows": 0.4, "fields": 0.05, "EXCEPT": 0.1})


def unions(t):
    oracle, seen = joins.Oracle(), collections.Counter()
    for kind in joins.TYPES:

        @hypothesis.given(drawn(Case, kind))
        def as_others(case):
            one(t, oracle, seen, case)

        properties.hold(t, f"{kind}, as pyarrow and DuckDB", as_others, CASES, 400)
    properties.varied(t, seen, {"rows": 0.4, "directory": 0.2})


def placed(t):
    """Logs in directories of a column, that grow, in lists and in tables: --schema union with the IDs' columns."""
    log, oracle = t.path("placed"), joins.Oracle()
    parts = [
        pa.table({"k": pa.array([1, 2, 2, None], pa.int32()), "a": ["x", "y", "z", "w"]}),
        pa.table({"b": [[1, 2], [], None], "k": [2, 3, 9]}),
        pa.table({"k": [2, 7], "a": ["v", "u"], "c": [1.5, None]}),
    ]
    ids = tables.write(pa.table({"k": [2, 2, 3, 77, None], "a": list("ABCDE")}), t.path("ids.parquet"))
    days = [f"2026-01-0{i + 1}" for i in range(3)]
    where = [tables.write(p, log / f"dt={day}" / "p.parquet") for day, p in zip(days, parts, strict=True)]
    dated = [p.append_column("dt", pa.array([datetime.date.fromisoformat(day)] * p.num_rows)) for day, p in zip(days, parts, strict=True)]
    whole = pa.concat_tables(dated, promote_options="permissive")
    oracle.take(whole, tables.read(ids), [("k", "k")])
    common = ["join", "--ids", ids, "--on", "k", "--schema", "union"]

    def wrong(got, kind, columns):
        want, _ = joins.question(whole.column_names, ["k", "a"], [("k", "k")], kind)
        return oracle.unlike(got.select(columns), f"select {', '.join(columns)} from ({want})", columns)

    def in_directories(out):
        files = tables.data_files(out)
        assert len({tables.read(f).schema for f in files}) == 1, files
        of = lambda f: pa.array([datetime.date.fromisoformat(f.parent.name[3:])] * tables.read(f).num_rows, pa.date32()) if "dt=2" in str(f) else pa.nulls(tables.read(f).num_rows, pa.date32())  # noqa: E731
        return pa.concat_tables([tables.read(f).append_column("dt", of(f)) for f in files])

    every = ["k", "a", "b", "c", "dt", "a_ids"]
    for kind in ("inner", "left", "right", "full"):
        one, out = t.path("one.parquet"), t.path("placed-out")
        t.run(*common, "--type", kind, "-o", one, log)
        d = wrong(tables.read(one), kind, every)
        t.ok(f"{kind}, directories into a file", not d, d)
        t.run(*common, "--type", kind, "--memory", "24MiB", "--strategy", "shuffle", "-o", f"{out}/", log)
        d = wrong(in_directories(out), kind, every)
        t.ok(f"{kind}, directories into a directory", not d, d)
        t.run(*common, "--type", kind, "--columns", "ids.a,log.* except b,c", "--force", "-o", one, log)
        got = tables.read(one)
        t.equal(f"{kind}, a star and EXCEPT", got.column_names, ["a_ids", "k", "a", "dt"])
        d = wrong(got, kind, ["a_ids", "k", "a", "dt"])
        t.ok(f"{kind}, a star and EXCEPT: rows", not d, d)
    frozen, out = t.path("frozen.jsonl"), t.path("listed")
    t.run("inputs", "-o", frozen, log)
    for shard in range(3):
        t.run(*common, "--type", "left", "--shard", f"{shard}/3", "-o", f"{out}/", "--files-from", frozen)
    d = wrong(in_directories(out), "left", every)
    t.ok("a list, by shards", not d, d)
    out, late = t.path("grown"), log.parent / "late"
    where[1].parent.rename(late)  # whose column others lack
    t.run(*common, "--type", "left", "-o", f"{out}/", log)
    before = tables.read(tables.data_files(out)[0]).column_names
    late.rename(where[1].parent)
    t.run(*common, "--type", "left", "-o", f"{out}/", log)
    t.equal("what was finished keeps its columns", tables.read(tables.data_files(out)[0]).column_names, before)
    t.equal("what comes has those of all files", tables.read(tables.data_files(out)[1]).column_names, ["k", "a", "b", "c", "a_ids"])
    of_table(t, oracle, common, parts)


def of_table(t, oracle, common, parts):
    """The same log as a Delta table: files that lack columns, as before they were added."""
    at = t.path("delta")
    fields = [("k", "long"), ("a", "string"), ("c", "double")]
    schema = {"type": "struct", "fields": [{"name": n, "type": k, "nullable": True, "metadata": {}} for n, k in fields]}
    actions = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": {"id": "1", "format": {"provider": "parquet", "options": {}}, "schemaString": json.dumps(schema), "partitionColumns": [], "configuration": {}}}]
    tables_of = [parts[0].set_column(0, "k", parts[0].column("k").cast(pa.int64())), parts[2]]
    for i, p in enumerate(tables_of):
        f = tables.write(p, at / f"{i}.parquet")
        actions.append({"add": {"path": f.name, "partitionValues": {}, "size": f.stat().st_size, "modificationTime": 0, "dataChange": True}})
    (at / "_delta_log").mkdir()
    (at / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    oracle.hold("l", pa.concat_tables(tables_of, promote_options="permissive"))
    for kind in ("semi", "inner", "right", "full"):
        out = t.path("of-table.parquet")
        t.run(*common, "--type", kind, "-o", out, f"delta:{at}")
        got, columns = tables.read(out), ["k", "a", "c"] + ["a_ids"] * (kind != "semi")
        want, _ = joins.question(["k", "a", "c"], ["k", "a"], [("k", "k")], kind)
        d = oracle.unlike(got, want, columns)
        t.ok(f"{kind}, a Delta table", not d, d)


def run(t, _repository):
    t.group("schema union", unions)
    t.group("placed union", placed)
    t.group("columns", columns)
