"""Makes the tables of this directory by Spark, with the rows that Spark reads of each version.

    python make.py JARS [NAME...]

Needs pyspark 3.5 and Java 17. JARS is a directory with what io.delta:delta-spark_2.12:3.3.2 depends on, itself included:
mvn dependency:copy-dependencies -DincludeGroupIds=io.delta,org.antlr. Files get other names and times in each run, so
name the tables that are new.

Each table is an archive, NAME.tar.xz:

    table/              the table
    rows/vN.parquet     what Spark reads of version N
    rows/times.json     IDs that Spark reads at a time, of a table whose commits have their own times
"""

import datetime
import json
import pathlib
import shutil
import sys
import tarfile
import tempfile
import time

from pyspark.sql import SparkSession

HERE = pathlib.Path(__file__).resolve().parent


def rows(text, low, high, step=1):
    """A statement that inserts the rows of a range."""
    return text.replace("{from}", str(low)).replace("{to}", str(high)).replace("{step}", str(step))


CREATE = "create table {t} (id bigint, country string, at timestamp, amount double, url string) using delta partitioned by (country) tblproperties({p})"
ROWS = """insert into {t} select id, case id % 4 when 0 then 'a b/ü=%' when 1 then 'NO' when 3 then 'SE' end,
    timestamp_millis(1767225600000 + id * 3600000), if(id % 11 = 3, null, id / 4), concat('/p/', id) from range({from}, {to}, {step})"""
CHANGES = [
    rows(ROWS, 0, 40),
    "delete from {t} where id % 7 = 0",
    rows(ROWS, 40, 80),
    "update {t} set url = '/u' where id between 20 and 30",
    "delete from {t} where id % 5 = 0",
]
FEWER = [text.replace(", 1)", ", 2)") for text in CHANGES]  # in two partitions of four
VECTORS = "'delta.enableDeletionVectors'='true'"
NESTED = """create table {t} (id bigint, s struct<a: int, b: struct<c: string, d: int>>, l array<struct<x: int, y: string>>, m map<string, struct<v: int, w: int>>, country string, url string)
    using delta partitioned by (country) tblproperties({p})"""
NESTING = """insert into {t} select id, if(id % 5 = 4, null, named_struct('a', int(id), 'b', named_struct('c', string(id), 'd', int(-id)))),
    transform(sequence(1, int(id % 3)), x -> named_struct('x', x, 'y', string(x))), map('k', named_struct('v', int(id), 'w', 1)), if(id % 3 = 0, null, concat('c', id % 3)), concat('/p/', id) from range({from}, {to})"""
RENAMES = [
    rows(NESTING, 0, 20), "alter table {t} rename column url to page", "alter table {t} rename column s.b.c to name", "alter table {t} drop column s.b.d",
    "alter table {t} rename column l.element.x to size", "alter table {t} rename column m.value.v to u", "alter table {t} rename column country to land",
    "alter table {t} add columns (url int)", "insert into {t} select id, named_struct('a', 2, 'b', named_struct('name', 'n')), array(), map(), 'c1', 'page', 7 from range(20, 30)",
    "delete from {t} where id % 4 = 1", "alter table {t} drop column page", "alter table {t} add column page string after id", "insert into {t} (id, page, land) values (99, 'new', 'c2')",
]  # fmt: skip
TYPES = """create table {t} (id bigint, b tinyint, h smallint, i int, f float, d double, small decimal(5,2), wide decimal(38,10), flag boolean, day date, at timestamp, local timestamp_ntz,
    bytes binary, text string, vc varchar(20), `a.b` int, Upper int, l array<array<int>>, m map<int, decimal(9,3)>, s struct<day: date, at: timestamp, local: timestamp_ntz, bytes: binary>)
    using delta tblproperties({p})"""
TYPED = """insert into {t} select id, -id, id * 100, id * 70000, float('nan'), if(id = 3, double('-infinity'), -0.0), id / 7, id * 12345678901234567890 / 7, id % 2 = 0, date_add(date '1965-01-01', int(id * 4001)),
    timestamp_micros(id * 1234567890123457 - 2000000000000000), timestamp_ntz '1960-02-03 04:05:06.789012' + make_interval(id * 9), cast(string(id) as binary), if(id % 3 = 0, '', concat('é', id)), 'v', id, id,
    if(id = 1, null, array(array(1, null), null, array())), map(1, 1.5, int(id) + 2, null), named_struct('day', date '2020-02-29', 'at', timestamp '2020-02-29 12:00:00', 'local', timestamp_ntz '2020-02-29 12:00:00', 'bytes', X'00FF') from range({from}, {to})"""
KEYS = [
    "b tinyint",
    "h smallint",
    "i int",
    "n bigint",
    "f float",
    "d double",
    "m decimal(12,3)",
    "flag boolean",
    "day date",
    "at timestamp",
    "local timestamp_ntz",
    "text string",
    "bytes binary",
]
KEYED = """insert into {t} select id, int(id) - 1, id * 1000, id * 100000, id * 10000000000, id / 2, -id / 8, id / 3, id % 2 = 0, date_add(date '1999-12-30', int(id)), timestamp_micros(1700000000123456 + id * 3600000000),
    timestamp_ntz '1969-12-31 23:59:59.5' + make_interval(0, 0, 0, int(id)), array('', 'x y', 'ü/=%', '__HIVE_DEFAULT_PARTITION__', 'null')[int(id)], cast(array('a', 'b', 'ü', '', ' ')[int(id)] as binary) from range(5)"""

# Tables: (name, properties, settings of Spark, statements).
TABLES = [
    ("vectors", f"{VECTORS}, 'delta.checkpointInterval'='3'", {}, [CREATE, *CHANGES]),
    ("plain", "'delta.checkpointInterval'='4','delta.checkpoint.writeStatsAsStruct'='true','delta.checkpoint.writeStatsAsJson'='false'", {}, [CREATE, *FEWER, "optimize {t}"]),
    ("multipart", f"{VECTORS}, 'delta.checkpointInterval'='5'", {"spark.databricks.delta.checkpoint.partSize": "4"}, [CREATE, *FEWER, rows(ROWS, 80, 90)]),
    ("sidecars", f"{VECTORS}, 'delta.checkpointPolicy'='v2','delta.checkpointInterval'='3'", {"spark.databricks.delta.checkpoint.partSize": "2", "spark.databricks.delta.checkpointV2.topLevelFileFormat": "parquet"}, [CREATE, *FEWER]),
    ("jsonsidecars", f"{VECTORS}, 'delta.checkpointPolicy'='v2','delta.checkpointInterval'='4'", {"spark.databricks.delta.checkpointV2.topLevelFileFormat": "json"}, [CREATE, *FEWER]),
    ("byname", f"'delta.columnMapping.mode'='name', {VECTORS}, 'delta.checkpointInterval'='9'", {}, [NESTED, *RENAMES]),
    ("byid", "'delta.columnMapping.mode'='id'", {}, [NESTED, *RENAMES]),
    ("namedlater", "", {}, [NESTED, rows(NESTING, 0, 10), "alter table {t} set tblproperties('delta.columnMapping.mode'='name','delta.minReaderVersion'='2','delta.minWriterVersion'='5')",
        "alter table {t} rename column s.a to first", "alter table {t} rename column id to key", "alter table {t} rename column url to id", rows(NESTING, 10, 20)]),
    ("types", "", {}, [TYPES, rows(TYPED, 0, 5), "alter table {t} add columns (later timestamp_ntz)", "insert into {t} (id, later) values (9, timestamp_ntz '2024-01-02 03:04:05')"]),
    ("micros", "'delta.columnMapping.mode'='name'", {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS", "spark.sql.session.timeZone": "America/New_York"}, [TYPES, rows(TYPED, 0, 4), "alter table {t} add column `with (space)` int", "insert into {t} (id, `with (space)`) values (5, 5)"]),
    ("grown", "", {}, ["create table {t} (id bigint, s struct<a: int>) using delta", "insert into {t} select id, named_struct('a', 1) from range(3)", "alter table {t} add columns (s.b int)", "insert into {t} select id, named_struct('a', 1, 'b', 2) from range(3, 5)"]),
    ("mixed", "", {}, [CREATE, rows(ROWS, 0, 20), "set spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS", rows(ROWS, 20, 40), "set spark.sql.parquet.outputTimestampType=TIMESTAMP_MILLIS", rows(ROWS, 40, 50)]),
    ("keys", "", {"spark.sql.session.timeZone": "Asia/Kolkata"}, ["create table {t} (id bigint, " + ", ".join(KEYS) + ") using delta partitioned by (" + ", ".join(k.split()[0] for k in KEYS) + ")", KEYED, "insert into {t} (id) values (5)", "delete from {t} where i = 100000"]),
    ("times", f"{VECTORS}, 'delta.enableInCommitTimestamps'='true'", {}, [CREATE, *FEWER]),
    ("restored", VECTORS, {}, [CREATE, *FEWER[:2], "delete from {t} where id % 5 = 0", "restore table {t} to version as of 2", "delete from {t} where id > 30", "reorg table {t} apply (purge)"]),
    ("replaced", "", {"spark.databricks.delta.schema.autoMerge.enabled": "true"}, [CREATE, rows(ROWS, 0, 20), "insert into {t} replace where country = 'NO' select 100, 'NO', null, 1.5, 'r'",
        "insert into {t} select 101, 'DK', null, 1.5, 'r', 5 as extra", "insert overwrite {t} select 7, 'FI', null, 2.5, 'o', 6", "delete from {t}", "insert into {t} select 8, null, null, null, null, null"]),
    ("widened", "'delta.enableTypeWidening'='true'", {}, ["create table {t} (id smallint) using delta tblproperties({p})", "insert into {t} values (1)", "alter table {t} alter column id type int", "insert into {t} values (500000)"]),
]  # fmt: skip
SETTINGS = {
    "spark.databricks.delta.checkpoint.partSize",
    "spark.databricks.delta.checkpointV2.topLevelFileFormat",
    "spark.sql.parquet.outputTimestampType",
    "spark.sql.session.timeZone",
    "spark.databricks.delta.schema.autoMerge.enabled",
}


def session(jars):
    options = {
        "spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1", "spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "false",
        "spark.ui.showConsoleProgress": "false", "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.warehouse.dir": tempfile.gettempdir(),
        "spark.jars": ",".join(map(str, pathlib.Path(jars).glob("*.jar"))), "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }  # fmt: skip
    builder = SparkSession.builder.master("local[1]")
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def make(spark, directory, name, properties, settings, statements):
    home, read = directory / name / "table", directory / name / "rows"
    for d in (home, read):
        d.mkdir(parents=True)
    for k in SETTINGS:
        spark.conf.unset(k)
    for k, v in {"spark.sql.session.timeZone": "UTC", **settings}.items():
        spark.conf.set(k, v)
    for text in statements:
        spark.sql(text.replace("{t}", f"delta.`{home}`").replace("tblproperties({p})", f"tblproperties({properties})" if properties else ""))
        time.sleep(0.01)  # no two commits have one time
    for k in SETTINGS:
        spark.conf.unset(k)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    history = sorted(spark.sql(f"describe history delta.`{home}`").select("version", "timestamp").collect())
    for version, _ in history:
        path = read / "spark"
        spark.read.format("delta").option("versionAsOf", version).load(str(home)).coalesce(1).write.parquet(str(path))
        next(path.glob("part-*.parquet")).rename(read / f"v{version}.parquet")
        shutil.rmtree(path)
    if "InCommitTimestamps" in properties:
        times = {}
        for _, at in history[1:]:
            for moment in (at - datetime.timedelta(milliseconds=1), at):
                text = moment.isoformat(timespec="milliseconds")
                frame = spark.read.format("delta").option("timestampAsOf", text.replace("T", " ")).load(str(home))
                times[text + "Z"] = sorted(r.id for r in frame.select("id").collect())
        (read / "times.json").write_text(json.dumps(times, indent=0) + "\n")
    for crc in [*home.rglob(".*.crc"), *home.glob("_delta_log/*.crc")]:
        crc.unlink(missing_ok=True)
    if name == "multipart":  # as a cleanup of the log leaves it
        for version in range(5):
            (home / f"_delta_log/{version:020}.json").unlink()
            (read / f"v{version}.parquet").unlink()
    with tarfile.open(HERE / f"{name}.tar.xz", "w:xz", format=tarfile.PAX_FORMAT) as tar:
        for part in (home, read):
            tar.add(part, part.name, filter=nobody)


def nobody(info):
    """The entry of an archive without who made it."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def main():
    spark = session(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        for table in TABLES:
            if not sys.argv[2:] or table[0] in sys.argv[2:]:
                make(spark, pathlib.Path(directory), *table)
                print(table[0], flush=True)
    spark.stop()


main()
