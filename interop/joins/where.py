"""--where against DuckDB: random conditions on random tables of several writers, by scan and by joins of every type."""

import datetime
import decimal
import io
import random
import uuid

import duckdb
import fastparquet
import numpy
import pandas
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from common import harness, tables

TABLES, CONDITIONS = (100, 50) if harness.FULL else (8, 40)
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

    def literal(self, rng):
        v = rng.choice(self.values)
        v = v + rng.choice(self.near) if rng.random() < 0.5 else v
        return rng.choice([str(v), str(v), f"{v:+}"]) if v is not None else "0"


class Floats:
    def __init__(self, kind):
        self.type = kind
        self.values = [x / 8 for x in range(-20, 20)] + [0.1, -0.1, 0.3, 1e4, -0.0, 0.0, float("nan"), float("inf"), float("-inf")]

    def literal(self, rng):
        fixed = ["0", "-0.0", "0.1", "-0.1", "0.3", "10000", "'nan'", "'inf'", "'-inf'", "2.125"]
        if self.type == pa.float64():
            fixed += ["1e-1", "25E-1", "1e4"]
        return rng.choice(fixed) if rng.random() < 0.5 else str(rng.randrange(-40, 40) / 16)


class Texts:
    values = ["", "a", "ab", "abc", "a%", "a_b", "b", "ba", "bä", "zz", "Ab", "it's", "日本", "a\\b", "x" * 70, "x" * 70 + "y"]

    def __init__(self, kind):
        self.type = kind

    def literal(self, rng):
        return quoted(rng.choice([*self.values, "aa", "c", "x" * 69, "~"]))

    def own(self, rng, name):
        patterns = ["a%", "%", "_", "__", "%b", "a_%", "%a%b%", "x%", "日_", "b_", "", "abc", "a\\%", "%'s", "xx%y", "z%z%"]
        return f"{name} {rng.choice(['', 'NOT '])}LIKE {rng.choice([*map(quoted, patterns), 'NULL'])}"


class Bytes:
    def __init__(self, kind, values):
        self.type, self.values = kind, values

    def literal(self, rng):
        v = rng.choice(self.values)
        v = v + rng.choice([b"", b"a"]) if rng.random() < 0.3 else v
        return "'" + "".join(chr(c) if chr(c).isalnum() and c < 128 else f"\\x{c:02X}" for c in v) + "'"


class Uuids:
    type, values = pa.uuid(), [uuid.UUID(int=i << 100 | 7).bytes for i in range(0, 2**28, 2**24)]

    def literal(self, rng):
        return quoted(rng.choice([str, str.upper])(str(uuid.UUID(bytes=rng.choice(self.values)))))


class Booleans:
    type, values = pa.bool_(), [True, False]

    def literal(self, rng):
        return rng.choice(["TRUE", "false", "'true'"])

    def own(self, rng, name):
        return rng.choice(["{}", "NOT {}", "{} IS TRUE", "{} IS NOT FALSE", "{} IS NOT UNKNOWN", "({} IS NULL) IS FALSE"]).format(name)


class Dates:
    type, values = pa.date32(), list(range(19800, 19830)) + [-1, 0, -30000, 40000]

    def literal(self, rng):
        day = EPOCH.date() + datetime.timedelta(days=rng.choice(self.values) + rng.choice([0, 0, 1]))
        return rng.choice([f"'{day}'", f"DATE '{day}'", f"TIMESTAMP '{day} 00:00:00'", f"TIMESTAMP '{day} 10:30:00'", f"TIMESTAMPTZ '{day} 00:00:00+00'"])


class Moments:
    """Timestamps. Nanoseconds compare with strings and dates: DuckDB has no other literals of nanoseconds."""

    def __init__(self, unit, zone):
        self.type, self.unit, self.zone = pa.timestamp(unit, zone), unit, zone
        self.per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
        base = 19800 * 86400
        self.values = [base * self.per + x * self.per // 4 for x in range(0, 40 * 86400 * 4, 3 * 86400 + 1)] + [base * self.per + d for d in (-1, 0, 1)]

    def literal(self, rng):
        v = rng.choice(self.values) + rng.choice([0, 0, 0, 1, -1])
        sec, rest = divmod(v, self.per)
        at = EPOCH + datetime.timedelta(seconds=sec)
        text = f"{at:%Y-%m-%d %H:%M:%S}"
        if rest:
            text += f".{rest:0{len(str(self.per)) - 1}}"
        day = quoted(f"{at:%Y-%m-%d}")
        if self.unit == "ns":
            return rng.choice([quoted(text), day])
        later = f"{at + datetime.timedelta(hours=2):%Y-%m-%d %H:%M:%S}" + text[19:]
        forms = [quoted(text), quoted(text.replace(" ", "T")), f"TIMESTAMP '{text}'", day, f"DATE {day}", f"TIMESTAMPTZ '{text}+00'", f"TIMESTAMPTZ '{later}+02:00'"]
        return rng.choice([*forms, quoted(later + "+02")] if self.zone else forms)


class Times:
    def __init__(self, kind):
        self.type = kind
        self.per = {"ms": 10**3, "us": 10**6}[kind.unit]
        self.values = [h * 3600 * self.per + d for h in range(24) for d in (0, 1)]

    def literal(self, rng):
        v = rng.choice(self.values)
        at = EPOCH + datetime.timedelta(seconds=v // self.per)
        text = f"{at:%H:%M:%S}" + (f".{v % self.per:0{len(str(self.per)) - 1}}" if v % self.per else "")
        return rng.choice([quoted(text), f"TIME '{text}'", quoted(f"{at:%H:%M}")])


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


def column(rng, name, rows):
    """Random values of a column: in order, in runs or shuffled; with NULLs or none."""
    of = COLUMNS[name]
    nulls = rng.choice([0, 0, 0.05, 0.5, 1 if rng.random() < 0.2 else 0.1])
    few = rng.sample(of.values, rng.randint(1, len(of.values)))
    values = [rng.choice(few) for _ in range(rows)]
    how = rng.random()
    if how < 0.4 and not isinstance(of, Nested):
        values.sort(key=lambda v: (v != v, v))
    elif how < 0.6:
        values = [values[i // 40] for i in range(rows)]
    gap = rng.randrange(rows)  # where all are NULL
    values = [None if rng.random() < nulls or nulls and gap <= i < gap + 100 else v for i, v in enumerate(values)]
    if pa.types.is_temporal(of.type):
        return pa.array(values, pa.int32() if of.type.bit_width == 32 else pa.int64()).cast(of.type)
    if pa.types.is_dictionary(of.type):
        return pa.array(values, pa.string()).dictionary_encode()
    if pa.types.is_float16(of.type):
        return pa.array([None if v is None else numpy.float16(v) for v in values], of.type)
    return pa.array(values, of.type)


# ---- conditions


def test(rng, name):
    of = FIELDS.get(name) or COLUMNS.get(name) or KEY
    spelled = BARE.get(name, name)
    no = rng.choice(["", "NOT "])
    if isinstance(of, Nested):
        return f"{spelled} IS {no}NULL"
    literal = lambda: "NULL" if rng.random() < 0.03 else of.literal(rng)  # noqa: E731
    n = rng.random()
    if n < 0.15 and hasattr(of, "own"):
        return of.own(rng, spelled)
    if n < 0.5:
        op = rng.choice(["=", "<>", "!=", "<", "<=", ">", ">="])
        return f"{spelled} {op} {literal()}" if rng.random() < 0.8 else f"{literal()} {op} {spelled}"
    if n < 0.65:
        return f"{spelled} {no}BETWEEN {literal()} AND {literal()}"
    if n < 0.85:
        return f"{spelled} {no}IN ({', '.join(literal() for _ in range(rng.randint(1, 5)))})"
    if n < 0.93:
        return f"{spelled} IS {no}NULL"
    return f"{spelled} IS {no}DISTINCT FROM {literal()}"


def condition(rng, names, depth):
    if depth and rng.random() < 0.75:
        a, b = condition(rng, names, depth - 1), condition(rng, names, depth - 1)
        return rng.choice([f"{a} AND {b}", f"({a} OR {b})", f"({a}) AND ({b})", f"NOT ({a} AND {b})", f"({a}) IS NOT TRUE OR {b}", f"{a} AND {b} OR ({a})"])
    return test(rng, rng.choice(names))


# ---- tables


KEY = Numbers(pa.int32(), list(range(40)), [1, -1, 50])


def table(rng, write):
    rows = rng.choice([50, 400, 3000])
    names = sorted(set(COLUMNS) - WITHOUT.get(write, set()))
    names = rng.sample(names, min(len(names), rng.randint(3, 9)))
    keys = sorted(rng.randrange(40) for _ in range(rows)) if rng.random() < 0.3 else [rng.randrange(40) for _ in range(rows)]
    columns = {"n": pa.array(range(rows), pa.int32()), "k": pa.array([None if rng.random() < 0.05 else k for k in keys], pa.int32())}
    for name in names:
        columns[name] = column(rng, name, rows)
    return pa.table(columns), names


def by_pyarrow(rng, data, path):
    pq.write_table(
        data, path, row_group_size=rng.choice([100, 700, 10**6]), data_page_size=rng.choice([100, 1000, 2**20]), write_batch_size=rng.choice([10, 64, 1024]),
        write_page_index=rng.random() < 0.7, write_statistics=rng.random() < 0.8, use_dictionary=rng.random() < 0.7,
        data_page_version=rng.choice(["1.0", "2.0"]), compression=rng.choice(["none", "snappy", "zstd"]), dictionary_pagesize_limit=rng.choice([50, 2**20]),
        store_schema=rng.random() < 0.5, use_deprecated_int96_timestamps=rng.random() < 0.3 and not {"ns", "tz", "mz"} & set(data.column_names),
    )  # fmt: skip


def by_duckdb(rng, data, path):
    with duckdb.connect() as db:
        db.execute("set timezone = 'UTC'")
        db.register("t", data)
        db.execute(f"copy t to '{path}' (format parquet, row_group_size {rng.choice([2048, 10**5])}, parquet_version {rng.choice(['v1', 'v2'])})")


def by_polars(rng, data, path):
    polars.from_arrow(data).write_parquet(path, row_group_size=rng.choice([100, 700, None]), data_page_size=rng.choice([500, None]), statistics=rng.choice([True, False, "full"]))


def by_fastparquet(rng, data, path):
    frame = data.to_pandas(types_mapper={pa.int64(): pandas.Int64Dtype(), pa.int32(): pandas.Int32Dtype()}.get)
    fastparquet.write(str(path), frame, row_group_offsets=rng.choice([100, 10**6]), stats=rng.choice([True, False, "auto"]), object_encoding="utf8")


def by_directories(rng, data, path):
    """Files in directories p=…/q=…, which are columns."""
    for name in ("p", "q"):
        values = [None if rng.random() < 0.1 else rng.choice(FIELDS[name].values[:4]) for _ in range(data.num_rows)]
        data = data.append_column(name, pa.array(values, pa.int32()).cast(FIELDS[name].type))
    parts = pyarrow.dataset.partitioning(data.select(["p", "q"]).schema, flavor="hive")
    pyarrow.dataset.write_dataset(data, path, format="parquet", partitioning=parts, max_rows_per_group=rng.choice([50, 1000]), max_rows_per_file=1000)


def by_arrow(rng, data, path):
    tables.write(data, path, max_chunksize=rng.choice([60, 1000]))


WRITERS = [by_pyarrow] * 5 + [by_duckdb, by_polars, by_fastparquet, by_arrow, by_directories]
# Columns that a writer, or DuckDB on its way there, does not have.
WITHOUT = {
    by_fastparquet: set(COLUMNS) - {"i64", "f8", "s", "ns", "a.b", "in"}, by_polars: {"u"}, by_duckdb: {"f2"}, by_arrow: {"f2"},
}  # fmt: skip


# ---- answers


QUERIES = {
    "semi": "select n from c where k in (select k from ids where k is not null) order by n",
    "anti": "select n from c where not exists (select 1 from ids where ids.k = c.k) order by n",
    "inner": "select n, v from c join ids on c.k = ids.k",
    "left": "select n, v from c left join ids on c.k = ids.k",
    "right": "select n, v from c right join ids on c.k = ids.k",
    "full": "select n, v from c full join ids on c.k = ids.k",
}


def ordered(rows):
    return sorted(rows, key=lambda row: [(v is None, v or 0) for v in row])


def one(t, seed):
    rng = random.Random(f"where {seed}")
    write = rng.choice(WRITERS)
    data, names = table(rng, write)
    path = t.path({by_arrow: "log.arrow", by_directories: "log"}.get(write, "log.parquet"))
    source = {by_arrow: "arrow", by_directories: f"read_parquet('{path}/**/*.parquet', hive_partitioning = true)"}.get(write, f"'{path}'")
    write(rng, data, path)
    wanted = rng.sample(range(60), rng.choice([2, 10, 40]))
    ids = pa.table({"k": pa.array([*wanted, wanted[0], None], pa.int32()), "v": pa.array(range(len(wanted) + 2), pa.int32())})
    idp, flt = tables.write(ids, t.path("ids.parquet")), t.path("ids.bjf")
    t.run("build", "--key", "k", "--kind", "exact", "-o", flt, idp)
    with duckdb.connect() as db:
        db.execute("set timezone = 'UTC'")
        db.register("given", ids)
        if write is by_arrow:
            db.register("arrow", data)
        db.execute(f"create table log as from {source}")
        db.execute("create table ids as from given")
        for name, kind, *_ in db.execute("describe log").fetchall():
            if kind == "TIME_NS":  # it compares with no TIME '…'
                db.execute(f"alter table log alter {name} type time")
        fields = [f for f in FIELDS if "st" in names and f.startswith("st")] + ["p", "q"] * (write is by_directories)
        wrong, failed = [], 0
        for _ in range(CONDITIONS):
            text = condition(rng, [*names, *fields, "n", "k"] if rng.random() < 0.3 else [*names, *fields] or ["k"], rng.choice([0, 0, 1, 2]))
            kind = rng.choice(["scan", *TYPES])
            try:
                db.execute(f"create or replace view c as select * from log where {text}")
                want = ordered(db.execute(QUERIES["semi" if kind == "scan" else kind]).fetchall())
            except duckdb.Error as e:
                wrong.append(f"DuckDB: {text}: {e}")
                continue
            args = [] if kind == "scan" else ["--on", "k", "--type", kind, "--strategy", rng.choice(STRATEGIES)]
            args += ["--filter", flt] if kind == "scan" else ["--ids", idp]
            got, how = answer(t, rng, [kind if kind == "scan" else "join", *args, "--where", text], kind, path)
            if got not in (want, len(want)):
                failed += 1
                wrong.append(f"{how} --where {text!r}: want {len(want)} rows, got {got if isinstance(got, (int, str)) else len(got)}")
    t.ok(f"{CONDITIONS} conditions, {data.num_rows} rows by {write.__name__[3:]}: {', '.join(names)}", not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:5]))


def answer(t, rng, command, kind, path):
    """The rows of a run, in order where the answer has one, or their number; and the run."""
    count = rng.random() < 0.2
    out = t.path(rng.choice(["out.parquet", "out.arrow"])) if rng.random() < 0.5 else "-"
    r = t.run(*command, *(["--count"] if count else ["-o", out]), "--quiet", path, want=None, opens=False)
    how = " ".join(map(str, [*command[:-2], "-o", out, path]))
    if r.code:
        return r.text, how
    if count:
        return int(r.out), how
    got = pa.ipc.open_stream(io.BytesIO(r.out)).read_all() if out == "-" else tables.read(out)
    columns = [got[name].to_pylist() for name in (["n"] if kind in ("scan", "semi", "anti") else ["n", "v"])]
    return ordered(zip(*columns, strict=True)), how


def run(t, _repository):
    for seed in range(TABLES):
        t.group(f"where {seed}", one, seed)
