"""Makes the tables of this directory by Spark, with the rows that Spark reads of each snapshot, branch and tag.

    [TABLES=DIR] python make.py JARS [NAME...]

They are written to DIR, else to this directory. Needs pyspark 3.5 and Java 17. JARS is a directory with iceberg-spark-runtime-3.5_2.12-1.12.0.jar of Maven Central. Files
get other names and times in each run, so name the tables that are new.

Each table is an archive, NAME.tar.xz. Its metadata names the directory where it was made, which is gone:

    table/                    the table
    rows/newest.parquet       what Spark reads of the table
    rows/snapshot N.parquet   what it reads of a snapshot, and so for each branch and tag
    rows/names.json           the names of these, as snapshot=ID, branch=NAME and tag=NAME
    rows/times.json           IDs that Spark reads at a time
"""

import datetime
import json
import os
import pathlib
import re
import shutil
import sys
import tarfile
import tempfile
import time

from pyspark.sql import SparkSession, functions

HERE = pathlib.Path(os.environ.get("TABLES") or __file__).resolve()
HERE = HERE if HERE.is_dir() else HERE.parent
UTC = datetime.UTC


def rows(text, low, high, step=1):
    """A statement that inserts the rows of a range."""
    return text.replace("{from}", str(low)).replace("{to}", str(high)).replace("{step}", str(step))


def mode(how, granularity="partition"):
    """Properties by which deletes are files of their own, or not."""
    return {f"write.{verb}.mode": how for verb in ("delete", "update", "merge")} | {"write.delete.granularity": granularity}


CREATE = "create table {t} (id bigint, country string, at timestamp, amount double, url string) using iceberg {by} tblproperties({p})"
ROWS = """insert into {t} (id, country, at, amount, url) select id, case id % 4 when 0 then 'a b/ü=%' when 1 then 'NO' when 3 then 'SE' end,
    timestamp_millis(1767225600000 + id * 3600000), if(id % 11 = 3, null, id / 4), concat('/p/', id) from range({from}, {to}, {step})"""
COUNTRY = "partitioned by (country)"
CHANGES = [
    rows(ROWS, 0, 40),
    "delete from {t} where id % 7 = 0",
    rows(ROWS, 40, 80),
    "update {t} set url = '/u' where id between 20 and 30",
    "delete from {t} where id % 5 = 0",
]
# Columns are renamed, swapped, moved, dropped and added with another type.
COLUMNS = [
    rows(ROWS, 0, 20), "alter table {t} rename column url to page", "alter table {t} rename column country to land", "alter table {t} drop column amount", "alter table {t} add column amount string",
    "alter table {t} alter column amount first", "insert into {t} (id, land, amount, page) select id, 'c1', concat('a', id), 'new' from range(20, 30)",
    "alter table {t} add column url int after id", "alter table {t} rename column page to other", "alter table {t} rename column land to page", "alter table {t} rename column other to land",
    "insert into {t} (id, url, page, land) values (99, 7, 'c2', 'z')", "delete from {t} where id % 4 = 1",
]  # fmt: skip
PROMOTED = "create table {t} (id bigint, n int, f float, d decimal(9,2), w decimal(18,4), s struct<i: int>, l array<float>) using iceberg {by} tblproperties({p})"
PROMOTING = """insert into {t} select id, if(id % 9 = 8, null, int(id * 30 - 60)), float(id / 8 - 1), id * 1.01 - 5, id / 7 - 2, named_struct('i', int(id)), array(float(id), null) from range({from}, {to})"""
PROMOTE = [
    rows(PROMOTING, 0, 20), "alter table {t} alter column n type bigint", "alter table {t} alter column f type double", "alter table {t} alter column d type decimal(20,2)", "alter table {t} alter column w type decimal(38,4)",
    "alter table {t} alter column s.i type bigint", "alter table {t} alter column l.element type double",
    "insert into {t} select 20 + id, 5000000000 + id, 1e300 + id, 12345678901234567.25, -1234567890123456789012345.0625 + id, named_struct('i', -5000000000), array(1e-300D) from range(5)",
    "insert into {t} values (30, -2147483648, -1.5, -9999999.99, 0, null, null), (31, -2147483649, 16777217, 10000000.00, 1, null, array())", "delete from {t} where n = 0",
]  # fmt: skip
# The specification of partitions changes after each insert.
SPECS = [
    rows(ROWS, 0, 20), "alter table {t} replace partition field country with bucket(4, id)", rows(ROWS, 20, 40), "alter table {t} add partition field days(at)", rows(ROWS, 40, 60),
    "alter table {t} drop partition field bucket(4, id)", "alter table {t} add partition field truncate(4, url)", rows(ROWS, 60, 80), "alter table {t} drop partition field days(at)",
    "alter table {t} drop partition field truncate(4, url)", rows(ROWS, 80, 90), "alter table {t} add partition field country as region", "alter table {t} add partition field truncate(10, id) as tens", rows(ROWS, 90, 110),
    "alter table {t} add partition field months(at)", "alter table {t} drop partition field tens", rows(ROWS, 110, 112), "delete from {t} where id % 6 = 1", "delete from {t} where country = 'SE' and id > 85",
]  # fmt: skip
NESTED = """create table {t} (id bigint, s struct<a: int, b: struct<c: string, d: int>>, l array<struct<x: int, y: string>>, m map<string, struct<v: int, w: int>>, country string, url string) using iceberg {by} tblproperties({p})"""
NESTING = """insert into {t} select id, if(id % 5 = 4, null, named_struct('a', int(id), 'b', named_struct('c', string(id), 'd', int(-id)))),
    transform(sequence(1, int(id % 3)), x -> named_struct('x', x, 'y', string(x))), map('k', named_struct('v', int(id), 'w', 1)), if(id % 3 = 0, null, concat('c', id % 3)), concat('/p/', id) from range({from}, {to})"""
RENAMES = [
    rows(NESTING, 0, 20), "alter table {t} rename column url to page", "alter table {t} rename column s.b.c to name", "alter table {t} drop column s.b.d",
    "alter table {t} rename column l.element.x to size", "alter table {t} rename column m.value.v to u", "alter table {t} rename column country to land",
    "alter table {t} add columns (url int)", "insert into {t} select id, named_struct('a', 2, 'b', named_struct('name', 'n')), array(), map(), 'c1', 'page', 7 from range(20, 30)", "delete from {t} where id % 4 = 1",
]  # fmt: skip
GROWN = [
    "create table {t} (id bigint, s struct<a: int>) using iceberg {by} tblproperties({p})", "insert into {t} select id, named_struct('a', 1) from range(3)",
    "alter table {t} add columns (s.b int)", "insert into {t} select id, named_struct('a', 1, 'b', 2) from range(3, 5)",
]  # fmt: skip
TYPES = """create table {t} (id bigint, i int, f float, d double, small decimal(5,2), wide decimal(38,10), flag boolean, day date, at timestamp, local timestamp_ntz,
    bytes binary, text string, `a.b` int, Upper int, l array<array<int>>, m map<int, decimal(9,3)>, s struct<day: date, at: timestamp, local: timestamp_ntz, bytes: binary>)
    using iceberg {by} tblproperties({p})"""
TYPED = """insert into {t} select id, id * 70000, float('nan'), if(id = 3, double('-infinity'), -0.0), id / 7, id * 12345678901234567890 / 7, id % 2 = 0, date_add(date '1965-01-01', int(id * 4001)),
    timestamp_micros(id * 1234567890123457 - 2000000000000000), timestamp_ntz '1960-02-03 04:05:06.789012' + make_interval(id * 9), cast(string(id) as binary), if(id % 3 = 0, '', concat('é', id)), id, id,
    if(id = 1, null, array(array(1, null), null, array())), map(1, 1.5, int(id) + 2, null), named_struct('day', date '2020-02-29', 'at', timestamp '2020-02-29 12:00:00', 'local', timestamp_ntz '2020-02-29 12:00:00', 'bytes', X'00FF') from range({from}, {to})"""
KEYS = {"i": "int", "n": "bigint", "f": "float", "d": "double", "m": "decimal(12,3)", "flag": "boolean", "day": "date", "at": "timestamp", "local": "timestamp_ntz", "text": "string", "bytes": "binary"}  # fmt: skip
KEYED = """insert into {t} select id, id * 100000, id * 10000000000, id / 2, -id / 8, id / 3, id % 2 = 0, date_add(date '1999-12-30', int(id)), timestamp_micros(1700000000123456 + id * 3600000000),
    timestamp_ntz '1969-12-31 23:59:59.5' + make_interval(0, 0, 0, int(id)), array('', 'x y', 'ü/=%', '__HIVE_DEFAULT_PARTITION__', 'null')[int(id)], cast(array('a', 'b', 'ü', '', ' ')[int(id)] as binary) from range(5)"""
BRANCHES = [
    rows(ROWS, 0, 20), "alter table {t} create tag first", "alter table {t} create branch `more/rows`", rows(ROWS, 20, 30), rows(ROWS, 100, 110).replace("{t}", "{t}.`branch_more/rows`"), "alter table {t} create tag `v 2`",
    "alter table {t} rename column url to page", "delete from {t}.`branch_more/rows` where id % 2 = 0", "insert into {t} (id, country, page) values (200, 'DK', 'p')", "alter table {t} drop column amount",
]  # fmt: skip


def imported(spark, table, home):
    """Files without field ids, whose directories have the values of a column that they lack."""
    for low, high in ((0, 30), (30, 50)):
        select = rows(ROWS, low, high).split("url) ", 1)[1]
        names = ("id", "country", "at", "amount", "url")
        spark.sql(select).toDF(*names).coalesce(1).write.partitionBy("country").mode("append").parquet(f"{home}/old")
    spark.sql(f"call h.system.add_files(table => '{table[2:]}', source_table => '`parquet`.`{home}/old`')")


def java(spark, table):
    """The table, and a class by its name, as Iceberg's library for Java has them."""
    jvm = spark._jvm
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table), jvm.org.apache.iceberg


def record(iceberg, schema, row):
    """A row of some columns."""
    out = iceberg.data.GenericRecord.create(schema)
    for name, value in row.items():
        out.setField(name, value)
    return out


def by_keys(columns, rows, spec=None, extra=(), new=()):
    """A step that deletes rows by the values of columns (an equality delete), as streaming writers do. The rows are
    those of one partition or, with the number of a specification without fields, of the table; they may have extra
    columns. New rows are added by the same commit."""

    def delete(spark, table, home):
        t, iceberg = java(spark, table)
        of = t.spec() if spec is None else t.specs().get(spec)
        schema = t.schema().select(spark._jvm.java.util.List.of(*columns, *extra))
        numbers = spark.sparkContext._gateway.new_array(spark._jvm.int, len(columns))
        for i, column in enumerate(columns):
            numbers[i] = t.schema().findField(column).fieldId()
        builder = iceberg.data.GenericFileWriterFactory.Builder(t).deleteFileFormat(iceberg.FileFormat.PARQUET)
        factory = builder.equalityFieldIds(numbers).equalityDeleteRowSchema(schema).build()

        def write(kind, make, of, schema, rows):
            partition = None
            if of.isPartitioned():
                partition = iceberg.PartitionKey(of, t.schema())
                partition.partition(record(iceberg, t.schema(), rows[0]))
            file = t.io().newOutputFile(f"{home}/data/{kind}-{time.time_ns()}.parquet")
            writer = make(iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(file), of, partition)
            for row in rows:
                writer.write(record(iceberg, schema, {k: v for k, v in row.items() if schema.findField(k)}))
            writer.close()
            return writer

        change = t.newRowDelta().addDeletes(write("equality", factory.newEqualityDeleteWriter, of, schema, rows).toDeleteFile())
        if new:
            change = change.addRows(write("new", factory.newDataWriter, t.spec(), t.schema(), new).toDataFile())
        change.commit()
        spark.sql(f"refresh table {table}")

    return delete


def default(spark, table, home):
    """A column that old rows have with a value."""
    t, iceberg = java(spark, table)
    t.updateSchema().addColumn("n", iceberg.types.Types.IntegerType.get(), iceberg.expressions.Literal.of(7)).commit()
    spark.sql(f"refresh table {table}")


MOR, FILE = mode("merge-on-read"), mode("merge-on-read", "file")
CALL = "call {c}.system.{what}(table => '{n}'{more})"


def call(what, more=""):
    return CALL.replace("{what}", what).replace("{more}", more)


FAR = 1 << 33  # numbers of this size are long, not int, for the gateway to Java
FAR_ROWS = f"""insert into {{t}} select id + {FAR}, case id % 4 when 0 then 'a b/ü=%' when 1 then 'NO' when 3 then 'SE' end,
    timestamp_millis(1767225600000 + id * 3600000), if(id % 11 = 3, null, id / 4), concat('/p/', id % 25) from range({{from}}, {{to}})"""
KEYED_ROWS = [
    rows(FAR_ROWS, 0, 20), by_keys(["url"], [{"url": "/p/3"}, {"url": "/p/5"}, {"url": "/none"}]), rows(FAR_ROWS, 20, 40),
    by_keys(["id"], [{"id": FAR + i, "url": "another"} for i in (1, 22, 39, 77)], extra=["url"]),
    by_keys(["country", "url"], [{"country": None, "url": "/p/6"}, {"country": "NO", "url": "/p/9"}, {"country": "SE", "url": None}, {"country": None, "url": None}]),
    by_keys(["id"], [{"id": FAR + i} for i in (7, 8)], new=[{"id": FAR + i, "country": "FI", "url": "again"} for i in (7, 8, 80)]),
    by_keys(["id"], [{"id": FAR + 8}], new=[{"id": FAR + 8, "country": None, "url": "third"}]), "delete from {t} where id % 10 = 4",
    by_keys(["amount"], [{"amount": None}, {"amount": 2.5}]), rows(FAR_ROWS, 40, 45), "alter table {t} rename column url to page", by_keys(["page"], [{"page": "/p/15"}, {"page": "third"}]),
]  # fmt: skip
KEYED_PARTS = [
    rows(FAR_ROWS, 0, 20), "alter table {t} add partition field country", rows(FAR_ROWS, 20, 60),
    by_keys(["url"], [{"country": "NO", "url": f"/p/{i}"} for i in (5, 8, 21)]), by_keys(["id"], [{"country": None, "id": FAR + i} for i in (2, 22, 46)]),
    by_keys(["url"], [{"url": "/p/0"}, {"url": "/p/14"}], spec=0), by_keys(["id", "country"], [{"country": "SE", "id": FAR + i} for i in (23, 24, 51)], new=[{"country": "SE", "id": FAR + 51, "url": "again"}]),
    "alter table {t} add partition field bucket(2, id)", rows(FAR_ROWS, 60, 80), by_keys(["id"], [{"id": FAR + i} for i in (21, 61, 62, 79)], spec=0), "delete from {t} where id % 9 = 1",
    call("rewrite_data_files", ", where => 'id < 8589934622'"), by_keys(["country"], [{"country": "a b/ü=%"}], spec=0), rows(FAR_ROWS, 80, 84),
]  # fmt: skip
ALL_FILES = ", options => map('rewrite-all', 'true')"
# Tables: name, version of the format, catalog, partitions, properties, settings of Spark, statements.
TABLES = [
    ("columns1", 1, "h", COUNTRY, {}, {}, [CREATE, *COLUMNS]),
    ("columns", 2, "f", COUNTRY, MOR, {}, [CREATE, *COLUMNS]),
    ("promoted", 2, "h", "partitioned by (n, d)", MOR, {}, [PROMOTED, *PROMOTE]),
    ("promoted1", 1, "h", "partitioned by (truncate(10, n), bucket(3, w))", {}, {}, [PROMOTED, *PROMOTE]),
    ("specs1", 1, "h", COUNTRY, {}, {}, [CREATE, *SPECS]),
    ("specs", 2, "h", COUNTRY, FILE, {}, [CREATE, *SPECS]),
    ("positions", 2, "f", COUNTRY, MOR, {}, [CREATE, *CHANGES, call("rewrite_data_files", ALL_FILES + ", where => 'id < 20'"), rows(ROWS, 80, 90), "delete from {t} where id % 4 = 1 and id > 40", call("rewrite_position_delete_files", ALL_FILES)]),
    ("filescoped", 2, "h", "", FILE, {}, [CREATE, *CHANGES, "delete from {t} where id > 70"]),
    ("vectors", 3, "h", COUNTRY, MOR | {"write.manifest.compression-codec": "zstd"}, {}, [CREATE, *CHANGES, "delete from {t} where id % 11 = 1", "delete from {t} where country = 'NO' and id < 40", call("rewrite_data_files", ALL_FILES), "delete from {t} where id = 2"]),
    ("upgraded", 2, "h", COUNTRY, MOR | {"write.manifest.compression-codec": "snappy"}, {}, [CREATE, *CHANGES[:3], "alter table {t} set tblproperties('format-version'='3')", *CHANGES[3:], "delete from {t} where id % 3 = 1 and id < 40"]),
    ("branches", 2, "h", "partitioned by (days(at))", MOR, {}, [CREATE, *BRANCHES]),
    ("expired", 2, "h", COUNTRY, MOR | {"write.manifest.compression-codec": "gzip", "write.metadata.compression-codec": "gzip", "write.object-storage.enabled": "true"}, {}, [CREATE, *CHANGES, "{expire}", rows(ROWS, 80, 90)]),
    ("nested", 3, "h", "partitioned by (country)", MOR, {}, [NESTED, *RENAMES]),
    ("grown", 2, "h", "", {}, {}, GROWN),
    ("types", 2, "h", "", {}, {}, [TYPES, rows(TYPED, 0, 5), "alter table {t} add columns (later timestamp_ntz)", "insert into {t} (id, later) values (9, timestamp_ntz '2024-01-02 03:04:05')"]),
    ("keys", 2, "h", f"partitioned by ({', '.join(KEYS)})", {}, {"spark.sql.session.timeZone": "Asia/Kolkata"}, ["create table {t} (id bigint, " + ", ".join(f"{k} {v}" for k, v in KEYS.items()) + ") using iceberg {by} tblproperties({p})", KEYED, "insert into {t} (id) values (5)", "delete from {t} where i = 100000"]),
    ("imported", 2, "h", COUNTRY, MOR, {}, [CREATE, imported, "alter table {t} rename column url to page", "alter table {t} rename column country to land", "insert into {t} (id, land, page) select id, 'c1', 'new' from range(50, 60)", "delete from {t} where id % 5 = 0"]),
    ("replaced", 2, "h", COUNTRY, {}, {}, [CREATE, rows(ROWS, 0, 20), "insert overwrite {t} select 7L, 'FI', null, 2.5D, 'o'", "call {c}.system.rollback_to_snapshot('{n}', {first})", rows(ROWS, 20, 30), "delete from {t}", "insert into {t} select 8L, null, null, null, null"]),
    ("equality", 2, "h", "", MOR, {}, [CREATE, rows(ROWS, 0, 20), by_keys(["url"], [{"url": f"/p/{i}"} for i in (3, 5, 77)]), rows(ROWS, 2, 8), "delete from {t} where id = 4"]),
    ("keyed", 2, "f", "", MOR, {}, [CREATE, *KEYED_ROWS]),
    ("keyedparts", 2, "h", "", MOR, {}, [CREATE, *KEYED_PARTS]),
    ("defaults", 3, "h", "", {}, {}, ["create table {t} (id bigint) using iceberg {by} tblproperties({p})", "insert into {t} select id from range(5)", default, "insert into {t} select id, int(id) from range(5, 9)"]),
    ("formats", 2, "h", "", {}, {}, [CREATE, rows(ROWS, 0, 5), "alter table {t} set tblproperties('write.format.default'='orc')", rows(ROWS, 5, 9), "delete from {t} where id < 9", "alter table {t} set tblproperties('write.format.default'='avro')", rows(ROWS, 9, 12)]),
    ("empty", 2, "h", "", {}, {}, [CREATE]),
]  # fmt: skip


def session(jars, warehouse):
    options = {
        "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1", "spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "false",
        "spark.ui.showConsoleProgress": "false", "spark.sql.warehouse.dir": tempfile.gettempdir(), "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.jars": ",".join(map(str, pathlib.Path(jars).glob("iceberg-*.jar"))), "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        **{f"spark.sql.catalog.{c}": "org.apache.iceberg.spark.SparkCatalog" for c in "hf"}, **{f"spark.sql.catalog.{c}.type": "hadoop" for c in "hf"},
        "spark.sql.catalog.h.warehouse": str(warehouse), "spark.sql.catalog.f.warehouse": f"file://{warehouse}",
    }  # fmt: skip
    builder = SparkSession.builder.master("local[1]")
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def step(spark, what, table, home, by, properties):
    """One change of the table."""
    time.sleep(0.01)  # no two snapshots have one time
    if callable(what):
        return what(spark, table, home)
    if what == "{expire}":
        at = spark.sql(f"select max(committed_at) from {table}.snapshots").collect()[0][0]
        what = call("expire_snapshots", f", older_than => timestamp '{at.isoformat(sep=' ')}', retain_last => 1")
    if "{first}" in what:
        what = what.replace("{first}", str(spark.sql(f"select snapshot_id from {table}.snapshots order by committed_at").collect()[0][0]))
    texts = ", ".join(f"'{k}'='{v}'" for k, v in properties.items())
    for k, v in {"t": table, "by": by, "p": texts, "c": table[0], "n": table[2:]}.items():
        what = what.replace("{" + k + "}", v)
    if found := INSERT.match(what):
        return insert(spark, *found.groups())
    return spark.sql(what)


INSERT = re.compile(r"insert into (\S+) \(([^)]*)\) (.*)", re.DOTALL)


def insert(spark, table, names, select):
    """Adds rows with some of the columns, in which the others are NULL: this Spark inserts no such rows by SQL."""
    given = spark.sql(select).toDF(*[n.strip("` ") for n in names.split(", ")])
    columns = [(given[f"`{f.name}`"] if f.name in given.columns else functions.lit(None)).cast(f.dataType).alias(f.name) for f in spark.table(table).schema]
    given.select(columns).writeTo(table).append()


def save(frame, file):
    """Writes the rows of a frame to one file."""
    path = file.with_suffix(".spark")
    frame.coalesce(1).write.option("compression", "none").parquet(str(path))
    next(path.glob("part-*.parquet")).rename(file)
    shutil.rmtree(path)


def answers(spark, table, read):
    """Writes what Spark reads of the table."""
    of = lambda **options: spark.read.format("iceberg").options(**{k.replace("_", "-"): v for k, v in options.items()}).load(table)
    save(of(), read / "newest.parquet")
    names = {}
    for n, row in enumerate(spark.sql(f"select snapshot_id from {table}.snapshots order by committed_at").collect(), 1):
        names[f"snapshot {n}"] = f"snapshot={row[0]}"
        save(of(snapshot_id=row[0]), read / f"snapshot {n}.parquet")
    for n, row in enumerate(spark.sql(f"select name, type from {table}.refs where name <> 'main' order by name").collect(), 1):
        kind = row.type.lower()
        names[f"{kind} {n}"] = f"{kind}={row.name}"
        save(of(**{kind: row.name}), read / f"{kind} {n}.parquet")
    (read / "names.json").write_text(json.dumps(names, indent=0) + "\n")
    times = {}
    for row in spark.sql(f"select unix_millis(made_current_at) from {table}.history order by 1").collect():
        for millis in (row[0], row[0] + 1):
            text = datetime.datetime.fromtimestamp(millis // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{millis % 1000:03}Z"
            times[text] = sorted(r.id for r in of(as_of_timestamp=millis).select("id").collect())
    (read / "times.json").write_text(json.dumps(times) + "\n")


def make(spark, directory, name, version, catalog, by, properties, settings, statements):
    table, home, read = f"{catalog}.db.{name}", directory / "db" / name, directory / "rows" / name
    read.mkdir(parents=True)
    # The archive is smaller if the files in it are not compressed.
    base = {"format-version": version, "write.parquet.compression-codec": "uncompressed", "write.manifest.compression-codec": "uncompressed"}
    base |= {"write.distribution-mode": "none", "write.spark.fanout.enabled": "true"}
    for k, v in {"spark.sql.session.timeZone": "UTC", **settings}.items():
        spark.conf.set(k, v)
    for what in statements:
        step(spark, what, table, home, by, base | properties)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    if name != "empty":
        answers(spark, table, read)
    for crc in home.rglob(".*.crc"):
        crc.unlink()
    last = int((home / "metadata/version-hint.text").read_text())
    for file in home.glob("metadata/v*.metadata.json"):
        if int(file.name.removesuffix(".metadata.json").removesuffix(".gz")[1:]) < last - 1:
            file.unlink()
    with tarfile.open(HERE / f"{name}.tar.xz", "w:xz", format=tarfile.PAX_FORMAT, preset=9) as tar:
        tar.add(home, "table", filter=nobody)
        tar.add(read, "rows", filter=nobody)


def nobody(info):
    """The entry of an archive without who made it."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def main():
    with tempfile.TemporaryDirectory(prefix="made") as directory:
        spark = session(sys.argv[1], directory)
        for table in TABLES:
            if not sys.argv[2:] or table[0] in sys.argv[2:]:
                make(spark, pathlib.Path(directory), *table)
                print(table[0], flush=True)
        spark.stop()


main()
