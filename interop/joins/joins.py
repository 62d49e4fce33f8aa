"""Random joins by every strategy against DuckDB, as multisets of whole rows, and against each other in their order."""

import datetime
import decimal
import random

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv

from common import harness, tables

TYPES = ("semi", "anti", "inner", "left", "right", "full")
STRATEGIES = ("lookup", "broadcast", "reverse", "shuffle", "auto")
SEEDS = range(500 if harness.FULL else 12)

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


def payload(rng, n, names, text):
    """Columns beside the key, of any type, with NULLs."""
    kinds = [
        (pa.string(), lambda: rng.choice(["", "p", "q" * rng.randrange(400)])),
        (pa.int32(), lambda: rng.randrange(-9, 9)),
        (pa.float64(), lambda: rng.choice([0.5, -1e300, float("nan"), float("inf")])),
        (pa.bool_(), lambda: rng.random() < 0.5),
        (pa.decimal128(20, 5), lambda: decimal.Decimal(rng.randrange(10**9)).scaleb(-5)),
        (pa.timestamp("us"), lambda: DAY + datetime.timedelta(microseconds=rng.randrange(10**9))),
        (pa.list_(pa.int16()), lambda: [rng.randrange(5) for _ in range(rng.randrange(3))]),
        (pa.struct([("a", pa.int8()), ("b", pa.string())]), lambda: {"a": rng.randrange(9), "b": rng.choice(["x", None])}),
    ]
    columns = {}
    for name in names:
        kind, value = kinds[0] if text else rng.choice(kinds)
        columns[name] = pa.array([None if rng.random() < 0.2 else value() for _ in range(n)], kind)
    return columns


class Case:
    """Two tables that are joined."""

    def __init__(self, seed):
        rng = self.rng = random.Random(f"joins {seed}")
        self.text = rng.random() < 0.2
        classes = rng.choices([k for k in KEYS if not self.text or k in PLAIN], k=rng.choice([1, 1, 2, 3]))
        n, m = rng.choice([0, 7, 300, 3000]), rng.choice([0, 5, 200, 1000])
        few = rng.choice([3, 100])  # distinct values in each part
        nulls, heavy = rng.choice([0, 0.1]), rng.random() < 0.3
        draw = lambda lo, hi: 5 if heavy and rng.random() < 0.3 else rng.randrange(lo, hi)  # noqa: E731
        log, ids, self.pairs = {}, {}, []
        for i, kind in enumerate(classes):
            forms, value = KEYS[kind]
            theirs = rng.choice(forms)
            if self.text:
                theirs = PLAIN[kind]
            name, other = f"k{i}", rng.choice([f"k{i}", f"i{i}", f"key of {i}"])
            hi = min(few, 100)
            # Text that is empty is NULL in CSV.
            give = lambda lo: None if rng.random() < nulls else value(max(draw(lo, hi), self.text))  # noqa: E731, B023
            log[name] = pa.array([give(0) for _ in range(n)], rng.choice(forms))
            ids[other] = pa.array([give(min(2, hi - 1)) for _ in range(m)], theirs)
            self.pairs.append((name, other))
        names = ["v", "w", "n", "m", "v_ids", "i0", "key of 0"]
        log["n"] = pa.array(range(n))
        ids["m"] = pa.array(map(str, range(m)) if self.text else range(m), pa.string() if self.text else None)
        log |= payload(rng, n, [c for c in rng.sample(names, rng.randrange(4)) if c not in log], False)
        ids |= payload(rng, m, [c for c in rng.sample(names, rng.randrange(4)) if c not in ids], self.text)
        self.log, self.ids = self.shuffled(log), self.shuffled(ids)
        if self.text:  # as the tool reads it
            self.ids = pa.table({
                c: pa.array([v or None for v in a.to_pylist()], pa.string()) if pa.types.is_string(a.type) else a
                for c, a in zip(self.ids.column_names, self.ids.columns, strict=True)
            })  # fmt: skip

    def shuffled(self, columns):
        return pa.table({name: columns[name] for name in self.rng.sample(list(columns), len(columns))})

    @property
    def on(self):
        quote = lambda c: f'"{c}"' if " " in c else c  # noqa: E731
        return ",".join(a if a == b else f"{a}={quote(b)}" for a, b in self.pairs)

    def store(self, t):
        """Writes both tables, each in several files: their directories."""
        log, ids = t.path("logs"), t.path("ids")
        for table, where, forms in (
            (self.log, log, [".parquet", ".arrow"]),
            (self.ids, ids, [".csv"] if self.text else [".parquet", ".arrow"]),
        ):
            ending, files = self.rng.choice(forms), self.rng.choice([1, 1, 3])
            for i in range(files):
                lo, hi = table.num_rows * i // files, table.num_rows * (i + 1) // files
                part, path = table.slice(lo, hi - lo), where / f"{i}{ending}"
                if ending == ".csv":
                    path.parent.mkdir(exist_ok=True)
                    pa.csv.write_csv(part, path)
                elif ending == ".arrow":
                    tables.write(part, path)
                else:
                    tables.write(part, path, **self.options())
        return log, ids

    def options(self):
        r = self.rng
        return {
            "row_group_size": r.choice([50, 1000, 10**6]), "data_page_size": r.choice([200, 10**6]), "use_dictionary": r.random() < 0.5,
            "write_page_index": r.random() < 0.5, "data_page_version": r.choice(["1.0", "2.0"]), "compression": r.choice(["snappy", "zstd", "none"]),
        }  # fmt: skip


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


def chosen(rng, log, ids, pairs, kind):
    """Some columns of the join, as --columns has them, and the question whose answer has them."""
    shared = {a for a, b in pairs if a == b}
    quote = lambda c: f'"{c}"' if " " in c else c  # noqa: E731
    both = [c for c in log if c in ids and c not in shared]
    columns = [("log", c) for c in log]
    if kind not in ("semi", "anti"):
        columns += [("ids", c) for c in ids if c not in shared]
    columns = rng.sample(columns, rng.randint(1, len(columns)))
    taken = {c for side, c in columns if side == "log"}
    spelled, listed, names = [], [], []
    for side, c in columns:
        sides = [f"{side}.{quote(c)}"] + ([quote(c)] if c not in both or kind in ("semi", "anti") else [])
        spelled.append(rng.choice(sides))
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

    def __init__(self, log, ids, pairs):
        self.log, self.ids, self.pairs = log, ids, pairs
        self.db = duckdb.connect()
        self.db.execute("set timezone = 'UTC'")
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
        null = lambda side, at: " or ".join(f'{side}."{p[at]}" is null' for p in self.pairs)  # noqa: E731
        return {
            "rows_in": self.log.num_rows,
            "keys_null": self.ask(f"select count(*) from l where {null('l', 0)}")[0][0],
            "ids_total": self.ask(f"select count(*) from r where not ({null('r', 1)})")[0][0],
            "ids_matched": self.ask(f"select count(*) from r semi join l on {where}")[0][0],
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


def one(t, seed):
    case = Case(seed)
    log, ids = case.store(t)
    oracle = Oracle(case.log, case.ids, case.pairs)
    figures = oracle.figures()
    for kind in TYPES:
        first, wrong, reports = None, "", ""
        for strategy in known(t):
            out, threads = t.path("out.parquet"), case.rng.choice([1, 2, 4])
            how = ["--type", kind, "--strategy", strategy, "--threads", threads]
            r = t.run("join", "--ids", ids, "--on", case.on, *how, "--json", "-o", out, log).json
            got = tables.read(out)
            if first is None:
                first = out.read_bytes()
                wrong = oracle.differences(got, kind)
            elif out.read_bytes() != first:
                wrong += f" {strategy}: not the bytes of {STRATEGIES[0]}"
            bad = unlike(r, figures | {"rows_out": got.num_rows})
            if bad or strategy not in ("auto", r["strategy"]):
                reports += f" {strategy}: strategy {r['strategy']}, {bad}"
        t.ok(f"{kind} on {case.on}, {case.log.num_rows} × {case.ids.num_rows} rows", not wrong, wrong)
        t.ok(f"{kind}: reports", not reports, reports)
        how = ["--type", kind, "--strategy", case.rng.choice(known(t)), "--json"]
        columns, query, names = chosen(case.rng, case.log.column_names, case.ids.column_names, case.pairs, kind)
        out = t.path("chosen.parquet")
        suffix = ["--suffix", "_right"] if kind not in ("semi", "anti") else []
        t.run("join", "--ids", ids, "--on", case.on, *how, "--columns", columns, *suffix, "-o", out, log)
        t.equal(f"{kind}, columns {columns}", oracle.unlike(tables.read(out), query, names), "")
        r = t.run("join", "--ids", ids, "--on", case.on, *how, "--count", log).json
        t.equal(f"{kind}, counted", r["rows_out"], oracle.count(kind))


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
    figures = oracle.figures()
    for kind in TYPES:
        first = None
        for strategy in known(t):
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
    for seed in SEEDS:
        t.group(f"joins {seed}", one, seed)
    t.group("joins in little memory", little)
