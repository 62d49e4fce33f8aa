"""The page engine against readers that are not ours: what goes in comes out, for every valid file there is.

Each file is scanned with what lets every row through and with what lets some through. The key is a column of its own
that can be one. An anti join with an ID that does not occur keeps all rows, NULL keys among them; a semi join with
some of the keys that occur keeps those.
"""

import concurrent.futures
import datetime
import decimal
import itertools
import pathlib
import random

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from common import harness, rawfile, tables

# Not valid, by their own names or README.
DAMAGED = {
    "datapage_v1-corrupt-checksum.parquet",
    "rle-dict-uncompressed-corrupt-checksum.parquet",
    "nation.dict-malformed.parquet",
}


def corpus(shared):
    """The valid files: (name, path)."""
    root = shared / "corpora"
    for top in ("parquet-testing/data", "parquet-testing/shredded_variant", "arrow-testing/data/parquet"):
        for path in sorted((root / top).rglob("*.parquet*")):
            name = str(path.relative_to(root))
            if path.is_file() and "fuzzing" not in name and path.name not in DAMAGED and not name.endswith(".json"):
                yield name, path
    if harness.FULL:  # the groups of that name have it
        yield "flights", shared / "data" / "flights" / "flights-3m.parquet"


def by_pyarrow(path):
    """The table, or why there is none."""
    try:
        return pq.ParquetFile(path, page_checksum_verification=True, coerce_int96_timestamp_unit="us").read(), None
    except (pa.ArrowException, OSError, ValueError) as e:
        return None, f"{type(e).__name__}: {str(e)[:120]}"


def by_duckdb(path):
    try:
        return duckdb.connect().sql(f"select * from read_parquet('{path}')").to_arrow_table(), None
    except duckdb.Error as e:
        return None, str(e)[:120]


def alike(got, want):
    """Whether two tables or columns have the same values; NaN is NaN."""
    if got.equals(want):
        return True
    return repr(got.to_pylist()) == repr(want.to_pylist())


def differences(got, want):
    """What is unlike in two tables."""
    if got.schema.remove_metadata() != want.schema.remove_metadata():
        return f"types {got.schema.remove_metadata()} want {want.schema.remove_metadata()}"
    if got.num_rows != want.num_rows:
        return f"{got.num_rows} rows, want {want.num_rows}"
    return ", ".join(
        str(want.schema.names[i]) for i in range(want.num_columns) if not alike(got.column(i), want.column(i))
    )


# ---- keys


def paths(schema, above=()):
    """The columns that can be keys: path and Arrow type."""
    for field in schema:
        kind, path = field.type, (*above, field.name)
        if pa.types.is_struct(kind):
            yield from paths(kind, path)
        elif absent(kind) is not None:
            yield path, kind


def absent(kind):
    """IDs of the type that hardly any file has, one after the other; None: the type is no key."""
    t = pa.types
    if t.is_dictionary(kind):
        return absent(kind.value_type)
    if t.is_boolean(kind):
        return pa.array([True, False])
    if t.is_float32(kind) or t.is_float64(kind):
        return pa.array([-31337.25, 0.1], kind)
    if t.is_integer(kind):
        return pa.array([113, 97, 77, 0, 1, 2, 3, 120], kind)
    if t.is_string(kind) or t.is_large_string(kind):
        return pa.array(["no such thing"], kind)
    if t.is_binary(kind) or t.is_large_binary(kind):
        return pa.array([b"no such thing"], kind)
    if t.is_fixed_size_binary(kind):
        return pa.array([b"\xfe" * kind.byte_width], kind)
    if t.is_date(kind):
        return pa.array([datetime.date(1903, 2, 3)], kind)
    if t.is_timestamp(kind):
        return pa.array([datetime.datetime(1903, 2, 3)], kind)
    if t.is_time(kind):
        return pa.array([datetime.time(3, 2, 1)], kind)
    if t.is_duration(kind):
        return pa.array([datetime.timedelta(days=-31337)], kind)
    if t.is_decimal(kind):
        return pa.array([decimal.Decimal(v).scaleb(-kind.scale) for v in (31, 0, 9)], kind)
    return None


def quoted(path):
    """The path as --on and --key take it."""
    return ".".join(p if p.isidentifier() else '"' + p.replace('"', '""') + '"' for p in path)


def values_at(table, path):
    """The values of a column in structs, one for each row."""
    column = table.column(path[0])
    for name in path[1:]:
        column = pa.chunked_array([child(c, name) for c in column.chunks], type=column.type.field(name).type)
    return column


def child(array, name):
    return pc.struct_field(array, name)


def expected(table, key, ids, anti):
    """The rows that an exact join keeps."""
    column = values_at(table, key)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
        norm = lambda v: None if v is None else "nan" if v != v else v + 0.0  # noqa: E731
        members = {norm(v) for v in ids.to_pylist()} - {None}
        mask = pa.array([norm(v) in members for v in column.to_pylist()])
    else:
        mask = pc.is_in(column, pa.array(ids.to_pylist(), ids.type), skip_nulls=True)
    return table.filter(pc.invert(mask) if anti else mask)


# ---- the runs


class Tally:
    """Files by the way that they took."""

    def __init__(self):
        self.by = {}

    def add(self, way, name):
        self.by.setdefault(way, []).append(name)

    def print(self):
        for way, names in sorted(self.by.items(), key=lambda x: -len(x[1])):
            some = ", ".join(pathlib.Path(n).name for n in names[:6])
            print(
                f"      {len(names):4d} files: {way}"
                + (f" ({some}{', ...' if len(names) > 6 else ''})" if len(names) < 60 else "")
            )


def all_rows(t, path, table):
    """Copies every row; the output, how, and the key. Raises Refused where the tool says why it cannot."""
    reasons = []
    for column, kind in list(paths(table.schema))[:8]:
        for value in absent(kind):
            ids, out = fresh(t, "absent.parquet"), fresh(t, "all.parquet")
            tables.write(pa.table({"id": pa.array([value])}), ids)
            r = t.run(
                "join",
                "--ids",
                ids,
                "--on",
                f"{quoted(column)}=id",
                "--type",
                "anti",
                "--json",
                "-o",
                out,
                path,
                want=None,
            )
            if r.code:
                reasons.append(r.text.strip().splitlines()[0])
                break
            if r.json["rows_out"] == r.json["rows_in"]:
                return out, r.json["path"][0]["path"], column
    raise Refused(reasons[0] if reasons else "no column can be a key")


class Refused(Exception):
    pass


numbers = itertools.count()


def fresh(t, name):
    """A path where nothing is, also when several threads ask at once."""
    while (path := t.work / f"{next(numbers)}-{name}").exists():
        pass  # of another group, which counts for itself
    return path


def one(t, tally, name, path, rng):
    """A file of a corpus."""
    if name.endswith("large_string_map.brotli.parquet"):  # two GB, and only a map, which is no key
        tally.add("not tried: its values take two GB", name)
        return
    (table, _), (duck, _) = by_pyarrow(path), by_duckdb(path)
    schema = table.schema if table is not None else duck.schema if duck is not None else None
    if schema is None:
        r = t.run("inspect", path, want=None)
        tally.add(
            f"unread by pyarrow and DuckDB; refused, too: {r.text.split(':')[2:][:1]}"
            if r.code
            else "unread by pyarrow and DuckDB",
            name,
        )
        if ".encrypted" in name:
            t.ok(f"{name}: refused", r.code == 1 and "unsupported" in r.text, str(r))
        return
    try:
        out, way, key = all_rows(t, path, table if table is not None else duck)
    except Refused as e:
        tally.add(f"refused: {str(e).split(str(path))[-1][:150]}", name)
        return
    tally.add(way, name)
    compare(t, name, path, out, table, duck)
    if table is not None and ("shredded_variant" not in name or rng.random() < 0.1):  # they are much alike
        some_rows(t, name, path, table, key, rng)


def compare(t, name, path, out, table, duck):
    """An output that has all rows."""
    got, want = rawfile.File(out), rawfile.File(path)
    t.equal(f"{name}: sound", rawfile.sound(got, want.bodies())[:5], [])
    t.equal(f"{name}: schema as stored", got.schema, want.schema)
    t.equal(f"{name}: metadata", got.metadata, want.metadata)
    if table is not None:
        copy, why = by_pyarrow(out)
        t.equal(f"{name}: pyarrow", why or differences(copy, table), "")
    if duck is not None:
        copy, why = by_duckdb(out)
        t.equal(f"{name}: DuckDB", why or differences(copy, duck), "")


# pyarrow and DuckDB each make another year of its 290000; Go tests have the values that Spark documents.
MISREAD = "int96_from_spark.parquet"


def some_rows(t, name, path, table, key, rng):
    """A random half of the keys, and the rest of the rows by an anti join; also by way of Arrow records."""
    keys = values_at(table, key)
    if not table.num_rows or name.endswith(MISREAD):
        return
    rows = rng.sample(range(table.num_rows), k=max(1, min(200, table.num_rows // 3)))
    chosen = keys.take(pa.array(rows))
    if pa.types.is_dictionary(chosen.type):
        chosen = chosen.cast(chosen.type.value_type)
    ids = tables.write(pa.table({"id": chosen}), fresh(t, "some.parquet"))
    for kind in ("semi", "anti") if harness.FULL else [rng.choice(("semi", "anti"))]:
        want = expected(table, key, chosen, kind == "anti")
        out, arrow = fresh(t, "some-out.parquet"), fresh(t, "some-out.arrow")
        r = t.run("join", "--ids", ids, "--on", f"{quoted(key)}=id", "--type", kind, "-o", out, path, want=None)
        if r.code:
            t.ok(f"{name}: some rows, pyarrow", False, str(r))
            return
        copy, why = by_pyarrow(out)
        t.equal(f"{name}: some rows, pyarrow", why or differences(copy, want), "")
        t.equal(f"{name}: some rows, sound", rawfile.sound(rawfile.File(out), rawfile.File(path).bodies())[:5], [])
        r = t.run("join", "--ids", ids, "--on", f"{quoted(key)}=id", "--type", kind, "-o", arrow, path, want=None)
        if r.code:
            t.ok(f"{name}: some rows, Arrow", "unsupported" in r.text, str(r))
            continue
        copy = tables.read(arrow)
        unlike = [
            n
            for n, a, b in zip(want.schema.names, copy.columns, want.columns, strict=True)
            if not alike(*plainly(a, b))
        ]
        t.equal(f"{name}: some rows, Arrow", (copy.num_rows, unlike), (want.num_rows, []))


def plainly(got, want):
    """Two columns brought to one type, where Arrow has several for what Parquet stores."""
    if got.type == want.type:
        return got, want
    try:
        return got.cast(want.type), want
    except pa.ArrowException:
        return pa.chunked_array([pa.array([repr(got.to_pylist())])]), pa.chunked_array(
            [pa.array([repr(want.to_pylist())])]
        )


def attempt(t, tally, name, path):
    try:
        one(t, tally, name, path, random.Random(name))
    except (AssertionError, pa.ArrowException, ValueError, KeyError) as e:
        t.ok(f"{name}: {type(e).__name__}", False, str(e)[:600])


def files(t):
    tally = Tally()
    alike = lambda name: "shredded_variant" in name and not harness.FULL and random.Random(name).random() > 0.15  # noqa: E731
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda f: attempt(t, tally, *f), [f for f in corpus(t.shared) if not alike(f[0])]):
            pass
    tally.print()


def run(t, _repository):
    t.group("identity corpora", files)
