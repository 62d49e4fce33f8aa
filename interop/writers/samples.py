"""Tables with a column of each type, for any writer. Runs under pyarrow 11, too.

The first rows of a large table are those of a small one.
"""

import datetime
import decimal
import os

import numpy as np
import pyarrow as pa

ROWS = 20_000 if os.environ.get("BLOOMJOIN_ALL") else 6000  # of several row groups, by each writer that is asked for more than one
SIZES = (0, 1, 7, 1000, ROWS)
NULLS = ("none", "some", "all")
EPOCH = 1_600_000_000
NEW = int(pa.__version__.split(".")[0]) >= 26  # else types are left out that older ones lack or write otherwise


def integers(g, bits, signed):
    lo, hi = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    values = g.integers(lo, hi, ROWS, dtype=f"{'int' if signed else 'uint'}{bits}", endpoint=True)
    values[3], values[4] = lo, hi
    return values


def texts(g, distinct):
    """Strings of any length, some of them empty, some not ASCII."""
    made = [("ä" if i % 7 == 3 else "u") * (i % 5) + (str(i) if i % 50 else "") for i in range(distinct)]
    return [made[i] for i in g.integers(0, distinct, ROWS)]


def floats(g, kind):
    values = g.normal(0, 1e3, ROWS).astype(kind)
    values[2:7] = [0.0, -0.0, np.nan, np.inf, -np.inf]
    return values


def decimals(g, precision, scale):
    span = 10 ** min(precision, 18) - 1
    lift = 10 ** (precision - 18) if precision > 18 else 1
    return [decimal.Decimal(int(v) * lift + (int(v) % 97 if lift > 1 else 0)).scaleb(-scale, decimal.Context(prec=80)) for v in g.integers(-span, span, ROWS)]


def numbers(g):
    columns = {f"{'i' if s else 'u'}{b}": pa.array(integers(g, b, s)) for b in (8, 16, 32, 64) for s in (True, False)}
    columns |= {"f32": pa.array(floats(g, "float32")), "f64": pa.array(floats(g, "float64"))}
    columns["sorted"] = pa.array(np.sort(g.integers(0, ROWS, ROWS)))
    columns["flag"] = pa.array(g.random(ROWS) < 0.3)
    for precision, scale in ((5, 2), (18, 4), (38, 10)):
        columns[f"dec{precision}"] = pa.array(decimals(g, precision, scale), pa.decimal128(precision, scale))
    return columns


def strings(g):
    raw = g.bytes(16 * ROWS)
    cells = [raw[i : i + 16] for i in range(0, len(raw), 16)]
    columns = {
        "text": pa.array(texts(g, ROWS)),
        "few": pa.array(texts(g, 40)),
        "large": pa.array(texts(g, 3000), pa.large_string()),
        "category": pa.array(texts(g, 100)).dictionary_encode(),
        "binary": pa.array([c[: c[0] % 9] for c in cells], pa.binary()),
        "fixed16": pa.array(cells, pa.binary(16)),
        "fixed3": pa.array([c[:3] for c in cells], pa.binary(3)),
    }
    if NEW:
        columns["uuid"] = pa.ExtensionArray.from_storage(pa.uuid(), columns["fixed16"])
        columns["view"] = pa.array(texts(g, 5000), pa.string_view())
    return columns


def wide(g):
    """What hardly any other reader has."""
    columns = {"id": pa.array(g.permutation(ROWS)), "dec76": pa.array(decimals(g, 60, 20), pa.decimal256(60, 20))}
    if NEW:
        columns["f16"] = pa.array(g.normal(0, 5, ROWS).astype("float16"))
    return columns


def times(g):
    seconds = EPOCH + g.integers(-(10**9), 10**9, ROWS)
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    columns = {"day": pa.array((seconds // 86400).astype("int32")).cast(pa.date32())}
    for unit, n in per.items():
        ticks = pa.array(seconds * n + g.integers(0, n, ROWS))
        columns[f"ts_{unit}"] = ticks.cast(pa.timestamp(unit))
        columns[f"tz_{unit}"] = ticks.cast(pa.timestamp(unit, "UTC" if unit != "ms" else "Europe/Paris"))
    columns["time_ms"] = pa.array(g.integers(0, 86_400_000, ROWS).astype("int32")).cast(pa.time32("ms"))
    columns["time_us"] = pa.array(g.integers(0, 86_400_000_000, ROWS)).cast(pa.time64("us"))
    columns["time_ns"] = pa.array(g.integers(0, 86_400_000_000_000, ROWS)).cast(pa.time64("ns"))
    columns["duration"] = pa.array(g.integers(-(10**12), 10**12, ROWS)).cast(pa.duration("us"))
    return columns


def nested(g):
    sizes = g.choice([0, 0, 1, 2, 5], ROWS)
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype("int32"))
    n = int(sizes.sum())
    ints = pa.array(g.integers(-1000, 1000, n), mask=g.random(n) < 0.1)
    words = pa.array([f"w{i}" for i in g.integers(0, 30, n)], mask=g.random(n) < 0.1)
    parts = {"a": pa.array(g.integers(0, 500, ROWS).astype("int32"), mask=g.random(ROWS) < 0.1), "b": pa.array(texts(g, 300))}
    pair = pa.StructArray.from_arrays(list(parts.values()), list(parts))
    inner = pa.StructArray.from_arrays([ints, words], ["x", "y"])
    lists = pa.ListArray.from_arrays(offsets, ints)
    some = np.arange(0, ROWS + 1) * 3 // 4
    return {
        "id": pa.array(g.permutation(ROWS)),
        "ints": lists,
        "words": pa.ListArray.from_arrays(offsets, words),
        "items": pa.ListArray.from_arrays(offsets, inner),
        "deep": pa.ListArray.from_arrays(pa.array(some.astype("int32")), lists.slice(0, int(some[-1]))),
        "pair": pair,
        "outer": pa.StructArray.from_arrays([pair, lists], ["pair", "list"]),
        "map": pa.MapArray.from_arrays(offsets, pa.array([f"k{i}" for i in range(n)]), ints),
    }


def old(g):
    """For INT96, which holds the range of nanoseconds and far beyond."""
    at = [datetime.datetime(9999, 12, 31), datetime.datetime(1, 1, 1), datetime.datetime(1582, 10, 15)]
    days = [datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=int(s)) for s in g.integers(-(10**9), 10**9, ROWS)]
    return {
        "id": pa.array(g.permutation(ROWS)),
        "near": pa.array(days, pa.timestamp("us")),
        "far": pa.array([at[i % 30] if i % 30 < 3 else d for i, d in enumerate(days)], pa.timestamp("us")),
    }


SETS = {f.__name__: f for f in (numbers, strings, times, nested, wide, old)}


def table(name, nulls="none"):
    """A set's table, where every seventh or each value is NULL, at random; the id never is."""
    g = np.random.default_rng(sum(map(ord, name)))
    columns = SETS[name](g)
    for c, array in columns.items() if nulls != "none" else ():
        if c != "id":
            columns[c] = holed(array, g.random(ROWS) < 1 / 7) if nulls == "some" else pa.nulls(ROWS, array.type)
    return pa.table(columns)


def holed(array, mask):
    if NEW and array.type == pa.string_view():  # which take does not know
        return holed(array.cast(pa.string()), mask).cast(array.type)
    return array.take(pa.array(np.arange(ROWS), mask=mask))


def variants(names, options):
    """Each set in each way of writing: (set, way, table, options). NULLs change from way to way."""
    for name in names:
        made = {n: table(name, n) for n in NULLS}
        for i, (way, how) in enumerate(options.items()):
            for nulls in {NULLS[i % 2], NULLS[2] if i % 4 == 1 else NULLS[i % 2]}:
                for size in SIZES:
                    yield name, f"{way}-{nulls}-{size}", made[nulls].slice(0, size), how
