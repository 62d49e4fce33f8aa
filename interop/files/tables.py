"""Delta tables as logs and as IDs: their rows as deltalake, DuckDB's extension and Spark read them."""

import base64
import datetime
import json
import math
import os
import pathlib
import random
import shutil
import struct
import subprocess
import tarfile
import urllib.parse
import zlib
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

UTC = datetime.UTC
HERE = pathlib.Path(__file__).resolve().parent
SPARK = sorted(f.name.removesuffix(".tar.xz") for f in (HERE / "delta").glob("*.tar.xz"))


def plain(table, columns=None):
    """The rows as texts, whatever the order of rows and columns."""
    table = table if columns is None else table.select(sorted(columns))
    return sorted(repr(ordered(row)) for row in table.to_pylist())


def ordered(value):
    """A value in which the order of a struct's fields does not matter."""
    if isinstance(value, dict):
        return [(k, ordered(value[k])) for k in sorted(value)]
    return [ordered(v) for v in value] if isinstance(value, list | tuple) else value


def kind(typ):
    """A type as tables have it: how long offsets are does not matter, and who may be NULL."""
    if pa.types.is_dictionary(typ):
        return kind(typ.value_type)
    for of, name in (
        (pa.types.is_large_string, "string"),
        (pa.types.is_string_view, "string"),
        (pa.types.is_large_binary, "binary"),
        (pa.types.is_binary_view, "binary"),
    ):
        if of(typ):
            return name
    if pa.types.is_struct(typ):
        return {f.name: kind(f.type) for f in typ}
    if pa.types.is_list(typ) or pa.types.is_large_list(typ):
        return [kind(typ.value_type)]
    if pa.types.is_map(typ):
        return [kind(typ.key_type), kind(typ.item_type)]
    return str(typ)


def kinds(schema):
    return {f.name: kind(f.type) for f in schema}


def read(path):
    """An output. INT96, which Spark writes for points in time, has no zone of its own."""
    file = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    leaves = [file.schema.column(i) for i in range(len(file.schema))]
    table, old = file.read(), {c.path for c in leaves if c.physical_type == "INT96"}
    return table.cast(pa.schema([(f.name, zoned(f.type, f.name, old)) for f in table.schema])) if old else table


def zoned(typ, path, old):
    """The type, in which the leaves with these paths are points in time."""
    if pa.types.is_struct(typ):
        return pa.struct([(f.name, zoned(f.type, f"{path}.{f.name}", old)) for f in typ])
    return pa.timestamp("us", "UTC") if path in old else typ


class Tables:
    """Inputs that all checks share: IDs, and a log to which tables are the IDs."""

    made, keys = "delta", ("id", "key")  # the columns that are keys
    archives = HERE / "delta"  # of tables that Spark has made

    def __init__(self, t):
        self.t, self.dir = t, t.path(f"tables-{self.made}")
        self.dir.mkdir()
        self.few, self.log = [*range(0, 70_000, 3), 70_001], self.dir / "log.parquet"
        for key in self.keys:
            for ids, values in ((self.nobody(key), [-77]), (self.some(key), self.few)):
                pq.write_table(pa.table({key: pa.array(values, pa.int64())}), ids)
        pq.write_table(pa.table({"k": pa.array(range(120), pa.int64()), "k2": range(120)}), self.log)

    def spark(self, name):
        """A directory with the table and the rows that Spark reads."""
        to = self.dir / "Spark" / name
        if not to.exists():
            with tarfile.open(self.archives / f"{name}.tar.xz") as tar:
                tar.extractall(to, filter="data")
        return to

    def nobody(self, key):
        """IDs that are in no row."""
        return self.dir / f"nobody-{key}.parquet"

    def some(self, key):
        """A third of the IDs."""
        return self.dir / f"some-{key}.parquet"

    def out(self, name):
        out = self.dir / name
        shutil.rmtree(out.with_suffix(".bloomjoin"), ignore_errors=True)
        shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)
        return out

    def rows(self, logs, key, kind="left", ids=None, *options):
        """The rows of a join; of type left, with an ID that is in no row, all."""
        out = self.out("out.parquet")
        self.t.run("join", "--ids", ids or self.nobody(key), "--on", key, "--type", kind, *options, "-o", out, *logs)
        return read(out)

    def count(self, logs, key, kind, ids, *options):
        return self.t.run("join", "--ids", ids, "--on", key, "--type", kind, "--count", *options, "--json", *logs).json["rows_out"]


def whole(tables, name, table, want, key="id"):
    """All rows and columns, with their types."""
    got = tables.rows([table], key)
    tables.t.equal(f"{name}: columns", kinds(got.schema), kinds(want.schema))
    tables.t.equal(f"{name}: rows", plain(got), plain(want))
    here = sum(1 for k in {*want[key].to_pylist()} if k is not None and 0 <= k < 120)
    r = tables.t.run("join", "--ids", table, "--on", f"k={key}", "--count", "--json", tables.log)
    tables.t.equal(f"{name}: IDs", r.json["rows_out"], here)


def every(tables, name, table, want, conditions, key="id"):
    """All that is done with logs and IDs."""
    t, few, rows = tables.t, set(tables.few), want.to_pylist()
    of = lambda keep: sorted(repr(ordered(row)) for row in rows if keep(row))
    whole(tables, name, table, want, key)
    t.equal(f"{name}: semi", plain(tables.rows([table], key, "semi", tables.some(key))), of(lambda r: r[key] in few))
    t.equal(f"{name}: anti", plain(tables.rows([table], key, "anti", tables.some(key))), of(lambda r: r[key] not in few))
    for kind, keep in (("semi", lambda r: r[key] in few), ("anti", lambda r: r[key] not in few)):
        t.equal(f"{name}: count of {kind}", tables.count([table], key, kind, tables.some(key)), len(of(keep)))
    for text, keep in conditions.items():
        t.equal(f"{name}: where {text}", plain(tables.rows([table], key, "left", None, "--where", text)), of(keep))
        t.equal(
            f"{name}: count where {text}",
            tables.count([table], key, "anti", tables.some(key), "--where", text),
            len(of(lambda r, keep=keep: keep(r) and r[key] not in few)),
        )
    for column in {"country", "land"} & {*want.column_names}:
        some = pa.table({column: ["NO", "a b/ü=%", "c1", "nowhere"]})
        pq.write_table(some, tables.out("some.parquet"))
        t.equal(
            f"{name}: a column of partitions as key",
            plain(tables.rows([table], column, "semi", tables.dir / "some.parquet")),
            of(lambda r, c=column: r[c] in ("NO", "a b/ü=%", "c1")),
        )
    listed = tables.out("list.jsonl")
    t.run("inputs", "--index", key, "--force", "-o", listed, table)
    t.equal(f"{name}: from a list", plain(tables.rows(["--files-from", listed], key)), of(lambda r: True))
    t.equal(
        f"{name}: semi, from a list with an index", plain(tables.rows(["--files-from", listed], key, "semi", tables.some(key))), of(lambda r: r[key] in few)
    )
    out = tables.out("filter.bjf")
    t.run("build", "--key", key, "-o", out, tables.some(key))
    t.run("scan", "--filter", out, "-o", tables.out("out.parquet"), table)
    got = plain(read(tables.dir / "out.parquet"))
    t.ok(f"{name}: scan", Counter(of(lambda r: r[key] in few)) <= Counter(got) <= Counter(of(lambda r: True)))
    t.run("dedup", "--key", key, "--exact", "-o", tables.out("out.parquet"), table)
    t.equal(f"{name}: dedup", sorted({row[key] for row in read(tables.dir / "out.parquet").to_pylist()}, key=str), sorted({row[key] for row in rows}, key=str))
    shards(tables, name, table, want, key)
    as_ids(tables, name, table, rows, key)


def shards(tables, name, table, want, key):
    """Two workers leave a directory with the rows, and the values of partitions in names of directories."""
    out = tables.out("shards")
    for i in ("0/2", "1/2"):
        tables.t.run("join", "--ids", tables.nobody(key), "--on", key, "--type", "left", "--shard", i, "-o", f"{out}/", table)
    tables.t.ok(f"{name}: shards are committed", (out / "_SUCCESS").exists())
    directory(tables, f"{name}: rows of shards", out, want, f"{name}: directories of shards")


def directory(tables, name, out, want, texts_name=None):
    """The rows of a directory are those of a table, and so are the values in names of directories."""
    got, columns, texts = [], set(want.column_names), True
    for path in out.rglob("*.parquet"):
        part = read(path)
        values = dict(d.split("=", 1) for d in path.relative_to(out).parts[:-1] if "=" in d)
        values = {urllib.parse.unquote(k): None if v == "__HIVE_DEFAULT_PARTITION__" else urllib.parse.unquote(v) for k, v in values.items()}
        columns &= {*part.column_names}
        for row in part.to_pylist():
            texts &= all(row.get(k, v) == v or (v is None and row[k] == "__HIVE_DEFAULT_PARTITION__") for k, v in values.items() if want.schema.field(k).type in (pa.string(), pa.large_string()))
            got.append(row)
    tables.t.ok(texts_name or f"{name}: directories", texts)
    tables.t.equal(name, sorted(repr(ordered({c: r[c] for c in columns})) for r in got), plain(want, columns))


def as_ids(tables, name, table, rows, key):
    """The table as --ids, for rows of a log and for pairs."""
    t, keys = tables.t, sorted(r[key] for r in rows if r[key] is not None and 0 <= r[key] < 120)
    on, out = f"k={key}", tables.out("ids.parquet")
    t.run("join", "--ids", table, "--on", on, "-o", out, tables.log)
    t.equal(f"{name}: rows with an ID", read(out)["k"].to_pylist(), sorted(set(keys)))
    t.run("join", "--ids", table, "--on", on, "--type", "inner", "--force", "-o", out, tables.log)
    got = [(r.pop("k"), r.pop("k2"), ordered(r)) for r in read(out).to_pylist()]
    want = [(r[key], r[key], ordered(r)) for r in rows if r[key] in keys]
    t.equal(f"{name}: pairs", sorted(map(repr, got)), sorted(map(repr, want)))


# Tables by deltalake.

COUNTRIES = ["NO", "SE", "a b/ü=%", "__x__", "'", None]
NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=UTC)
DAY = datetime.date(2026, 1, 1)
CONDITIONS = {
    "country is null": lambda r: r["country"] is None,
    "country = 'a b/ü=%'": lambda r: r["country"] == "a b/ü=%",
    "amount > 5": lambda r: r["amount"] is not None and r["amount"] > 5,
    "url = '/u'": lambda r: r["url"] == "/u",
    "at >= TIMESTAMPTZ '2026-01-02T00:00:00Z'": lambda r: r["at"] is not None and r["at"] >= NOON + datetime.timedelta(hours=12),
}


def batch(low, high, **more):
    r = range(low, high)
    return pa.table(
        {
            "id": pa.array(r, pa.int64()),
            "country": pa.array([COUNTRIES[i % 6] for i in r]),
            "at": pa.array([None if i % 13 == 5 else NOON + datetime.timedelta(hours=i) for i in r], pa.timestamp("us", "UTC")),
            "amount": pa.array([None if i % 11 == 3 else i / 4 for i in r]),
            "url": pa.array([f"/p/{i}" for i in r]),
            **{name: pa.array([make(i) for i in r]) for name, make in more.items()},
        }
    )


def rows_of(table):
    """What deltalake's query engine reads of a version; its reader for pyarrow knows fewer features."""
    from deltalake import QueryBuilder

    got = pa.table(QueryBuilder().register("t", table).execute("select * from t").read_all())
    return got.cast(pa.schema([(f.name, plain_type(f.type)) for f in got.schema]))


def plain_type(typ):
    """The type without views, which pyarrow cannot cast everywhere."""
    if pa.types.is_struct(typ):
        return pa.struct([(f.name, plain_type(f.type)) for f in typ])
    if pa.types.is_list(typ) or pa.types.is_large_list(typ):
        return pa.list_(plain_type(typ.value_type))
    if pa.types.is_map(typ):
        return pa.map_(plain_type(typ.key_type), plain_type(typ.item_type))
    return {"string": pa.string(), "binary": pa.binary()}.get(kind(typ), typ)


class Made:
    """A table that deltalake changes step by step."""

    def __init__(self, tables, name, data, **options):
        from deltalake import DeltaTable, write_deltalake

        self.path = tables.dir / name
        write_deltalake(self.path, data, **options)
        self.table, self.tables = DeltaTable(self.path), tables

    def write(self, data, mode="append", **options):
        from deltalake import write_deltalake

        write_deltalake(self.table, data, mode=mode, **options)
        self.table.update_incremental()

    def versions(self, first=0):
        """Each version of the table, as a name and with its rows, by both readers of deltalake where these can."""
        from deltalake import DeltaTable

        for version in range(first, self.table.version() + 1):
            of = DeltaTable(self.path, version=version)
            yield version, f"delta:{self.path}@v{version}", rows_of(of), of

    def check(self, conditions, key="id", first=0):
        """Older versions whole, and the newest one in all ways."""
        for version, name, want, of in self.versions(first):
            whole(self.tables, f"v{version}", name, want, key)
            self.tables.t.equal(f"v{version}: pyarrow", plain(of.to_pyarrow_table().cast(want.schema)), plain(want))
        every(self.tables, "newest", f"delta:{self.path}", want, conditions, key)


def partitions(t, tables):
    """Rows are added, deleted and updated, files compacted, the log has a checkpoint."""
    made = Made(tables, "partitions", batch(0, 60), partition_by=["country"])
    made.write(batch(60, 90))
    made.table.delete("id % 7 = 0")
    made.table.update({"url": "'/u'"}, predicate="id between 20 and 30")
    made.table.delete("country = 'a b/ü=%' and id > 50")
    made.table.optimize.compact()
    made.table.create_checkpoint()
    made.write(batch(90, 100))
    made.table.update({"country": "'DK'"}, predicate="country is null and id < 40")
    made.table.delete("country = 'SE'")
    made.check(CONDITIONS)
    log = made.path / "_delta_log"
    for version in range(made.table.version() + 1):
        moment = NOON.timestamp() + 3600 * version
        os.utime(log / f"{version:020}.json", (moment, moment))
    for version in range(made.table.version() + 1):
        for seconds, found in ((0, version), (3599, version)):
            at = NOON + datetime.timedelta(hours=version, seconds=seconds)
            made.table.load_as_version(at)
            t.equal(f"deltalake: {seconds} s after v{version}", made.table.version(), found)
            t.equal(f"{seconds} s after v{version}", plain(tables.rows([f"delta:{made.path}@{at:%Y-%m-%dT%H:%M:%SZ}"], "id")), plain(rows_of(made.table)))
    refused(t, tables, "before v0", f"delta:{made.path}@2026-01-01T11:59:59Z", "one after the first commit")
    refused(t, tables, "no such version", f"delta:{made.path}@v99", "up to")


def partition_types(t, tables):
    """Values of partitions are of their types."""
    r = range(6)
    columns = {
        "b": pa.array([None, True, False] * 2), "i8": pa.array([None, -128, 127, 0, 1, 2], pa.int8()), "i32": pa.array([None, -(2**31), 2**31 - 1, 0, 1, 2], pa.int32()),
        "i64": pa.array([None, -(2**63), 2**63 - 1, 0, 1, 2], pa.int64()), "f": pa.array([None, 0.1, -0.0, math.inf, 1e20, 2], pa.float32()), "d": pa.array([None, 0.1, 1e17, -math.inf, 1.5e-7, 2]),
        "m": pa.array([None, *range(-2, 3)], pa.int32()).cast(pa.decimal128(13, 3)), "day": pa.array([None, *(DAY - datetime.timedelta(9999 * i) for i in range(5))]),
        "ts": pa.array([None, *(NOON - datetime.timedelta(9999 * i, 0, i) for i in range(5))], pa.timestamp("us", "UTC")),
        "local": pa.array([None, *(NOON.replace(tzinfo=None) - datetime.timedelta(9999 * i, 0, i) for i in range(5))], pa.timestamp("us")),
        "s": pa.array([None, "x", " y ", "null", "a=b/c%25", "ü"]),
    }  # fmt: skip
    made = Made(tables, "types of partitions", pa.table({"id": pa.array(r, pa.int64()), **columns, "v": pa.array(r, pa.int32())}), partition_by=list(columns))
    made.table.create_checkpoint()
    made.check(
        {
            "b": lambda r: r["b"] is True, "i8 = -128": lambda r: r["i8"] == -128, "i64 > 9223372036854775806": lambda r: r["i64"] == 2**63 - 1, "m < 0": lambda r: r["m"] is not None and r["m"] < 0,
            "day < '2000-01-01'": lambda r: r["day"] is not None and r["day"].year < 2000, "ts >= '2026-01-01T12:00:00Z'": lambda r: r["ts"] == NOON, "s = 'a=b/c%25'": lambda r: r["s"] == "a=b/c%25", "v = 3": lambda r: r["v"] == 3,
        }
    )  # fmt: skip


def values(t, tables):
    """Columns of data of all types, also within others."""
    r = range(40)
    data = pa.table(
        {
            "id": pa.array(r, pa.int64()), "i16": pa.array(r, pa.int16()), "f": pa.array([i / 3 for i in r], pa.float32()), "b": pa.array([i % 3 == 0 if i % 4 else None for i in r]),
            "m": pa.array(r, pa.int32()).cast(pa.decimal128(38, 4)), "day": pa.array([DAY + datetime.timedelta(i) for i in r]), "bytes": pa.array([bytes([i, 255]) for i in r]),
            "local": pa.array([NOON.replace(tzinfo=None) + datetime.timedelta(i) for i in r], pa.timestamp("us")), "at": pa.array([NOON - datetime.timedelta(99999 + i) for i in r], pa.timestamp("us", "UTC")),
            "s": pa.array([{"x": i, "y": {"z": [str(i), None]}} if i % 5 else None for i in r]), "l": pa.array([[{"p": i}] * (i % 3) for i in r]),
            "map": pa.array([[("a", i), ("b", None)] if i % 2 else None for i in r], pa.map_(pa.string(), pa.int64())), "a.b": pa.array(r, pa.int32()), "Ü b": pa.array(r, pa.int32()),
        }
    )  # fmt: skip
    made = Made(tables, "values", data)
    made.table.delete("i16 in (3, 4, 39)")
    every(
        tables,
        "newest",
        f"delta:{made.path}",
        rows_of(made.table),
        {
            "b": lambda r: r["b"] is True,
            "m > 7.5": lambda r: r["m"] > 7,
            '"a.b" = 9': lambda r: r["a.b"] == 9,
            "local < '2026-01-09'": lambda r: r["local"] < datetime.datetime(2026, 1, 9),
        },
    )


def schemas(t, tables):
    """Columns are added by writes and by merges, tables overwritten, in part and with another schema, and restored."""
    made = Made(tables, "schemas", batch(0, 20), partition_by=["country"])
    made.write(batch(20, 40, extra=lambda i: i * 2), schema_mode="merge")
    made.write(batch(40, 50).drop(["url"]), schema_mode="merge")
    source = batch(45, 60, extra=lambda i: -i)
    made.table.merge(source, "s.id = t.id", source_alias="s", target_alias="t").when_matched_update_all().when_not_matched_insert_all().execute()
    made.write(batch(70, 80, extra=lambda i: i).filter(pc.field("country") == "NO"), "overwrite", predicate="country = 'NO'")
    made.table.restore(3)
    made.table.update_incremental()
    last = made.table.version()
    made.check(CONDITIONS | {"extra is null": lambda r: r["extra"] is None})
    made.write(
        pa.table({"id": pa.array(range(9), pa.int64()), "country": ["x"] * 9, "other": [datetime.date(2026, 1, 2)] * 9}), "overwrite", schema_mode="overwrite"
    )
    made.write(pa.table({"id": pa.array(range(9, 20), pa.int64()), "country": ["y"] * 11, "other": [DAY] * 11}))
    for version, name, want, _ in made.versions(last + 1):
        whole(tables, f"v{version}", name, want)


def cleaned(t, tables):
    """Old commits are gone from the log, old files from the directory."""
    made = Made(
        tables,
        "cleaned",
        batch(0, 20),
        partition_by=["country"],
        configuration={"delta.logRetentionDuration": "interval 0 days", "delta.deletedFileRetentionDuration": "interval 0 days"},
    )
    made.write(batch(20, 30))
    made.table.delete("id < 5")
    made.table.optimize.compact()
    last = made.table.version()
    whole(tables, "before", f"delta:{made.path}@v1", next(want for v, _, want, _ in made.versions() if v == 1))
    made.table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    made.table.update_incremental()
    refused(t, tables, "files that are gone", f"delta:{made.path}@v0", "was the table vacuumed")
    made.write(batch(30, 40))
    made.table.create_checkpoint()
    log = made.path / "_delta_log"
    for f in log.iterdir():
        os.utime(f, (1_700_000_000, 1_700_000_000))
    made.table.cleanup_metadata()
    t.ok("commits are gone", not (log / f"{0:020}.json").exists())
    made.write(batch(40, 50))
    every(tables, "newest", f"delta:{made.path}", rows_of(made.table), CONDITIONS)
    refused(t, tables, "commits that are gone", f"delta:{made.path}@v{last}", "the log lacks version 0")


def places(t, tables):
    """Files outside of the table's directory, by paths and by URLs, as clones have them."""
    made = Made(tables, "origin", batch(0, 30), partition_by=["country"])
    want = rows_of(made.table)
    for name, prefix in (("path", f"{made.path}/"), ("url", f"file://{made.path}/"), ("short url", f"file:{made.path}/")):
        clone = tables.dir / f"clone {name}"
        (clone / "_delta_log").mkdir(parents=True)
        lines = [json.loads(line) for line in (made.path / f"_delta_log/{0:020}.json").read_text().splitlines()]
        for a in lines:
            if "add" in a:
                a["add"]["path"] = prefix + a["add"]["path"]
        commit(clone, 0, lines)
        whole(tables, name, f"delta:{clone}", want)
    copy = tables.dir / "100%20 = ü?"
    shutil.copytree(made.path, copy)
    whole(tables, "a directory with marks of URLs", f"delta:{copy}", want)


def commit(path, version, lines):
    (path / f"_delta_log/{version:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))


def histories(t, tables):
    """Random changes: each version is what deltalake reads."""
    rng = random.Random(5)
    made, at = Made(tables, "random", batch(0, 30), partition_by=["country"]), 30
    changes = {
        "append": lambda: made.write(batch(at, at + 10, **({"extra": lambda i: i} if rng.random() < 0.5 else {})), schema_mode="merge"),
        "delete": lambda: made.table.delete(rng.choice([f"id % {rng.randrange(3, 9)} = 1", "country is null", f"id between {at - 20} and {at - 10}"])),
        "update": lambda: made.table.update({rng.choice(["url", "country"]): "'v'"}, predicate=f"id % 5 = {rng.randrange(5)}"),
        "compact": lambda: made.table.optimize.compact(),
        "checkpoint": lambda: made.table.create_checkpoint(),
        "overwrite": lambda: made.write(batch(at, at + 10), "overwrite", predicate=f"id < {at - 40}"),
        "restore": lambda: made.table.restore(rng.randrange(made.table.version() + 1)),
    }
    for name in rng.choices(list(changes), weights=[6, 3, 3, 1, 2, 0, 1], k=60):
        changes[name]()
        made.table.update_incremental()
        at += 10
    t.ok("there are versions", made.table.version() > 25)
    wrong = [v for v, name, want, _ in made.versions() if plain(tables.rows([name], "id"), want.column_names) != plain(want)]
    t.equal("versions", wrong, [])


# Deletion vectors, written here: deltalake writes none.

Z85 = bytes.maketrans(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
)


def bitmap(rows, runs):
    """Rows as a Roaring bitmap: arrays and bitmaps, or runs."""
    blocks = {}
    for row in sorted(rows):
        blocks.setdefault(row >> 16, []).append(row & 0xFFFF)
    heads = b"".join(struct.pack("<HH", k, len(v) - 1) for k, v in blocks.items())
    bodies = []
    for v in blocks.values():
        if runs:
            starts = [i for i, x in enumerate(v) if i == 0 or v[i - 1] != x - 1]
            ends = [*starts[1:], len(v)]
            bodies.append(struct.pack("<H", len(starts)) + b"".join(struct.pack("<HH", v[a], b - a - 1) for a, b in zip(starts, ends, strict=True)))
        elif len(v) <= 4096:
            bodies.append(struct.pack(f"<{len(v)}H", *v))
        else:
            bodies.append(sum(1 << x for x in v).to_bytes(8192, "little"))
    n = len(blocks)
    if runs:
        start = struct.pack("<I", 12347 | (n - 1) << 16) + ((1 << n) - 1).to_bytes((n + 7) // 8, "little") + heads
    else:
        start = struct.pack("<II", 12346, n) + heads
    if not runs or n >= 4:
        at = len(start) + 4 * n
        for body in bodies:
            start += struct.pack("<I", at)
            at += len(body)
    return struct.pack("<IQI", 1681511377, 1, 0) + start + b"".join(bodies)


def vector(path, rows, how):
    """Writes the vector of a file, and returns what the log says of it. How: runs or not, and where."""
    data = bitmap(rows, "runs" in how)
    says = {"sizeInBytes": len(data), "cardinality": len(rows)}
    if "inline" in how:
        return says | {"storageType": "i", "pathOrInlineDv": z85(data + bytes(-len(data) % 4))}
    stored = struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    name = random.Random(len(data)).randbytes(16)
    hexed = name.hex()
    file = f"deletion_vector_{hexed[:8]}-{hexed[8:12]}-{hexed[12:16]}-{hexed[16:20]}-{hexed[20:]}.bin"
    folder = "" if "absolute" in how else "ab"
    (path / folder).mkdir(exist_ok=True)
    (path / folder / file).write_bytes(b"\1" + b"before" + stored + b"after")
    text = {"storageType": "p", "pathOrInlineDv": f"file://{path}/{file}"} if "absolute" in how else {"storageType": "u", "pathOrInlineDv": folder + z85(name)}
    return says | text | {"offset": 7}


def z85(data):
    return base64.b85encode(data).translate(Z85).decode()


FIELDS = [("id", "long"), ("n", "long"), ("text", "string")]


def heads(fields=FIELDS, features=("deletionVectors",), **configuration):
    schema = {"type": "struct", "fields": [{"name": n, "type": typ, "nullable": True, "metadata": {}} for n, typ in fields]}
    meta = {
        "id": "11111111-1111-1111-1111-111111111111",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": [],
    }
    return [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [*features], "writerFeatures": [*features]}},
        {"metaData": {**meta, "configuration": configuration, "createdTime": 0}},
    ]


def vectors(t, tables):
    """Deleted rows in pages, row groups and files: few, half, ranges, all."""
    rng, path, lines, want, low = random.Random(3), tables.dir / "written", heads(), [], 0
    (path / "_delta_log").mkdir(parents=True)
    files = {
        "random": (66_000, lambda n: rng.sample(range(n), n // 2), ""), "few": (3000, lambda n: [0, 1, 1499, n - 1], "inline"), "ranges": (66_000, lambda n: [*range(500, 40_000), *range(41_000, n - 7)], "runs"),
        "half": (3000, lambda n: range(0, n, 2), "absolute"), "all": (3000, lambda n: range(n), "runs inline"), "none": (3000, lambda n: [], None), "groups": (3000, lambda n: range(700, 1400), "absolute runs"),
    }  # fmt: skip
    for name, (n, choose, how) in files.items():
        data = pa.table(
            {"id": pa.array(range(low, low + n), pa.int64()), "n": [rng.randrange(50) for _ in range(n)], "text": [f"{name} {i % 99}" for i in range(n)]}
        )
        file = path / f"{name}.parquet"
        pq.write_table(data, file, row_group_size=700 if n == 3000 else 20_000, data_page_size=1000, write_page_index=True)
        gone = set(choose(n))
        add = {
            "path": file.name,
            "partitionValues": {},
            "size": file.stat().st_size,
            "modificationTime": 0,
            "dataChange": True,
            "stats": json.dumps({"numRecords": n, "tightBounds": False}),
        }
        if how is not None:
            add["deletionVector"] = vector(path, gone, how)
        lines.append({"add": add})
        want.append(data.filter(pa.array([i not in gone for i in range(n)])))
        low += n
    commit(path, 0, lines)
    want = pa.concat_tables(want)
    every(
        tables,
        "written",
        f"delta:{path}",
        want,
        {"n = 3": lambda r: r["n"] == 3, "text = 'few 7' or id > 140000": lambda r: r["text"] == "few 7" or r["id"] > 140_000},
    )


# What is refused.


def refused(t, tables, name, table, *says):
    """An error that says what is wrong, as a log and as IDs; nothing is left."""
    out = tables.out("refused.parquet")
    for how, args in (("a log", ("--ids", tables.nobody("id"), "--on", "id", table)), ("IDs", ("--ids", table, "--on", "k=id", tables.log))):
        r = t.run("join", *args, "-o", out, want=None)
        t.ok(f"{name}: {how}", r.code not in (0, 2) and all(s in r.text for s in says) and not out.exists(), f"want {says}, got {r}")


def refusals(t, tables):
    def changed(name, change, of="vectors"):
        path = tables.dir / f"refused {name}"
        shutil.copytree(tables.spark(of) / "table", path)
        change(path)
        return f"delta:{path}"

    def parts(path, pattern):
        return sorted(path.rglob(pattern), key=lambda p: p.stat().st_size)

    def protocol(path, features, **configuration):
        commit(path, 6, heads(FIELDS, features, **configuration))

    def damage(at):
        def change(path):
            for file in parts(path, "deletion_vector_*.bin"):
                data = bytearray(file.read_bytes())
                data[at] ^= 1
                file.write_bytes(data)

        return change

    log = "_delta_log/{:020}.json"
    wide = f"delta:{tables.spark('widened')}/table"
    refused(t, tables, "type widening", wide, "unsupported", "typeWidening")
    refused(t, tables, "an unknown feature", changed("feature", lambda p: protocol(p, ["deletionVectors", "quantumRows"])), "unsupported", '"quantumRows"')
    refused(t, tables, "a catalog", changed("catalog", lambda p: protocol(p, ["catalogManaged"])), "unsupported", '"catalogManaged"')
    refused(
        t,
        tables,
        "mapping without the feature",
        changed("mapping", lambda p: protocol(p, [], **{"delta.columnMapping.mode": "name"})),
        "unsupported",
        "column mapping that the protocol",
    )
    refused(
        t,
        tables,
        "another mode of mapping",
        changed("mode", lambda p: protocol(p, ["columnMapping"], **{"delta.columnMapping.mode": "magic"})),
        "unsupported",
        '"magic"',
    )
    refused(t, tables, "a file that is gone", changed("gone", lambda p: [f.unlink() for f in parts(p, "country=*/*.parquet")]), "was the table vacuumed")
    refused(
        t,
        tables,
        "a file that changed",
        changed("size", lambda p: [f.write_bytes(f.read_bytes() + b"x") for f in parts(p, "country=*/*.parquet")]),
        "bytes of a file of the table",
    )
    refused(t, tables, "no vector", changed("vector", lambda p: [f.unlink() for f in parts(p, "*.bin")]), "was the table vacuumed")
    refused(t, tables, "a vector with another byte", changed("checksum", damage(-9)), "checksum")
    refused(t, tables, "a vector of another size", changed("length", damage(4)), "deletion_vector_")
    refused(
        t, tables, "a vector that is cut short", changed("short", lambda p: [f.write_bytes(f.read_bytes()[:-6]) for f in parts(p, "*.bin")]), "deletion_vector_"
    )
    refused(t, tables, "no commit", changed("commit", lambda p: (p / log.format(4)).unlink()), "lacks version 4")
    refused(t, tables, "no commits", changed("commits", lambda p: shutil.rmtree(p / "_delta_log")), "_delta_log/")
    refused(t, tables, "half a commit", changed("half", lambda p: (p / log.format(5)).write_text((p / log.format(5)).read_text()[:-40])), "no action")
    refused(
        t,
        tables,
        "a checkpoint that is cut short",
        changed("checkpoint", lambda p: [f.write_bytes(f.read_bytes()[:-1]) for f in parts(p, "*.checkpoint.parquet")]),
        "checkpoint.parquet",
    )
    refused(t, tables, "no sidecar", changed("sidecar", lambda p: shutil.rmtree(p / "_delta_log/_sidecars"), "sidecars"), "_sidecars/")


# Tables by Spark.


def limits(t, tables):
    """What is not read yet, and says so."""
    grown = tables.spark("grown")
    whole(tables, "a field of a struct, before it is added", f"delta:{grown}/table@v1", pq.read_table(grown / "rows/v1.parquet"))
    refused(t, tables, "a field that old files lack", f"delta:{grown}/table", "unsupported", "column s.b")
    mixed = tables.spark("mixed")
    want = pq.read_table(mixed / "rows/v3.parquet", partitioning=None)
    for kind, keep in (("anti", lambda r: r["id"] % 3), ("semi", lambda r: r["id"] % 3 == 0)):
        t.equal(
            f"INT96 and other times: count of {kind}",
            tables.count([f"delta:{mixed}/table"], "id", kind, tables.some("id")),
            sum(map(bool, map(keep, want.to_pylist()))),
        )
    shards(tables, "INT96 and other times", f"delta:{mixed}/table", want, "id")
    r = t.run("join", "--ids", tables.nobody("id"), "--on", "id", "--type", "left", "-o", tables.out("mixed.parquet"), f"delta:{mixed}/table", want=1)
    t.ok("INT96 and other times, in one file", "write to a directory" in r.text and "timestamp" in r.text, str(r))


def conditions_of(name):
    late = datetime.datetime(2020, 2, 29, tzinfo=UTC)
    return {
        "byname": {"land is null": lambda r: r["land"] is None, "land = 'c1'": lambda r: r["land"] == "c1", "page = 'new'": lambda r: r["page"] == "new", "id > 15": lambda r: r["id"] > 15},
        "namedlater": {"country = 'c1'": lambda r: r["country"] == "c1", "id = '/p/3'": lambda r: r["id"] == "/p/3", "key > 7": lambda r: r["key"] > 7},
        "types": {"flag": lambda r: r["flag"] is True, "Upper = 2": lambda r: r["Upper"] == 2, "at < TIMESTAMPTZ '2020-02-29T00:00:00Z'": lambda r: r["at"] is not None and r["at"] < late, "local > '1970-01-01'": lambda r: r["local"] is not None and r["local"].year >= 1970},
        "keys": {
            "flag": lambda r: r["flag"] is True, "b = -1": lambda r: r["b"] == -1, "m < 1": lambda r: r["m"] is not None and r["m"] < 1, "day > '1999-12-31'": lambda r: r["day"] is not None and r["day"] > datetime.date(1999, 12, 31),
            "at > '2023-11-15T00:00:00Z'": lambda r: r["at"] is not None and r["at"] > datetime.datetime(2023, 11, 15, tzinfo=UTC), "local < '1970-01-01'": lambda r: r["local"] is not None and r["local"].year < 1970,
            "text = 'ü/=%'": lambda r: r["text"] == "ü/=%", "text is null": lambda r: r["text"] is None,
        },
        "replaced": {k: CONDITIONS[k] for k in ("country is null", "amount > 5")},
    }.get({"byid": "byname", "micros": "types"}.get(name, name), CONDITIONS)  # fmt: skip


def by_spark(t, tables, name):
    """Each version that Spark reads, and the newest one in all ways."""
    rows, table = tables.spark(name) / "rows", f"delta:{tables.spark(name) / 'table'}"
    for file in sorted(rows.glob("v*.parquet"), key=lambda f: int(f.stem[1:])):
        want = pq.read_table(file, partitioning=None)
        if want.num_rows:
            whole(tables, file.stem, f"{table}@{file.stem}", want, want.column_names[0])
        else:
            refused(t, tables, f"{file.stem}, without files", f"{table}@{file.stem}", "holds no files")
            args = ("--ids", tables.nobody("id"), "--on", "id", "--type", "left", "--count", "--allow-empty", "--json")
            t.equal(f"{file.stem}: --allow-empty", t.run("join", *args, f"{table}@{file.stem}").json["rows_out"], 0)
    every(tables, "newest", table, want, conditions_of(name), want.column_names[0])
    if (rows / "times.json").exists():
        for n, (moment, ids) in enumerate(json.loads((rows / "times.json").read_text()).items()):
            if ids:
                t.equal(f"time {n}", sorted(tables.rows([f"{table}@{moment}"], "id")["id"].to_pylist()), ids)


def by_duckdb(t, tables, path, name):
    """The newest version, as DuckDB's extension reads it: in a process of its own, which may crash."""
    out = tables.out("duckdb.parquet")
    subprocess.run([t.delta, HERE / "deltascan.py", "delta", path, out], check=True, capture_output=True, timeout=60)
    want = pq.read_table(out, partitioning=None)
    whole(tables, name, f"delta:{path}", want, want.column_names[0])


MADE = {
    "partitions": partitions,
    "types of partitions": partition_types,
    "values": values,
    "schemas": schemas,
    "cleaned": cleaned,
    "places": places,
    "random": histories,
}
APART = ("widened", "grown", "mixed")  # see limits
# The extension of DuckDB does not find these tables or files, and has NULL for columns of partitions that were renamed.
NOT_DUCKDB = ("100%20 = ü?", "clone url", "clone short url", "byid", "byname")


def run(t, _repository):
    tables = Tables(t)
    for name, function in MADE.items():
        t.group(f"tables deltalake, {name}", function, tables)
    t.group("tables vectors", vectors, tables)
    for name in SPARK:
        if name not in APART:
            t.group(f"tables Spark, {name}", by_spark, tables, name)
    t.group("tables limits", limits, tables)
    t.group("tables refused", refusals, tables)
    if t.delta:
        found = {p.parent.name: p.parent for p in tables.dir.glob("*/_delta_log") if not p.parent.name.startswith("refused")}
        found |= {name: tables.spark(name) / "table" for name in SPARK if name not in APART}
        for name in sorted({*found} - {*NOT_DUCKDB}):
            t.group(f"tables DuckDB, {name}", by_duckdb, tables, found[name], name)
