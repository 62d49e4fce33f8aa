"""Files of every type, size and way of writing, by their own writers: each is joined on each of its columns.

A writer's files of one schema lie in one directory and are joined in one run, into a directory. What must come out is
what pyarrow, DuckDB and Polars read of the inputs, without the rows whose keys are not among the IDs; each reader's
outputs are compared with its own inputs.
"""

import concurrent.futures
import pathlib
import random
import subprocess
import sys

import polars
import pyarrow as pa
import pyarrow.compute as pc

from common import harness, readers, tables
from files import identity
from joins import pagejoins
from writers import otherfiles

SHARE = 1 if harness.FULL else 8  # each column is joined with every SHARE-th of its files, starting at another one
ABSENT = 3  # IDs that no row has, for each column


class Files:
    """A writer's files of one schema: each reader's tables, read once."""

    def __init__(self, directory):
        self.directory, self.int96 = directory, directory.name == "old"
        self.paths = sorted(directory.rglob("*.parquet"))
        self.tables = {(name, p): as_table(name, p) for p in self.paths for name in readers.READERS}

    def arrow(self, path):
        """The table that decides which rows match: the first reader's that could read the file."""
        order = sorted(readers.READERS, key=lambda r: r != "DuckDB") if self.int96 else readers.READERS
        return next((t for name in order if isinstance(t := self.tables[name, path], pa.Table)), None)

    def table(self, reader, path):
        """What a reader makes of an input; a Refusal, too, where it misreads INT96.

        Old writers have times of day below zero and counts of NULLs that are wrong, and Polars has no dates beyond 2262.
        """
        table = self.tables[reader, path]
        if self.int96 and reader != "DuckDB" and isinstance(table, pa.Table) and not same(table, self.arrow(path)):
            return Refusal("misread")
        return table


class Refusal(str):
    """Why a reader refuses a file."""


def as_table(reader, path):
    """What a reader makes of a file, as an Arrow table, or a Refusal."""
    try:
        table = readers.READERS[reader](path)
        return viewless(table.to_arrow() if reader == "Polars" else table)
    except (Exception, polars.exceptions.PanicException) as e:
        return Refusal(f"{type(e).__name__}: {str(e)[:300]}")


def viewless(table):
    """The table with strings in place of views, which pyarrow neither takes nor filters."""
    for i, field in enumerate(table.schema):
        for view, kind in ((pa.string_view(), pa.large_string()), (pa.binary_view(), pa.large_binary())):
            if field.type == view:
                table = table.set_column(i, field.with_type(kind), table.column(i).cast(kind))
    return table


def plain(array):
    """Keys as is_in compares them: -0 is 0, dictionaries are their values."""
    if isinstance(array.type, pa.BaseExtensionType):
        array = pa.chunked_array([c.storage for c in array.chunks], array.type.storage_type)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_floating(array.type):
        array = pc.add(array.cast(pa.float64()), 0.0)
    return array


def keys(schema, above=()):
    """Paths of the columns that are keys by their types. Durations are in files with Arrow's schema, and integers in others."""
    for field in schema:
        kind, path = field.type, (*above, field.name)
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        if pa.types.is_struct(kind):
            yield from keys(kind, path)
        elif pa.types.is_duration(kind):
            continue
        elif pa.types.is_float16(kind) or identity.absent(kind) is not None:
            yield path


def chosen(files, path, rng):
    """IDs of a column: some that its files have, and some that they hardly have; unique, without NULL."""
    biggest = max((t for p in files.paths if (t := files.arrow(p)) is not None), key=lambda t: t.num_rows - null_count(t, path))
    column = plain(identity.values_at(biggest, path))
    present = column.drop_null()
    rows = sorted({0, 3, len(present) // 2, *(rng.randrange(max(len(present), 1)) for _ in range(40))})
    some = present.take(pa.array([r for r in rows if r < len(present)], pa.int64()))
    if pa.types.is_boolean(column.type):
        return some.slice(0, 1).combine_chunks()
    absent = identity.absent(column.type)
    if absent is not None:
        some = pa.chunked_array([*some.chunks, absent.slice(0, ABSENT).cast(column.type)])
    return pc.unique(some)


def null_count(table, path):
    return identity.values_at(table, path).null_count


# Types of inputs that a reader has otherwise in outputs of records, by reason of the inputs.
OTHERWISE = [
    ("Polars", "timestamp[us]", "timestamp[ns]"),  # INT96 without an Arrow schema
    ("Polars", "extension<arrow.json>", "large_binary"),  # JSON without an Arrow schema
    ("Polars", "large_string", "large_binary"),  # the same
    ("Polars", "int64", "timestamp[ms]"),  # seconds by arrow-rs: plain integers, as pyarrow and DuckDB read them, and an Arrow schema
    ("Polars", "int64", "timestamp[ms, tz=UTC]"),
    ("DuckDB", "string", "binary"),  # UUIDs of DataFusion, which only the Arrow schema tells of
]


def differences(reader, got, want, exact):
    """What is unlike in two tables of one reader. Exact: also their types, where Arrow has several for one of Parquet."""
    if isinstance(got, Refusal):
        return got
    if got.column_names != want.column_names:
        return f"columns {got.column_names}, want {want.column_names}"
    if got.num_rows != want.num_rows:
        return f"{got.num_rows} rows, want {want.num_rows}"
    unlike = [
        n
        for n, a, b in zip(want.column_names, got.columns, want.columns, strict=True)
        if not alike(a, b, exact) and (exact or (reader, str(a.type), str(b.type)) not in OTHERWISE)
    ]
    return ", ".join(f"{n} ({got.schema.field(n).type}, want {want.schema.field(n).type})" for n in unlike)


def alike(got, want, exact):
    if got.type != want.type and (exact or stored(got.type) != stored(want.type)):
        return False
    return got.equals(want) if got.type == want.type and got.equals(want) else repr(got.to_pylist()) == repr(want.to_pylist())


def same(a, b):
    """Whether two readers see the same timestamps."""
    return all(
        a.column(n).cast(pa.timestamp("ns"), safe=False).equals(b.column(n).cast(pa.timestamp("ns"), safe=False))
        for n in a.column_names
        if pa.types.is_timestamp(a.schema.field(n).type)
    )


def stored(kind):
    """A type without what Parquet does not tell of it."""
    t = pa.types
    if t.is_dictionary(kind):
        return stored(kind.value_type)
    if t.is_large_string(kind) or t.is_string_view(kind):
        return pa.string()
    if t.is_large_binary(kind):
        return pa.binary()
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return pa.list_(stored(kind.value_type))
    if t.is_map(kind):
        return pa.map_(stored(kind.key_type), stored(kind.item_type))
    if t.is_struct(kind):
        return pa.struct([(f.name, stored(f.type)) for f in kind])
    return kind


def answer(kind, table, column, ids):
    """The rows of a table that a join keeps, and for each the ID that it goes with, None for none."""
    at = pc.index_in(plain(column), ids, skip_nulls=True)
    if kind == "semi":
        return pc.is_valid(at), None
    if kind == "anti":
        return pc.is_null(at), None
    return (pc.is_valid(at) if kind == "inner" else pc.is_in(at, at)), at


def compare(files, path, kind, ids, out):
    """What is wrong with the outputs of a join of some files; the number of outputs that were read."""
    wrong = []
    for source in files.paths:
        target = out / source.name
        table = files.arrow(source)
        keep, at = answer(kind, table, identity.values_at(table, path), ids)
        for reader in readers.READERS:
            before, got = files.table(reader, source), as_table(reader, target)
            if isinstance(before, Refusal):
                continue  # a type that this reader does not have: see readers.LIMITS
            want = before.filter(keep)
            if at is not None:
                want = joined(want, ids, at.filter(keep), got)
            d = differences(reader, got, want, exact=kind in ("semi", "anti"))
            if d:
                wrong.append(f"{source.name}, {reader}: {d}")
    return wrong


def joined(table, ids, at, got):
    """The table with the columns of the IDs, in the types that the reader of an output has for them."""
    for name, column in (("the id", ids.take(at)), ("payload", at)):
        if not isinstance(got, Refusal) and name in got.column_names:
            mine = got.column(name)
            column = mine if isinstance(ids, pa.Decimal256Array) and name != "payload" else column.cast(mine.type)
        table = table.append_column(name, column)
    return table


class Some:
    """Some of the files."""

    def __init__(self, files, part):
        share = min(SHARE, len(files.paths))
        self.paths = [p for i, p in enumerate(files.paths) if (i + part) % share == 0]
        self.table, self.arrow = files.table, files.arrow


def column(t, name, files, path, kinds, rng):
    """Joins on one column."""
    ids = chosen(files, path, rng)
    where = tables.write(pa.table({"the id": ids, "payload": pa.array(range(len(ids)))}), identity.fresh(t, "ids.parquet"))
    for kind in kinds:
        some, out = Some(files, rng.randrange(SHARE)), identity.fresh(t, "out")
        on = f'{identity.quoted(path)}="the id"'
        r = t.run("join", "--ids", where, "--on", on, "--type", kind, "--empty", "write", "-o", f"{out}/", *some.paths, want=None, opens=False)
        label = f"{name}: {kind} on {'.'.join(path)}"
        if r.code:
            t.ok(label, False, str(r))
            continue
        wrong = compare(some, path, kind, ids, out)
        if harness.FULL or rng.random() < 0.3:
            wrong += pagejoins.unchecked(t, *tables.data_files(out))
        t.opened += len(some.paths)
        t.ok(label, not wrong, f"{len(wrong)} outputs are unlike: " + "; ".join(wrong[:3]))


def one(t, directory):
    """A writer's files of one schema."""
    files = Files(directory)
    read = [p for p in files.paths if files.arrow(p) is not None]
    t.ok("files that are read by one of the three", len(read) == len(files.paths) > 0, f"{len(read)} of {len(files.paths)}")
    table = files.arrow(read[-1])
    rng = random.Random(directory.name)
    paths = list(keys(table.schema))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for i, path in enumerate(paths):
            kinds = ["semi"] + (["anti", "inner", "left"] if i % 8 == 1 or len(paths) < 4 else [])
            pool.submit(attempt, t, files, path, kinds, random.Random(f"{directory} {path}"))
    types(t, files, paths[-1], rng)
    durations = {f.name for f in table.schema if pa.types.is_duration(f.type)}
    for path in set(table.column_names) - {p[0] for p in paths} - durations:
        r = t.run("join", "--ids", read[-1], "--on", f'"{path}"', "-o", t.path("none.parquet"), read[-1], want=1)
        t.ok(f"{path} is no key", "unsupported" in r.text or "no column" in r.text, str(r))


def types(t, files, path, rng):
    """Every join type on one column of one file, into Parquet and Arrow; t.run has them opened."""
    source = next(p for p in files.paths if p.stem.endswith("-1000") and files.arrow(p) is not None)
    ids = chosen(files, path, rng)
    where = tables.write(pa.table({"the id": ids, "payload": pa.array(range(len(ids)))}), identity.fresh(t, "ids.parquet"))
    column = plain(identity.values_at(files.arrow(source), path))
    rows, alone = len(column), len(ids) - pc.sum(pc.is_in(ids, pc.unique(column))).as_py()
    matched = pc.sum(pc.is_in(column, ids, skip_nulls=True)).as_py()
    want = {"semi": matched, "anti": rows - matched, "inner": matched, "left": rows, "right": matched + alone, "full": rows + alone}
    for kind, n in want.items() if harness.FULL else rng.sample(sorted(want.items()), 3):
        for form in (".parquet", ".arrow") if harness.FULL else [rng.choice((".parquet", ".arrow"))]:
            out = identity.fresh(t, f"out{form}")
            on = f'{identity.quoted(path)}="the id"'
            r = t.run("join", "--ids", where, "--on", on, "--type", kind, "-o", out, source, want=None)
            t.ok("into one file", r.code == 0 and readers.by_pyarrow(out).num_rows == n, f"{kind} on {'.'.join(path)}: {r}")


def attempt(t, files, path, kinds, rng):
    try:
        column(t, files.directory.name, files, path, kinds, rng)
    except Exception as e:
        t.ok(f"{files.directory.name}: {path}", False, f"{type(e).__name__}: {e}")


def run(t, _repository):
    here, made = pathlib.Path(__file__).parent, t.work / "writers"
    call = lambda *command: subprocess.run(command, check=True)  # noqa: E731
    writers = {
        "pyarrow": lambda out: call(sys.executable, here / "arrowfiles.py", out),
        "fastparquet": otherfiles.by_fastparquet,
        "Polars": otherfiles.by_polars,
        "DuckDB": otherfiles.by_duckdb,
        "DataFusion": otherfiles.by_datafusion,
    }
    if t.writers:
        writers |= {
            "old pyarrow": lambda out: call(t.writers / "pyarrow11/bin/python", here / "arrowfiles.py", out),
            "parquet-go": lambda out: call(t.writers / "parquet-go", out),
            "parquet-java": lambda out: call("java", "-cp", t.writers / "jars/*", here / "java/Writers.java", out),
        }
    for name, write in writers.items():
        t.group(f"writers {name}", every, name, write, made)


def every(t, name, write, made):
    """All that a writer has."""
    out = made / name
    write(out)
    for directory in sorted(out.iterdir()):
        t.group(f"writers {name}, {directory.name}", one, directory)
