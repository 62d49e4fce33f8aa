"""Numbers meet by value, whatever their types: against a table computed with Python's exact arithmetic.

Each column holds every value of one list that its type can hold. Which rows match follows from the values
as fractions, never from a cast of another system.
"""

import dataclasses
import decimal
import fractions
import itertools
import math
import random

from common import harness, tables
import numpy
import pyarrow as pa

F = fractions.Fraction
NAN, INF = "NaN", "inf"
KINDS = ("semi", "anti", "inner", "left", "right", "full")
STRATEGIES = ("auto", "lookup", "broadcast", "reverse", "shuffle")


def values():
    """The numbers that are likely to be confused, as fractions; NaN and the infinities as strings."""
    powers = [2**b for b in (7, 8, 11, 15, 16, 24, 31, 32, 53, 63, 64, 65, 100, 127, 128)]
    tens = [10**e for e in (1, 2, 9, 15, 18, 19, 20, 22, 23, 28, 37, 38, 39, 75, 76)]
    whole = {s * n + d for n in powers + tens for s in (1, -1) for d in (-1, 0, 1)} | {0, 1, -1, 2, 5, 10, 100, 65504, 65505}
    whole |= {3 * 2**53, 10**38 - 1, 10**18 - 1, 10**22 * 3, 123456789, -987654321987654321}
    parts = {F(n, 10**e) for n in (1, -1, 5, 15, 25, 10**17 + 1, 123456789) for e in (1, 2, 3, 9, 18, 37, 38)}
    parts |= {F(float(x)) for x in (0.1, -0.1, 0.3, 1e-5, 1e22, 1e23, 2.0**70, 1e300, 1.7976931348623157e308)}
    parts |= {F(float(numpy.float32(x))) for x in (0.1, 0.3, 16777217, 3.4028234663852886e38, 1e-45)}
    parts |= {F(float(numpy.float16(x))) for x in (0.1, 65504, 6e-8, 6.103515625e-05)}
    parts |= {F(1, 2**k) for k in (1, 2, 10, 60, 1022, 1023, 1074)} | {F(5e-324), F(2.225073858507201e-308)}
    return sorted({F(n) for n in whole} | parts) + [NAN, INF, "-inf"]


@dataclasses.dataclass(frozen=True)
class Kind:
    """A column type: its class, and what it holds a value as."""

    name: str
    type: pa.DataType
    form: object  # a value's form for pyarrow, or None
    word: str  # class
    cast: str  # the type's name in a cast

    def column(self, some):
        return pa.array([None if v is None else self.form(v) for v in some], self.type)


def integers(bits, signed):
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    kind = getattr(pa, f"{'' if signed else 'u'}int{bits}")()
    name = str(kind)
    cast = "tinyint" if name == "int8" else name

    def form(v):
        return int(v) if isinstance(v, F) and v.denominator == 1 and least <= v <= most else None

    return Kind(name, kind, form, "integer", cast)


def floats(bits):
    of = getattr(numpy, f"float{bits}")

    def form(v):
        if isinstance(v, str):
            return of(v)
        try:
            with numpy.errstate(over="ignore"):
                f = of(float(v))
        except OverflowError:
            return None
        return f if math.isfinite(f) and F(float(f)) == v else None

    cast = {16: "", 32: "float", 64: "double"}[bits]
    return Kind(f"float{bits}", {16: pa.float16(), 32: pa.float32(), 64: pa.float64()}[bits], form, "float", cast)


def decimals(precision, scale):
    kind = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)

    def form(v):
        if isinstance(v, str):
            return None
        n = v * 10**scale
        if n.denominator != 1 or abs(n) >= 10**precision:
            return None
        return decimal.Decimal((n < 0, tuple(map(int, str(abs(n.numerator)))), -scale))

    cast = f"decimal({precision},{scale})"
    return Kind(cast, kind, form, "decimal", cast)


def types():
    for bits, signed in itertools.product((8, 16, 32, 64), (True, False)):
        yield integers(bits, signed)
    for bits in (16, 32, 64):
        yield floats(bits)
    for p, s in ((4, 0), (9, 0), (9, 2), (18, 0), (18, 3), (19, 0), (20, 0), (38, 0), (38, 9), (38, 18), (38, 38), (39, 0), (76, 0), (76, 38)):
        yield decimals(p, s)


LAYOUTS = {  # how the log is written; sorted ones are pruned
    "plain": dict(use_dictionary=False),
    "dictionary": dict(use_dictionary=True, row_group_size=40),
    "integers": dict(store_decimal_as_integer=True, use_dictionary=False, row_group_size=16),
    "sorted": dict(use_dictionary=False, row_group_size=8, write_page_index=True, store_decimal_as_integer=True),
    "pages": dict(use_dictionary=False, data_page_size=32, write_batch_size=4, write_page_index=True),
    "pages of a dictionary": dict(data_page_size=1, write_batch_size=4, write_page_index=True, store_decimal_as_integer=True),
    "no statistics": dict(use_dictionary=False, write_statistics=False, row_group_size=30),
    "V2": dict(data_page_version="2.0", compression="zstd"),
    "Arrow": dict(),
}


def held(rng, kind, all_values, sort):
    """The values that a column of the kind has, each once or twice, and NULLs."""
    some = [v for v in all_values if kind.form(v) is not None]
    rows = some + rng.sample(some, min(len(some), 20)) + [None] * 3
    if not sort:
        rng.shuffle(rows)
    else:
        rows = sorted(rows, key=lambda v: (v is None, isinstance(v, str), v if isinstance(v, F) else 0))
    return rows


def chosen(rng, rows):
    """Some of the values, each once: of any, or of a narrow range."""
    some = [v for v in dict.fromkeys(rows) if v is not None]
    if rng.random() < 0.5:
        numbers = sorted(v for v in some if isinstance(v, F))
        at = rng.randrange(len(numbers))
        some = numbers[at : at + rng.choice((1, 3, 10))]
    else:
        some = rng.sample(some, max(1, len(some) * 2 // 3))
    return some + [None]


def expected(logs, ids, kind):
    """The pairs of row numbers of a join, None for no partner. A NULL is in no pair."""
    where = {}
    for i, v in enumerate(ids):
        if v is not None and (not isinstance(v, tuple) or None not in v):
            where.setdefault(v, []).append(i)
    pairs = [(l, i) for l, v in enumerate(logs) for i in where.get(v, ())]
    hit, used = {l for l, _ in pairs}, {i for _, i in pairs}
    rest = [(l, None) for l in range(len(logs)) if l not in hit]
    unused = [(None, i) for i in range(len(ids)) if i not in used]
    return ordered({
        "semi": [(l, None) for l in hit], "anti": rest, "inner": pairs,
        "left": pairs + rest, "right": pairs + unused, "full": pairs + rest + unused,
    }[kind])  # fmt: skip


def ordered(pairs):
    return sorted(pairs, key=lambda p: tuple((x is None, x or 0) for x in p))


def pairs_of(table):
    get = lambda name: table[name].to_pylist() if name in table.column_names else [None] * table.num_rows  # noqa: E731
    return ordered(zip(get("l"), get("r"), strict=True))


def wrong(got, want):
    """What is wrong with pairs, in few words; empty if nothing is."""
    if got == want:
        return ""
    some = lambda a, b: [p for p in a if p not in b][:8]  # noqa: E731
    return f"lost {some(want, got)}, invented {some(got, want)} (rows {len(want)}, got {len(got)})"


def written(t, name, column, rows, number, form, options):
    table = pa.table({column: rows, number: pa.array(range(len(rows)), pa.int32())})
    return tables.write(table, t.path(name + form), **options), table


def stored(column):
    """Values as they are stored: days and times may be outside of what Python has types for."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_temporal(column.type):
        column = column.cast(pa.int64())
    return str(column.to_pylist())  # NaN is NaN


def check(t, name, out, want, log):
    """The pairs of an output, and that the log's values are there as they were stored."""
    got = tables.read(out)
    problem = wrong(pairs_of(got), want)
    if not problem and "k" in got.column_names:
        if got.schema.field("k").type != log.schema.field("k").type:
            problem = f"type {got.schema.field('k').type}"
        elif stored(got["k"]) != stored(log["k"].take(got["l"].combine_chunks())):
            problem = "values are not those of the log"
    t.ok(name, not problem, f"{problem} in {out}")


def pair(t, rng, a, b, layout, all_values, kinds):
    """IDs of one type, a log of another."""
    logs = held(rng, b, all_values, layout in ("sorted", "pages", "pages of a dictionary"))
    common = [v for v in all_values if a.form(v) is not None]
    ids = chosen(rng, common)
    form = ".arrow" if layout == "Arrow" else ".parquet"
    log, table = written(t, "log", "k", b.column(logs), "l", form, LAYOUTS[layout])
    id_layout = rng.choice(list(LAYOUTS))
    idp, _ = written(t, "ids", "id", a.column(ids), "r", ".arrow" if id_layout == "Arrow" else ".parquet", LAYOUTS[id_layout])
    name = f"{a.name} ({id_layout}) against {b.name} ({layout})"
    for kind in kinds:
        strategy = rng.choice(STRATEGIES)
        out = t.path("out.parquet" if kind != "semi" or form == ".parquet" else "out.arrow")
        t.run("join", "--ids", idp, "--on", "k=id", "--type", kind, "--strategy", strategy, "-o", out, log, opens=False)
        check(t, f"{name}: {kind} by {strategy}", out, expected(logs, ids, kind), table)
    if rng.random() < 0.3:
        in_shards(t, rng, name, ["--ids", idp, "--on", "k=id"], log, logs, ids)
    return idp, log, table, logs, ids, name


def in_shards(t, rng, name, flags, log, logs, ids):
    """Workers that each join a part of the log have the answer together."""
    kind, of, got = rng.choice(KINDS[:4]), rng.choice((2, 5)), []
    for i in range(of):
        out = t.path("shard.parquet")
        t.run("join", *flags, "--type", kind, "--threads", rng.choice((1, 4)), "--shard", f"{i}/{of}", "-o", out, log, opens=False)
        got += pairs_of(tables.read(out))
    problem = wrong(ordered(got), expected(logs, ids, kind))
    t.ok(f"{name}: {kind} in {of} shards", not problem, problem)


def through_filter(t, rng, idp, log, table, logs, ids, name, a):
    """Scan finds every match and nothing that has no form in the filter's class; a join through the filter is exact."""
    members = {v for v in ids if v is not None}
    want = {l for l, v in enumerate(logs) if v in members}
    for kind in ("bloom", "auto"):
        flt, out = t.path("k.filter"), t.path("kept.parquet")
        if kind == "bloom" and rng.random() < 0.5:
            options = ["--fpr", "0.5"]
        else:
            options = []
        built = t.run("build", "--key", "id", "--kind", kind, *options, "--json", "-o", flt, idp, opens=False).json
        r = t.run("scan", "--filter", flt, "--key", "k", "--json", "-o", out, log, opens=False).json
        kept = set(tables.read(out)["l"].to_pylist())
        exact = a.word == "integer" and kind == "auto" and built.get("kind") == "exact"
        extra = {l for l in kept - want if exact or logs[l] is None or not fits(logs[l], a.word)}
        t.ok(f"{name}: scan ({kind})", kept >= want and not extra, f"lost {sorted(want - kept)}, invented {sorted(extra)[:9]}")
        nulls = sum(v is None for v in logs)
        t.ok(f"{name}: NULLs of a scan", r.get("keys_null", 0) <= nulls, f"{r.get('keys_null')} of {nulls}")
        of = rng.choice(KINDS)
        out = t.path("out.parquet")
        t.run("join", "--ids", idp, "--filter", flt, "--on", "k=id", "--type", of, "-o", out, log, opens=False)
        check(t, f"{name}: {of} through the filter ({kind})", out, expected(logs, ids, of), table)


def fits(v, word):
    """Whether a class has an exact form of the value."""
    if isinstance(v, str):
        return word == "float"
    if word == "integer":
        return v.denominator == 1 and -(2**63) <= v < 2**64
    if word == "float":
        return floats(64).form(v) is not None
    n = v.denominator
    while n % 10 == 0:
        n //= 10
    while n % 2 == 0:
        n //= 2
    while n % 5 == 0:
        n //= 5
    return n == 1


def classes(t, part, parts):
    """Every type against every other, as IDs and as log."""
    rng = random.Random(f"classes {part}")
    all_values = values()
    every = list(itertools.product(types(), types()))
    rng.shuffle(every)
    every = every[part::parts] if harness.FULL else every[part :: 20 * parts]
    for a, b in every:
        layout = rng.choice(list(LAYOUTS))
        made = pair(t, rng, a, b, layout, all_values, KINDS if harness.FULL else rng.sample(KINDS, 2))
        if harness.FULL or rng.random() < 0.4:
            through_filter(t, rng, *made, a)


def mixed(t):
    """Files of several classes on each side of one join."""
    rng = random.Random("mixed")
    all_values = values()
    every = list(types())
    for n in range(60 if harness.FULL else 5):
        sides = []
        for column, number in (("k", "l"), ("id", "r")):
            files, rows, tabs = [], [], []
            for kind in rng.sample(every, rng.choice((1, 2, 3))):
                layout = rng.choice(list(LAYOUTS))
                some = held(rng, kind, all_values, "pages" in layout)
                if column == "id":
                    some = chosen(rng, some)
                table = pa.table({column: kind.column(some), number: pa.array(range(len(rows), len(rows) + len(some)), pa.int32())})
                form = ".arrow" if layout == "Arrow" else ".parquet"
                files.append(tables.write(table, t.path(f"{column}{form}"), **LAYOUTS[layout]))
                rows += some
                tabs.append(kind.name)
            sides.append((files, rows, tabs))
        (logs, log_rows, log_kinds), (ids, id_rows, id_kinds) = sides
        named = [x for f in ids for x in ("--ids", f)]
        for kind in KINDS if harness.FULL else rng.sample(KINDS[:3], 2):
            strategy = rng.choice(STRATEGIES)
            name = f"{n}: {id_kinds} against {log_kinds}: {kind} by {strategy}"
            want, got = expected(log_rows, id_rows, kind), []
            if kind in ("right", "full") and len(logs) > 1 or kind not in ("semi", "anti") and len(ids) > 1:
                continue
            out = t.path("out")
            target = f"{out}/" if kind not in ("right", "full") else out.with_suffix(".parquet")
            if kind in ("right", "full") and target.exists():
                target = t.path("out.parquet")
            t.run("join", *named, "--on", "k=id", "--type", kind, "--strategy", strategy, "-o", target, *logs, opens=False)
            for f in [target] if kind in ("right", "full") else tables.data_files(out):
                got += pairs_of(tables.read(f))
            problem = wrong(ordered(got), want)
            t.ok(name, not problem, f"{problem} in {out}: {named} {logs}")


def composite(t):
    """Two numbers and a text are one key."""
    rng = random.Random("composite")
    all_values = values()
    every = list(types())
    for n in range(60 if harness.FULL else 5):
        a, b, c, d = (rng.choice(every) for _ in range(4))
        both = [v for v in all_values if a.form(v) is not None]
        also = [v for v in all_values if c.form(v) is not None]
        ids = [(rng.choice(both), rng.choice(also), rng.choice("xy")) for _ in range(60)] + [(None, also[0], "x"), (both[0], None, "x")]
        ids = list(dict.fromkeys(ids))
        near = [(x, y, z) for x, y, z in ids if x is not None and y is not None and b.form(x) is not None and d.form(y) is not None]
        left = [v for v in all_values if b.form(v) is not None]
        right = [v for v in all_values if d.form(v) is not None]
        logs = near * 2 + [(rng.choice(left + [None]), rng.choice(right + [None]), rng.choice("xy")) for _ in range(100)]
        rng.shuffle(logs)
        layout = rng.choice(list(LAYOUTS))
        tab = lambda rows, p, q, m: pa.table({  # noqa: E731
            "a": p.column([x for x, _, _ in rows]), "b": q.column([y for _, y, _ in rows]),
            "c": pa.array([z for _, _, z in rows]), m: pa.array(range(len(rows)), pa.int32()),
        })  # fmt: skip
        form = ".arrow" if layout == "Arrow" else ".parquet"
        log_table = tab(logs, b, d, "l")
        log = tables.write(log_table, t.path("log" + form), **LAYOUTS[layout])
        idp = tables.write(tab(ids, a, c, "r").rename_columns(["x", "y", "z", "r"]), t.path("ids.parquet"))
        name = f"{n}: ({a.name}, {c.name}) against ({b.name}, {d.name}), {layout}"
        flt = t.path("k.filter")
        t.run("build", "--key", "x,y,z", "-o", flt, idp, opens=False)
        for through in ([], ["--filter", flt]):
            for kind in rng.sample(KINDS, 2):
                strategy = rng.choice(STRATEGIES) if not through else "auto"
                out = t.path("out.parquet")
                t.run("join", "--ids", idp, "--on", "a=x,b=y,c=z", "--type", kind, "--strategy", strategy, *through, "-o", out, log, opens=False)
                problem = wrong(pairs_of(tables.read(out)), expected(logs, ids, kind))
                t.ok(f"{name}: {kind} by {strategy} {'through a filter' if through else ''}", not problem, f"{problem} in {out}")
        out = t.path("kept.parquet")
        t.run("scan", "--filter", flt, "--key", "a,b,c", "-o", out, log, opens=False)
        kept, want = set(tables.read(out)["l"].to_pylist()), {l for l, _ in expected(logs, ids, "semi")}
        t.ok(f"{name}: scan", kept >= want, f"lost {sorted(want - kept)}")


def run(t, _repository):
    for part in range(4):
        t.group(f"numbers classes {part}", classes, part, 4, sampled=30)
    for f in (mixed, composite):
        t.group(f"numbers {f.__name__}", f, sampled=5)
