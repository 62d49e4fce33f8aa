"""Casts where a key is named, COL::TYPE: which values are accepted, and as what, against Python's exact rules."""

import datetime
import decimal
import fractions
import itertools
import math
import random
import re
import struct
import uuid

from common import harness, tables
from keys import numberkeys
import numpy
import pyarrow as pa

F = fractions.Fraction
MISFIT = object()
TEXTS = [
    *"0 -0 7 -7 +7 007 -007 7.0 7. .5 7.50 -7.5 1e3 1E3 1e-3 12e+2 1_000 0x10 true TRUE False no nan NaN inf -Inf infinity Infinity".split(),
    *[str(s * 2**b + d) for b in (7, 8, 15, 16, 31, 32, 53, 63, 64) for s in (1, -1) for d in (-1, 0, 1)],
    *[str(s * (10**e - 1)) for e in (4, 9, 18, 20, 38, 39, 76, 77) for s in (1, -1)],
    "", " 7", "7 ", "\t7", "7\n", "٣", "１", "--7", "-", "+", ".", "e5", "1e", "1.2.3", "9" * 400, "0" * 30, "0.1", "0.10", "0.125", "1e22", "1e23", "1e400", "1e-400",
    "9007199254740993.0", "16777217", "16777216", "33554433", "1970-01-01", "2024-02-29", "2023-02-29", "0001-01-01", "9999-12-31", "10000-01-01", "1970-1-1",
    "1970-01-01T00:00:00", "1970-01-01 00:00:00", "1970-01-01T00:00:00Z", "1970-01-01T01:00:00+01:00", "2024-02-29T23:59:59.123456789", "2024-02-29T23:59:59.1234567891",
    "2024-02-29T23:59:59.1234567890", "2024-02-29 23:59:59,5", "2024-02-29T24:00:00", "2024-02-29T23:59:60", "00:00:00", "23:59:59.999999999", "24:00:00", "7:00:00", "12:30",
    "00112233-4455-6677-8899-aabbccddeeff", "00112233445566778899AABBCCDDEEFF", "{00112233-4455-6677-8899-aabbccddeeff}", "0011223344556677", "0011", "xyz",
]  # fmt: skip
TO = [
    ("tinyint", pa.int8()), ("int16", pa.int16()), ("int32", pa.int32()), ("int64", pa.int64()), ("uint8", pa.uint8()), ("uint16", pa.uint16()), ("uint32", pa.uint32()),
    ("uint64", pa.uint64()), ("float", pa.float32()), ("double", pa.float64()), ("decimal(9,2)", pa.decimal128(9, 2)), ("decimal(38,0)", pa.decimal128(38, 0)),
    ("decimal(38,9)", pa.decimal128(38, 9)), ("decimal(76,38)", pa.decimal256(76, 38)), ("string", pa.string()), ("binary", pa.binary()), ("boolean", pa.bool_()),
    ("date", pa.date32()), ("time", pa.time64("ns")), ("timestamp", pa.timestamp("ns")), ("timestamptz", pa.timestamp("ns", "UTC")), ("uuid", pa.binary(16)), ("fixed[2]", pa.binary(2)),
]  # fmt: skip
ALIASES = {"int64": ["bigint", "long", "BIGINT", "integer", "int"], "double": ["float64", "double precision"], "string": ["varchar", "text", "utf8", "large_string"], "float": ["real", "float32"], "decimal(9,2)": ["numeric(9,2)", "DECIMAL(9, 2)"]}
EPOCH = datetime.datetime(1970, 1, 1)


def number(v, to):
    """A number as one of a type, or MISFIT."""
    kind = next(k for k in KINDS if k.cast == to)
    return v if kind.form(v) is not None else MISFIT


KINDS = [k for k in numberkeys.types() if k.cast] + [numberkeys.decimals(76, 38)]


def text(s, to):
    """A text as a value of a type, or MISFIT."""
    if to in ("string", "binary"):
        return s.encode()
    if to not in ("boolean", "uuid") and not to.startswith("fixed"):
        s = s.strip(" \t")  # as DuckDB does
    if "int" in to:
        return number(F(int(s)), to) if re.fullmatch("0|-?[1-9][0-9]*", s) and s.isascii() else MISFIT
    if to.startswith("decimal"):
        if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", s, re.ASCII):
            return MISFIT
        e = re.search("[eE](.*)", s)
        if e and abs(int(e[1])) > 1000:
            return MISFIT
        return number(F(decimal.Decimal(s)), to)
    if to in ("float", "double"):
        if re.fullmatch(r"[+-]?(inf|infinity)", s, re.I):
            return "-inf" if s[0] == "-" else "inf"
        if s.lower() == "nan":
            return "NaN"
        if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", s, re.ASCII):
            return MISFIT
        with numpy.errstate(over="ignore"):
            f = float(s) if to == "double" else float(numpy.float32(s))
        if math.isinf(f):
            return MISFIT
        whole = re.fullmatch(r"[+-]?[0-9]+", s)
        return MISFIT if whole and F(int(s)) != F(f) else F(f)  # a fraction is the nearest float; an integer must be it
    if to == "boolean":
        return {"true": True, "false": False}.get(s.lower(), MISFIT)
    if to == "date":
        if re.fullmatch(r"\d{4}-\d\d-\d\d", s, re.ASCII):
            try:
                return F((datetime.date.fromisoformat(s) - EPOCH.date()).days)
            except ValueError:
                pass
        return MISFIT
    if to == "time":
        return clock(s)
    if to.startswith("timestamp"):
        m = re.fullmatch(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d+)?)(Z|[+-]\d\d:\d\d)?", s, re.ASCII)
        if not m or (m[3] is None) == (to == "timestamptz"):
            return MISFIT
        day, at = text(m[1], "date"), clock(m[2])
        if day is MISFIT or at is MISFIT:
            return MISFIT
        offset = 0 if m[3] in (None, "Z") else (1 if m[3][0] == "+" else -1) * (int(m[3][1:3]) * 3600 + int(m[3][4:]) * 60)
        return day * 86400 + at - offset
    width = 16 if to == "uuid" else 2
    if width == 16 and re.fullmatch("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", s):
        return uuid.UUID(s).bytes
    return bytes.fromhex(s) if re.fullmatch(f"[0-9a-fA-F]{{{2 * width}}}", s) else MISFIT


def clock(s):
    m = re.fullmatch(r"(\d\d):(\d\d):(\d\d)(?:\.(\d+))?", s, re.ASCII)
    if not m or int(m[1]) > 23 or int(m[2]) > 59 or int(m[3]) > 59 or len((m[4] or "").rstrip("0")) > 9:
        return MISFIT
    return F(int(m[1]) * 3600 + int(m[2]) * 60 + int(m[3])) + (F(int(m[4]), 10 ** len(m[4])) if m[4] else 0)


def sources():
    """Columns to cast: their name, type, values as the oracle's and as pyarrow's, and the function that casts one; None from it: refused."""
    every = numberkeys.values()
    for kind in numberkeys.types():
        some = [v for v in every if kind.form(v) is not None]

        def cast(v, to, kind=kind):
            if to == "string" and kind.word == "integer":
                return str(int(v)).encode()
            return number(v, to) if any(k.cast == to for k in KINDS) else None

        yield kind.name, kind.type, some, [kind.form(v) for v in some], cast
    yield "text", pa.string(), TEXTS, TEXTS, text
    yield "large text", pa.large_string(), TEXTS, TEXTS, text
    yield "coded text", pa.dictionary(pa.int32(), pa.string()), TEXTS, TEXTS, text
    raw = [b"", b"7", b"ab", b"-12", b"1.5", b"true", b"1970-01-02", b"\xff\x00", b"7\xff", bytes(16), bytes(range(16))]

    def octets(v, to):
        if to in ("string", "binary"):
            return v
        if to in ("uuid", "fixed[2]"):
            return v if len(v) == (16 if to == "uuid" else 2) else MISFIT
        return text(v.decode("latin-1"), to)

    yield "binary", pa.binary(), raw, raw, octets
    yield "boolean", pa.bool_(), [True, False], [True, False], lambda v, to: v if to == "boolean" else str(v).lower().encode() if to == "string" else None
    days = [0, 1, -1, 19782, -719162, 2932896, 100_000]

    def day(v, to):
        if to == "date":
            return F(v)
        if to.startswith("timestamp"):
            return F(v) * 86400
        if to == "string":
            return str(datetime.date(1970, 1, 1) + datetime.timedelta(v)).encode() if -719162 <= v <= 2932896 else MISFIT
        return None

    yield "date", pa.date32(), days, days, day
    micros = [0, 1, -1, 86400 * 10**6, -86400 * 10**6, 86400 * 10**6 * 19782, 43200 * 10**6, 1709164800 * 10**6]

    def moment(v, to):
        if to == "date":
            return F(v // (86400 * 10**6)) if v % (86400 * 10**6) == 0 else MISFIT
        return F(v, 10**6) if to.startswith("timestamp") else None

    yield "timestamp", pa.timestamp("us"), micros, micros, moment
    yield "timestamptz", pa.timestamp("us", "UTC"), micros, micros, moment
    at = [0, 1, 86399999999, 43200 * 10**6]
    yield "time", pa.time64("us"), at, at, lambda v, to: F(v, 10**6) if to == "time" else None
    fixed = [bytes(2), b"ab", b"\xff\xff"]
    yield "fixed[2]", pa.binary(2), fixed, fixed, lambda v, to: v if to in ("fixed[2]", "binary") else None
    ids = [bytes(16), bytes(range(16)), uuid.UUID("00112233-4455-6677-8899-aabbccddeeff").bytes]
    yield "uuid", pa.binary(16), ids, ids, lambda v, to: v if to in ("uuid", "binary") else str(uuid.UUID(bytes=v)).encode() if to == "string" else None
    yield "null", pa.null(), [], [], lambda v, to: v


def stored(v, to, kind):
    """A value of a type as pyarrow takes it; None where pyarrow's type cannot hold it."""
    if to in ("string", "binary"):
        try:
            return v.decode() if to == "string" else v
        except UnicodeDecodeError:
            return None
    if isinstance(v, (bytes, bool)):
        return v
    if to in ("date",):
        return int(v)
    if to == "time" or to.startswith("timestamp"):
        n = int(v * 10**9)
        return n if -(2**63) <= n < 2**63 else None
    return next(k for k in KINDS if k.cast == to).form(v)


def array(some, to, kind):
    if to in ("date", "time") or to.startswith("timestamp"):
        return pa.array(some, pa.int32() if to == "date" else pa.int64()).cast(kind)
    return pa.array(some, kind)


def source_array(some, kind):
    return pa.array(some, pa.string()).dictionary_encode() if pa.types.is_dictionary(kind) else pa.array(some, kind)


LAYOUTS = numberkeys.LAYOUTS


def one(t, rng, source, to, kind):
    """One pair of types."""
    name, typ, vals, forms, cast = source
    spelled = rng.choice([to, *ALIASES.get(to, [])])
    results = [cast(v, to) for v in vals]
    label = f"{name}::{spelled}"
    allowed = not vals or any(r is not None for r in results)
    # Some of the accepted values, as IDs of the type itself.
    hits = {}
    for r in results:
        if r is not MISFIT and r is not None and stored(r, to, kind) is not None and rng.random() < 0.7:
            hits.setdefault(r, stored(r, to, kind))
    idp = tables.write(pa.table({"id": array([*hits.values(), None], to, kind), "r": pa.array(range(len(hits) + 1), pa.int32())}), t.path("ids.parquet"))
    order = [*range(len(vals))] * 2 + [None] * 5
    rng.shuffle(order)

    def log(order, layout):
        k = source_array([None if i is None else forms[i] for i in order], typ)
        table = pa.table({"k": k, "l": pa.array(range(len(order)), pa.int32())})
        return tables.write(table, t.path("log" + (".arrow" if layout == "Arrow" else ".parquet")), **LAYOUTS[layout]), table

    layout = rng.choice(list(LAYOUTS))
    path, table = log(order, layout)
    on = f"k::{spelled}=id"
    if not allowed:
        out = t.path("out.parquet")
        r = t.run("join", "--ids", idp, "--on", on, "-o", out, path, want=None)
        t.ok(f"{label} is refused", r.code in (1, 64) and "cast" in r.text and not out.exists(), str(r))
        return
    keyed = [None if i is None or results[i] is MISFIT else results[i] for i in order]
    nulls = sum(k is None for k in keyed)
    ids = [*hits, None]
    bad = [i for i, r in enumerate(results) if r is MISFIT]
    flt = t.path("k.filter")
    t.run("build", "--key", "id", "--kind", rng.choice(("auto", "bloom")), "-o", flt, idp)
    for of in rng.sample(numberkeys.KINDS, 2):
        through = rng.random() < 0.3
        strategy = rng.choice(numberkeys.STRATEGIES) if not through else "auto"
        out = t.path("out.parquet")
        r = t.run("join", "--ids", idp, "--on", on, "--cast-errors", "null", "--type", of, "--strategy", strategy, *(["--filter", flt] if through else []),
            "--threads", rng.choice((1, 3)), "--json", "-o", out, path, opens=False)  # fmt: skip
        numberkeys.check(t, f"{label} ({layout}): {of} by {strategy}{' through a filter' if through else ''}", out, numberkeys.expected(keyed, ids, of), table)
        t.ok(f"{label} ({layout}): NULLs of {of} by {strategy}", r.json["keys_null"] == nulls, f"want {nulls}, got {r.json['keys_null']}: {r}")
    out = t.path("kept.parquet")
    r = t.run("scan", "--filter", flt, "--key", f"k::{spelled}", "--cast-errors", "null", "--json", "-o", out, path, opens=False)
    want = {l for l, _ in numberkeys.expected(keyed, ids, "semi")}
    kept = set(tables.read(out)["l"].to_pylist())
    t.ok(f"{label} ({layout}): scan", kept >= want and not any(keyed[l] is None for l in kept), f"lost {sorted(want - kept)}, misfits {[l for l in kept if keyed[l] is None]}")
    t.ok(f"{label} ({layout}): NULLs of a scan", r.json["keys_null"] == nulls, f"want {nulls}, got {r.json['keys_null']}")
    if rng.random() < 0.3:
        numberkeys.in_shards(t, rng, f"{label} ({layout})", ["--ids", idp, "--on", on, "--cast-errors", "null"], path, keyed, ids)
    # The cast on the side of the IDs.
    other = tables.write(pa.table({"k": array([*hits.values(), None], to, kind), "l": pa.array(range(len(hits) + 1), pa.int32())}), t.path("other.parquet"))
    given = tables.write(table.rename_columns(["id", "r"]), t.path("given.parquet"), **(LAYOUTS[layout] if layout != "Arrow" else {}))
    for of in rng.sample(numberkeys.KINDS, 1):
        out = t.path("out.parquet")
        t.run("join", "--ids", given, "--on", f"k=id::{spelled}", "--cast-errors", "null", "--type", of, "--strategy", rng.choice(numberkeys.STRATEGIES), "-o", out, other, opens=False)
        numberkeys.check(t, f"IDs {label} ({layout}): {of}", out, numberkeys.expected(ids, keyed, of), pa.table({"k": array([*hits.values(), None], to, kind)}))
    flt2 = t.path("k.filter")
    built = t.run("build", "--key", f"id::{spelled}", "--cast-errors", "null", "--json", "-o", flt2, given).json
    t.ok(f"{label}: NULLs of build", built["keys_null"] == nulls, f"want {nulls}, got {built['keys_null']}")
    out = t.path("kept.parquet")
    t.run("scan", "--filter", flt2, "--key", "k", "-o", out, other, opens=False)
    kept, want = set(tables.read(out)["l"].to_pylist()), set(range(len(hits))) & {l for l, _ in numberkeys.expected(ids, keyed, "semi")}
    t.ok(f"{label}: scan by a filter of cast IDs", kept >= want, f"lost {sorted(want - kept)}")
    # One value that does not fit among those that do.
    if bad:
        good = [i for i, r in enumerate(results) if r is not MISFIT] or [None]
        rows = [rng.choice(good) for _ in range(100)]
        at = rng.randrange(100)
        wrong = rng.choice(bad)
        layout = rng.choice(list(LAYOUTS))
        fine, _ = log(rows, layout)
        rows[at] = wrong
        path, _ = log(rows, layout)
        group = at // LAYOUTS[layout].get("row_group_size", 10**6) + 1
        far = tables.write(pa.table({"id": array([*hits.values()][:1], to, kind)}), t.path("far.parquet"))
        said = lambda r, file: r.code == 1 and str(file) in r.text and "column k" in r.text and (layout == "Arrow" or f"row group {group}" in r.text)  # noqa: E731
        out = t.path("refused.parquet")
        for of, strategy in [(rng.choice(numberkeys.KINDS), rng.choice(numberkeys.STRATEGIES)) for _ in range(2)]:
            r = t.run("join", "--ids", far, "--on", on, "--type", of, "--strategy", strategy, "-o", out, path, want=None)
            t.ok(f"{label} ({layout}): misfit, {of} by {strategy}", said(r, path) and not out.exists(), f"{vals[wrong]!r}, row group {group}: {r}")
        r = t.run("scan", "--filter", flt, "--key", f"k::{spelled}", "-o", out, path, want=None)
        t.ok(f"{label} ({layout}): misfit, scan", said(r, path), f"{vals[wrong]!r}, row group {group}: {r}")
        r = t.run("build", "--key", f"k::{spelled}", "-o", t.path("refused.filter"), path, want=None)
        t.ok(f"{label} ({layout}): misfit, build", said(r, path), f"{vals[wrong]!r}, row group {group}: {r}")
        r = t.run("join", "--ids", path, "--on", f"id=k::{spelled}", "--type", rng.choice(numberkeys.KINDS), "-o", out, far, want=None)
        t.ok(f"{label} ({layout}): misfit among IDs", said(r, path), f"{vals[wrong]!r}, row group {group}: {r}")
        r = t.run("scan", "--filter", flt, "--key", f"k::{spelled}", "--count", fine, want=None)
        t.ok(f"{label} ({layout}): all fit", r.code == 0, str(r))


def casts(t, part, parts):
    rng = random.Random(f"casts {part}")
    every = list(itertools.product(sources(), TO))
    rng.shuffle(every)
    for source, (to, kind) in every[part :: parts if harness.FULL else 20 * parts]:
        one(t, rng, source, to, kind)


def run(t, _repository):
    for part in range(4):
        t.group(f"casts {part}", casts, part, 4, sampled=40)
