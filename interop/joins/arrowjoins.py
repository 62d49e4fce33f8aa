"""Random joins of Arrow files and streams with columns of any type.

DuckDB joins the keys and the rows' numbers; pyarrow's values of these rows are what the other columns must hold. So
columns may have types that DuckDB does not know.
"""

import collections
import datetime
import decimal
import shutil
import uuid

import hypothesis
import numpy as np
import pyarrow as pa
import pyarrow.ipc

from common import properties, tables
from common.properties import Series, drawn
from joins import joins

CASES = 10  # of a type, where not all are tried

DAY = datetime.datetime(2020, 1, 1)


class Tagged(pa.ExtensionType):
    """An extension type over a dictionary, which nobody else knows."""

    def __init__(self):
        super().__init__(pa.dictionary(pa.int16(), pa.string()), "bloomjoin.tagged")

    def __arrow_ext_serialize__(self):
        return b"all"

    @classmethod
    def __arrow_ext_deserialize__(cls, _storage, _serialized):
        return cls()

    def __hash__(self):
        return hash(self.extension_name)


pa.register_extension_type(Tagged())

WORDS = ["", "p", "twelve bytes", "thirteen long", "é" * 200]
CODES = pa.dictionary(pa.int16(), pa.string())
PAIR = pa.struct([("a", pa.int8()), ("b", pa.string())])
PAIRS = [{"a": 1, "b": "x"}, {"a": None, "b": "y"}, {"a": 2, "b": None}, {"a": None, "b": None}]
MOMENTS = [DAY + datetime.timedelta(seconds=i * 86_399) for i in range(-3, 6)]
SPANS = [pa.MonthDayNano([i, -i, i * 1000]) for i in range(-2, 5)]
CENTS = [decimal.Decimal(i * 79).scaleb(-2) for i in range(-4, 5)]
LISTS = [[], [1], [2, None], [None], [4, 4, 4]]

# Types and values, beside which there are NULLs. Each is drawn as often as the others.
TYPES = {
    pa.string(): WORDS, pa.large_string(): WORDS, pa.string_view(): WORDS, pa.binary(): [w.encode() for w in WORDS],
    pa.large_binary(): [b"", b"\x00\xff"], pa.binary_view(): [b"", b"\x00\xff", b"x" * 40], pa.binary(2): [b"ab", b"\x00\x00"],
    pa.bool_(): [False, True], pa.null(): [None], pa.uint64(): [0, 2**64 - 1], pa.int8(): [-128, 127], pa.float32(): [0.5, float("inf")],
    pa.float16(): [np.float16(1.5), np.float16(-0.25)],
    pa.decimal128(9, 2): CENTS, pa.decimal128(38, 5): CENTS, pa.decimal256(50, 3): CENTS, pa.decimal256(10, 2): CENTS,
    pa.month_day_nano_interval(): SPANS, pa.duration("s"): [datetime.timedelta(seconds=i) for i in range(-2, 5)],
    pa.duration("ns"): [datetime.timedelta(microseconds=i) for i in range(-2, 5)],
    pa.date32(): [m.date() for m in MOMENTS], pa.date64(): [m.date() for m in MOMENTS],
    pa.time32("s"): [m.time() for m in MOMENTS], pa.time64("us"): [m.time() for m in MOMENTS],
    pa.timestamp("s"): MOMENTS, pa.timestamp("s", "UTC"): MOMENTS, pa.timestamp("ms", "Europe/Rome"): MOMENTS, pa.timestamp("us"): MOMENTS,
    PAIR: PAIRS, pa.struct([("s", PAIR), ("l", pa.list_(pa.int8()))]): [{"s": p, "l": v} for p, v in zip(PAIRS, LISTS, strict=False)],
    pa.list_(pa.int16()): LISTS, pa.large_list(pa.string()): [[], ["a", None], WORDS], pa.list_(PAIR): [[], PAIRS, [None]],
    pa.list_(pa.list_(pa.int32())): [[], LISTS, [None, []]], pa.list_(pa.int16(), 2): [[1, None], [2, 3]], pa.list_(pa.string(), 1): [["a"], [None]],
    pa.map_(pa.string(), pa.int32()): [[], [("a", 1), ("b", None)]], pa.map_(pa.int8(), pa.list_(pa.string())): [[(1, WORDS), (2, None)], []],
    CODES: WORDS, pa.dictionary(pa.int8(), pa.int64()): [7, -7],
    pa.list_(CODES): [[], ["a", None], WORDS], pa.struct([("d", CODES), ("e", pa.int8())]): [{"d": w, "e": 1} for w in (*WORDS, None)],
    pa.list_(pa.string_view()): [[], WORDS], pa.struct([("v", pa.binary_view())]): [{"v": b"x" * 13}, {"v": None}],
    pa.list_(pa.month_day_nano_interval()): [[], SPANS, [None]], pa.list_view(pa.int16()): LISTS,
    pa.uuid(): [uuid.UUID(int=i) for i in range(5)], pa.json_(): ["{}", "[1]"], pa.bool8(): [True, False], Tagged(): WORDS,
    pa.list_(pa.uuid()): [[], [uuid.UUID(int=7), None]], pa.struct([("u", pa.uuid())]): [{"u": uuid.UUID(int=7)}, {"u": None}],
}  # fmt: skip

# The keys that both sides may have.
KEYS = ("int", "uint", "text", "binary", "fixed", "decimal", "date", "instant")


def array(values, kind):
    """Like pa.array, for extension types, too, at every level."""
    if isinstance(kind, pa.BaseExtensionType):
        if kind == pa.uuid():
            values = [None if v is None else v.bytes for v in values]
        if kind == pa.bool8():
            values = [None if v is None else int(v) for v in values]
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
    if pa.types.is_list(kind) and kind.value_type == pa.uuid():
        return pa.array([v and [u and u.bytes for u in v] for v in values], pa.list_(pa.binary(16))).cast(kind)
    if pa.types.is_struct(kind) and kind.field(0).type == pa.uuid():
        inner = array([v and v["u"] for v in values], pa.uuid())
        return pa.StructArray.from_arrays([inner], fields=list(kind), mask=pa.array([v is None for v in values], pa.bool_()))
    return pa.array(values, kind)


def spans(kind):
    """Whether intervals, which Parquet cannot hold, are in a type."""
    return "interval" in str(kind)


class Case:
    """Two tables, how they are stored, and a join of them, drawn."""

    def __init__(self, d, kind, strategies):
        self.kind = kind
        n, m = d.choice([1, 10, 40]) * d.number(0, 12), d.choice([1, 1, 10]) * d.number(0, 12)
        few = d.choice([5, 20, 100])  # distinct values in each part of the key
        log, ids, self.pairs = {}, {}, []
        for i, name in enumerate(d.several(KEYS, 1, d.choice([1, 1, 2]))):
            forms, value = joins.KEYS[name]
            give = lambda rows: [None if v is None else value(v) for v in rows]  # noqa: E731, B023
            a, b = f"k{i}", d.choice([f"k{i}", f"i{i}"])
            log[a], ids[b] = pa.array(give(Series(d, few).rows(n)), d.choice(forms)), pa.array(give(Series(d, few).rows(m)), d.choice(forms))
            self.pairs.append((a, b))
        log["n"], ids["m"] = pa.array(range(n), pa.int64()), pa.array(range(m), pa.int64())
        for side, rows in ((log, n), (ids, m)):
            for name in d.some(["v", "w", "v_ids", "x"], 0, 3):
                type_ = d.choice(TYPES)
                values = TYPES[type_]
                side[name] = array([None if i is None else values[i] for i in Series(d, len(values)).rows(rows)], type_)
        self.log, self.ids = pa.table(log), pa.table(ids)
        self.stored = [self.form(d, ("-", ".arrow", ".arrows", ".parquet"), self.log), self.form(d, (".arrow", ".arrows", ".parquet"), self.ids)]
        once = self.stored[0][0] == "-"
        self.ways = [(s, d.choice([1, 2, 4])) for s in d.some([s for s in strategies if not once or s in ("lookup", "auto")], 1, 2)]
        self.out = d.choice(["x.arrow", "-", "x.parquet"] if once else ["x.arrow", "-", "x.parquet", "arrows/", "parquets/"])

    def form(self, d, endings, table):
        """The ending, the number of files, the rows of a batch, and whether some batches are empty."""
        # To write Parquet, pyarrow cannot take some of the rows of nested views.
        if any(spans(f.type) or pa.types.is_nested(f.type) and "binary_view" in str(f.type) or "<item: string_view" in str(f.type) for f in table.schema):
            endings = [e for e in endings if e != ".parquet"]
        ending = d.choice(endings)
        return ending, 1 if ending == "-" else d.choice([1, 1, 3]), d.choice([1000, 1, 7, 50]), d.chance(30)

    @property
    def on(self):
        return ",".join(a if a == b else f"{a}={b}" for a, b in self.pairs)

    def __repr__(self):
        show = lambda t: f"{t.num_rows} rows of {', '.join(f'{f.name}: {f.type}' for f in t.schema)}\n      {t.slice(0, 12).to_pylist()}"  # noqa: E731
        return f"{self.kind} join on {self.on}, {self.ways} into {self.out}\n    log, as {self.stored[0]}: {show(self.log)}\n    IDs, as {self.stored[1]}: {show(self.ids)}\n"

    def store(self, t):
        """Writes both tables: the arguments for them, and standard input."""
        places, stdin = [], b""
        for table, name, (ending, files, rows, empty) in zip((self.log, self.ids), ("logs", "ids"), self.stored, strict=True):
            if ending == "-":
                places.append("-")
                stdin = stream(table, rows, empty)
                continue
            places.append(t.path(name))
            places[-1].mkdir()
            for i in range(files):
                lo, hi = table.num_rows * i // files, table.num_rows * (i + 1) // files
                part, path = table.slice(lo, hi - lo), places[-1] / f"{i}{ending}"
                if ending == ".parquet":
                    tables.write(part, path, row_group_size=rows)
                else:
                    path.write_bytes(stream(part, rows, empty, ending == ".arrow"))
        return places, stdin

    def beyond(self):
        """Whether Parquet cannot hold a column of the answer."""
        sides = [self.log] + ([self.ids] if self.kind not in ("semi", "anti") else [])
        return any(spans(f.type) for side in sides for f in side.schema)


def stream(table, rows, empty, file=False):
    """A table in batches of some rows, as an Arrow stream or file."""
    sink = pa.BufferOutputStream()
    with (pa.ipc.new_file if file else pa.ipc.new_stream)(sink, table.schema) as out:
        for batch in table.to_batches(max_chunksize=rows):
            if empty:
                out.write_batch(batch.slice(0, 0))
            out.write_batch(batch)
    return sink.getvalue().to_pybytes()


def plain(kind):
    """The words for a type, without dictionaries, which an output may have or not, and with lists in place of list views."""
    words = str(kind.storage_type if isinstance(kind, Tagged) else kind).replace(", indices=int16", "").replace(", indices=int32", "").replace(", indices=int8", "").replace(", ordered=0", "")
    while (at := words.find("dictionary<values=")) >= 0:
        end = words.index(">", at)
        words = words[:at] + words[at + len("dictionary<values=") : end] + words[end + 1 :]
    return words.replace("list_view<", "list<")


def differences(oracle, case, got):
    """What is unlike between an answer and what it must be; empty if nothing is."""
    log, ids, kind = case.log, case.ids, case.kind
    _, names = joins.question(log.column_names, ids.column_names, case.pairs, kind)
    if got.column_names != names:
        return f"columns {got.column_names}, want {names}"
    where = " and ".join(f'l."{a}" = r."{b}"' for a, b in case.pairs)
    one = kind in ("semi", "anti")
    want = oracle.ask(f"select l.n{'' if one else ', r.m'} from l {kind} join r on {where}")
    rows = list(zip(*(got.column(c).to_pylist() for c in (("n",) if one else ("n", "m"))), strict=True))
    lacks, more = collections.Counter(want), collections.Counter(rows)
    if lacks != more:
        return f"{len(rows)} rows, want {len(want)}; missing {list((lacks - more).elements())[:3]}, too many {list((more - lacks).elements())[:3]}"
    shared = {a: b for a, b in case.pairs if a == b}
    sides = [(log, c, 0) for c in log.column_names] + ([] if one else [(ids, c, 1) for c in ids.column_names if c not in shared])
    parquet = case.out.startswith(("x.parquet", "parquets"))
    for place, (side, c, at) in enumerate(sides):
        values = side.column(c).to_pylist()
        of_id = ids.column(c).to_pylist() if at == 0 and c in shared else None
        expected = [values[r[at]] if r[at] is not None else of_id[r[1]] if of_id else None for r in rows]
        found = got.column(place)
        unlike = [(i, f, e) for i, (f, e) in enumerate(zip(found.to_pylist(), expected, strict=True)) if f != e and repr(f) != repr(e)]
        if unlike:
            wrong = unlike[0]
            return f"column {names[place]}, {side.schema.field(c).type} as {found.type}: row {wrong[0]} is {wrong[1]!r}, want {wrong[2]!r}"
        if not parquet and case.stored[at][0] != ".parquet" and plain(found.type) != plain(side.schema.field(c).type):
            return f"column {names[place]} is {found.type}, want {side.schema.field(c).type}"
    return ""


def answer(case, out, r):
    """The table that a run has written.

    An output with plain values in place of a dictionary keeps the name of an extension type over it, which pyarrow, if
    it knows the type, then refuses.
    """
    pa.unregister_extension_type(Tagged().extension_name)
    try:
        return read(case, out, r)
    finally:
        pa.register_extension_type(Tagged())


def read(case, out, r):
    if case.out == "-":
        with pa.ipc.open_stream(r.out) as f:
            return f.read_all()
    if case.out.startswith("x."):
        return tables.read(out)
    found = [tables.read(p) for p in tables.data_files(out)]
    return pa.concat_tables(found, promote_options="permissive") if found else None


def randomly(t):
    """Tables of any types in Arrow files and streams: a join by any strategy has DuckDB's rows, and the values of pyarrow."""
    oracle, strategies, seen = joins.Oracle(), joins.known(t), collections.Counter()
    for kind in joins.TYPES:
        of_type(t, kind, oracle, strategies, seen)
    least = {"rows": 0.4, "log of -": 0.1, "log of .arrow": 0.1, "log of .arrows": 0.1, "IDs of .arrow": 0.1, "IDs of .arrows": 0.1, "into -": 0.1, "into x.arrow": 0.1, "into x.parquet": 0.1, "empty batches": 0.1}
    properties.varied(t, seen, least)


def of_type(t, kind, oracle, strategies, seen):
    @hypothesis.given(drawn(Case, kind, strategies))
    def as_duckdb(case):
        seen["cases"] += 1
        one(t, oracle, seen, case)

    properties.hold(t, f"{kind}, of Arrow, as DuckDB and pyarrow", as_duckdb, CASES, 300)


def one(t, oracle, seen, case):
    (log, ids), stdin = case.store(t)
    numbers = lambda table, at, n: table.select([*dict.fromkeys(p[at] for p in case.pairs), n])  # noqa: E731
    oracle.take(numbers(case.log, 0, "n"), numbers(case.ids, 1, "m"), case.pairs)
    figures, rows, first = oracle.figures(), 0, None
    out = "-" if case.out == "-" else t.path(case.out.rstrip("/"))
    try:
        for strategy, threads in case.ways:
            how = ["--type", case.kind, "--strategy", strategy, "--threads", threads, "--json"]
            if case.out.endswith("/"):
                out.mkdir()
                how += ["--format", "arrow" if case.out == "arrows/" else "parquet"]
            refused = case.beyond() and case.out in ("x.parquet", "parquets/")
            r = t.run("join", "--ids", ids, "--on", case.on, *how, "-o", out, log, stdin=stdin, want=None, opens=False)
            if refused:
                assert r.code == 1 and "unsupported" in r.text and "cannot be written to Parquet" in r.text, str(r)
                assert case.out == "parquets/" or not out.exists(), "an output of a join that failed"
                seen["refused by Parquet"] += 1
            else:
                assert r.code == 0, str(r)
                got = answer(case, out, r)
                if got is None:  # a directory without files
                    wrong = oracle.count(case.kind) and "no rows"
                else:
                    wrong = differences(oracle, case, got)
                assert not wrong, f"{strategy}: {wrong}"
                whole = r.out if out == "-" else None if out.is_dir() else out.read_bytes()
                assert first in (None, whole), f"{strategy}: not the bytes of {case.ways[0][0]}"
                first = whole
                rows = 0 if got is None else got.num_rows
                bad = joins.unlike(r.json, figures | {"rows_out": rows})
                assert not bad and strategy in ("auto", r.json["strategy"]), f"{strategy}: strategy {r.json['strategy']}, {bad}"
            remove(out)
    finally:
        for path in (log, ids, out):
            remove(path)
    held = {
        "rows": rows, f"log of {case.stored[0][0]}": True, f"IDs of {case.stored[1][0]}": True, f"into {case.out}": True,
        "empty batches": any(s[3] and s[0] != ".parquet" for s in case.stored),
    }  # fmt: skip
    seen.update(what for what, held in held.items() if held)


def remove(path):
    if path == "-":
        return
    shutil.rmtree(path.with_name(path.name + ".bloomjoin"), ignore_errors=True)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def coded(values):
    """A dictionary of these values: one, and NULL."""
    return pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), values)


NO_PARQUET = "cannot be written to Parquet: there is no Parquet type for it"
NOT_HELD = "cannot be held in memory: its layout"

# Rare types: two values, and what is said where they are refused, into Arrow and into Parquet. Empty: they come through.
RARE = {
    "decimal32": (pa.array([decimal.Decimal("1.5"), None], pa.decimal32(7, 2)), "", ""),
    "decimal64": (pa.array([decimal.Decimal("1.5"), None], pa.decimal64(12, 2)), "", ""),
    "negative scale": (pa.array([decimal.Decimal(100), None], pa.decimal128(5, -2)), "", "cannot be written to Parquet: its precision and scale"),
    "run-end encoded": (pa.array(["a", None], pa.run_end_encoded(pa.int32(), pa.string())), NOT_HELD, NOT_HELD),
    "sparse union": (pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])]), NOT_HELD, NOT_HELD),
    "dense union": (pa.UnionArray.from_dense(pa.array([0, 0], pa.int8()), pa.array([0, 1], pa.int32()), [pa.array([1, 2])]), NOT_HELD, NOT_HELD),
    "large list view": (pa.array([["a", None], None], pa.large_list_view(pa.string())), "", ""),
    "struct without fields": (pa.array([{}, None], pa.struct([])), "", "cannot be written to Parquet: a struct without fields"),
    "fixed-size list of 0": (pa.array([[], None], pa.list_(pa.int8(), 0)), "", ""),
    "fixed-size binary of 0": (pa.array([b"", None], pa.binary(0)), "", ""),
    "dictionary of floats": (coded(pa.array([1.5])), "", ""),
    "dictionary of booleans": (coded(pa.array([True])), "", ""),
    "dictionary of NULLs": (coded(pa.array([None])), "", ""),
    "dictionary of views": (coded(pa.array(["thirteen long"], pa.string_view())), "", ""),
    "dictionary of structs": (coded(pa.array([{"a": 1}])), "", ""),
    "dictionary of lists": (coded(pa.array([["a", None]])), "", ""),
    "dictionary of decimal256": (coded(pa.array([decimal.Decimal("1.5")], pa.decimal256(50, 2))), "", ""),
    "dictionary of intervals": (coded(pa.array(SPANS[:1])), "", NO_PARQUET),
    "dictionary by uint64": (pa.array(["a", None], pa.dictionary(pa.uint64(), pa.string())), "", ""),
    "ordered dictionary": (pa.array(["a", None], pa.dictionary(pa.int8(), pa.string(), ordered=True)), "", ""),
    "map to dictionaries": (pa.array([[("a", "b")], None], pa.map_(pa.string(), CODES)), "", ""),
}  # fmt: skip


def rarely(t):
    """Full joins of columns of rare types, on both sides: all values come through, or the type is refused by name."""
    for name, (values, *refused) in RARE.items():
        places = [t.path("log.arrow"), t.path("ids.arrow")]
        for path, keys in zip(places, ([1, 2], [1, 3]), strict=True):
            tables.write(pa.table({"k": keys, "v": values}), path)
        a, b = values.to_pylist()
        for ending, why in zip((".arrow", ".parquet"), refused, strict=True):
            out = t.path(f"out{ending}")
            r = t.run("join", "--ids", places[1], "--on", "k", "--type", "full", "-o", out, places[0], want=None, opens=False)
            if why:
                t.ok(f"{name} into {ending} is refused", r.code == 1 and "unsupported" in r.text and why in r.text and not out.exists(), str(r))
            else:
                t.equal(f"{name} into {ending}", r.code or [list(row.values()) for row in tables.read(out).to_pylist()], [[1, a, a], [2, b, None], [3, None, b]])


# Values of keys by class, and the types that both sides have in turn.
FORMS = {
    "text": (WORDS, [pa.string(), pa.large_string(), pa.string_view(), CODES]),
    "binary": ([w.encode() for w in WORDS], [pa.binary(), pa.large_binary(), pa.binary_view()]),
    "decimal": (CENTS, [pa.decimal128(9, 2), pa.decimal256(50, 3), pa.decimal64(12, 4)]),
    "timestamp": (MOMENTS, [pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("ns")]),
    "time": ([m.time() for m in MOMENTS], [pa.time32("s"), pa.time64("us")]),
    "duration": (TYPES[pa.duration("s")], [pa.duration("s"), pa.duration("ns")]),
    "date": (list(dict.fromkeys(m.date() for m in MOMENTS)), [pa.date32(), pa.date64()]),
    "fixed": ([bytes([i]) * 16 for i in range(5)], [pa.binary(16), pa.dictionary(pa.int8(), pa.binary(16))]),
}


def keyed(t):
    """Every type of key on both sides, in every type of join: the rows that a dict finds."""
    for name, (values, forms) in FORMS.items():
        mine, theirs = [*values[:-1], None], [*values[1:], None]
        for kind in joins.TYPES:
            wrong = [f"{a} with {b}: {bad}" for a in forms for b in forms if (bad := unlike(t, kind, pa.array(mine, a), pa.array(theirs, b)))]
            t.ok(f"{name}: {kind}", not wrong, "; ".join(wrong))


def unlike(t, kind, mine, theirs):
    """What a join of unique keys has that a dict has not; empty if nothing."""
    places, out = [t.path("log.arrow"), t.path("ids.arrow")], t.path("out.arrow")
    for path, keys, number in zip(places, (mine, theirs), "nm", strict=True):
        tables.write(pa.table({"k": keys, number: range(len(keys))}), path)
    r = t.run("join", "--ids", places[1], "--on", "k", "--type", kind, "--force", "-o", out, places[0], want=None, opens=False)
    if r.code:
        return str(r)
    log, ids = mine.to_pylist(), theirs.to_pylist()
    found = [(k, n, ids.index(k) if k is not None and k in ids else None) for n, k in enumerate(log)]
    rows = [f for f in found if (f[2] is None) == (kind == "anti") or kind in ("left", "full")]
    if kind in ("right", "full"):
        rows += [(k, None, m) for m, k in enumerate(ids) if k is None or k not in log]
    want = [f[:2] for f in rows] if kind in ("semi", "anti") else rows
    got = [tuple(row.values()) for row in tables.read(out).to_pylist()]
    return "" if sorted(map(repr, got)) == sorted(map(repr, want)) or collections.Counter(got) == collections.Counter(want) else f"{got}, want {want}"


def replaced(t):
    """Streams whose dictionaries grow and are replaced, into every form: all rows."""
    words = [["a", "b"], ["a", "b", "c"], ["z", "a"]]
    batches = [pa.record_batch({"k": [2 * i, 2 * i + 1], "d": pa.DictionaryArray.from_arrays(pa.array([len(w) - 1, 0], pa.int8()), w)}) for i, w in enumerate(words)]
    want = [row for b in batches for row in b.to_pylist()]
    for deltas in (False, True):
        log, ids = t.path("log.arrows"), t.path("ids.csv")
        options = pyarrow.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)
        with pyarrow.ipc.new_stream(log, batches[0].schema, options=options) as out:
            for b in batches:
                out.write_batch(b)
        ids.write_text("k\n" + "".join(f"{row['k']}\n" for row in want))
        for verb in (["join", "--ids", ids, "--on", "k", "--type", "semi"], ["join", "--ids", ids, "--on", "k", "--type", "left"], ["dedup", "--key", "k"]):
            for ending in (".arrow", ".parquet"):
                out = t.path(f"out{ending}")
                t.run(*verb, "--force", "-o", out, log, opens=False)
                t.equal(f"{verb[0]} {verb[-1]} into {ending}{', deltas' if deltas else ''}", tables.read(out).to_pylist(), want)


def run(t, _repository):
    t.group("joins of Arrow, types of keys", keyed)
    t.group("joins of Arrow, dictionaries that change", replaced)
    t.group("joins of Arrow random", randomly)
    t.group("joins of Arrow, rare types", rarely)
