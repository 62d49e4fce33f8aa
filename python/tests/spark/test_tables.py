"""Tables of Spark's catalog as logs and IDs, against Spark's own joins of them.

Those of Iceberg and Delta need BLOOMJOIN_SPARK_JARS, a directory with the libraries of both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from spark_cases import digest

import bloomjoin
from bloomjoin._errors import UsageError
from bloomjoin.spark import count, join, join_to, prefilter, report

JARS = pytest.mark.skipif(not os.environ.get("BLOOMJOIN_SPARK_JARS"), reason="no jars of tables")
ROWS = "select id, string(id) as url, concat('c', id % 3) as country, timestamp_micros(id) as at"
CHANGES = [
    "create table {t} (id bigint, url string, country string, at timestamp) using {kind} "
    "partitioned by (country) {more}",
    ROWS.join(["insert into {t} ", " from range(30)"]),
    "alter table {t} rename column url to page",
    "alter table {t} add columns (n int)",
    "insert into {t} select id, string(id), 'c 1', timestamp_micros(id), 5 from range(30, 40)",
    "delete from {t} where id % 4 = 1",
]
LAKES = {
    "ice.db.t": (
        "iceberg",
        "tblproperties('write.delete.mode'='merge-on-read', 'format-version'='2')",
    ),
    "lakes.t": (
        "delta",
        "tblproperties('delta.columnMapping.mode'='name', 'delta.enableDeletionVectors'='true')",
    ),
}


@pytest.fixture(scope="module")
def session(spark: Any) -> Iterator[Any]:
    spark.sql("create database lakes")
    spark.sql(f"create table lakes.plain using parquet as {ROWS} from range(100)")
    spark.sql(
        "create table lakes.ids using parquet as select id * 2 as id, id % 5 as plan from range(30)"
    )
    yield spark
    spark.sql("drop database lakes cascade")


@pytest.fixture(scope="module")
def lakes(session: Any) -> Iterator[Any]:
    session.sql("create database if not exists ice.db")
    for name, (kind, more) in LAKES.items():
        for change in CHANGES:
            session.sql(change.replace("{t}", name).replace("{kind}", kind).replace("{more}", more))
    yield session
    session.sql("drop table ice.db.t")


def wanted(spark: Any, name: str, how: str = "inner") -> Any:
    return spark.table(name).join(spark.table("lakes.ids"), "id", how)


def check(spark: Any, name: str, tmp_path: Path) -> None:
    for how in ("inner", "left", "left_semi", "left_anti"):
        want = wanted(spark, name, how)
        found = join(spark, name, "lakes.ids", "id", how=how, mode="whole")
        assert report(found).mode == "whole", report(found).why
        assert digest(found) == digest(want)
        assert count(spark, name, "lakes.ids", "id", how) == want.count() > 0
    staging = str(tmp_path / "staging")
    for how in ("inner", "left_semi", "right", "full"):
        found = join(spark, name, "lakes.ids", "id", how=how, mode="files", staging=staging)
        assert report(found).mode == "files", report(found).why
        assert digest(found) == digest(wanted(spark, name, how))
    some = prefilter(spark, name, "lakes.ids", "id", staging=staging)
    assert digest(some.join(spark.table("lakes.ids"), "id")) == digest(wanted(spark, name))
    out = tmp_path / "out"
    want = wanted(spark, name)
    assert join_to(spark, name, "lakes.ids", "id", out, columns=["country"]).mode == "whole"
    want = want.select("id", "country", "plan")
    assert digest(spark.read.parquet(f"file://{out}").select(*want.columns)) == digest(want)
    where = "country = 'c1'"
    found = join(spark, name, "lakes.ids", "id", where=where)
    assert digest(found) == digest(wanted(spark, name).where(where))


def test_parquet(session, tmp_path):
    check(session, "lakes.plain", tmp_path)
    found = join(session, "spark_catalog.lakes.`plain`", "lakes.ids", "id", mode="whole")
    assert report(found).mode == "whole"
    assert digest(found) == digest(wanted(session, "lakes.plain"))


@JARS
@pytest.mark.parametrize("name", LAKES)
def test_lakes(lakes, tmp_path, name):
    check(lakes, name, tmp_path)


@JARS
def test_names_in_the_current_database(lakes):
    for catalog, database in (("ice", "db"), ("spark_catalog", "lakes")):
        want = digest(wanted(lakes, f"{catalog}.{database}.t"))
        ids = lakes.table("lakes.ids")
        for use, name in ((database, "t"), ("default", f"{database}.t")):
            lakes.sql(f"use {catalog}" if use == "default" else f"use {catalog}.{use}")
            try:
                found = join(lakes, name, ids, "id", mode="whole")
            finally:
                lakes.sql("use spark_catalog.default")
            assert report(found).mode == "whole"
            assert digest(found) == want


@JARS
@pytest.mark.parametrize("name", LAKES)
def test_versions_are_pinned(lakes, tmp_path, name):
    found = join(lakes, name, "lakes.ids", "id", mode="whole")
    before = digest(found)
    lakes.sql(f"delete from {name} where id < 10")
    assert digest(found) == before != digest(wanted(lakes, name))
    again = join(lakes, name, "lakes.ids", "id", mode="whole")
    assert digest(again) == digest(wanted(lakes, name))


@JARS
def test_lakes_without_rows_and_with_keys_of_their_own(lakes):
    lakes.sql("create table ice.db.none (id bigint) using iceberg")
    lakes.sql("create table lakes.none (id bigint) using delta")
    for name in ("ice.db.none", "lakes.none"):
        found = join(lakes, name, "lakes.ids", "id", how="right")
        assert digest(found) == digest(wanted(lakes, name, "right"))
        assert "no files" in report(join(lakes, name, "lakes.ids", "id", mode="whole")).why
    ids = lakes.sql("select timestamp_micros(id) as at from range(4)")
    for name, mode in (("ice.db.t", "whole"), ("lakes.t", "spark")):  # Delta has INT96
        found = join(lakes, name, ids, "at", mode="whole")
        assert report(found).mode == mode, report(found).why
        assert digest(found) == digest(lakes.table(name).join(ids, "at"))
    lakes.sql("drop table ice.db.none")


@JARS
def test_parts_and_branches_of_iceberg(lakes):
    lakes.sql("alter table ice.db.t create branch b")
    for name in ("ice.db.t.snapshots", "ice.db.t.files", "ice.db.t.branch_b"):
        with pytest.raises(Exception, match=r"logs: |PATH_NOT_FOUND"):
            join(lakes, name, "lakes.ids", "id")
    lakes.conf.set("spark.wap.branch", "b")
    try:
        with pytest.raises(UsageError, match="another version"):
            join(lakes, "ice.db.t", "lakes.ids", "id")
    finally:
        lakes.conf.unset("spark.wap.branch")


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ("view lakes.x as select * from lakes.plain where id < 5", "this is a view"),
        ("temporary view x as select * from lakes.plain where id < 5", "this is a view"),
        ("table lakes.x using orc as select 1L as id", "its format is orc"),
        ("table lakes.x (id bigint, c char(5)) using parquet", "does more than to read"),
        ("table lakes.x using parquet partitioned by (day) as select 1L id, 2 day", "directory"),
    ],
)
def test_what_may_be_more_than_its_files(session, tmp_path, made, why):
    name = made.removeprefix("temporary ").split()[1]
    session.sql(f"create {made}")
    try:
        for call in (join, count):
            with pytest.raises(UsageError, match=why):
                call(session, name, "lakes.ids", "id")
        with pytest.raises(UsageError, match=why):
            join_to(session, name, "lakes.ids", "id", tmp_path / "out")
        found = join(session, "lakes.plain", name, "id", how="left_semi", mode="whole")
        assert digest(found) == digest(
            session.table("lakes.plain").join(session.table(name), "id", "left_semi")
        )
        probed = join(session, name, "lakes.ids", "id", mode="probe", staging=str(tmp_path / "s"))
        assert digest(probed) == digest(wanted(session, name))
    finally:
        session.sql(f"drop {'view' if 'view' in made else 'table'} {name}")


def test_rules_that_may_be_there(session, monkeypatch):
    """Settings of an extension and a catalog that this package does not know."""
    from bloomjoin.spark import _tables

    for setting in ("spark.sql.extensions", "spark.sql.catalog.spark_catalog"):
        real = _tables._setting

        def other(spark, key, setting=setting, real=real):
            return "com.example.Rules" if key == setting else real(spark, key)

        with monkeypatch.context() as patch:
            patch.setattr(_tables, "_setting", other)
            with pytest.raises(UsageError, match=r"com\.example\.Rules may have rules"):
                join(session, "lakes.plain", "lakes.ids", "id")


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ({"type": "rest"}, "a catalog of type rest"),
        ({"catalog-impl": "com.example.Catalog"}, "a catalog of type com.example.Catalog"),
        ({"type": "glue"}, ""),
        ({}, ""),
    ],
)
def test_catalogs_of_iceberg(session, kind, says):
    from bloomjoin.spark import _tables

    name = "spark.sql.catalog.some"
    settings = {name: "org.apache.iceberg.spark.SparkCatalog"}
    settings |= {f"{name}.{key}": value for key, value in kind.items()}
    for key, value in settings.items():
        session.conf.set(key, value)
    try:
        assert _tables._may_have_rules(session, "some", "iceberg") == says
    finally:
        for key in settings:
            session.conf.unset(key)


def test_a_table_and_a_file(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session.table("lakes.plain").write.parquet(f"file://{tmp_path}/lakes.plain")
    with pytest.raises(UsageError, match=r"a table, and a file \(\./lakes\.plain"):
        join(session, "lakes.plain", "lakes.ids", "id")
    found = join(session, "./lakes.plain", "lakes.ids", "id", mode="whole")
    assert digest(found) == digest(wanted(session, "lakes.plain"))
    with pytest.raises(bloomjoin.Error):
        join_to(session, "./lakes.plain", "lakes.ids", "id", tmp_path, overwrite=True)


def test_outputs_in_a_table(session, tmp_path):
    place = session.sql("describe table extended lakes.plain").where("col_name = 'Location'")
    place = place.collect()[0][1].removeprefix("file:")
    for out in (place, f"{place}/out", os.path.dirname(place)):
        with pytest.raises(UsageError, match="this is, or is in, the input"):
            join_to(session, "lakes.plain", "lakes.ids", "id", out, overwrite=True)
    assert session.table("lakes.plain").count() == 100
