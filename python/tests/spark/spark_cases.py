"""What the tests of Spark share: sessions, rows with keys of every type, digests of answers."""

from __future__ import annotations

import datetime
import decimal
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import bloomjoin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REPOSITORY = Path(__file__).resolve().parents[3]
ROWS, KEYS = 20_000, 3_000

# How bloomjoin may do each type of join.
MODES = {how: ["files", "whole"] for how in ("inner", "semi")}
MODES |= {how: ["whole"] for how in ("left", "anti")}
MODES |= {how: ["files"] for how in ("right", "full")}


def load_cluster() -> Any:
    spec = importlib.util.spec_from_file_location(
        "bloomjoin_cluster", REPOSITORY / "bench" / "spark" / "cluster.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def start_session(cluster: Any, **settings: str) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master(cluster.url)
        .config("spark.executor.memory", "512m")
        .config("spark.executor.cores", "1")
        .config("spark.cores.max", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "America/New_York")
        # As Spark 4 does: by default, 3.5 refuses old days that have no mark.
        .config("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")
        .config("spark.sql.parquet.int96RebaseModeInRead", "CORRECTED")
        # Probes import this package where they run.
        .config("spark.executorEnv.PYTHONPATH", str(Path(bloomjoin.__file__).parents[1]))
    )
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def lakes(warehouse: str) -> dict[str, str]:
    """Settings for Iceberg and Delta, whose libraries are in BLOOMJOIN_SPARK_JARS, if it is set."""
    jars = os.environ.get("BLOOMJOIN_SPARK_JARS")
    if not jars:
        return {}
    iceberg = "org.apache.iceberg.spark."
    extensions = (
        "extensions.IcebergSparkSessionExtensions",
        "io.delta.sql.DeltaSparkSessionExtension",
    )
    return {
        "spark.jars": ",".join(map(str, Path(jars).glob("*.jar"))),
        "spark.sql.extensions": f"{iceberg}{extensions[0]},{extensions[1]}",
        "spark.sql.catalog.ice": f"{iceberg}SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": f"file://{warehouse}",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


def _instant(n: int) -> datetime.datetime:
    start = datetime.datetime(2024, 3, 9, tzinfo=datetime.timezone.utc)
    return start + datetime.timedelta(minutes=n, microseconds=n)


def key_columns(numbers: list[int | None]) -> dict[str, pa.Array]:
    """Columns of every type, all of which have the same equal and unequal pairs of rows."""

    def column(kind: pa.DataType, value: Any) -> pa.Array:
        return pa.array([None if n is None else value(n) for n in numbers], kind)

    day = datetime.date(2001, 1, 1)
    return {
        "id": column(pa.int64(), lambda n: n),
        "small": column(pa.int16(), lambda n: n),
        "name": column(pa.string(), lambda n: f"user {n} \u00e9"),
        "raw": column(pa.binary(), lambda n: n.to_bytes(3, "big")),
        "price": column(pa.decimal128(12, 2), lambda n: decimal.Decimal(n) / 100),
        "big": column(pa.decimal128(30, 4), lambda n: decimal.Decimal(n) / 10000),
        "day": column(pa.date32(), lambda n: day + datetime.timedelta(days=n)),
        "at": column(pa.timestamp("us", "UTC"), _instant),
        "clock": column(pa.timestamp("us"), lambda n: _instant(n).replace(tzinfo=None)),
        "flag": column(pa.bool_(), lambda n: n % 2 == 0),
        "ratio": column(pa.float64(), lambda n: n / 3),
    }


def key_numbers(count: int, step: int, offset: int = 0) -> list[int | None]:
    return [None if i % 97 == 5 else offset + i * step % KEYS for i in range(count)]


def digest(frame: DataFrame) -> tuple[Any, ...]:
    """Count rows and add up their hashes, whatever their order is. Names and types count, too."""
    from pyspark.sql import functions as f

    names = frame.columns
    numbered = frame.toDF(*[f"c{i}" for i in range(len(names))])
    hashes = f.xxhash64(
        *[f.coalesce(f.col(c).cast("string"), f.lit("\0")) for c in numbered.columns]
    )
    row = numbered.agg(f.count(f.lit(1)), f.sum(hashes.cast("decimal(38,0)"))).collect()[0]
    return (*row, [(field.name, field.dataType.simpleString()) for field in frame.schema.fields])


def files_below(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
