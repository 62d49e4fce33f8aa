"""Log files of different columns, as one log: --schema union in scans and in joins of every type, and what --columns chooses.

The oracles: the union is what pyarrow makes of the files (concat_tables, permissive), the rows are DuckDB's.
"""

import collections
import decimal
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
            listed.append(f'coalesce(l.k, r.k) as k' if c == "k" and self.pairs else f'{"l" if side == "log" else "r"}."{c}" as "{name}"')
        return f"select {', '.join(listed)} from l {self.kind} join r on l.k = r.k", names


def picked(column, paths):
    """A struct column with some fields alone, as pyarrow makes it."""
    column = column.combine_chunks()
    column = column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
    tops = {}
    for p in paths:
        tops.setdefault(p[0], []).append(p[1:])
    fields = [f for f in column.type if f.name in tops]  # in the struct's order
    arrays = [picked(c, tops[f.name]) if all(tops[f.name]) and tops[f.name] else c for f in fields for c in [column.field(f.name)]]
    return pa.StructArray.from_arrays(arrays, names=[f.name for f in fields], mask=column.is_null())


def choose(t, oracle, seen, case):
    if not case.output:
        return
    log, ids = case.store(t)
    try:
        got = case.run(t, log, ids, *case.flags(), schema=[])
        whole = case.log
        if case.fields:
            whole = whole.set_column(whole.column_names.index("s"), "s", picked(whole.column("s"), case.fields))
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


def run(t, _repository):
    t.group("schema union", unions)
    t.group("columns", columns)
