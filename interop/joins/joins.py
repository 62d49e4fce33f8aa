"""Random joins by every strategy against DuckDB, as multisets of whole rows, and against each other in their order."""

import collections
import datetime
import decimal
import shutil

import duckdb
import hypothesis
import numpy as np
import pyarrow as pa
import pyarrow.csv
from hypothesis import strategies as st

from common import harness, properties, tables
from common.properties import Series, drawn

TYPES = ("semi", "anti", "inner", "left", "right", "full")
STRATEGIES = ("lookup", "broadcast", "reverse", "shuffle", "auto")

CASES = 20  # of a type, where not all are tried

DAY = datetime.datetime(2020, 1, 1)

# Classes of keys: the types that the two sides draw from, and what the number i stands for. Both sides know i in 0..99.
KEYS = {
    "int": ([pa.int8(), pa.int16(), pa.int32(), pa.int64()], lambda i: i - 50),
    "uint": ([pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.int64()], lambda i: i),
    "wide": ([pa.int64()], lambda i: (i - 50) << 56),
    "text": ([pa.string(), pa.large_string(), pa.dictionary(pa.int16(), pa.string())], lambda i: "" if i == 0 else f"u{i}" * (1 + i % 9)),
    "binary": ([pa.binary(), pa.large_binary()], lambda i: bytes([i, 0, 255 - i])),
    "fixed": ([pa.binary(16)], lambda i: i.to_bytes(16, "big")),
    "decimal": ([pa.decimal128(9, 2), pa.decimal128(20, 2), pa.decimal128(38, 6)], lambda i: decimal.Decimal(i - 50) / 4),
    "date": ([pa.date32()], lambda i: (DAY + datetime.timedelta(i - 50)).date()),
    "zoneless": ([pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")], lambda i: DAY + datetime.timedelta(milliseconds=i)),
    "instant": ([pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")], lambda i: DAY + datetime.timedelta(milliseconds=i)),
    "float": ([pa.float32(), pa.float64()], lambda i: [0.0, -0.0, float("nan"), float("inf")][i] if i < 4 else i / 8),
    "flag": ([pa.bool_()], lambda i: i % 2 == 0),
}  # fmt: skip
PLAIN = {"int": pa.int64(), "uint": pa.int64(), "text": pa.string(), "date": pa.date32()}  # of IDs as CSV


PAYLOADS = {
    pa.string(): ["", "p", "q" * 400, "qu"],
    pa.int32(): [*range(-9, 9)],
    pa.float64(): [0.5, -1e300, float("nan"), float("inf")],
    pa.bool_(): [False, True],
    pa.decimal128(20, 5): [decimal.Decimal(i * 7919).scaleb(-5) for i in range(9)],
    pa.timestamp("us"): [DAY + datetime.timedelta(microseconds=i * 86_399_999) for i in range(9)],
    pa.list_(pa.int16()): [[], [1], [2, 3], [4, 4, 4]],
    pa.struct([("a", pa.int8()), ("b", pa.string())]): [{"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": None, "b": "y"}],
}


def payload(d, n, name, text):
    """A column beside the key, of any type, with NULLs."""
    kind = pa.string() if text else d.choice(PAYLOADS)
    values = PAYLOADS[kind]
    return pa.array([None if i is None else values[i] for i in Series(d, len(values)).rows(n)], kind)


class Case:
    """Two tables and a join of them, drawn."""

    def __init__(self, d, kind, strategies):
        self.kind = kind
        self.text = d.chance(20)
        classes = d.several([k for k in KEYS if not self.text or k in PLAIN], 1, d.choice([1, 1, 1, 2, 3]))
        n, m = d.choice([1, 10, 40, 100]) * d.number(0, 30), d.choice([1, 1, 10, 50]) * d.number(0, 20)
        few = d.choice([5, 20, 100])  # distinct values in each part
        if n * m > 5000 * few:
            m //= 50
        log, ids, self.pairs = {}, {}, []
        for i, kind in enumerate(classes):
            forms, value = KEYS[kind]
            mine, theirs = d.choice(forms), PLAIN[kind] if self.text else d.choice(forms)
            name, other = f"k{i}", d.choice([f"k{i}", f"i{i}", f"key of {i}"])
            # Text that is empty is NULL in CSV.
            give = lambda rows: [None if v is None else value(max(v, int(self.text))) for v in rows]  # noqa: E731, B023
            log[name] = pa.array(give(Series(d, few).rows(n)), mine)
            ids[other] = pa.array(give(Series(d, few).rows(m)), theirs)
            self.pairs.append((name, other))
        names = ["v", "w", "n", "m", "v_ids", "i0", "key of 0"]
        log["n"] = pa.array(range(n))
        ids["m"] = pa.array(map(str, range(m)) if self.text else range(m), pa.string() if self.text else None)
        log |= {c: payload(d, n, c, False) for c in d.some(names, 0, 3) if c not in log}
        ids |= {c: payload(d, m, c, self.text) for c in d.some(names, 0, 3) if c not in ids}
        self.log, self.ids = self.ordered(d, log), self.ordered(d, ids)
        if self.text:  # as the tool reads it
            self.ids = pa.table({
                c: pa.array([v or None for v in a.to_pylist()], pa.string()) if pa.types.is_string(a.type) else a
                for c, a in zip(self.ids.column_names, self.ids.columns, strict=True)
            })  # fmt: skip
        self.stored = [self.forms(d, (".parquet", ".parquet", ".arrow")), self.forms(d, (".csv",) if self.text else (".parquet", ".parquet", ".arrow"))]
        self.ways = [(s, d.choice([1, 2, 4])) for s in d.some(strategies, 1, 3)]
        self.ending = d.choice([".parquet", ".parquet", ".parquet", ".arrow"])
        self.then = d.choice(["nothing", "columns", "count"])
        if self.then == "columns":
            self.columns = chosen(d, self.log.column_names, self.ids.column_names, self.pairs, self.kind)

    def ordered(self, d, columns):
        return pa.table({name: columns[name] for name in d.draw(st.permutations(list(columns)))})

    def forms(self, d, endings):
        """How a table is stored: the ending, the number of files, and options of Parquet."""
        ending, files = d.choice(endings), d.choice([1, 1, 3])
        return ending, files, {
            "row_group_size": d.choice([10**6, 5, 50, 1000]), "data_page_size": d.choice([10**6, 50]), "write_batch_size": d.choice([1024, 4, 64]),
            "use_dictionary": d.chance(50), "write_page_index": d.chance(50), "data_page_version": d.choice(["1.0", "2.0"]),
            "compression": d.choice(["none", "snappy", "zstd"]),
        } if ending == ".parquet" else {}  # fmt: skip

    @property
    def on(self):
        quote = lambda c: f'"{c}"' if " " in c else c  # noqa: E731
        return ",".join(a if a == b else f"{a}={quote(b)}" for a, b in self.pairs)

    def __repr__(self):
        """What a reader needs to make the case by hand."""
        show = lambda t: f"{t.num_rows} rows of {', '.join(f'{f.name}: {f.type}' for f in t.schema)}\n      {t.slice(0, 12).to_pylist()}"  # noqa: E731
        return (
            f"{self.kind} join on {self.on}, {self.ways} into {self.ending}, then {self.then}"
            f"\n    log, as {self.stored[0]}: {show(self.log)}\n    IDs, as {self.stored[1]}: {show(self.ids)}\n"
        )

    def store(self, t):
        """Writes both tables, each in one or several files: their directories."""
        places = []
        for table, name, (ending, files, how) in zip((self.log, self.ids), ("logs", "ids"), self.stored, strict=True):
            places.append(t.path(name))
            places[-1].mkdir()
            for i in range(files):
                lo, hi = table.num_rows * i // files, table.num_rows * (i + 1) // files
                part, path = table.slice(lo, hi - lo), places[-1] / f"{i}{ending}"
                if ending == ".csv":
                    pa.csv.write_csv(part, path)
                else:
                    tables.write(part, path, **how)
        return places


def question(log, ids, pairs, kind):
    """The join in DuckDB's SQL, and the names of its columns. A name that the log has too gets the ending _ids."""
    where = " and ".join(f'l."{a}" = r."{b}"' for a, b in pairs)
    if kind in ("semi", "anti"):
        return f"select l.* from l {kind} join r on {where}", list(log)
    shared = {a for a, b in pairs if a == b}
    columns = [(f'coalesce(l."{c}", r."{c}")' if c in shared else f'l."{c}"', c) for c in log]
    for c in ids:
        if c in shared:
            continue
        name = c
        while name in [n for _, n in columns]:
            name += "_ids"
        columns.append((f'r."{c}"', name))
    listed = ", ".join(f'{e} as "{n}"' for e, n in columns)
    return f"select {listed} from l {kind} join r on {where}", [n for _, n in columns]


def chosen(d, log, ids, pairs, kind):
    """Some columns of the join, as --columns has them, and the question whose answer has them."""
    shared = {a for a, b in pairs if a == b}
    quote = lambda c: f'"{c}"' if " " in c else c  # noqa: E731
    both = [c for c in log if c in ids and c not in shared]
    columns = [("log", c) for c in log]
    if kind not in ("semi", "anti"):
        columns += [("ids", c) for c in ids if c not in shared]
    columns = d.some(columns, 1)
    taken = {c for side, c in columns if side == "log"}
    spelled, listed, names = [], [], []
    for side, c in columns:
        sides = [f"{side}.{quote(c)}"] + ([quote(c)] if c not in both or kind in ("semi", "anti") else [])
        spelled.append(d.choice(sides))
        name = c
        while side == "ids" and name in taken:
            name += "_right"
        taken.add(name)
        once = side == "log" and c in shared and kind not in ("semi", "anti")
        listed.append(f'coalesce(l."{c}", r."{c}") as "{c}"' if once else f'{"l" if side == "log" else "r"}."{c}" as "{name}"')
        names.append(name)
    where = " and ".join(f'l."{a}" = r."{b}"' for a, b in pairs)
    return ",".join(spelled), f"select {', '.join(listed)} from l {kind} join r on {where}", names


class Oracle:
    """Two tables in DuckDB: copied, as a filter that it hands on to Arrow has another place for NaN."""

    def __init__(self, *tables_and_pairs):
        self.db = duckdb.connect()
        self.db.execute("set timezone = 'UTC'; set threads = 1")
        if tables_and_pairs:
            self.take(*tables_and_pairs)

    def take(self, log, ids, pairs):
        self.log, self.ids, self.pairs = log, ids, pairs
        self.hold("l", log)
        self.hold("r", ids)

    def hold(self, name, table):
        self.db.register("arrow", table)
        self.db.execute(f"create or replace table {name} as select * from arrow")
        self.db.unregister("arrow")

    def ask(self, query):
        return self.db.execute(query).fetchall()

    def differences(self, got, kind):
        """What is unlike between an answer and DuckDB's; empty if nothing is."""
        return self.unlike(got, *question(self.log.column_names, self.ids.column_names, self.pairs, kind))

    def count(self, kind):
        return self.ask(f"select count(*) from ({question(self.log.column_names, self.ids.column_names, self.pairs, kind)[0]})")[0][0]

    def unlike(self, got, want, names):
        """The same for the answer to a question, and the names of its columns."""
        if got.column_names != names:
            return f"columns {got.column_names}, want {names}"
        self.hold("got", got)
        listed = ", ".join(f'"{n}"' for n in names)
        lacks = self.ask(f"({want}) except all select {listed} from got limit 3")
        more = self.ask(f"select {listed} from got except all ({want}) limit 3")
        n = self.ask(f"select count(*) from ({want})")[0][0]
        if lacks or more or n != got.num_rows:
            return f"{got.num_rows} rows, want {n}; missing {lacks}, too many {more}"
        return ""

    def figures(self):
        """What a join of any type reports of its inputs."""
        where = " and ".join(f'l."{a}" = r."{b}"' for a, b in self.pairs)
        keys = ", ".join(f'r."{b}"' for _, b in self.pairs)
        null = lambda side, at: " or ".join(f'{side}."{p[at]}" is null' for p in self.pairs)  # noqa: E731
        return {
            "rows_in": self.log.num_rows,
            "keys_null": self.ask(f"select count(*) from l where {null('l', 0)}")[0][0],
            "ids_total": self.ask(f"select count(*) from r where not ({null('r', 1)})")[0][0],
            "ids_matched": self.ask(f"select count(*) from r semi join l on {where}")[0][0],
            "keys_matched": self.ask(f"select count(*) from (select distinct {keys} from r semi join l on {where})")[0][0],
        }


def unlike(report, figures):
    """The figures that a report has otherwise. Rows that need not be read count as having a key."""
    skipped = report["row_groups_skipped"] + report["pages_skipped"]
    return {
        k: (report[k], want)
        for k, want in figures.items()
        if report[k] != want and not (k == "keys_null" and skipped and report[k] < want)
    }


def known(t):
    """The strategies that the tool has."""
    r = t.run("join", "--ids", "x", "--on", "k", "--strategy", "none of them", "-o", "y.parquet", "z", want=64)
    return [s for s in STRATEGIES if s in r.text]


def randomly(t):
    """Tables of any types and layouts: a join by any strategy has DuckDB's rows, in one order, and reports its figures."""
    oracle, strategies, seen = Oracle(), known(t), collections.Counter()
    t.equal("strategies", strategies, list(STRATEGIES))
    for kind in TYPES:
        of_type(t, kind, oracle, strategies, seen)
    least = {"rows": 0.4, "rows and not all": 0.15, "NULL keys": 0.05, "several keys": 0.15, "text IDs": 0.1, "log rows > 100": 0.3, "Parquet, of which some rows": 0.15, "columns": 0.2, "count": 0.1}
    properties.varied(t, seen, least | dict.fromkeys(strategies, 0.2))


def of_type(t, kind, oracle, strategies, seen):
    @hypothesis.given(drawn(Case, kind, strategies))
    def as_duckdb(case):
        seen["cases"] += 1
        one(t, oracle, seen, case)

    properties.hold(t, f"{kind}, by any strategy, as DuckDB", as_duckdb, CASES, 700)


def one(t, oracle, seen, case):
    log, ids = case.store(t)
    oracle.take(case.log, case.ids, case.pairs)
    figures = oracle.figures()
    first = None
    try:
        for strategy, threads in case.ways:
            out = t.path(f"out{case.ending}")
            how = ["--type", case.kind, "--strategy", strategy, "--threads", threads]
            r = t.run("join", "--ids", ids, "--on", case.on, *how, "--json", "-o", out, log).json
            got = tables.read(out)
            if first is None:
                first = out.read_bytes()
                wrong = oracle.differences(got, case.kind)
                assert not wrong, wrong
            assert out.read_bytes() == first, f"{strategy}: not the bytes of {case.ways[0][0]}"
            bad = unlike(r, figures | {"rows_out": got.num_rows})
            assert not bad and strategy in ("auto", r["strategy"]), f"{strategy}: strategy {r['strategy']}, {bad}"
            seen[strategy] += 1
            out.unlink()
        how = ["--type", case.kind, "--strategy", case.ways[0][0], "--json"]
        if case.then == "columns":
            columns, query, names = case.columns
            out = t.path("chosen.parquet")
            suffix = ["--suffix", "_right"] if case.kind not in ("semi", "anti") else []
            t.run("join", "--ids", ids, "--on", case.on, *how, "--columns", columns, *suffix, "-o", out, log)
            wrong = oracle.unlike(tables.read(out), query, names)
            assert not wrong, f"--columns {columns}: {wrong}"
            out.unlink()
        elif case.then == "count":
            counted, want = t.run("join", "--ids", ids, "--on", case.on, *how, "--count", log).json["rows_out"], oracle.count(case.kind)
            assert counted == want, f"--count: {counted}, want {want}"
    finally:
        shutil.rmtree(log)
        shutil.rmtree(ids)
    held = {
        case.then: True, "rows": got.num_rows, "rows and not all": 0 < figures["ids_matched"] < figures["ids_total"],
        "NULL keys": figures["keys_null"], "several keys": len(case.pairs) > 1, "text IDs": case.text,
        "Parquet, of which some rows": case.stored[0][0] == case.ending == ".parquet" and case.log.num_rows > 20 and 0 < oracle.count("semi") < case.log.num_rows,
        "log rows > 100": case.log.num_rows > 100,
    }  # fmt: skip
    seen.update(what for what, held in held.items() if held)


def little(t):
    """Both sides exceed the memory; one key has three tenths of the log, another two thousand IDs."""
    rng = np.random.default_rng(7)
    n, m = 400_000, 300_000
    keys = rng.integers(0, 400_000, n)
    keys[rng.random(n) < 0.3] = 7
    theirs = rng.permutation(600_000)[:m]
    theirs[:2000] = 13
    log = pa.table({
        "user": pa.array(keys, mask=rng.random(n) < 0.01), "row": pa.array(range(n)), "url": pa.array([f"/{i % 977}/{i}" for i in range(n)]),
    })  # fmt: skip
    names = [f"name of {i} " + "x" * (i % 50) for i in theirs.tolist()]
    ids = pa.table({"id": theirs, "name": names, "row": pa.array(range(m), pa.int32())})
    logp = tables.write(log, t.path("logs.parquet"), row_group_size=40_000, write_page_index=True)
    idp = tables.write(ids, t.path("ids.parquet"), row_group_size=50_000)
    oracle, temp = Oracle(log, ids, [("user", "id")]), t.path("temp")
    temp.mkdir()
    figures, strategies = oracle.figures(), known(t)
    for kind in TYPES if harness.FULL else ("anti", "full"):
        first = None
        for strategy in strategies:
            out, name = t.path("out.parquet"), f"{kind}, {strategy}"
            how = ["--type", kind, "--strategy", strategy, "--memory", "24MiB", "--temp-dir", temp]
            r = t.run("join", "--ids", idp, "--on", "user=id", *how, "--json", "-o", out, logp, want=None)
            t.equal(f"{name}: leaves no temporary file", list(temp.iterdir()), [])
            if r.code and strategy not in ("shuffle", "auto"):
                t.ok(f"{name}: says that it has not the memory", r.code == 1 and "--memory" in r.text and not out.exists(), str(r))
                continue
            if r.code:
                t.ok(name, False, str(r))
                continue
            if first is None:
                first = out.read_bytes()
                t.equal(name, oracle.differences(tables.read(out), kind), "")
            else:
                t.ok(f"{name}: the same bytes", out.read_bytes() == first)
            t.equal(f"{name}: figures", unlike(r.json, figures), {})
            if strategy == "shuffle":
                t.ok(f"{name}: spills", r.json["spilled_bytes"] > 0, r.json["spilled_bytes"])


def run(t, _repository):
    t.group("joins random", randomly)
    t.group("joins in little memory", little)
