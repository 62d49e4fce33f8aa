"""The answer is plain Spark's: the same rows, names and types."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_cases import MODES, digest, files_below

from bloomjoin._errors import UsageError
from bloomjoin.spark import Staging, _choose, join, prefilter, report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOWS = ["inner", "semi", "anti", "left", "right", "full"]
SPARK_HOW = {"semi": "left_semi", "anti": "left_anti"}
KEYS = ["small", "name", "raw", "price", "big", "day", "at", "clock", "flag"]


@pytest.fixture
def staging(tmp_path: Path):
    with Staging(str(tmp_path / "staging")) as found:
        yield found


def plain(spark: SparkSession, data: Path, on, how: str):
    logs = spark.read.parquet(f"file://{data}/logs")
    ids = spark.read.parquet(f"file://{data}/ids.parquet")
    return logs.join(ids, on, SPARK_HOW.get(how, how))


def check(spark, data, staging, on, how, ids=None, **options):
    want = digest(plain(spark, data, on, how))
    assert want[0] > 0
    for mode in MODES[how]:
        found = join(
            spark, data / "logs", ids if ids is not None else data / "ids.parquet", on,
            how=how, staging=staging, mode=mode, tasks=3, **options,
        )  # fmt: skip
        assert report(found).mode == mode, report(found).why
        assert digest(found) == want
    return report(found)


@pytest.mark.parametrize("how", HOWS)
def test_integers(spark, data, staging, how):
    check(spark, data, staging, "id", how)


def test_report(spark, data, staging):
    found = report(
        join(spark, data / "logs", data / "ids.parquet", "id", staging=staging, mode="files")
    )
    assert found.rows_in == 20_000
    assert found.filter_kind == "exact"
    assert 0 < found.candidates < found.rows_in


@pytest.mark.parametrize("how", HOWS)
def test_strings(spark, data, staging, how):
    check(spark, data, staging, "name", how)


@pytest.mark.parametrize("how", HOWS)
def test_composite(spark, data, staging, how):
    check(spark, data, staging, ["id", "name", "day"], how)


@pytest.mark.parametrize("key", KEYS)
def test_types(spark, data, staging, key):
    check(spark, data, staging, key, "semi")


@pytest.mark.parametrize("key", KEYS)
def test_types_of_a_data_frame(spark, data, staging, key):
    ids = spark.read.parquet(f"file://{data}/ids.parquet").repartition(3)
    check(spark, data, staging, key, "inner", ids=ids)


@pytest.mark.parametrize("frame", [False, True])
def test_both_ways(spark, data, staging, frame):
    ids = spark.read.parquet(f"file://{data}/ids.parquet") if frame else None
    # One log file has a few of the IDs only.
    logs = data / "logs" / "region=08" / "part-3.parquet"
    found = join(
        spark, logs, data / "ids.parquet" if ids is None else ids, "name",
        staging=staging, mode="files", tasks=2, both_ways=True,
    )  # fmt: skip
    want = spark.read.parquet(f"file://{logs}").join(
        spark.read.parquet(f"file://{data}/ids.parquet"), "name"
    )
    assert digest(found) == digest(want)
    kept = report(found).ids_kept
    assert kept is not None
    assert kept < report(found).ids_rows == 340


def test_different_names(spark, data, staging):
    ids = spark.read.parquet(f"file://{data}/ids.parquet").select("id", "plan")
    ids = ids.toDF("the id", "plan, maybe")
    found = join(
        spark, data / "logs", ids, "id=the id", staging=staging, mode="files",
        columns=["row", "region"],
    )  # fmt: skip
    logs = spark.read.parquet(f"file://{data}/logs").select("id", "row", "region")
    assert digest(found) == digest(logs.join(ids, logs.id == ids["the id"]))
    assert report(found).fallback is None


def test_prefilter_has_every_row_with_an_id(spark, data, staging):
    found = prefilter(spark, data / "logs", data / "ids.parquet", "name", staging=staging)
    ids = spark.read.parquet(f"file://{data}/ids.parquet")
    want = plain(spark, data, "name", "semi")
    assert digest(found.join(ids, "name", "left_semi")) == digest(want)
    assert want.count() <= report(found).candidates == found.count() < report(found).rows_in


def test_ids_are_evaluated_once(spark, data, staging):
    from pyspark.sql import functions as f

    ids = spark.read.parquet(f"file://{data}/ids.parquet")
    ids = ids.where(f.rand() < 0.5).withColumn("draw", f.rand())
    found = join(spark, data / "logs", ids, "id", staging=staging, mode="files")
    first = digest(found)
    assert 0 < first[0] < plain(spark, data, "id", "inner").count()
    assert digest(found) == first


def test_no_row_is_left(spark, data, staging):
    ids = spark.createDataFrame([(-1,), (-2,)], "id long")
    found = join(spark, data / "logs", ids, "id", staging=staging, mode="files")
    assert report(found).candidates == 0
    want = spark.read.parquet(f"file://{data}/logs").join(ids, "id")
    assert digest(found) == digest(want)
    assert found.count() == 0


FALLBACKS = {
    "float": (lambda ids: ids, "ratio", "inner", "keys of type double"),
    "types": (lambda ids: ids.selectExpr("cast(id as string) id"), "id", "inner", "types differ"),
    "decimals": (
        lambda ids: ids.selectExpr("cast(price as decimal(14,2)) price"),
        "price",
        "semi",
        "types differ",
    ),
    "path": (
        lambda ids: ids.selectExpr("'a b' region"), "region", "semi", "column of the paths",
    ),
    "old dates": (
        lambda ids: ids.selectExpr("day").unionByName(ids.selectExpr("date'1500-01-01' day")),
        "day",
        "inner",
        "older calendar",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FALLBACKS)
def test_falls_back_to_spark(spark, data, staging, name):
    change, on, how, why = FALLBACKS[name]
    ids = change(spark.read.parquet(f"file://{data}/ids.parquet"))
    logs = spark.read.parquet(f"file://{data}/logs")
    found = join(spark, data / "logs", ids, on, how=how, staging=staging, mode="files")
    assert why in (report(found).fallback or "")
    assert digest(found) == digest(logs.join(ids, on, SPARK_HOW.get(how, how)))


def test_collated_strings_are_sparks(spark, data, staging, tmp_path):
    if spark.version.startswith("3."):
        pytest.skip("Spark 3.5 has no collations")
    names = spark.read.parquet(f"file://{data}/ids.parquet").where("name is not null")
    collated = "collate(name, 'UTF8_LCASE') name"
    names.selectExpr(collated, "plan").write.parquet(f"file://{tmp_path}/log")
    logs = spark.read.parquet(f"file://{tmp_path}/log")
    assert "UTF8_LCASE" in logs.schema.simpleString()
    ids = names.selectExpr("collate(upper(name), 'UTF8_LCASE') name").distinct()
    found = join(spark, tmp_path / "log", ids, "name", how="semi", staging=staging, mode="files")
    assert "compared by Spark alone" in (report(found).fallback or "")
    assert digest(found) == digest(logs.join(ids, "name", "left_semi"))
    assert found.count() == names.count()


def test_int96_keys_are_sparks(spark, data, staging, tmp_path):
    names = spark.read.parquet(f"file://{data}/ids.parquet")
    names.select("at", "plan").write.parquet(f"file://{tmp_path}/log")
    ids = names.select("at").limit(50)
    found = join(spark, tmp_path / "log", ids, "at", staging=staging, mode="files")
    assert "INT96" in (report(found).fallback or "")
    logs = spark.read.parquet(f"file://{tmp_path}/log")
    assert found.count() == logs.join(ids, "at").count() > 0


SPARK_3 = {"org.apache.spark.version": "3.5.0"}
SPARK_2 = {"org.apache.spark.version": "2.4.5"}
LEGACY = {**SPARK_3, "org.apache.spark.legacyDateTime": ""}


@pytest.mark.parametrize("int96", [False, True])
@pytest.mark.parametrize(
    "marks",
    [
        (LEGACY, None),
        (SPARK_3, SPARK_2),
        (None, SPARK_2),
        (SPARK_2, SPARK_3),
    ],
)
def test_rows_in_an_older_calendar_are_sparks(spark, staging, tmp_path, marks, int96):
    """One file of two says that its days are of the older calendar, as Spark 2 wrote them."""
    (tmp_path / "log").mkdir()
    days = pa.array([-400_000, 5], pa.date32())
    instants = days.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"id": pa.array([1, 2], pa.int64()), "day": instants if int96 else days})
    for i, mark in enumerate(marks):
        path = tmp_path / "log" / f"{i}.parquet"
        marked = table.replace_schema_metadata(mark)
        pq.write_table(marked, path, use_deprecated_int96_timestamps=int96)
    logs = spark.read.parquet(f"file://{tmp_path}/log")

    ids = spark.createDataFrame([(2,)], "id long")
    found = join(spark, tmp_path / "log", ids, "id", staging=staging, mode="files", tasks=1)
    assert report(found).fallback is None, "no row is old"
    assert digest(found) == digest(logs.join(ids, "id"))

    ids = spark.createDataFrame([(1,)], "id long")
    found = join(spark, tmp_path / "log", ids, "id", staging=staging, mode="files", tasks=1)
    assert "older calendar" in (report(found).fallback or "")
    assert digest(found) == digest(logs.join(ids, "id"))
    if not int96:
        texts = {row["day"] for row in found.selectExpr("cast(day as string) day").collect()}
        assert len(texts) == 2, "the calendars do not differ, so this tests nothing"


def test_one_file_in_an_older_calendar(spark, staging, tmp_path):
    """Its mark goes with the rows."""
    table = pa.table({"id": pa.array([1], pa.int64()), "day": pa.array([-400_000], pa.date32())})
    pq.write_table(table.replace_schema_metadata(SPARK_2), tmp_path / "log.parquet")
    ids = spark.createDataFrame([(1,)], "id long")
    found = join(spark, tmp_path / "log.parquet", ids, "id", staging=staging, mode="files")
    assert report(found).fallback is None
    logs = spark.read.parquet(f"file://{tmp_path}/log.parquet")
    assert digest(found) == digest(logs.join(ids, "id"))


@pytest.mark.parametrize("how", ["left", "full", "anti"])
def test_every_row_with_other_names(spark, data, staging, how):
    """Types of keys that Spark widens, and columns that have one name on both sides."""
    ids = spark.read.parquet(f"file://{data}/ids.parquet").selectExpr(
        "small the_id", "name", "plan"
    )
    logs = spark.read.parquet(f"file://{data}/logs")
    found = join(
        spark, data / "logs", ids, "id=the_id", how=how, staging=staging, mode="files", tasks=2
    )
    assert report(found).mode == MODES[how][0], report(found).why
    assert digest(found) == digest(logs.join(ids, logs.id == ids.the_id, SPARK_HOW.get(how, how)))
    same = ids.withColumnRenamed("the_id", "id")
    found = join(spark, data / "logs", same, "id", how=how, staging=staging, mode="files")
    assert digest(found) == digest(logs.join(same, "id", SPARK_HOW.get(how, how)))


@pytest.mark.parametrize("how", ["left", "full", "anti"])
def test_every_row_and_no_id(spark, data, staging, how):
    ids = spark.createDataFrame([(-1, 1), (-2, 2), (None, 3)], "id long, plan int")
    found = join(spark, data / "logs", ids, "id", how=how, staging=staging, mode="files")
    assert report(found).mode == MODES[how][0], report(found).why
    logs = spark.read.parquet(f"file://{data}/logs")
    assert digest(found) == digest(logs.join(ids, "id", SPARK_HOW.get(how, how)))


def test_auto(spark, data, staging, tmp_path, monkeypatch):
    """What can be is joined whole; a small log is not staged."""
    for how in HOWS:
        found = join(spark, data / "logs", data / "ids.parquet", "id", how=how, staging=staging)
        if "whole" in MODES[how]:
            assert report(found).mode == "whole", report(found).why
        else:
            assert "small" in (report(found).fallback or "")
        assert digest(found) == digest(plain(spark, data, "id", how))
    assert files_below(tmp_path / "staging") == []
    monkeypatch.setattr(_choose, "_SMALL", 0)
    found = join(spark, data / "logs", data / "ids.parquet", "id", how="right", staging=staging)
    assert report(found).mode == "files"
    monkeypatch.setattr(_choose, "_STAGES", -1.0)
    found = join(spark, data / "logs", data / "ids.parquet", "id", staging=staging)
    assert report(found).mode == "files"


def test_what_is_refused(spark, data, staging, tmp_path):
    logs = spark.read.parquet(f"file://{data}/logs")
    ids = data / "ids.parquet"
    with pytest.raises(UsageError, match="data frame"):
        join(spark, logs, ids, "id", staging=staging)
    with pytest.raises(UsageError, match="no column nobody"):
        join(spark, data / "logs", ids, "nobody", staging=staging)
    with pytest.raises(UsageError, match="ids: want paths or a Spark data frame, got int"):
        join(spark, data / "logs", [1, 2], "id")
    with pytest.raises(UsageError, match="how"):
        join(spark, data / "logs", ids, "id", how="cross", staging=staging)
    with pytest.raises(UsageError, match="absolute"):
        join(spark, data / "logs", ids, "id", staging="relative", mode="files")
    with pytest.raises(UsageError, match="staging"):
        join(spark, data / "logs", ids, "id", mode="files")


def test_staging_ends_with_its_block(spark, data, tmp_path):
    with Staging(str(tmp_path / "staging")) as staging:
        found = join(
            spark, data / "logs", data / "ids.parquet", "id", staging=staging, mode="files"
        )
        assert found.count() > 0
        assert files_below(tmp_path / "staging")
    assert files_below(tmp_path / "staging") == []
