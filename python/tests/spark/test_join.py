"""The answer is plain Spark's: the same rows, names and types."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from spark_cases import digest

from bloomjoin.spark import Staging, join, report

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


def check(spark, data, staging, on, how, mode, ids=None, **options):
    found = join(
        spark,
        data / "logs",
        ids if ids is not None else data / "ids.parquet",
        on,
        how=how,
        staging=staging,
        mode="files",
        tasks=3,
        **options,
    )
    assert report(found).mode == mode, report(found).why
    want = digest(plain(spark, data, on, how))
    assert want[0] > 0
    assert digest(found) == want
    return report(found)


@pytest.mark.parametrize("how", HOWS)
def test_integers(spark, data, staging, how):
    found = check(spark, data, staging, "id", how, "spark" if how in ("left", "full") else "files")
    if found.mode == "files":
        assert found.rows_in == 20_000
        assert found.candidates == (19_000 if how == "anti" else 1_000) or found.candidates > 0
        assert found.filter_kind == "exact"


@pytest.mark.parametrize("how", HOWS)
def test_strings(spark, data, staging, how):
    expected = "files" if how in ("inner", "semi", "right") else "spark"
    check(spark, data, staging, "name", how, expected)


@pytest.mark.parametrize("how", ["inner", "semi", "right"])
def test_composite(spark, data, staging, how):
    check(spark, data, staging, ["id", "name", "day"], how, "files")


@pytest.mark.parametrize("key", KEYS)
def test_types(spark, data, staging, key):
    check(spark, data, staging, key, "semi", "files")


@pytest.mark.parametrize("key", KEYS)
def test_types_of_a_data_frame(spark, data, staging, key):
    ids = spark.read.parquet(f"file://{data}/ids.parquet").repartition(3)
    check(spark, data, staging, key, "inner", "files", ids=ids)
