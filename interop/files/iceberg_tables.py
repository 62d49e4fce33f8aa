"""Iceberg tables as logs and as IDs: their rows as Spark and pyiceberg read them."""

import datetime
import decimal
import gzip
import json
import math
import os
import pathlib
import random
import shutil
import uuid

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from files import tables as delta
from files.tables import CONDITIONS, DAY, HERE, NOON, UTC, batch, every, kinds, ordered, plain, read, refused, shards, whole

TABLES = pathlib.Path(os.environ.get("TABLES") or HERE / "iceberg")
SPARK = sorted(f.name.removesuffix(".tar.xz") for f in TABLES.glob("*.tar.xz"))


class Tables(delta.Tables):
    made, keys = "iceberg", ("id", "key", "n")
    archives = TABLES

    def table(self, name):
        return self.spark(name) / "table"

    def names(self, name):
        """Snapshots, branches and tags with what Spark reads of them, as (label, name, rows)."""
        rows = self.spark(name) / "rows"
        for label, which in json.loads((rows / "names.json").read_text()).items():
            yield label, f"iceberg:{self.table(name)}@{which}", pq.read_table(rows / f"{label}.parquet", partitioning=None)

    def newest(self, name):
        return pq.read_table(self.spark(name) / "rows/newest.parquet", partitioning=None)

    def copy(self, name, of):
        """A copy of a table that Spark has made."""
        shutil.copytree(self.table(of), self.dir / name)
        return self.dir / name


def known(name, row):
    return row[name] is not None


# Tables by Spark.


def conditions_of(name):
    D, late, year = decimal.Decimal, datetime.datetime(2020, 2, 29, tzinfo=UTC), lambda r, y: known("local", r) and r["local"].year >= y
    types = {
        "flag": lambda r: r["flag"] is True, "Upper = 2": lambda r: r["Upper"] == 2, '"a.b" = 3': lambda r: r["a.b"] == 3, "at < TIMESTAMPTZ '2020-02-29T00:00:00Z'": lambda r: known("at", r) and r["at"] < late,
        "local > '1970-01-01'": lambda r: year(r, 1970), "wide > 1e19": lambda r: known("wide", r) and r["wide"] > D(10) ** 19, "day < '1970-01-01'": lambda r: known("day", r) and r["day"].year < 1970,
    }  # fmt: skip
    columns = {
        "page is null": lambda r: r["page"] is None, "page = 'NO'": lambda r: r["page"] == "NO", "page > 'c'": lambda r: known("page", r) and r["page"] > "c", "land = '/p/3'": lambda r: r["land"] == "/p/3",
        "amount = 'a22'": lambda r: r["amount"] == "a22", "amount is null": lambda r: r["amount"] is None, "url = 7": lambda r: r["url"] == 7, "url is null and id > 15": lambda r: r["url"] is None and r["id"] > 15,
    }  # fmt: skip
    promoted = {
        "n > 4000000000": lambda r: known("n", r) and r["n"] > 4_000_000_000, "n < -2147483648": lambda r: r["n"] == -2147483649, "n = 90": lambda r: r["n"] == 90, "n is null": lambda r: r["n"] is None,
        "f > 1e299": lambda r: known("f", r) and r["f"] > 1e299, "f = -0.875": lambda r: r["f"] == -0.875, "f > 16777216": lambda r: known("f", r) and r["f"] > 16777216, "d > 9999999.99": lambda r: known("d", r) and r["d"] > D("9999999.99"),
        "d = -9999999.99": lambda r: r["d"] == D("-9999999.99"), "d = -3.99": lambda r: r["d"] == D("-3.99"), "w < -1000": lambda r: known("w", r) and r["w"] < -1000, "w = -2": lambda r: r["w"] == -2,
    }  # fmt: skip
    nested = {"land = 'c1'": lambda r: r["land"] == "c1", "land is null": lambda r: r["land"] is None, "url = 7": lambda r: r["url"] == 7, "id > 15": lambda r: r["id"] > 15}
    keys = {
        "flag": lambda r: r["flag"] is True, "m < 1": lambda r: known("m", r) and r["m"] < 1, "day > '1999-12-31'": lambda r: known("day", r) and r["day"] > datetime.date(1999, 12, 31), "f < 0.25": lambda r: known("f", r) and r["f"] < 0.25,
        "at > '2023-11-15T00:00:00Z'": lambda r: known("at", r) and r["at"] > datetime.datetime(2023, 11, 15, tzinfo=UTC), "local < '1970-01-01'": lambda r: known("local", r) and not year(r, 1970),
        "text = 'ü/=%'": lambda r: r["text"] == "ü/=%", "text is null": lambda r: r["text"] is None, "text = '__HIVE_DEFAULT_PARTITION__'": lambda r: r["text"] == "__HIVE_DEFAULT_PARTITION__", "n >= 30000000000": lambda r: known("n", r) and r["n"] >= 30_000_000_000,
    }  # fmt: skip
    imported = {"land is null": lambda r: r["land"] is None, "land = 'c1'": lambda r: r["land"] == "c1", "land = 'NO'": lambda r: r["land"] == "NO", "page = 'new'": lambda r: r["page"] == "new", "amount > 5": CONDITIONS["amount > 5"]}
    branches = {"page = '/p/3'": lambda r: r["page"] == "/p/3", "page > '/p/5'": lambda r: known("page", r) and r["page"] > "/p/5", **{k: v for k, v in CONDITIONS.items() if k.startswith(("at", "country"))}}
    more = {"id > 85": lambda r: r["id"] > 85, "id < 30 and country = 'NO'": lambda r: r["id"] < 30 and r["country"] == "NO", "url > '/p/9'": lambda r: r["url"] > "/p/9", "at > '2026-01-02' and at < '2026-01-03'": lambda r: known("at", r) and r["at"].day == 2 and r["at"].hour + r["at"].minute > 0}
    return {
        "types": types, "columns": columns, "columns1": columns, "promoted": promoted, "promoted1": promoted, "nested": nested, "keys": keys, "imported": imported, "branches": branches, "keyed": branches,
        "replaced": {k: CONDITIONS[k] for k in ("country is null", "amount > 5")},
    }.get(name, CONDITIONS | (more if name.startswith("specs") else {}))  # fmt: skip


def by_spark(t, tables, name):
    """Each snapshot, branch and tag that Spark reads, and the newest version in all ways."""
    table, key = f"iceberg:{tables.table(name)}", "id"
    for label, which, want in tables.names(name):
        if want.num_rows:
            whole(tables, label, which, want, key)
        else:
            without_files(t, tables, label, which)
    every(tables, "newest", table, tables.newest(name), conditions_of(name), key)
    six(tables, "newest", table, tables.newest(name).to_pylist(), key)
    if name.startswith("promoted"):
        every(tables, "a promoted column as key", table, tables.newest(name), {}, "n")
    times = json.loads((tables.spark(name) / "rows/times.json").read_text())
    for n, (moment, ids) in enumerate(times.items()):
        if ids:
            t.equal(f"time {n}", sorted(tables.rows([f"{table}@{moment}"], "id")["id"].to_pylist()), ids)
    last = max(tables.table(name).glob("metadata/v*.metadata.json"), key=lambda f: int(f.name[1:].split(".")[0]))
    whole(tables, "the metadata file", f"iceberg:{last}", tables.newest(name), key)


def without_files(t, tables, label, name):
    refused(t, tables, f"{label}, without files", name, "holds no files")
    args = ("--ids", tables.nobody("id"), "--on", "id", "--type", "left", "--count", "--allow-empty", "--json")
    t.equal(f"{label}: --allow-empty", t.run("join", *args, name).json["rows_out"], 0)


def six(tables, name, table, rows, key):
    """Pairs of all types of joins, with IDs of which half are in the table."""
    t, ids, out = tables.t, tables.out("pairs.parquet"), tables.out("paired.parquet")
    some = sorted({-77, *[r[key] for r in rows if known(key, r)][::2]})
    pq.write_table(pa.table({"pair": pa.array(some, pa.int64()), "mark": [f"m{i}" for i in some]}), ids)
    none, empty = {"pair": None, "mark": None}, dict.fromkeys(rows[0])
    both = [r | {"pair": r[key], "mark": f"m{r[key]}"} for r in rows if r[key] in some]
    left = [r | none for r in rows if r[key] not in some]
    right = [empty | {"pair": i, "mark": f"m{i}"} for i in sorted({*some} - {r[key] for r in rows})]
    for kind, want in {"inner": both, "left": both + left, "right": both + right, "full": both + left + right}.items():
        t.run("join", "--ids", ids, "--on", f"{key}=pair", "--type", kind, "--force", "-o", out, table)
        t.equal(f"{name}: {kind}", plain(read(out)), sorted(repr(ordered(r)) for r in want))
        t.equal(f"{name}: count of {kind}", t.run("join", "--ids", ids, "--on", f"{key}=pair", "--type", kind, "--count", "--json", table).json["rows_out"], len(want))


def reruns(t, tables):
    """Runs over newer and newer snapshots into one directory, which is the newest one's rows each time."""
    for name in ("filescoped", "upgraded", "vectors"):
        out = tables.out("grows")
        for label, which, want in tables.names(name):
            prune = ["--prune"] if label in COMPACTED.get(name, ()) else []
            t.run("join", "--ids", tables.nobody("id"), "--on", "id", "--type", "left", *prune, "-o", f"{out}/", which)
            delta.directory(tables, f"{name}: {label}", out, want)
        r = t.run("join", "--ids", tables.nobody("id"), "--on", "id", "--type", "left", "-o", f"{out}/", f"iceberg:{tables.table(name)}")
        t.ok(f"{name}: nothing is left to do", "already" in r.text or "up to date" in r.text, str(r))
    table = tables.table("filescoped")
    t.run("inputs", "-o", tables.out("frozen.jsonl"), f"iceberg:{table}@snapshot={first(table, 2)}")
    whole(tables, "a list, once there are newer snapshots", f"iceberg:{table}@snapshot={first(table, 2)}", list(tables.names("filescoped"))[1][2])
    got = tables.rows(["--files-from", tables.dir / "frozen.jsonl"], "id")
    t.equal("a list of an old snapshot", plain(got), plain(list(tables.names("filescoped"))[1][2]))


COMPACTED = {"vectors": ("snapshot 8",)}


def first(table, n):
    """The id of the nth snapshot."""
    return sorted(metadata(table)["snapshots"], key=lambda s: s["timestamp-ms"])[n - 1]["snapshot-id"]


# Tables by pyiceberg.


class Made:
    """A table that pyiceberg changes step by step."""

    def __init__(self, tables, name, schema, **properties):
        from pyiceberg.catalog.sql import SqlCatalog

        self.tables, self.path = tables, tables.dir / "py" / name
        self.path.mkdir(parents=True)
        catalog = SqlCatalog(name, uri="sqlite://", warehouse=f"file://{tables.dir}/py")
        catalog.create_namespace("n")
        self.table = catalog.create_table(f"n.{name}", schema, location=f"file://{self.path}", properties=properties)

    def columns(self, change):
        with self.table.update_schema(allow_incompatible_changes=False) as update:
            change(update)

    def spec(self, change):
        with self.table.update_spec() as update:
            change(update)

    def rows(self, snapshot=None):
        return self.table.scan(snapshot_id=snapshot).to_arrow()

    def location(self):
        return self.table.metadata_location.removeprefix("file://")

    def check(self, conditions, key="id"):
        """Older snapshots whole, and the newest in all ways: by its metadata, and by a hint in the directory."""
        name = f"iceberg:{self.location()}"
        for n, snapshot in enumerate(self.table.metadata.snapshots, 1):
            want = self.rows(snapshot.snapshot_id)
            if want.num_rows:
                whole(self.tables, f"snapshot {n}", f"{name}@snapshot={snapshot.snapshot_id}", want, key)
        every(self.tables, "newest", name, self.rows(), conditions, key)
        hint = self.path / "metadata/version-hint.text"
        for label, text in (("name", pathlib.Path(self.location()).name), ("stem", pathlib.Path(self.location()).name.removesuffix(".metadata.json"))):
            hint.write_text(text)
            whole(self.tables, f"a hint with the {label}", f"iceberg:{self.path}", self.rows(), key)
        shutil.copy(self.location(), self.path / "metadata/v7.metadata.json")
        hint.write_text("7\n")
        whole(self.tables, "a hint with the number", f"iceberg:{self.path}", self.rows(), key)


def grown(t, tables):
    """Columns are renamed, promoted, moved, dropped and added again; the partitions change; rows are deleted by copies."""
    from pyiceberg.transforms import BucketTransform, DayTransform, TruncateTransform
    from pyiceberg.types import DoubleType, LongType, StringType

    old = lambda low, high: batch(low, high, n=lambda i: i).select(["id", "country", "at", "amount", "url", "n"]).cast(OLD)
    made = Made(tables, "grown", OLD)
    made.table.append(old(0, 20))
    made.spec(lambda s: s.add_field("country", "identity").add_field("at", DayTransform(), "day").add_field("id", BucketTransform(4), "b4"))
    made.table.append(old(20, 40))
    made.columns(lambda u: u.rename_column("url", "page"))
    made.columns(lambda u: u.update_column("n", LongType()))
    made.columns(lambda u: u.update_column("amount", DoubleType()))
    made.columns(lambda u: u.move_first("page"))
    made.columns(lambda u: u.add_column("url", LongType()))
    new = lambda low, high: old(low, high).rename_columns(["id", "country", "at", "amount", "page", "n"]).append_column("url", pa.array(range(high - low), pa.int64())).cast(NEW)
    made.table.append(new(40, 60).select(made.table.schema().as_arrow().names))
    made.spec(lambda s: s.remove_field("country").add_field("page", TruncateTransform(4), "t4"))
    made.table.append(new(60, 70).select(made.table.schema().as_arrow().names))
    made.table.delete("id >= 10 and id < 20")
    made.table.delete("country = 'SE'")
    made.columns(lambda u: u.delete_column("url"))
    made.columns(lambda u: u.add_column("url", StringType()))
    made.table.overwrite(new(100, 105).set_column(6, "url", pa.array(["u"] * 5)).select(made.table.schema().as_arrow().names), overwrite_filter="id >= 60")
    made.check(
        {
            "country is null": lambda r: r["country"] is None, "country = 'NO'": lambda r: r["country"] == "NO", "page = '/p/33'": lambda r: r["page"] == "/p/33", "url = 'u'": lambda r: r["url"] == "u", "amount > 5": CONDITIONS["amount > 5"],
            "n >= 50": lambda r: known("n", r) and r["n"] >= 50, "n = 5": lambda r: r["n"] == 5, "at >= TIMESTAMPTZ '2026-01-02T00:00:00Z'": CONDITIONS["at >= TIMESTAMPTZ '2026-01-02T00:00:00Z'"],
        }
    )  # fmt: skip
    whole(tables, "by another key", f"iceberg:{made.location()}", made.rows(), "n")


OLD = pa.schema([("id", pa.int64()), ("country", pa.string()), ("at", pa.timestamp("us", "UTC")), ("amount", pa.float32()), ("url", pa.string()), ("n", pa.int32())])
NEW = pa.schema([("id", pa.int64()), ("country", pa.string()), ("at", pa.timestamp("us", "UTC")), ("amount", pa.float64()), ("page", pa.string()), ("n", pa.int64()), ("url", pa.int64())])


def typed():
    """Columns of all types that have values in partitions."""
    r = range(6)
    return {
        "b": pa.array([None, True, False] * 2), "i": pa.array([None, -(2**31), 2**31 - 1, 0, 1, 2], pa.int32()), "l": pa.array([None, -(2**63), 2**63 - 1, 0, 1, 2], pa.int64()),
        "f": pa.array([None, 0.25, -0.0, math.inf, 1e20, 2], pa.float32()), "d": pa.array([None, 0.1, 1e17, -math.inf, 1.5e-7, 2]), "small": pa.array([None, *range(-2, 3)], pa.int32()).cast(pa.decimal128(13, 3)),
        "wide": pa.array([None, *(decimal.Decimal(10) ** 30 * i for i in range(-2, 3))], pa.decimal128(38, 4)), "day": pa.array([None, *(DAY - datetime.timedelta(9999 * i) for i in range(5))]),
        "time": pa.array([None, *(datetime.time(i, 2, 3, i) for i in range(5))], pa.time64("us")), "ts": pa.array([None, *(NOON - datetime.timedelta(9999 * i, 0, i) for i in range(5))], pa.timestamp("us", "UTC")),
        "local": pa.array([None, *(NOON.replace(tzinfo=None) - datetime.timedelta(9999 * i, 0, i) for i in range(5))], pa.timestamp("us")), "s": pa.array([None, "x", " y ", "null", "a=b/c%25", "ü"]),
        "bytes": pa.array([None, b"", b"\0\xff", b"x", b"null", b"/"]), "u": pa.array([None, *(uuid.UUID(int=i << 99).bytes for i in range(5))], pa.binary(16)), "x": pa.array([None, *(bytes([i, 255, 0]) for i in range(5))], pa.binary(3)),
        "id": pa.array(r, pa.int64()),
    }  # fmt: skip


TYPED = {
    "b": lambda r: r["b"] is True, "i = -2147483648": lambda r: r["i"] == -(2**31), "l > 9223372036854775806": lambda r: r["l"] == 2**63 - 1, "small < 0": lambda r: known("small", r) and r["small"] < 0, "wide > 0": lambda r: known("wide", r) and r["wide"] > 0,
    "day < '2000-01-01'": lambda r: known("day", r) and r["day"].year < 2000, "ts >= '2026-01-01T12:00:00Z'": lambda r: r["ts"] == NOON, "s = 'a=b/c%25'": lambda r: r["s"] == "a=b/c%25", "f = 0.25": lambda r: r["f"] == 0.25, "d < 0": lambda r: known("d", r) and r["d"] < 0,
    "u is null": lambda r: r["u"] is None, "time is null": lambda r: r["time"] is None, "local > '1990-01-01'": lambda r: known("local", r) and r["local"].year >= 1990,
}  # fmt: skip


def schema_of(columns):
    """The schema of typed columns, with a UUID."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import BinaryType, BooleanType, DateType, DecimalType, DoubleType, FixedType, FloatType, IntegerType, LongType, NestedField, StringType, TimestampType, TimestamptzType, TimeType, UUIDType

    types = {
        "b": BooleanType(), "i": IntegerType(), "l": LongType(), "f": FloatType(), "d": DoubleType(), "small": DecimalType(13, 3), "wide": DecimalType(38, 4), "day": DateType(), "time": TimeType(), "ts": TimestamptzType(), "local": TimestampType(),
        "s": StringType(), "bytes": BinaryType(), "u": UUIDType(), "x": FixedType(3), "id": LongType(),
    }  # fmt: skip
    return Schema(*[NestedField(n, name, types[name], required=False) for n, name in enumerate(columns, 1)])


def types(t, tables):
    """Columns of all types."""
    made = Made(tables, "types", schema_of(typed()))
    made.table.append(pa.table(typed()))
    made.table.delete("id = 4")
    made.check(TYPED)


def partitions_by(t, tables, name):
    """Partitions by the values of a column, which files have, and then lack."""
    made = Made(tables, f"by {name}", schema_of([name, "id"]))
    made.spec(lambda s: s.add_field(name, "identity"))
    made.table.append(pa.table(typed()).select([name, "id"]))
    want, at = made.rows(), f"iceberg:{made.location()}"
    for how in ("there", "lacking"):
        if how == "lacking":
            lacks(made, name)
        whole(tables, how, at, want)
        for text, keep in TYPED.items():
            if text.split()[0] == name:
                got = plain(tables.rows([at], "id", "left", None, "--where", text))
                t.equal(f"{how}: where {text}", got, sorted(repr(ordered(r)) for r in want.to_pylist() if keep(r)))


def lacks(made, column):
    """Takes a column of partitions out of the files, as writers for Hive do."""
    for file in made.path.rglob("data/**/*.parquet"):
        pq.write_table(pq.ParquetFile(file).read().drop([column]), file)
    size = lambda r: made.path / r["data_file"]["file_path"].split(f"{made.path.name}/", 1)[1]
    rewrite(manifests(made.path), change=lambda r: r["data_file"].update(file_size_in_bytes=size(r).stat().st_size))


def imported(t, tables):
    """Files without field ids are added as they are; then columns are renamed."""
    made = Made(tables, "imported", OLD)
    for n in range(3):
        pq.write_table(batch(20 * n, 20 * n + 20, n=lambda i: i).cast(OLD), made.path / f"old {n}.parquet")
    made.table.add_files([f"file://{made.path}/old {n}.parquet" for n in range(3)])
    made.columns(lambda u: u.rename_column("url", "page"))
    made.columns(lambda u: u.rename_column("country", "land"))
    made.table.append(batch(60, 70, n=lambda i: i).rename_columns(["id", "land", "at", "amount", "page", "n"]).cast(pa.schema([f.with_name({"url": "page", "country": "land"}.get(f.name, f.name)) for f in OLD])))
    made.table.delete("id = 7")
    made.check({"page = '/p/3'": lambda r: r["page"] == "/p/3", "land = 'NO'": lambda r: r["land"] == "NO", "land is null": lambda r: r["land"] is None, "n = 66": lambda r: r["n"] == 66})
    # The name of a column moves to another one: both columns of the old files now have its id.
    made.columns(lambda u: u.rename_column("land", "url"))
    refused(t, tables, "two columns of a file with one id", f"iceberg:{made.location()}", "url", "country")


def histories(t, tables):
    """Random changes: each snapshot is what pyiceberg reads."""
    from pyiceberg.transforms import BucketTransform, DayTransform

    rng, at = random.Random(7), 0
    made = Made(tables, "random", batch(0, 1).schema)
    parts = {"country": lambda s: s.add_field("country", "identity"), "day": lambda s: s.add_field("at", DayTransform(), "day"), "b3": lambda s: s.add_field("id", BucketTransform(3), "b3")}

    def spec():
        has = {f.name for f in made.table.spec().fields}
        name = rng.choice(sorted(parts))
        made.spec(lambda s: s.remove_field(name) if name in has else parts[name](s))

    changes = {
        "append": lambda: made.table.append(batch(at, at + 10)),
        "delete": lambda: made.table.delete(rng.choice([f"id >= {at - 20} and id < {at - 15}", "country is null", f"id = {at - 3}", "amount > 1 and amount < 2"])),
        "overwrite": lambda: made.table.overwrite(batch(at, at + 5), overwrite_filter=f"id < {at - 60}"),
        "spec": spec,
    }
    for name in ["append", *rng.choices(list(changes), weights=[6, 4, 1, 3], k=40)]:
        changes[name]()
        at += 10
    snapshots = made.table.metadata.snapshots
    t.ok("there are snapshots", len(snapshots) > 20)
    name, wrong = f"iceberg:{made.location()}", []
    for n, s in enumerate(snapshots):
        want = made.rows(s.snapshot_id)
        low = rng.randrange(at)
        for text, keep in (("", lambda r: True), (f"id >= {low} and id < {low + 40}", lambda r, low=low: low <= r["id"] < low + 40), ("country = 'NO'", lambda r: r["country"] == "NO")):
            got = tables.count([f"{name}@snapshot={s.snapshot_id}"], "id", "left", tables.nobody("id"), "--allow-empty", *(["--where", text] if text else []))
            if got != sum(map(keep, want.to_pylist())):
                wrong.append((n, text))
    t.equal("snapshots", wrong, [])
    whole(tables, "newest", name, made.rows())


# Metadata that is rewritten: by other writers, or damaged.


def metadata(table):
    """The newest metadata of a table."""
    data = newest_file(table).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def newest_file(table):
    return max(table.glob("metadata/v*.metadata.json"), key=lambda f: int(f.name[1:].split(".")[0]))


def say(table, change):
    """Changes the newest metadata."""
    says = metadata(table)
    change(says)
    newest_file(table).write_text(json.dumps(says))


def lists(table):
    return sorted(table.glob("metadata/snap-*.avro"))


def manifests(table, content=None):
    """Manifests, of data (0) or of deletes (1)."""
    of = [] if content is None else [pathlib.Path(m["manifest_path"]).name for f in lists(table) for m in fastavro.reader(f.open("rb")) if m.get("content", 0) == content]
    return [f for f in sorted(table.glob("metadata/*.avro")) if not f.name.startswith("snap-") and (content is None or f.name in of)]


def rewrite(files, change=lambda record: None, schema=lambda text: text, codec="null", head=lambda head: None, **options):
    """Writes files of Avro anew, with other records, schemas, codecs or metadata."""
    for file in files:
        with file.open("rb") as f:
            reader = fastavro.reader(f)
            records, says = list(reader), {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
            written = json.loads(reader.metadata["avro.schema"])
        for record in records:
            change(record)
        head(says)
        with file.open("wb") as f:
            fastavro.writer(f, fastavro.parse_schema(schema(written)), records, codec=codec, metadata=says, **options)
    sizes(files[0].parent.parent)


def sizes(table):
    """Has lists name the lengths that manifests now have."""
    for file in lists(table):
        with file.open("rb") as f:
            reader = fastavro.reader(f)
            records, written = list(reader), json.loads(reader.metadata["avro.schema"])
        for record in records:
            at = table / "metadata" / pathlib.Path(record["manifest_path"]).name
            record["manifest_length"] = at.stat().st_size if at.exists() else record["manifest_length"]
        with file.open("wb") as f:
            fastavro.writer(f, fastavro.parse_schema(written), records)


def fields(schema, change):
    """Changes the fields of a schema of Avro, those of records within it too."""
    if isinstance(schema, list):
        return [fields(s, change) for s in schema]
    if not isinstance(schema, dict):
        return schema
    if schema["type"] == "record":
        kept = [f for f in schema["fields"] if change(f) is not False]
        return schema | {"fields": [f | {"type": fields(f["type"], change)} for f in kept]}
    return schema | {k: fields(schema[k], change) for k in ("items", "values") if k in schema}


STATISTICS = {"column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds", "split_offsets", "sort_order_id", "partitions"}


def rewritten(t, tables):
    """What other writers may leave in manifests: other codecs, orders and fields. The rows are the same."""
    swap = lambda f: f.update(type=f["type"][::-1]) if isinstance(f["type"], list) and "default" not in f else f.pop("default", None)
    extra = lambda s: s | {"fields": [*s["fields"], {"name": "later", "type": ["null", {"type": "map", "values": ["null", "string"]}], "default": None}]}
    both = lambda p: [*lists(p), *manifests(p)]
    changes = {
        "uncompressed": lambda p: rewrite(both(p)), "deflate": lambda p: rewrite(both(p), codec="deflate"), "one record a block": lambda p: rewrite(both(p), codec="deflate", sync_interval=1),
        "no statistics": lambda p: rewrite(both(p), schema=lambda s: fields(s, lambda f: f["name"] not in STATISTICS)), "unions in another order": lambda p: rewrite(both(p), schema=lambda s: fields(s, swap)),
        "fields that nobody knows": lambda p: rewrite(both(p), schema=extra), "no heads": lambda p: rewrite(manifests(p), head=dict.clear),
        "bounds in the wrong order": lambda p: rewrite(manifests(p, 0), change=lambda r: r["data_file"].update(lower_bounds=r["data_file"]["upper_bounds"], upper_bounds=r["data_file"]["lower_bounds"])),
        "bounds of no bytes": lambda p: rewrite(manifests(p, 0), change=lambda r: r["data_file"].update(lower_bounds=[{"key": b["key"], "value": b""} for b in r["data_file"]["lower_bounds"] or []])),
        "another number of rows": lambda p: rewrite(manifests(p, 0), change=lambda r: r["data_file"].update(record_count=r["data_file"]["record_count"] + 1)), "other names": lambda p: rewrite(both(p), schema=lambda s: s | {"name": "other"}),
    }  # fmt: skip
    for of in ("positions", "specs"):
        for n, (name, change) in enumerate(changes.items()):
            path = tables.copy(f"rewritten {of} {n}", of)
            change(path)
            whole(tables, f"{of}, {name}", f"iceberg:{path}", tables.newest(of))
            for text in ("country = 'NO'", "id > 50 and amount > 14"):
                keep = {"country = 'NO'": lambda r: r["country"] == "NO", "id > 50 and amount > 14": lambda r: r["id"] > 50 and known("amount", r) and r["amount"] > 14}[text]
                t.equal(f"{of}, {name}: where {text}", tables.count([f"iceberg:{path}"], "id", "left", tables.nobody("id"), "--where", text), sum(map(keep, tables.newest(of).to_pylist())))
    older(t, tables)


def older(t, tables):
    """Deletes that are older than a file do not delete its rows."""
    path = tables.copy("older deletes", "filescoped")
    live = set()
    for listed in fastavro.reader((path / "metadata" / pathlib.Path(current(path)["manifest-list"]).name).open("rb")):
        if listed["content"] == 0:
            records = fastavro.reader((path / "metadata" / pathlib.Path(listed["manifest_path"]).name).open("rb"))
            live |= {pathlib.Path(r["data_file"]["file_path"]).name for r in records if r["status"] != 2}
    rewrite(manifests(path, 1), change=lambda r: r.update(sequence_number=0) if r["status"] != 2 else None)
    want = pa.concat_tables([pq.read_table(f, partitioning=None).cast(tables.newest("filescoped").schema) for f in sorted(path.rglob("*.parquet")) if f.name in live])
    t.ok("older deletes: there are some", want.num_rows > tables.newest("filescoped").num_rows)
    whole(tables, "older deletes", f"iceberg:{path}", want)


def current(table):
    says = metadata(table)
    return next(s for s in says["snapshots"] if s["snapshot-id"] == says["current-snapshot-id"])


# What is refused.


def refusals(t, tables):
    def changed(name, change, of="positions"):
        path = tables.copy(f"refused {name}", of)
        change(path)
        return f"iceberg:{path}"

    def no(name, change, *says, of="positions"):
        refused(t, tables, name, changed(name, change, of), *says)

    def snapshot(path, **more):
        say(path, lambda m: [s.update(more) for s in m["snapshots"]])

    def typ(path, text):
        say(path, lambda m: [f.update(type=text) for s in m["schemas"] for f in s["fields"] if f["name"] == "url"])

    def cut(files):
        for f in files:
            f.write_bytes(f.read_bytes()[:-20])

    def flip(files, at=0):
        for f in files:
            data = bytearray(f.read_bytes())
            data[at] ^= 1
            f.write_bytes(data)

    def remove(files):
        for f in files:
            f.unlink()

    table = tables.table("positions")
    names(t, tables, f"iceberg:{table}")
    hinted(t, tables)
    no("files of ORC and Avro", lambda p: None, "unsupported", "format", of="formats")
    no("a column with a default", lambda p: None, "unsupported", "default", of="defaults")
    without_files(t, tables, "no snapshot", f"iceberg:{tables.table('empty')}")
    no("a later format", lambda p: say(p, lambda m: m.update({"format-version": 4})), "unsupported", "version 4")
    no("no format", lambda p: say(p, lambda m: m.pop("format-version")), "format")
    for text in ("variant", "geometry(srid:4326)", "timestamp_ns", "unknown", "quantum"):
        no(f"a column of type {text}", lambda p, text=text: typ(p, text), "unsupported", text[:8])
    no("an encrypted file", lambda p: rewrite(manifests(p, 0), lambda r: r["data_file"].update(key_metadata=b"k")), "unsupported", "encrypted")
    no("an encrypted file of deletes", lambda p: rewrite(manifests(p, 1), lambda r: r["data_file"].update(key_metadata=b"k")), "unsupported", "encrypted")
    no("an encrypted manifest", lambda p: rewrite(lists(p), lambda r: r.update(key_metadata=b"k")), "unsupported", "encrypted")
    no("an encrypted table", lambda p: snapshot(p, **{"key-id": "k"}), "unsupported", "encrypted")
    no("a manifest that is cut short", lambda p: cut(manifests(p)), "metadata/")
    no("a list that is cut short", lambda p: cut(lists(p)), "snap-")
    no("a manifest of another kind", lambda p: flip(manifests(p)), "metadata/")
    no("a manifest with another mark between blocks", lambda p: flip(manifests(p), -1), "metadata/")
    no("an unknown codec", lambda p: [f.write_bytes(f.read_bytes().replace(b"\x08null", b"\x08lzma")) for f in manifests(p)], "lzma")
    no("no manifest", lambda p: remove(manifests(p)), "-m")
    no("no list", lambda p: remove(lists(p)), "snap-")
    no("a file that is gone", lambda p: remove(p.rglob("data/**/*-00001.parquet")), ".parquet")
    no("a file of deletes that is gone", lambda p: remove(p.rglob("*-deletes.parquet")), "-deletes.parquet: file does not exist")
    no("a file that changed", lambda p: [f.write_bytes(f.read_bytes() + b"x") for f in p.rglob("data/**/*.parquet")], "bytes")
    no("a file in another place", lambda p: rewrite(manifests(p, 0), lambda r: r["data_file"].update(file_path="s3://bucket/data/x.parquet")), "s3://bucket")
    no("a number of rows below 0", lambda p: rewrite(manifests(p, 0), lambda r: r["data_file"].update(record_count=-1)), "-1")
    no("another status", lambda p: rewrite(manifests(p), lambda r: r.update(status=7)), "7")
    no("another content", lambda p: rewrite(manifests(p, 1), lambda r: r["data_file"].update(content=5)), "content")
    no("deletes in a manifest of data", lambda p: rewrite(manifests(p, 0), lambda r: r["data_file"].update(content=1)), "content")
    no("a partition of no specification", lambda p: rewrite(lists(p), lambda r: r.update(partition_spec_id=99)), "99")
    no("metadata that is cut short", lambda p: cut([newest_file(p)]), "metadata.json")
    no("metadata of another format", lambda p: newest_file(p).write_text("[1]"), "metadata.json")
    no("metadata that was compressed and cut", lambda p: newest_file(p).write_bytes(gzip.compress(newest_file(p).read_bytes())[:-9]), "metadata.json")
    no("no such snapshot", lambda p: say(p, lambda m: m.update({"current-snapshot-id": 5})), "snapshot")
    no("no such schema", lambda p: say(p, lambda m: m.update({"current-schema-id": 77})), "schema")
    no("a field twice", lambda p: say(p, lambda m: [s["fields"].append(s["fields"][0]) for s in m["schemas"]]), "id")
    no("files without ids", lambda p: say(p, lambda m: m["properties"].pop("schema.name-mapping.default")), "schema.name-mapping.default", of="imported")
    no("a mapping that is broken", lambda p: say(p, lambda m: m["properties"].update({"schema.name-mapping.default": "{"})), "schema.name-mapping.default", of="imported")
    vectors(no, flip, remove, cut)
    r = t.run("join", "--ids", tables.nobody("id"), "--on", "id", "-o", tables.out("refused.parquet"), table, want=None)
    t.ok("a table's directory as plain files", r.code == 1 and "iceberg:" in r.text, str(r))


def vectors(no, flip, remove, cut):
    """Deletion vectors that are not what the manifests say."""
    puffin = lambda p: sorted(p.rglob("*.puffin"))
    one = lambda p, **more: rewrite(manifests(p, 1), lambda r: r["data_file"].update(more) if r["data_file"]["file_format"].upper() == "PUFFIN" else None)
    no("no vector", lambda p: remove(puffin(p)), "puffin", of="upgraded")
    no("a vector with another length", lambda p: flip(puffin(p), 7), "puffin", of="upgraded")
    no("a vector with other bytes", lambda p: flip(puffin(p), 32), "puffin", of="upgraded")
    no("vectors that are cut short", lambda p: [f.write_bytes(f.read_bytes()[:20]) for f in puffin(p)], "puffin", of="upgraded")
    no("a vector of no file", lambda p: one(p, referenced_data_file=None), "puffin", of="upgraded")
    no("a vector in no place", lambda p: one(p, content_offset=None), "puffin", of="upgraded")
    no("a vector before the file", lambda p: one(p, content_offset=-1), "puffin", of="upgraded")
    no("a vector behind the file", lambda p: one(p, content_offset=1 << 40), "puffin", of="upgraded")
    no("a vector of a huge size", lambda p: one(p, content_size_in_bytes=1 << 40), "puffin", of="upgraded")
    no("a vector with fewer rows", lambda p: rewrite(manifests(p, 1), lambda r: r["data_file"].update(record_count=1)), "puffin", of="upgraded")
    no("two vectors of a file", twice, "puffin", of="upgraded")


def twice(path):
    """Lists each manifest of deletes twice."""
    for file in lists(path):
        with file.open("rb") as f:
            reader = fastavro.reader(f)
            records, written = list(reader), json.loads(reader.metadata["avro.schema"])
        with file.open("wb") as f:
            fastavro.writer(f, fastavro.parse_schema(written), records + [r for r in records if r["content"] == 1])


def names(t, tables, name):
    """Names of versions that a table does not have."""
    for label, which, says in (
        ("an unknown snapshot", "snapshot=77", "77"), ("a snapshot beyond 64 bits", "snapshot=9223372036854775808", "64 bits"), ("a snapshot that is no number", "snapshot=abc", "abc"), ("an unknown branch", "branch=none", '"none"'),
        ("an unknown tag", "tag=none", '"none"'), ("a branch as a tag", "tag=main", '"main"'), ("a version of Delta", "v3", "@snapshot=ID"), ("a time before the first snapshot", "2020-01-01T00:00:00Z", "2020-01-01"), ("a time without a zone", "2026-01-01", "a time with a zone"),
    ):  # fmt: skip
        refused(t, tables, label, f"{name}@{which}", says)
    refused(t, tables, "a tag as a branch", f"iceberg:{tables.table('branches')}@branch=first", '"first"')
    refused(t, tables, "no place", "iceberg:", "iceberg:DIR")


def hinted(t, tables):
    """Directories without a usable hint."""
    for label, text, says in (("none", None, "version-hint.text"), ("of another version", "99", "99"), ("of no version", "none/../x", "version-hint.text"), ("that is empty", "", "version-hint.text"), ("that is huge", "9" * 5000, "version-hint.text")):
        path = tables.copy(f"hint {label}", "grown")
        hint = path / "metadata/version-hint.text"
        hint.unlink() if text is None else hint.write_text(text)
        refused(t, tables, f"a hint {label}", f"iceberg:{path}", says)


def limits(t, tables):
    """What is not read yet, and says so; what is beside it is read."""
    for label, name, want in list(tables.names("grown"))[:1]:
        whole(tables, f"a field of a struct, before it is added: {label}", name, want)
    refused(t, tables, "a field that old files lack", f"iceberg:{tables.table('grown')}", "unsupported", "column s.b")
    for of in ("formats", "defaults"):
        label, name, want = next(tables.names(of))
        whole(tables, f"{of}: {label}", name, want)


MADE = {"grown": grown, "types": types, "imported": imported, "random": histories}
APART = ("grown", "defaults", "formats", "empty")  # see limits


def run(t, _repository):
    tables = Tables(t)
    for name in SPARK:
        if name not in APART:
            t.group(f"iceberg Spark, {name}", by_spark, tables, name)
    for name, function in MADE.items():
        t.group(f"iceberg pyiceberg, {name}", function, tables)
    for name in typed():
        if name not in ("id", "f", "d", "x"):  # pyiceberg writes no partitions by these
            t.group(f"iceberg pyiceberg, by {name}", partitions_by, tables, name)
    t.group("iceberg reruns", reruns, tables)
    t.group("iceberg rewritten", rewritten, tables)
    t.group("iceberg limits", limits, tables)
    t.group("iceberg refused", refusals, tables)
