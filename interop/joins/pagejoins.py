"""Joins of every type from Parquet to Parquet, column by column: an answer is the log's columns as they were, and the IDs'.

The oracle is this file: which row of the log goes with which ID is found in Python dicts, and both sides' rows are taken
from what another reader (pyarrow, or DuckDB where pyarrow fails) makes of the inputs. So values, types, NULLs, duplicates
and the order of the rows are compared, and the Parquet schema, element by element, with that of the inputs.
"""

import concurrent.futures
import decimal
import pathlib
import random
import traceback

import pandas
import pyarrow as pa
import pyarrow.compute as pc

from common import harness, rawfile, tables
from files import identity, pages
from joins import joins, joinways, oddfiles, otherreaders, wholecopies
from writers import writers

HERE = pathlib.Path(__file__).parent
TYPES = joins.TYPES
KEEPS_LOG, KEEPS_IDS = ("left", "full"), ("right", "full")


# ---- which rows an answer has


def plain(column):
    """A key column's values as dict keys that are equal where the keys are; None for NULL."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([c.storage for c in column.chunks], column.type.storage_type)
    t, kind = pa.types, column.type
    if t.is_dictionary(kind):
        return plain(column.cast(kind.value_type))
    if t.is_timestamp(kind):
        per = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[kind.unit]
        return [None if v is None else v * per for v in column.cast(pa.int64()).to_pylist()]
    if t.is_duration(kind) or t.is_time64(kind) or t.is_date64(kind):
        return column.cast(pa.int64()).to_pylist()
    if t.is_time32(kind):
        return column.cast(pa.int32()).to_pylist()
    if t.is_floating(kind):
        return [None if v is None else "NaN" if v != v else float(v) + 0.0 for v in column.to_pylist()]
    return column.to_pylist()


def pairs(log, ids, kind):
    """For each row of the answer, in order, the rows of the log and of the IDs; None for none. Takes the keys."""
    have = {}
    for j, v in enumerate(ids):
        if v is not None:
            have.setdefault(v, []).append(j)
    answer = []
    for i, v in enumerate(log):
        found = have.get(v, []) if v is not None else []
        if kind == "semi":
            answer += [(i, None)] * bool(found)
        elif kind == "anti":
            answer += [(i, None)] * (not found)
        else:
            answer += [(i, j) for j in found]
            if not found and kind in KEEPS_LOG:
                answer.append((i, None))
    if kind in KEEPS_IDS:
        seen = set(log)
        answer += [(None, j) for j, v in enumerate(ids) if v is None or v not in seen]
    return [i for i, _ in answer], [j for _, j in answer]


def taken(table, rows):
    """Rows of a table by their numbers; a row of NULLs for None."""
    at = pa.array(rows, pa.int64())
    return [picked(c, at) for c in table.columns]


def picked(column, at):
    try:
        return column.take(at)
    except (pa.ArrowNotImplementedError, pa.ArrowKeyError):  # views, for one
        values = column.to_pylist()
        return pa.chunked_array([pa.array([None if r is None else values[r] for r in at.to_pylist()], column.type)])


class Want:
    """The answer of a join as a reader should have it: names, columns, and which of them may be NULL.

    The types of the IDs' columns may be others that are stored alike: of them an answer keeps what Parquet itself tells.
    Log and ids are what that reader makes of the inputs; shared: key columns with one name on both sides.
    """

    def __init__(self, kind, log, ids, rows, shared=(), suffix="_ids"):
        self.rows, self.theirs = len(rows[0]), set()  # theirs: names of the IDs' columns
        self.names, self.columns, self.nullable = list(log.column_names), taken(log, rows[0]), []
        for i, f in enumerate(log.schema):
            self.nullable.append(f.nullable or kind in KEEPS_IDS)
            if f.name in shared and kind in KEEPS_IDS:
                self.columns[i] = either(self.columns[i], picked(ids.column(f.name), pa.array(rows[1], pa.int64())))
        if kind in ("semi", "anti"):
            return
        for f, column in zip(ids.schema, taken(ids, rows[1]), strict=True):
            if f.name not in shared:
                self.names.append(free(f.name, self.names, suffix))
                self.theirs.add(self.names[-1])
                self.columns.append(column)
                self.nullable.append(f.nullable or kind in KEEPS_LOG)

    def differences(self, got, nullable=True):
        """What is unlike in what a reader has made of an output, as one text. Nullable: also which columns may be NULL."""
        if got.column_names != self.names:
            return f"columns {got.column_names}, want {self.names}"
        if got.num_rows != self.rows:
            return f"{got.num_rows} rows, want {self.rows}"
        wrong = []
        for f, column, want, null in zip(got.schema, got.columns, self.columns, self.nullable, strict=True):
            if column.type != want.type and f.name in self.theirs and writers.stored(column.type) == writers.stored(want.type):
                column, want = (c.cast(writers.stored(c.type)) for c in (column, want))
            if column.type != want.type:
                wrong.append(f"{f.name}: type {column.type}, want {want.type}")
            elif nullable and f.nullable != null:
                wrong.append(f"{f.name}: {'OPTIONAL' if f.nullable else 'REQUIRED'}, want the other")
            elif d := unlike(column, want):
                wrong.append(f"{f.name}: {d}")
        return "; ".join(wrong[:4])


def either(first, second):
    """The first column, and where it is NULL the second, whose type may be another."""
    if first.type == second.type and not pa.types.is_nested(first.type):
        return pc.if_else(first.is_valid(), first, second)
    values = [b if a is None else a for a, b in zip(first.to_pylist(), second.to_pylist(), strict=True)]
    return pa.chunked_array([pa.array(values, first.type)])


def free(name, names, suffix="_ids"):
    while name in names:
        name += suffix
    return name


def unlike(got, want):
    """Where two columns of one type differ; NaN is NaN."""
    if got.equals(want):
        return ""
    for i, (a, b) in enumerate(zip(listed(got), listed(want), strict=True)):
        if repr(a) != repr(b):
            return f"row {i}: {repr(a)[:150]}, want {repr(b)[:150]}"
    return ""


def listed(column):
    if pa.types.is_timestamp(column.type):  # Python has years from 1 to 9999 only
        column = column.cast(pa.int64())
    try:
        return column.to_pylist()
    except (ValueError, OverflowError):
        return [str(v) for c in column.chunks for v in c]


# ---- schemas

NAME, REPETITION, FIELD_ID = 4, 3, 9  # of a SchemaElement


def columns(f):
    """The top-level columns of a file: the schema elements of each, and the orders of its leaves if the file has any."""
    orders = f.footer.get(7, [])
    return [(part, [orders[i] for i in leaves if orders]) for part, leaves in f.columns()]


def optional(part, may):
    """A column's elements; REQUIRED becomes OPTIONAL if it may be NULL."""
    top = part[0]
    return [{**top, REPETITION: 1} if may and top[REPETITION] == 0 else top, *part[1:]]


def schema_wrong(out, log, ids, kind, shared=()):
    """How the Parquet schema of an output differs from those of the log and of the IDs, if they are Parquet files (or None)."""
    got = list(columns(out))
    want = [(optional(p, kind in KEEPS_IDS), o) for p, o in columns(log)]
    names = [p[0][NAME] for p, _ in want]
    if kind not in ("semi", "anti") and ids is not None:
        for part, orders in columns(ids):
            if part[0][NAME].decode() in shared:
                continue
            bare = [{k: v for k, v in e.items() if k != FIELD_ID} for e in optional(part, kind in KEEPS_LOG)]
            bare[0][NAME] = free(bare[0][NAME], names, b"_ids")
            names.append(bare[0][NAME])
            want.append((bare, orders))
    if ids is None or kind in ("semi", "anti"):
        got = got[: len(want)]
    wrong = [d for (a, oa), (b, ob) in zip(got, want, strict=False) if (d := element_wrong(a, b) or oa != (ob or oa) and ob.count(TYPE_ORDER) == len(ob) and f"{a[0][NAME]}: column orders {oa}, want {ob}")]
    if len(got) != len(want):
        wrong.append(f"{len(got)} columns, want {len(want)}")
    return wrong


TYPE_ORDER = {1: {}}  # a ColumnOrder; where the log has another, bounds were not kept, and the output may have this one


def element_wrong(got, want):
    """The first schema element of a column that is not as it should be."""
    if len(got) != len(want):
        return f"{want[0][NAME]}: {got}, want {want}"
    return next((f"{want[0][NAME]}: {g}, want {w}" for g, w in zip(got, want, strict=True) if g != w), "")


# Entries that describe a file's columns, and so are wrong where columns are added; ARROW:schema is written anew.
DESCRIBE = {b"ARROW:schema", b"pandas", b"org.apache.spark.sql.parquet.row.metadata", b"iceberg.schema"}
AVRO = {b"parquet.avro.schema", b"avro.schema"}


def metadata_wrong(out, log, kind):
    if kind in ("semi", "anti"):
        want = log.metadata
        return [] if out.metadata == want else [f"{out.metadata}, want {want}"[:500]]
    want = [p for p in log.metadata if p[0] not in DESCRIBE | AVRO]
    got = [p for p in out.metadata if p[0] != b"ARROW:schema" and p[0] not in AVRO]
    return [] if got == want else [f"metadata {got}, want {want}"]


# ---- one join


class Log:
    """A file, mostly a log, and what a reader makes of it: pyarrow, else DuckDB; table None: neither reads it."""

    def __init__(self, path):
        self.path, self.raw = path, rawfile.File(path)
        self.bodies = self.raw.bodies()
        self.reader, (self.table, self.why) = "pyarrow", identity.by_pyarrow(path)
        if self.table is None:
            self.reader, (self.table, _) = "DuckDB", identity.by_duckdb(path)

    def read(self, out):
        return (identity.by_pyarrow if self.reader == "pyarrow" else identity.by_duckdb)(out)


def made_ids(keys, rng, most=300):
    """IDs of a key column's values: half of them, one twice, one NULL and one that no row has; two columns of payload."""
    first = {}
    for i, v in enumerate(plain(keys)):
        if v is not None:
            first.setdefault(v, i)
    rows = [r for n, r in enumerate(first.values()) if n % 2 == 0]
    rows = rng.sample(rows, min(most, len(rows)))
    rows = [*rows, *rows[:1], None]
    column = storage(picked(keys, pa.array(rows, pa.int64())))
    if (absent := identity.absent(column.type)) is not None:
        unknown = next((v for v in absent if plain(pa.chunked_array([pa.array([v.as_py()], absent.type)]))[0] not in first), None)
        if unknown is not None:
            column = pa.chunked_array([*column.chunks, pa.array([unknown.as_py()], absent.type).cast(column.type)])
    n = len(column)
    deep = [None if i % 5 == 3 else [None if i % 7 == 2 else {"a": i, "b": "x" * (i % 4)} for _ in range(i % 3)] for i in range(n)]
    return pa.table({
        "the id": column, "payload": pa.array([None if i % 4 == 1 else i for i in range(n)]),
        "deep": pa.array(deep, pa.list_(pa.struct([("a", pa.int64()), ("b", pa.string())]))),
    })  # fmt: skip


def storage(column):
    """A key column as plain values: without extension types, dictionaries and views."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return storage(pa.chunked_array([c.storage for c in column.chunks], kind.storage_type))
    if pa.types.is_dictionary(kind):
        return storage(column.cast(kind.value_type))
    return {pa.string_view(): column.cast(pa.string()), pa.binary_view(): column.cast(pa.binary())}[kind] if kind in (pa.string_view(), pa.binary_view()) else column


def join(t, kind, log, idpath, on, *how, name="out.parquet"):
    """Runs a join: the output, and what the tool said."""
    out = identity.fresh(t, name)
    where = [log] if isinstance(log, pathlib.PurePath) else log
    return out, t.run("join", "--ids", idpath, "--on", on, "--type", kind, *how, "--json", "-o", out, *where, want=None)


def problems(out, kind, log, ids, rows, shared=(), idfile=None):
    """All that is wrong with an output, as a list of sentences. Ids: a table; idfile: the rawfile.File it is in, if any."""
    got, why = log.read(out)
    if why:
        return [f"{log.reader}: {why}"]
    raw, wrong = rawfile.File(out), []
    if d := Want(kind, log.table, ids, rows, shared).differences(got, log.reader == "pyarrow"):
        wrong.append(f"{log.reader}: {d}")
    wrong += [f"schema: {w}" for w in schema_wrong(raw, log.raw, idfile, kind, shared)[:3]]
    wrong += metadata_wrong(raw, log.raw, kind)
    wrong += [f"unsound: {w}" for w in rawfile.sound(raw, log.bodies)[:3]]
    if log.reader == "pyarrow":
        wrong += [f"bounds: {w}" for w in pages.page_bounds(raw, got, log.bodies)[:3]]
    return wrong


def unchecked(t, *outs):
    """What the tool's own --check says of outputs."""
    r = t.run("inspect", "--check", *outs, want=None)
    return [] if r.code == 0 else [f"inspect: {r}"]


def one(t, name, log, path, kinds, rng):
    """Joins a log on one of its columns. Returns why the tool refused, if it did."""
    keys = identity.values_at(log.table, path)
    ids = made_ids(keys, rng)
    idpath = tables.write(ids, identity.fresh(t, "ids.parquet"), compression="snappy")
    if log.reader == "DuckDB":
        ids, _ = identity.by_duckdb(idpath)
    idfile = rawfile.File(idpath)
    mine, theirs = plain(keys), plain(ids.column("the id"))
    for kind in kinds:
        out, r = join(t, kind, log.path, idpath, f'{identity.quoted(path)}="the id"', "--threads", rng.choice([1, 2]))
        label = f"{name}: {kind} on {identity.quoted(path)}"
        if r.code:
            if "unsupported" in r.text:
                return r.text.strip().splitlines()[0]
            t.ok(label, False, str(r))
            continue
        wrong = problems(out, kind, log, ids, pairs(mine, theirs, kind), idfile=idfile)
        if kind == "full" or harness.FULL:
            wrong += unchecked(t, out)
        t.ok(label, not wrong, " | ".join(wrong)[:1500])
        out.unlink()
    return None


# ---- the corpora

# Its values take two GB; its keys are of a year that pyarrow and DuckDB each make another one of.
LEFT_OUT = ("large_string_map.brotli.parquet", identity.MISREAD)


def corpora(t):
    """Every valid file, joined on its columns."""
    tally, files = identity.Tally(), []
    for name, path in identity.corpus(t.shared):
        base = pathlib.Path(name).name
        alike = "shredded_variant" in name and not harness.FULL and random.Random(name).random() > 0.05
        if base in LEFT_OUT or name == "flights" or alike:
            tally.add("not tried: too large, misread, or much like others", name)
        else:
            files.append((name, path))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for _ in pool.map(lambda f: attempt(t, f[0], corpus_file, f[1], tally), files):
            pass
    tally.print()


def attempt(t, name, function, *args):
    """Calls function(t, name, *args). What it raises is one failed check."""
    try:
        function(t, name, *args)
    except (AssertionError, pa.ArrowException, ValueError, KeyError, TypeError, decimal.DecimalException) as e:
        here = [f for f in traceback.extract_tb(e.__traceback__) if f.filename.endswith("pagejoins.py")][-1]
        t.ok(f"{name}: line {here.lineno}", False, f"{type(e).__name__}: {str(e)[:900]}")


def corpus_file(t, name, path, tally):
    rng = random.Random(name)
    try:
        log = Log(path)
    except (ValueError, IndexError, KeyError):  # encrypted
        tally.add("not a plain Parquet file", name)
        return
    if log.table is None:
        tally.add("read by neither pyarrow nor DuckDB", name)
        return
    columns = [p for p, _ in identity.paths(log.table.schema)]
    if not harness.FULL:
        columns = rng.sample(columns, min(len(columns), 1))
    reasons = []
    for column in columns:
        kinds = TYPES if harness.FULL else [rng.choice(["inner", "left"]), "full"] if rng.random() < 0.9 else ["semi", "anti", "right"]
        if why := one(t, name, log, column, kinds, rng):
            reasons.append(why.split(str(path))[-1][:120])
    tally.add(f"refused: {reasons[0]}" if len(reasons) == len(columns) > 0 else f"joined, as {log.reader} reads it" if columns else "no column can be a key", name)


# ---- files with what is rare


def others_see(log, ids, out, kind, rows, idpath):
    """What is unlike for DuckDB and Polars, each of which reads the inputs and the output."""
    for reader in ("DuckDB", "Polars"):
        before, theirs, got = (writers.as_table(reader, p) for p in (log.path, idpath, out))
        if isinstance(before, writers.Refusal) or isinstance(theirs, writers.Refusal):
            continue  # what refuses an output alone is a failed check of its own
        want = Want(kind, before, theirs, rows)
        if d := writers.differences(reader, got, pa.table(want.columns, want.names), exact=False):
            yield f"{reader}: {d}"


def odd_logs(t):
    """Small files of many writers, as logs."""
    for name, path in oddfiles.every(t.work / "odd logs"):
        rng, log = random.Random(name), Log(path)
        for kind in TYPES if harness.FULL else [rng.choice(TYPES)]:
            attempt(t, f"{name}: {kind}", odd_log, log, kind, rng)


def odd_log(t, label, log, kind, rng):
    ids = made_ids(log.table.column("id"), rng)
    idpath = tables.write(ids, identity.fresh(t, "ids.parquet"))
    rows = pairs(plain(log.table.column("id")), plain(ids.column("the id")), kind)
    out, r = join(t, kind, log.path, idpath, 'id="the id"', "--threads", rng.choice([1, 2]))
    if r.code:
        t.ok(label, False, str(r))
        return
    wrong = problems(out, kind, log, ids, rows, idfile=rawfile.File(idpath)) + list(others_see(log, ids, out, kind, rows, idpath))
    wrong += unchecked(t, log.path)  # valid files are not called damaged
    if rng.random() < 0.3 or harness.FULL:
        wrong += unchecked(t, out)
    t.ok(label, not wrong, " | ".join(wrong)[:1500])
    if any(k == b"pandas" for k, _ in log.raw.metadata):
        frame = pandas.read_parquet(out)
        t.ok(f"{label}, as a frame", len(frame) == len(rows[0]) and "id" in {*frame.columns, *frame.index.names}, frame.head(2))
    out.unlink()


def odd_ids(t):
    """The same files as IDs, all their columns in the answer."""
    for name, path in oddfiles.every(t.work / "odd ids"):
        attempt(t, name, odd_id_file, path)


def odd_id_file(t, name, path):
    rng, file = random.Random(name), Log(path)
    ids = file.table
    keys = ids.column("id").cast(pa.int64()).to_pylist()
    rows = [None if i % 11 == 7 else rng.choice(keys) if keys and i % 3 else -1 - i for i in range(120)]
    table = pa.table({"key": pa.array(rows, pa.int64()), "n": range(120), "words": [[f"w{i}"] * (i % 3) for i in range(120)]})
    log = Log(tables.write(table, identity.fresh(t, "log.parquet"), row_group_size=50))
    for kind in TYPES[2:] if harness.FULL else [rng.choice(TYPES[2:])]:
        at = pairs(plain(log.table.column("key")), plain(ids.column("id")), kind)
        out, r = join(t, kind, log.path, path, "key=id")
        if r.code:
            t.ok(f"{name}: {kind}", False, str(r))
            continue
        wrong = problems(out, kind, log, ids, at, idfile=file.raw) + list(others_see(log, ids, out, kind, at, path))
        t.ok(f"{name}: {kind}", not wrong, " | ".join(wrong)[:1500])
        out.unlink()


def run(t, _repository):
    t.group("pagejoins corpora", corpora, sampled=150)
    t.group("pagejoins odd logs", odd_logs, sampled=50)
    t.group("pagejoins odd IDs", odd_ids, sampled=50)
    wholecopies.run(t)
    joinways.run(t)
    otherreaders.run(t)
