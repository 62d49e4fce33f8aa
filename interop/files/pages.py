"""The page engine on files made for it: pages of any size that cut rows anywhere, all encodings and codecs, many row
groups and giant ones. What is kept is what pyarrow makes of the input; what is written is sound, page by page.
"""

import datetime
import decimal
import itertools
import random
import struct

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from common import harness, rawfile, tables
from files import identity

CASES = 800 if harness.FULL else 14  # random files
SEED = 20


# ---- making logs


def texts(rng, n, distinct):
    return [f"text {rng.randrange(distinct)} {'x' * rng.randrange(20)}" for _ in range(n)]


def holes(rng, values, share=0.15):
    return [None if rng.random() < share else v for v in values]


def nested(rng, n):
    """Lists with any number of items, none, or NULL; now and then a row of thousands, which takes many pages."""
    sizes = [0, 0, 1, 2, 3, 7]
    return [
        None if rng.random() < 0.1 else list(range(rng.choice(sizes) if rng.random() < 0.999 else rng.randrange(4000)))
        for _ in range(n)
    ]


def columns_of(rng, n):
    """Column name to a function that makes it."""
    big = lambda: rng.getrandbits(64)  # noqa: E731
    lists = lambda: nested(rng, n)  # noqa: E731
    day = datetime.date(1970, 1, 1)
    item = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
    return {
        "i8": lambda: pa.array(holes(rng, [rng.randrange(-128, 128) for _ in range(n)]), pa.int8()),
        "u16": lambda: pa.array(holes(rng, [rng.randrange(1 << 16) for _ in range(n)]), pa.uint16()),
        "u32": lambda: pa.array(holes(rng, [big() >> 32 for _ in range(n)]), pa.uint32()),
        "u64": lambda: pa.array(holes(rng, [big() for _ in range(n)]), pa.uint64()),
        "sorted": lambda: pa.array(sorted(rng.randrange(n) for _ in range(n)), pa.int64()),
        "falling": lambda: pa.array(sorted((rng.randrange(n) for _ in range(n)), reverse=True), pa.int32()),
        "few": lambda: pa.array(holes(rng, [rng.randrange(9) for _ in range(n)]), pa.int64()),
        "text": lambda: pa.array(holes(rng, texts(rng, n, n))),
        "fewtexts": lambda: pa.array(texts(rng, n, 3)),
        "long": lambda: pa.array(holes(rng, [f"{rng.randrange(50)}" * rng.randrange(400) for _ in range(n)])),
        "bytes": lambda: pa.array(holes(rng, [rng.randbytes(rng.randrange(9)) for _ in range(n)]), pa.binary()),
        "fixed": lambda: pa.array(holes(rng, [rng.randbytes(16) for _ in range(n)]), pa.binary(16)),
        "flag": lambda: pa.array(holes(rng, [rng.random() < 0.3 for _ in range(n)])),
        "f16": lambda: pa.array(holes(rng, [np.float16(rng.gauss(0, 5)) for _ in range(n)]), pa.float16()),
        "f32": lambda: pa.array(holes(rng, [rng.gauss(0, 1) for _ in range(n)]), pa.float32()),
        "f64": lambda: pa.array(holes(rng, [rng.choice([0.0, -0.0, 1.5, float("nan"), -7e300]) for _ in range(n)])),
        "money": lambda: pa.array(
            holes(rng, [decimal.Decimal(rng.randrange(-(10**17), 10**17)).scaleb(-2) for _ in range(n)]), pa.decimal128(20, 2)
        ),
        "cents": lambda: pa.array([decimal.Decimal(rng.randrange(-999, 999)).scaleb(-2) for _ in range(n)], pa.decimal128(5, 2)),
        "day": lambda: pa.array(holes(rng, [day + datetime.timedelta(rng.randrange(-9999, 9999)) for _ in range(n)])),
        "ms": lambda: pa.array(holes(rng, [rng.randrange(-(10**12), 10**13) for _ in range(n)]), pa.timestamp("ms")),
        "us": lambda: pa.array(holes(rng, [rng.randrange(10**15) for _ in range(n)]), pa.timestamp("us", "UTC")),
        "ns": lambda: pa.array([rng.randrange(10**18) for _ in range(n)], pa.timestamp("ns")),
        "clock": lambda: pa.array(holes(rng, [rng.randrange(86400 * 10**6) for _ in range(n)]), pa.time64("us")),
        "list": lambda: pa.array(lists(), pa.list_(pa.int64())),
        "words": lambda: pa.array([v and [f"w{x % 7}" for x in v] for v in lists()], pa.list_(pa.string())),
        "deep": lambda: pa.array(
            [v and [None if x % 5 == 4 else list(range(x % 3)) for x in v[:50]] for v in lists()], pa.list_(pa.list_(pa.int32()))
        ),
        "items": lambda: pa.array(
            [v and [None if x % 6 == 5 else {"a": x, "b": [None, "y"][: x % 3]} for x in v[:50]] for v in lists()], pa.list_(item)
        ),
        "tags": lambda: pa.array([v and [(f"k{x}", x) for x in v[:9]] for v in lists()], pa.map_(pa.string(), pa.int64())),
        "user": lambda: pa.array(
            holes(rng, [{"id": big() >> 40, "name": f"n{i % 11}" if i % 3 else None} for i in range(n)]),
            pa.struct([pa.field("id", pa.int64()), ("name", pa.string())]),
        ),
        "nothing": lambda: pa.nulls(n, pa.string()),
    }  # fmt: skip


def log(rng, n):
    """A table of some of the columns, in any order, and the row's number."""
    made = columns_of(rng, n)
    names = rng.sample(sorted(made), rng.randrange(3, 9))
    columns = {"row": pa.array(range(n), pa.int64())} | {name: made[name]() for name in names}
    table = pa.table(columns)
    if rng.random() < 0.3:  # columns that are never NULL by their schema
        fields = [f.with_nullable(f.nullable and table[f.name].null_count > 0) for f in table.schema]
        table = table.cast(pa.schema(fields))
    return table


ENCODINGS = {
    "i8": ["DELTA_BINARY_PACKED"], "u32": ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"], "u64": ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    "sorted": ["DELTA_BINARY_PACKED"], "falling": ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"], "few": ["DELTA_BINARY_PACKED"],
    "text": ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"], "fewtexts": ["DELTA_BYTE_ARRAY"], "long": ["DELTA_LENGTH_BYTE_ARRAY"],
    "bytes": ["DELTA_BYTE_ARRAY"], "fixed": ["DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"], "flag": ["RLE"], "f32": ["BYTE_STREAM_SPLIT"],
    "f64": ["BYTE_STREAM_SPLIT"], "row": ["DELTA_BINARY_PACKED"], "us": ["DELTA_BINARY_PACKED"], "cents": ["BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY"],
}  # fmt: skip


def options(rng, table):
    """Ways to write a table."""
    o = {
        "compression": rng.choice(["none", "snappy", "gzip", "zstd", "brotli", "lz4"]),
        "data_page_version": rng.choice(["1.0", "1.0", "2.0"]),
        "data_page_size": rng.choice([1, 100, 1000, 20_000, 1 << 20]),
        "write_batch_size": rng.choice([1, 7, 64, 1024]),
        "row_group_size": rng.choice([1, 17, 500, 2000, 10**6]),
        "write_page_index": rng.random() < 0.4,
        "write_page_checksum": rng.random() < 0.5,
        "write_statistics": rng.random() < 0.8,
        "store_schema": rng.random() < 0.7,
    }
    if o["row_group_size"] < 20:
        o["row_group_size"] = max(o["row_group_size"], table.num_rows // 150)
    if rng.random() < 0.5:
        coded = rng.sample(table.column_names, rng.randrange(len(table.column_names)))
        o["use_dictionary"] = coded
        o["column_encoding"] = {
            n: rng.choice(ENCODINGS[n])
            for n in table.column_names
            if n not in coded and n in ENCODINGS and rng.random() < 0.8
        }
        if not o["column_encoding"]:
            del o["column_encoding"]
    if rng.random() < 0.4:
        o["dictionary_pagesize_limit"] = rng.choice([1, 100, 3000])  # behind which a chunk goes on without
    return o


# ---- choosing keys


def chosen(rng, column):
    """Some of a column's values: none, few, a range of rows, many or all of them."""
    n = len(column)
    match rng.randrange(6):
        case 0:
            rows = []
        case 1:
            rows = [rng.randrange(n)]
        case 2:
            lo = rng.randrange(n)
            rows = range(lo, min(n, lo + rng.randrange(1, 300)))
        case 3:
            rows = rng.sample(range(n), max(1, n // 100))
        case 4:
            rows = rng.sample(range(n), n // 2)
        case _:
            rows = range(n)
    return column.take(pa.array(rows, pa.int64()))


def page_bounds(f, table, copied=frozenset()):
    """Where the statistics or the column index of flat columns contradict the values: a list of sentences.

    Copied: page bodies that may be those of an input. The bounds of its writer may leave out NaN.
    """
    wrong, first = [], 0
    flat = {part[0][4].decode(): at[0] for part, at in f.columns() if len(part) == 1}
    for g, group in enumerate(f.groups):
        for name, leaf in flat.items():
            column = table[name]
            if pa.types.is_nested(column.type):
                continue
            if column.type == pa.string_view():  # which most functions lack
                column = column.cast(pa.string())
            chunk = group[1][leaf]
            part = column.slice(first, group[3])
            if pa.types.is_floating(part.type) and copied and all(stored in copied for _, _, stored, _ in f.walk(chunk)):
                part = pc.if_else(pc.is_nan(part), first_number(part), part)
            wrong += [f"{name}, row group {g}: {w}" for w in bounds_of(part, chunk[3].get(12, {}))]
            offsets, index = f.offset_index(chunk), f.column_index(chunk)
            if index is None:
                continue
            firsts = [x[3] for x in offsets[1]] + [group[3]]
            ends = []
            for p, null in enumerate(index[1]):
                values = part.slice(firsts[p], firsts[p + 1] - firsts[p])
                claim = {3: index[5][p]} | ({} if null else {5: index[3][p], 6: index[2][p]})
                if null != (values.null_count == len(values)):
                    wrong.append(f"{name}, row group {g}, page {p}: null_pages")
                wrong += [f"{name}, row group {g}, page {p}: {w}" for w in bounds_of(values, claim)]
                if not null:
                    ends.append((decode(column.type, index[2][p]), decode(column.type, index[3][p])))
            order = index[4]
            for a, b in itertools.pairwise(ends):
                if None not in a + b and (
                    order == 1
                    and not (a[0] <= b[0] and a[1] <= b[1])
                    or order == 2
                    and not (a[0] >= b[0] and a[1] >= b[1])
                ):
                    wrong.append(f"{name}, row group {g}: boundary order {order}: {a} {b}")
        first += group[3]
    return wrong


def first_number(part):
    """A value in the place of NaN, within the bounds of the others."""
    numbers = part.filter(pc.invert(pc.is_nan(part)))
    return numbers[0] if len(numbers) else pa.scalar(0, part.type)


def decode(kind, b):
    """A bound as a number or as bytes; None: of a type that is not looked at here."""
    t = pa.types
    if t.is_unsigned_integer(kind):
        return int.from_bytes(b, "little")
    if t.is_integer(kind) or t.is_date(kind) or t.is_timestamp(kind) or t.is_time(kind):
        return int.from_bytes(b, "little", signed=True)
    if t.is_boolean(kind):
        return b[0]
    if t.is_float32(kind) or t.is_float64(kind):
        return struct.unpack("<f" if len(b) == 4 else "<d", b)[0]
    if t.is_string(kind) or t.is_binary(kind) or t.is_fixed_size_binary(kind) and not t.is_decimal(kind):
        return bytes(b)
    if t.is_decimal(kind):
        return int.from_bytes(b, "big", signed=True)
    return None


def numbers(part):
    """A column's values as decode has them."""
    kind, values = part.type, part.drop_null()
    t = pa.types
    if t.is_decimal(kind):
        return [int(v.scaleb(kind.scale, decimal.Context(prec=80))) for v in values.to_pylist()]
    if t.is_date(kind) or t.is_time(kind) or t.is_timestamp(kind):
        return values.cast(pa.int32() if t.is_date32(kind) or t.is_time32(kind) else pa.int64()).to_pylist()
    if t.is_string(kind):
        return [v.encode() for v in values.to_pylist()]
    return values.to_pylist()


def bounds_of(part, claim):
    if claim.get(3) is not None and claim[3] != part.null_count:
        yield f"null_count {claim[3]}, want {part.null_count}"
    if 5 not in claim or pa.types.is_float16(part.type):
        return
    values = numbers(part)
    if pa.types.is_decimal(part.type) and len(claim[5]) in (4, 8) and part.type.precision <= 18:
        return  # stored as integers, or not: not told here
    lo, hi = decode(part.type, claim[6]), decode(part.type, claim[5])
    if not values or lo is None:
        return
    if any(v != v for v in values):
        yield "bounds although there is a NaN"
    if not lo <= min(values) or not hi >= max(values):
        yield f"bounds {lo} to {hi}, want {min(values)} to {max(values)}"
    elif claim.get(7) and hi != max(values) or claim.get(8) and lo != min(values):
        yield f"bounds {lo} to {hi} are said to be exact; want {min(values)} to {max(values)}"


# ---- random cases


def case(t, seed):
    """One random log, one random key, joined both ways with some of its values, into every form of output."""
    rng = random.Random(seed)
    table = log(rng, rng.choice([1, 10, 300, 2000, 5000]))
    how = options(rng, table)
    said = f"case {seed}"
    path = tables.write(table, t.work / f"case{seed}.parquet", **how)
    table, why = identity.by_pyarrow(path)
    if why:  # rows cut between pages in some ways are too much for pyarrow itself
        print(f"      {said}: unread by pyarrow: {why}")
        return
    keys = [(p, k) for p, k in identity.paths(table.schema)]
    key, kind = rng.choice(keys)
    ids = chosen(rng, identity.values_at(table, key))
    idfile = tables.write(pa.table({"id": ids}), t.work / f"ids{seed}.parquet")
    detail = f"{identity.quoted(key)} {kind}, {len(ids)} IDs, {table.num_rows} rows of {table.column_names}, {how}"
    on = f"{identity.quoted(key)}=id"
    for anti in (False, True):
        want = identity.expected(table, key, ids, anti)
        join = ["join", "--ids", idfile, "--on", on, "--type", "anti" if anti else "semi"]
        outs = []
        for threads in (1, 2, 7):
            outs.append(t.work / f"out{seed}-{anti}-{threads}.parquet")
            r = t.run(*join, "--threads", threads, "--json", "-o", outs[-1], path).json
        t.ok(f"{said}: threads", len({o.read_bytes() for o in outs}) == 1, detail)
        t.ok(f"{said}: rows_out", (r["rows_in"], r["rows_out"]) == (table.num_rows, want.num_rows), f"{r} {detail}")
        t.ok(f"{said}: rows kept", not (d := problem(outs[0], want, path)), f"{d}; {detail}")
        arrow = t.work / f"out{seed}-{anti}.arrow"
        t.run(*join, "-o", arrow, path)
        copy = tables.read(arrow)
        unlike = [
            n
            for n, a, b in zip(want.schema.names, copy.columns, want.columns, strict=True)
            if not identity.alike(*identity.plainly(a, b))
        ]
        t.ok(f"{said}: Arrow", copy.num_rows == want.num_rows and not unlike, f"{unlike}; {detail}")
        for o in (*outs, arrow):
            o.unlink()
    path.unlink()


def problem(out, want, *logs):
    """What is wrong with an output, by pyarrow, DuckDB and byte by byte; empty: nothing. Pages may be those of the logs."""
    copy, why = identity.by_pyarrow(out)
    if why:
        return why
    if d := identity.differences(copy, want):
        return f"pyarrow: {d}"
    f, copied = rawfile.File(out), frozenset().union(*(rawfile.File(log).bodies() for log in logs))
    if d := rawfile.sound(f, copied) + page_bounds(f, want, copied):
        return str(d[:5])
    duck, why = identity.by_duckdb(out)
    if why:  # it reads fewer files than there are
        return "" if "only supported for FLOAT" in why else f"DuckDB: {why}"
    if duck.num_rows != want.num_rows:
        return f"DuckDB: {duck.num_rows} rows"
    return ""


def run(t, _repository):
    def cases(t):
        for seed in range(SEED, SEED + CASES):
            try:
                case(t, seed)
            except (AssertionError, pa.ArrowException, ValueError, KeyError, IndexError) as e:
                t.ok(f"case {seed}: {type(e).__name__}", False, str(e)[:900])

    t.group("pages random", cases, sampled=40)
