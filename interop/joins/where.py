"""--where against DuckDB: random conditions on random tables of several writers, by scan and by joins of every type."""

import collections
import datetime
import decimal
import io
import random
import shutil
import uuid

import duckdb
import fastparquet
import hypothesis
import numpy
import pandas
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from common import properties, tables
from common.properties import drawn

TYPES = ["semi", "anti", "inner", "left", "right", "full"]
STRATEGIES = ["auto", "auto", "lookup", "broadcast", "reverse", "shuffle"]
D = decimal.Decimal
EPOCH = datetime.datetime(1970, 1, 1)


# ---- columns: values and the literals to compare them with


def quoted(s):
    return "'" + s.replace("'", "''") + "'"


class Numbers:
    """Integers and decimals: the literals are values, or beside them."""

    def __init__(self, kind, values, near):
        self.type, self.values, self.near = kind, values, near

    def literal(self, d):
        v = d.choice(self.values)
        v = v + d.choice(self.near) if d.chance(50) else v
        return d.choice([str(v), str(v), f"{v:+}"]) if v is not None else "0"


class Floats:
    def __init__(self, kind):
        self.type = kind
        self.values = [x / 8 for x in range(-20, 20)] + [0.1, -0.1, 0.3, 1e4, -0.0, 0.0, float("nan"), float("inf"), float("-inf")]

    def literal(self, d):
        fixed = ["0", "-0.0", "0.1", "-0.1", "0.3", "10000", "'nan'", "'inf'", "'-inf'", "2.125"]
        if self.type == pa.float64():
            fixed += ["1e-1", "25E-1", "1e4"]
        return d.choice(fixed) if d.chance(50) else str(d.number(-40, 40) / 16)


class Texts:
    values = ["", "a", "ab", "abc", "a%", "a_b", "b", "ba", "bä", "zz", "Ab", "it's", "日本", "a\\b", "x" * 70, "x" * 70 + "y"]

    def __init__(self, kind):
        self.type = kind

    def literal(self, d):
        return quoted(d.choice([*self.values, "aa", "c", "x" * 69, "~"]))

    def own(self, d, name):
        patterns = ["a%", "%", "_", "__", "%b", "a_%", "%a%b%", "x%", "日_", "b_", "", "abc", "a\\%", "%'s", "xx%y", "z%z%"]
        return f"{name} {d.choice(['', 'NOT '])}LIKE {d.choice([*map(quoted, patterns), 'NULL'])}"


class Bytes:
    def __init__(self, kind, values):
        self.type, self.values = kind, values

    def literal(self, d):
        v = d.choice(self.values)
        v = v + d.choice([b"", b"a"]) if d.chance(30) else v
        return "'" + "".join(chr(c) if chr(c).isalnum() and c < 128 else f"\\x{c:02X}" for c in v) + "'"


class Uuids:
    type, values = pa.uuid(), [uuid.UUID(int=i << 100 | 7).bytes for i in range(0, 2**28, 2**24)]

    def literal(self, d):
        return quoted(d.choice([str, str.upper])(str(uuid.UUID(bytes=d.choice(self.values)))))


class Booleans:
    type, values = pa.bool_(), [True, False]

    def literal(self, d):
        return d.choice(["TRUE", "false", "'true'"])

    def own(self, d, name):
        return d.choice(["{}", "NOT {}", "{} IS TRUE", "{} IS NOT FALSE", "{} IS NOT UNKNOWN", "({} IS NULL) IS FALSE"]).format(name)


class Dates:
    type, values = pa.date32(), list(range(19800, 19830)) + [-1, 0, -30000, 40000]

    def literal(self, d):
        day = EPOCH.date() + datetime.timedelta(days=d.choice(self.values) + d.choice([0, 0, 1]))
        return d.choice([f"'{day}'", f"DATE '{day}'", f"TIMESTAMP '{day} 00:00:00'", f"TIMESTAMP '{day} 10:30:00'", f"TIMESTAMPTZ '{day} 00:00:00+00'"])


class Moments:
    """Timestamps. Nanoseconds compare with strings and dates: DuckDB has no other literals of nanoseconds."""

    def __init__(self, unit, zone):
        self.type, self.unit, self.zone = pa.timestamp(unit, zone), unit, zone
        self.per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
        base = 19800 * 86400
        self.values = [base * self.per + x * self.per // 4 for x in range(0, 40 * 86400 * 4, 3 * 86400 + 1)] + [base * self.per + d for d in (-1, 0, 1)]

    def literal(self, d):
        v = d.choice(self.values) + d.choice([0, 0, 0, 1, -1])
        sec, rest = divmod(v, self.per)
        at = EPOCH + datetime.timedelta(seconds=sec)
        text = f"{at:%Y-%m-%d %H:%M:%S}"
        if rest:
            text += f".{rest:0{len(str(self.per)) - 1}}"
        day = quoted(f"{at:%Y-%m-%d}")
        if self.unit == "ns":
            return d.choice([quoted(text), day])
        later = f"{at + datetime.timedelta(hours=2):%Y-%m-%d %H:%M:%S}" + text[19:]
        forms = [quoted(text), quoted(text.replace(" ", "T")), f"TIMESTAMP '{text}'", day, f"DATE {day}", f"TIMESTAMPTZ '{text}+00'", f"TIMESTAMPTZ '{later}+02:00'"]
        return d.choice([*forms, quoted(later + "+02")] if self.zone else forms)


class Times:
    def __init__(self, kind):
        self.type = kind
        self.per = {"ms": 10**3, "us": 10**6}[kind.unit]
        self.values = [h * 3600 * self.per + d for h in range(24) for d in (0, 1)]

    def literal(self, d):
        v = d.choice(self.values)
        at = EPOCH + datetime.timedelta(seconds=v // self.per)
        text = f"{at:%H:%M:%S}" + (f".{v % self.per:0{len(str(self.per)) - 1}}" if v % self.per else "")
        return d.choice([quoted(text), f"TIME '{text}'", quoted(f"{at:%H:%M}")])


class Nested:
    """A column that is only NULL or not."""

    def __init__(self, kind, values):
        self.type, self.values = kind, values


COLUMNS = {
    "i8": Numbers(pa.int8(), [-128, -5, 0, 1, 2, 127], [1, -1, 1000, D("0.5")]),
    "u8": Numbers(pa.uint8(), [0, 1, 7, 200, 255], [1, -300, D("-0.5")]),
    "i16": Numbers(pa.int16(), list(range(-9, 9)), [1, -1, 100000]),
    "i32": Numbers(pa.int32(), [*range(100), -(2**31), 2**31 - 1], [1, -1, D("0.5"), 2**40]),
    "i64": Numbers(pa.int64(), [*range(50), -(2**63), 2**63 - 1, 2**53 + 1], [1, -1, 2**53]),
    "u32": Numbers(pa.uint32(), [0, 5, 2**31, 2**32 - 1], [1, -1, D("0.25")]),
    "u64": Numbers(pa.uint64(), [0, 1, 2**63 - 1, 2**63, 2**64 - 1], [1, -1]),
    "f2": Floats(pa.float16()),
    "f4": Floats(pa.float32()),
    "f8": Floats(pa.float64()),
    "d9": Numbers(pa.decimal128(9, 2), [D(x) / 4 for x in range(-20, 20)], [D("0.01"), D("0.001"), D("-0.125"), 10000000]),
    "d18": Numbers(pa.decimal128(18, 0), [D(x) for x in range(-3, 30)], [1, D("0.5")]),
    "d38": Numbers(pa.decimal128(38, 4), [D(x) / 8 for x in range(-20, 20)] + [D(10) ** 20], [D("0.0001"), D("0.00001")]),
    "s": Texts(pa.string()),
    "large": Texts(pa.large_string()),
    "dict": Texts(pa.dictionary(pa.int32(), pa.string())),
    "bin": Bytes(pa.binary(), [b"", b"a", b"ab", b"\x00", b"\xff\x01", b"zz"]),
    "fix": Bytes(pa.binary(2), [b"aa", b"ab", b"\x00\x01", b"\xff\xff"]),
    "u": Uuids(),
    "b": Booleans(),
    "d": Dates(),
    "ts": Moments("us", None),
    "ms": Moments("ms", None),
    "ns": Moments("ns", None),
    "tz": Moments("us", "UTC"),
    "mz": Moments("ms", "Europe/Berlin"),
    "t3": Times(pa.time32("ms")),
    "t6": Times(pa.time64("us")),
    "a.b": Numbers(pa.int32(), list(range(5)), [1]),
    "in": Texts(pa.string()),
    "odd name": Booleans(),
    "li": Nested(pa.list_(pa.int32()), [[], [1], [None]]),
    "st": Nested(pa.struct({"a": pa.int32(), "b": pa.struct({"c": pa.string()})}), [{"a": 1, "b": {"c": "ab"}}, {"a": 2, "b": None}, {"a": None, "b": {"c": None}}, {"a": 3, "b": {"c": "x"}}]),
}
FIELDS = {  # of structs, and of directories
    "st.a": Numbers(pa.int32(), [1, 2, 3], [1]), "st.b.c": Texts(pa.string()), "st.b": Nested(None, []),
    "p": Numbers(pa.int32(), [0, 1, 2, 7], [1, -1, D("0.5")]), "q": Dates(),
}  # fmt: skip
BARE = {"a.b": '"a.b"', "in": '"in"', "odd name": '"odd name"'}


class Column:
    """Values of a column: some of its type's, in order, in ranges, or mixed; with NULLs or none. Drawn, but for their places."""

    def __init__(self, d, name):
        self.name, self.of = name, COLUMNS[name]
        self.few = [*self.of.values] if d.chance(60) else d.several(self.of.values, 1, 6)
        self.how = d.choice(["in turn", "mixed", "ranges"] if isinstance(self.of, Nested) else ["in turn", "mixed", "ranges", "in order"])
        self.nulls = d.choice([0, 0, 0, 10, 50, 100])  # percent
        self.gap = d.choice([None, None, 0, 3, 20])  # from this hundredth of the rows on, a tenth of them is NULL

    def __repr__(self):
        return f"{self.name}: {self.few} {self.how}, {self.nulls} % NULL, gap at {self.gap}"

    def array(self, rows):
        rng, of = random.Random(self.name), self.of
        place = {"in turn": lambda i: i, "ranges": lambda i: i // 40}.get(self.how, lambda _: rng.randrange(len(self.few)))
        values = [self.few[place(i) % len(self.few)] for i in range(rows)]
        if self.how == "in order":
            values.sort(key=lambda v: (v != v, v))
        low, high = (0, 0) if self.gap is None else (rows * self.gap // 100, rows * self.gap // 100 + rows // 10)
        values = [None if low <= i < high or self.nulls and rng.randrange(100) < self.nulls else v for i, v in enumerate(values)]
        if pa.types.is_temporal(of.type):
            return pa.array(values, pa.int32() if of.type.bit_width == 32 else pa.int64()).cast(of.type)
        if pa.types.is_dictionary(of.type):
            return pa.array(values, pa.string()).dictionary_encode()
        if pa.types.is_float16(of.type):
            return pa.array([None if v is None else numpy.float16(v) for v in values], of.type)
        return pa.array(values, of.type)


# ---- conditions


def test(d, name):
    of = FIELDS.get(name) or COLUMNS.get(name) or KEY  # also v, which numbers the IDs
    spelled = BARE.get(name, name)
    no = d.choice(["", "NOT "])
    if isinstance(of, Nested):
        return f"{spelled} IS {no}NULL"
    literal = lambda: "NULL" if d.chance(3) else of.literal(d)  # noqa: E731
    forms = ["compare", "compare", "compare", "reversed", "between", "in", "in", "null", "distinct"] + ["own", "own"] * hasattr(of, "own")
    form = d.choice(forms)
    if form == "own":
        return of.own(d, spelled)
    if form in ("compare", "reversed"):
        op = d.choice(["=", "<>", "!=", "<", "<=", ">", ">="])
        return f"{spelled} {op} {literal()}" if form == "compare" else f"{literal()} {op} {spelled}"
    if form == "between":
        return f"{spelled} {no}BETWEEN {literal()} AND {literal()}"
    if form == "in":
        return f"{spelled} {no}IN ({', '.join(literal() for _ in range(d.number(1, 5)))})"
    if form == "null":
        return f"{spelled} IS {no}NULL"
    return f"{spelled} IS {no}DISTINCT FROM {literal()}"


def condition(d, names, depth):
    if depth and d.chance(75):
        a, b = condition(d, names, depth - 1), condition(d, names, depth - 1)
        return d.choice([f"{a} AND {b}", f"({a} OR {b})", f"({a}) AND ({b})", f"NOT ({a} AND {b})", f"({a}) IS NOT TRUE OR {b}", f"{a} AND {b} OR ({a})"])
    return test(d, d.choice(names))


# ---- tables


KEY = Numbers(pa.int32(), list(range(40)), [1, -1, 50])


class Case:
    """A table, how it is written, IDs, and questions about it."""

    def __init__(self, d, writers):
        self.write, options = d.choice(writers)
        self.options = {name: d.choice(values) for name, values in options.items()}
        self.rows = d.choice([5, 50, 400, 400, 3000])
        self.columns = [Column(d, name) for name in d.some(sorted(set(COLUMNS) - WITHOUT.get(self.write, set())), 1, 6)]
        self.keys_in_order = d.chance(30)
        self.ids = [*range(d.number(0, 39), 60, d.choice([30, 7, 2, 1]))]
        names = [c.name for c in self.columns]
        fields = [f for f in FIELDS if "st" in names and f.startswith("st")] + ["p", "q"] * (self.write is by_directories)
        self.questions = [Question(d, [*names, *fields, *(["n", "k"] if d.chance(30) else [])]) for _ in range(d.number(1, 10))]

    def __repr__(self):
        return f"{self.rows} rows {self.write.__name__} {self.options}, IDs {self.ids}\n    {self.columns}\n    {self.questions}\n"

    def table(self):
        """A number for each row, n, the key, k, of 0 to 39, and the columns."""
        rng = random.Random("keys")
        keys = [rng.randrange(40) for _ in range(self.rows)]
        if self.keys_in_order:
            keys.sort()
        data = {"n": pa.array(range(self.rows), pa.int32()), "k": pa.array([None if rng.random() < 0.05 else k for k in keys], pa.int32())}
        return pa.table(data | {c.name: c.array(self.rows) for c in self.columns})


class Question:
    """A condition, and a scan or a join with it."""

    def __init__(self, d, names):
        self.text = condition(d, names, d.choice([0, 0, 1, 2]))
        self.kind, self.strategy = d.choice(["scan", "scan alone", *TYPES]), d.choice(STRATEGIES)
        self.ids = condition(d, ["k", "v"], d.choice([0, 1])) if self.kind in TYPES and d.chance(30) else "TRUE"
        self.out = d.choice(["out.parquet", "out.arrow", "-", "count"])

    def __repr__(self):
        return f"{self.kind} by {self.strategy} into {self.out} where {self.text}, IDs where {self.ids}"


def by_pyarrow(data, path, int96, **options):
    int96 = int96 and not {"ns", "tz", "mz"} & set(data.column_names)
    pq.write_table(data, path, use_deprecated_int96_timestamps=int96, **options)


def by_duckdb(data, path, row_group_size, version):
    with duckdb.connect() as db:
        db.execute("set timezone = 'UTC'; set threads = 1")
        db.register("t", data)
        db.execute(f"copy t to '{path}' (format parquet, row_group_size {row_group_size}, parquet_version {version})")


def by_polars(data, path, **options):
    polars.from_arrow(data).write_parquet(path, **options)


def by_fastparquet(data, path, **options):
    frame = data.to_pandas(types_mapper={pa.int64(): pandas.Int64Dtype(), pa.int32(): pandas.Int32Dtype()}.get)
    fastparquet.write(str(path), frame, object_encoding="utf8", **options)


def by_directories(data, path, max_rows_per_group):
    """Files in directories p=…/q=…, which are columns."""
    rng = random.Random("directories")
    for name in ("p", "q"):
        values = [None if rng.random() < 0.1 else rng.choice(FIELDS[name].values[:3]) for _ in range(data.num_rows)]
        data = data.append_column(name, pa.array(values, pa.int32()).cast(FIELDS[name].type))
    parts = pyarrow.dataset.partitioning(data.select(["p", "q"]).schema, flavor="hive")
    pyarrow.dataset.write_dataset(data, path, format="parquet", partitioning=parts, max_rows_per_group=max_rows_per_group, max_rows_per_file=1000)


def by_arrow(data, path, max_chunksize):
    tables.write(data, path, max_chunksize=max_chunksize)


PYARROW = {
    "row_group_size": [10**6, 20, 100, 700], "data_page_size": [2**20, 100, 1000], "write_batch_size": [1024, 10, 64],
    "write_page_index": [True, True, False], "write_statistics": [True, True, True, False], "use_dictionary": [False, True, True],
    "data_page_version": ["1.0", "2.0"], "compression": ["none", "snappy", "zstd"], "dictionary_pagesize_limit": [2**20, 50],
    "store_schema": [True, False], "int96": [False, False, True],
}  # fmt: skip
OTHERS = [
    (by_duckdb, {"row_group_size": [10**5, 2048], "version": ["v1", "v2"]}),
    (by_polars, {"row_group_size": [None, 100, 700], "data_page_size": [None, 500], "statistics": [True, False, "full"]}),
    (by_fastparquet, {"row_group_offsets": [10**6, 100], "stats": [True, False, "auto"]}),
    (by_arrow, {"max_chunksize": [1000, 60]}),
    (by_directories, {"max_rows_per_group": [1000, 50]}),
]
# Columns that a writer, or DuckDB on its way there, does not have.
WITHOUT = {
    by_fastparquet: set(COLUMNS) - {"i64", "f8", "s", "ns", "a.b", "in"}, by_polars: {"u"}, by_duckdb: {"f2"}, by_arrow: {"f2"},
}  # fmt: skip


# ---- answers


QUERIES = {
    "scan alone": "select n from c order by n",
    "semi": "select n from c where k in (select k from ids where k is not null) order by n",
    "anti": "select n from c where not exists (select 1 from ids where ids.k = c.k) order by n",
    "inner": "select n, v from c join ids on c.k = ids.k",
    "left": "select n, v from c left join ids on c.k = ids.k",
    "right": "select n, v from c right join ids on c.k = ids.k",
    "full": "select n, v from c full join ids on c.k = ids.k",
}


def ordered(rows):
    return sorted(rows, key=lambda row: [(v is None, v or 0) for v in row])


def randomly(t):
    """Tables of several writers: what a condition lets through, in a scan or a join, is what DuckDB's does."""
    seen = collections.Counter()

    of_writers(t, "pyarrow", [(by_pyarrow, PYARROW)], seen, 28, 1200)
    of_writers(t, "others", OTHERS, seen, 22, 800)
    kinds = dict.fromkeys([k for kind in ("scan", "scan alone", *TYPES) for k in (kind, f"{kind}: some rows")], 0.05)
    least = {"conditions": 2, "some rows": 0.3, "IDs": 0.2, "no row": 0.1, "counted": 0.2, "out.arrow": 0.1, "-": 0.1, "rows > 100": 0.25}
    properties.varied(t, seen, least | kinds | {write.__name__: 0.01 for write, _ in OTHERS})


def of_writers(t, name, writers, seen, ci, full):
    @hypothesis.given(drawn(Case, writers))
    def as_duckdb(case):
        seen["cases"] += 1
        one(t, seen, case)

    properties.hold(t, f"as DuckDB, files by {name}", as_duckdb, ci, full)


def one(t, seen, case):
    data = case.table()
    path = t.path({by_arrow: "log.arrow", by_directories: "log"}.get(case.write, "log.parquet"))
    source = {by_arrow: "arrow", by_directories: f"read_parquet('{path}/**/*.parquet', hive_partitioning = true)"}.get(case.write, f"'{path}'")
    case.write(data, path, **case.options)
    ids = pa.table({"k": pa.array([*case.ids, case.ids[0], None], pa.int32()), "v": pa.array(range(len(case.ids) + 2), pa.int32())})
    idp, flt = tables.write(ids, t.path("ids.parquet")), t.path("ids.bjf")
    if any(q.kind == "scan" for q in case.questions):
        t.run("build", "--key", "k", "--kind", "exact", "-o", flt, idp)
    try:
        with duckdb.connect() as db:
            db.execute("set timezone = 'UTC'; set threads = 1")
            db.register("given", ids)
            if case.write is by_arrow:
                db.register("arrow", data)
            db.execute(f"create table log as from {source}")
            for name, kind, *_ in db.execute("describe log").fetchall():
                if kind == "TIME_NS":  # it compares with no TIME '…'
                    db.execute(f"alter table log alter {name} type time")
            for q in case.questions:
                db.execute(f"create or replace view c as select * from log where {q.text}; create or replace view ids as select * from given where {q.ids}")
                want = ordered(db.execute(QUERIES["semi" if q.kind == "scan" else q.kind]).fetchall())
                args = {"scan": ["scan", "--filter", flt], "scan alone": ["scan"]}.get(q.kind)
                args = args or ["join", "--ids", idp, "--ids-where", q.ids, "--on", "k", "--type", q.kind, "--strategy", q.strategy]
                got, how = answer(t, [*args, "--where", q.text], q, path)
                assert got in (want, len(want)), f"{how} --where {q.text!r}, IDs where {q.ids!r}: want {len(want)} rows, got {got if isinstance(got, (int, str)) else len(got)}"
                some = db.execute("select count(*) from c").fetchall()[0][0]
                seen["conditions"] += 1
                held = {
                    q.kind: True, f"{q.kind}: some rows": want and 0 < some < data.num_rows, "some rows": want and 0 < some < data.num_rows,
                    "IDs": q.ids != "TRUE", "no row": not some, q.out if q.out in ("out.arrow", "-") else "": True, "counted": q.out == "count",
                }  # fmt: skip
                seen.update(what for what, holds in held.items() if what and holds)
    finally:
        for p in (path, idp, flt):
            shutil.rmtree(p) if p.is_dir() else p.unlink(missing_ok=True)
    seen.update([case.write.__name__] + ["rows > 100"] * (data.num_rows > 100))


def answer(t, command, q, path):
    """The rows of a run, in order where the answer has one, or their number; and the run."""
    out = "-" if q.out in ("-", "count") else t.path(q.out)
    r = t.run(*command, *(["--count"] if q.out == "count" else ["-o", out]), "--quiet", path, want=None, opens=False)
    how = " ".join(map(str, [*command[:-2], *(["--count"] if q.out == "count" else ["-o", out]), path]))
    if r.code:
        return r.text, how
    if q.out == "count":
        return int(r.out), how
    got = pa.ipc.open_stream(io.BytesIO(r.out)).read_all() if out == "-" else tables.read(out)
    if out != "-":
        out.unlink()
    columns = [got[name].to_pylist() for name in (["n"] if q.kind in ("scan", "scan alone", "semi", "anti") else ["n", "v"])]
    return ordered(zip(*columns, strict=True)), how


def run(t, _repository):
    t.group("where random", randomly)
