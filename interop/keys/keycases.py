"""Which keys are equal: the rows that match are listed by hand, since the casts of other systems differ.

A case has a key column on each side and the pairs (log row, ID row) that match, rows numbered from 0.
From the pairs follow the answers of all join types.
"""

import dataclasses
import datetime
import decimal
import math
import uuid

import pyarrow as pa

D = decimal.Decimal
NAN = math.nan


@dataclasses.dataclass
class Case:
    name: str
    ids: pa.Table
    logs: pa.Table
    pairs: list  # (log row, ID row)
    on: str = "k"
    key: str = "k"  # the IDs' part of on
    log_key: str = "k"
    id_form: str = ".parquet"  # how the sides are written
    log_form: str = ".parquet"
    id_options: dict = dataclasses.field(default_factory=dict)
    log_options: dict = dataclasses.field(default_factory=dict)


def numbered(number, **columns):
    """A table of the columns, and its row numbers in a column called number."""
    rows = len(next(iter(columns.values())))
    return pa.table({**columns, number: pa.array(range(rows), pa.int32())})


def column(values, kind=None):
    return values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values, kind)


def simple(name, id_type, ids, log_type, logs, pairs, **more):
    """A case of one key column: id in the ID set, k in the log."""
    ids, logs = numbered("r", id=column(ids, id_type)), numbered("l", k=column(logs, log_type))
    return Case(name, ids, logs, pairs, on="k=id", key="id", log_key="k", **more)


def same_name(name, kind, ids, logs, pairs, **more):
    """A case of one key column, called k and of one type on both sides."""
    return Case(name, numbered("r", k=column(ids, kind)), numbered("l", k=column(logs, kind)), pairs, **more)


def integers():
    i8, i16, i32, i64 = pa.int8(), pa.int16(), pa.int32(), pa.int64()
    u8, u16, u32, u64 = pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()
    logs64 = [5, 2**32 + 5, -1, 2**32 - 1, None, -(2**31), 7, 5]
    yield simple("int32 IDs, int64 log", i32, [5, -1, -(2**31), 9], i64, logs64, [(0, 0), (2, 1), (5, 2), (7, 0)])
    yield simple("int64 IDs, int32 log", i64, [5, 2**32 + 5, -1, 2**32 - 1], i32, [5, -1, 0], [(0, 0), (1, 2)])
    yield simple(
        "uint64 IDs, int64 log", u64, [5, 2**64 - 1, 2**63, 2**64 - 7], i64, [5, -1, -(2**63), -7, 2**63 - 1], [(0, 0)]
    )
    yield simple(
        "int64 IDs, uint64 log",
        i64,
        [-1, -(2**63), 8, 2**63 - 1],
        u64,
        [2**64 - 1, 2**63, 8, 2**63 - 1],
        [(2, 2), (3, 3)],
    )
    yield simple("uint64 both", u64, [2**64 - 1, 2**63], u64, [2**64 - 1, 0, 2**63], [(0, 0), (2, 1)])
    yield simple("int8 IDs, uint8 log", i8, [-1, 5, 127], u8, [255, 5, 127, 128], [(1, 1), (2, 2)])
    yield simple("uint16 IDs, int16 log", u16, [65535, 5], i16, [-1, 5], [(1, 1)])
    yield simple("uint32 IDs, int32 log", u32, [2**32 - 1, 5], i32, [-1, 5], [(1, 1)])
    yield simple("uint8 IDs, int64 log", u8, [200, 0], i64, [200, 0, 456, -56], [(0, 0), (1, 1)])
    both = dict(id_form=".arrow", log_form=".arrow")
    yield simple("uint64 IDs, int64 log, Arrow files", u64, [5, 2**64 - 1], i64, [5, -1, None], [(0, 0)], **both)
    coded = pa.array([5, 7, 5, None, -1], i64).dictionary_encode()
    yield simple(
        "dictionary of int64, Arrow log", i32, [5, -1], i64, coded, [(0, 0), (2, 0), (4, 1)], log_form=".arrow"
    )


def texts():
    ids, logs = ["a", "", "héllo", "a\0b", "z"], ["a", None, "", "A", "héllo", "a\0b", "a\0", "a "]
    pairs = [(0, 0), (2, 1), (4, 2), (5, 3)]
    s, ls, b, lb = pa.string(), pa.large_string(), pa.binary(), pa.large_binary()
    for name, id_type, log_type in [
        ("string, large_string", s, ls),
        ("large_string, string", ls, s),
        ("binary, string", b, s),
        ("string, large_binary", s, lb),
    ]:
        raw = lambda values, kind: [v.encode() if v is not None and kind in (b, lb) else v for v in values]  # noqa: E731
        for form in (".parquet", ".arrow"):
            yield simple(
                f"{name} ({form[1:]})",
                id_type,
                raw(ids, id_type),
                log_type,
                raw(logs, log_type),
                pairs,
                id_form=form,
                log_form=form,
            )
    yield simple("string IDs, dictionary log (parquet)", s, ids, s, pa.array(logs).dictionary_encode(), pairs)
    yield simple(
        "string IDs, dictionary log (arrow)", s, ids, s, pa.array(logs).dictionary_encode(), pairs, log_form=".arrow"
    )
    yield simple(
        "dictionary IDs (arrow), string log", s, pa.array(ids).dictionary_encode(), s, logs, pairs, id_form=".arrow"
    )
    plain = dict(use_dictionary=False, compression="none")
    yield simple("string, plain pages", s, ids, s, logs, pairs, id_options=plain, log_options=plain)
    delta = dict(use_dictionary=False, column_encoding={"k": "DELTA_BYTE_ARRAY"})
    yield simple("string, delta pages", s, ids, s, logs, pairs, log_options=delta)


def times():
    stamp = datetime.datetime.fromisoformat
    ids = [stamp("2001-01-01 00:00:00"), stamp("1969-12-31 23:59:59.999"), stamp("2200-03-01 12:00:00")]
    logs = [
        stamp("1969-12-31 23:59:59.999"),
        stamp("2001-01-01 00:00:00.001"),
        None,
        stamp("2001-01-01 00:00:00"),
        stamp("2200-03-01 12:00:00"),
    ]
    pairs = [(0, 1), (3, 0), (4, 2)]
    for zone in (None, "UTC"):
        said = "zone" if zone else "no zone"
        for a, b in [("ms", "us"), ("us", "ns"), ("ns", "ms"), ("ms", "ns")]:
            yield simple(f"timestamp {a}, {b}, {said}", pa.timestamp(a, zone), ids, pa.timestamp(b, zone), logs, pairs)
            arrow = dict(id_form=".arrow", log_form=".arrow")
            yield simple(
                f"timestamp {a}, {b}, {said} (arrow)",
                pa.timestamp(a, zone),
                ids,
                pa.timestamp(b, zone),
                logs,
                pairs,
                **arrow,
            )
    rome, tokyo = pa.timestamp("us", "Europe/Rome"), pa.timestamp("ms", "Asia/Tokyo")
    yield simple("instants of two zones", rome, ids, tokyo, logs, pairs)
    seconds = dict(id_form=".arrow")
    whole = [stamp("2001-01-01 00:00:00"), stamp("1969-12-31 23:59:59")]
    yield simple(
        "timestamp s, us",
        pa.timestamp("s"),
        whole,
        pa.timestamp("us"),
        [*whole, stamp("1969-12-31 23:59:59.5")],
        [(0, 0), (1, 1)],
        **seconds,
    )
    far = [stamp("9999-12-31 23:59:59.999"), stamp("0001-01-01 00:00:00")]
    yield simple(
        "timestamps beyond nanoseconds", pa.timestamp("ms"), far, pa.timestamp("us"), far[::-1], [(0, 1), (1, 0)]
    )
    old = dict(use_deprecated_int96_timestamps=True)
    yield simple("INT96 log", pa.timestamp("us"), ids, pa.timestamp("ns"), logs, pairs, log_options=old)
    yield simple("INT96 IDs", pa.timestamp("ns"), ids, pa.timestamp("us"), logs, pairs, id_options=old)
    day = datetime.date
    days, log_days = [day(1969, 12, 31), day(2024, 2, 29)], [day(2024, 2, 29), None, day(1969, 12, 31), day(1970, 1, 1)]
    yield simple("dates", pa.date32(), days, pa.date32(), log_days, [(0, 1), (2, 0)])
    yield simple(
        "date64 IDs (arrow), date32 log", pa.date64(), days, pa.date32(), log_days, [(0, 1), (2, 0)], id_form=".arrow"
    )


def numbers():
    narrow, wide = pa.decimal128(9, 2), pa.decimal128(38, 6)
    ids, logs = (
        [D("1.50"), D("-0.01"), D("0.00"), D("1000.00")],
        [D("1.500000"), D("1.500001"), D("-0.010000"), D("0"), D("1000"), None],
    )
    pairs = [(0, 0), (2, 1), (3, 2), (4, 3)]
    yield simple("decimals of two widths", narrow, ids, wide, logs, pairs)
    yield simple("decimals, wide IDs", wide, logs[:5], narrow, ids, [(0, 0), (1, 2), (2, 3), (3, 4)])
    yield simple(
        "decimals of 4 and 8 bytes",
        narrow,
        ids,
        pa.decimal128(18, 6),
        logs,
        pairs,
        id_options=dict(store_decimal_as_integer=True),
        log_options=dict(store_decimal_as_integer=True),
    )
    yield simple(
        "decimal256 (arrow), decimal128",
        pa.decimal256(60, 4),
        [D("1.5"), D("-1"), D(10) ** 50],
        wide,
        [D("-1"), D("1.5"), D("1")],
        [(0, 1), (1, 0)],
        id_form=".arrow",
    )
    f, d = pa.float32(), pa.float64()
    yield simple(
        "floats",
        f,
        [0.5, -0.0, NAN, 0.1, math.inf],
        d,
        [0.5, 0.0, NAN, 0.1, -math.inf, math.inf, None],
        [(0, 0), (1, 1), (2, 2), (5, 4)],
    )
    yield simple("doubles", d, [0.0, NAN, 1e300], d, [-0.0, -NAN, NAN, 1e300], [(0, 0), (1, 1), (2, 1), (3, 2)])
    yield simple(
        "floats (arrow)", d, [0.5, NAN], f, [NAN, 0.5, -0.5], [(0, 1), (1, 0)], id_form=".arrow", log_form=".arrow"
    )
    yield simple("booleans", pa.bool_(), [True], pa.bool_(), [False, True, None, True], [(1, 0), (3, 0)])


def identifiers():
    a, b, c = (uuid.UUID(int=n).bytes for n in (1, 2**127, 77))
    fixed = pa.binary(16)
    yield simple("fixed_size_binary", fixed, [a, b], fixed, [b, None, c, a], [(0, 1), (3, 0)])
    typed = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b, None, c, a], fixed))
    yield simple("binary(16) IDs, UUID log", fixed, [a, b], None, typed, [(0, 1), (3, 0)])
    yield simple("UUID IDs, UUID log (arrow)", None, typed, None, typed, [(0, 0), (2, 2), (3, 3)], log_form=".arrow")
    yield simple("fixed_size_binary of 3 bytes", pa.binary(3), [b"abc"], pa.binary(3), [b"abd", b"abc"], [(1, 0)])


def nulls():
    i = pa.int64()
    for form in (".parquet", ".arrow"):
        both = dict(id_form=form, log_form=form)
        yield same_name(f"NULL on both sides ({form[1:]})", i, [None, 1, None], [None, 1, 2, None], [(1, 1)], **both)
        yield same_name(f"only NULL IDs ({form[1:]})", i, [None, None], [None, 1], [], **both)
        yield same_name(f"only NULLs in the log ({form[1:]})", i, [1], [None, None], [], **both)
        yield same_name(f"no IDs ({form[1:]})", i, [], [1, None, 2], [], **both)
        yield same_name(f"no log rows ({form[1:]})", i, [1, 2], [], [], **both)
        yield same_name(f"no rows at all ({form[1:]})", i, [], [], [], **both)
        yield same_name(
            f"NULL strings ({form[1:]})", pa.string(), [None, "", "x"], ["", None, "x"], [(0, 1), (2, 2)], **both
        )
    many = [(0, 0), (0, 2), (0, 4), (1, 0), (1, 2), (1, 4), (3, 1)]
    yield same_name("an ID many times", i, [3, 4, 3, None, 3], [3, 3, 5, 4], many)


def composites():
    s, i, u = pa.string(), pa.int64(), pa.uint64()
    two = lambda number, a, b, ta=s, tb=s: numbered(number, a=pa.array(a, ta), b=pa.array(b, tb))  # noqa: E731
    same = dict(on="a,b", key="a,b", log_key="a,b")
    yield Case(
        "(ab,c) is not (a,bc)",
        two("r", ["ab", "x"], ["c", ""]),
        two("l", ["a", "ab", "", "x"], ["bc", "c", "abc", ""]),
        [(1, 0), (3, 1)],
        **same,
    )
    yield Case(
        "NULL in a part", two("r", ["a", None, "b", None], ["c", "c", None, None]),
        two("l", ["a", "a", None, None, "b"], ["c", None, "c", None, None]), [(0, 0)], **same,
    )  # fmt: skip
    narrow = numbered("r", p=pa.array([1, 2, -1], pa.int32()), q=pa.array(["x", "y", "z"]))
    wide = two("l", [1, 2, 2**64 - 1, 1], ["x", "x", "z", "y"], u)
    yield Case("parts of two widths", narrow, wide, [(0, 0)], on="a=p,b=q", key="p,q", log_key="a,b")
    named = numbered("r", p=pa.array([1, 2], i), q=pa.array(["x", "y"]))
    logs = two("l", [1, 2, 1], ["x", "y", "y"], i)
    yield Case("parts of other names", named, logs, [(0, 0), (1, 1)], on="a=p,b=q", key="p,q", log_key="a,b")
    yield Case(
        "parts crosswise",
        numbered("r", b=pa.array(["x"]), a=pa.array(["y"])),
        two("l", ["x", "y"], ["y", "x"]),
        [(0, 0)],
        on="a=b,b=a",
        key="b,a",
        log_key="a,b",
    )


def paths():
    inner = pa.struct([("id", pa.int64()), ("name", pa.string())])
    users = pa.array(
        [{"id": 1, "name": "x"}, None, {"id": None, "name": "y"}, {"id": 2, "name": None}, {"id": 3, "name": "z"}],
        inner,
    )
    logs = numbered("l", user=users, k=pa.array([9, 9, 9, 9, 9]))
    ids = numbered("r", k=pa.array([2, 1, None], pa.int32()))
    more = dict(on="user.id=k", log_key="user.id")
    yield Case("path into a struct", ids, logs, [(0, 1), (3, 0)], **more)
    yield Case("path into a struct (arrow)", ids, logs, [(0, 1), (3, 0)], log_form=".arrow", **more)
    dotted = numbered("l", **{"a.b": pa.array([1, 2]), "a": pa.array([{"b": 2}, {"b": 3}])})
    yield Case('column called "a.b"', ids, dotted, [(0, 1), (1, 0)], on='"a.b"=k', log_key='"a.b"')
    yield Case("field b of a", ids, dotted, [(0, 0)], on="a.b=k", log_key="a.b")
    yield Case(
        "a key in the IDs' struct",
        numbered("r", who=users),
        numbered("l", k=pa.array([3, 1, None])),
        [(0, 4), (1, 0)],
        on="k=who.id",
        key="who.id",
    )
    odd = 'we"ird,=col'
    quoted = '"we""ird,=col"'
    yield Case(
        "a name of separators",
        numbered("r", **{odd: pa.array([1])}),
        numbered("l", **{odd: pa.array([2, 1])}),
        [(1, 0)],
        on=quoted,
        key=quoted,
        log_key=quoted,
    )


def cases():
    for source in (integers, texts, times, numbers, identifiers, nulls, composites, paths):
        yield from source()
