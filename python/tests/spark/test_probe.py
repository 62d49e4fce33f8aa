"""Logs that are data frames: their keys are probed as Spark reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_cases import digest, files_below

from bloomjoin._errors import UsageError
from bloomjoin.spark import Staging, join, report


@pytest.fixture
def staging(tmp_path: Path):
    with Staging(str(tmp_path / "staging")) as found:
        yield found


@pytest.fixture
def view(spark, data):
    """A log that has no files of its own: rows are chosen, and a column is made."""
    logs = spark.read.parquet(f"file://{data}/logs")
    logs.where("row % 3 != 0").withColumn("half", logs.row / 2).createOrReplaceTempView("half_log")
    yield spark.table("half_log")
    spark.catalog.dropTempView("half_log")


@pytest.mark.parametrize("how", ["inner", "semi", "right"])
@pytest.mark.parametrize("key", ["id", "small", "name", "raw"])
@pytest.mark.parametrize("frame", [False, True])
def test_probes(spark, data, view, staging, how, key, frame):
    ids = spark.read.parquet(f"file://{data}/ids.parquet").select(key, "plan")
    given = ids.repartition(2) if frame else data / "ids.parquet"
    found = join(spark, view, given, key, how=how, staging=staging, mode="probe")
    assert report(found).mode == "probe", report(found).why
    every = ids if frame else spark.read.parquet(f"file://{data}/ids.parquet")
    want = digest(view.join(every, key, {"semi": "left_semi"}.get(how, how)))
    assert want[0] > 0
    assert digest(found) == want


def test_rows_are_dropped_before_the_join(spark, data, view, staging):
    found = join(spark, view, data / "ids.parquet", "name", staging=staging, mode="probe")
    plan = spark.sql("EXPLAIN FORMATTED SELECT row FROM {found}", found=found.select("row"))
    text = plan.head()[0]
    assert "ArrowEvalPython" in text
    assert len([name for name in files_below(Path(staging.url)) if name.endswith(".bjf")]) == 1


@pytest.mark.parametrize(
    ("key", "how", "why"),
    [
        ("id", "left", "every row"),
        ("id", "anti", "every row"),
        (["id", "name"], "inner", "several columns"),
        ("day", "inner", "not probed"),
        ("ratio", "inner", "compared by Spark alone"),
    ],
)
def test_falls_back(spark, data, view, staging, key, how, why):
    ids = spark.read.parquet(f"file://{data}/ids.parquet")
    found = join(spark, view, ids, key, how=how, staging=staging, mode="probe")
    assert why in (report(found).fallback or ""), report(found).why
    assert digest(found) == digest(view.join(ids, key, {"anti": "left_anti"}.get(how, how)))


def test_files_are_no_frame(spark, data, staging):
    with pytest.raises(UsageError, match="data frame"):
        join(spark, data / "logs", data / "ids.parquet", "id", staging=staging, mode="probe")
