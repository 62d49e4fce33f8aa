"""A cluster, a session and data for the tests; all of it only with BLOOMJOIN_SPARK=1."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_cases import ROWS, key_columns, key_numbers, lakes, load_cluster, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

collect_ignore_glob = [] if os.environ.get("BLOOMJOIN_SPARK") else ["test_*.py"]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    with load_cluster().Cluster(workers=2, cores=2, memory="2g") as found:
        yield found


@pytest.fixture(scope="session")
def spark(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # A speculative attempt needs a task that takes many times as long as the others.
    session = start_session(
        cluster,
        **{
            "spark.speculation": "true",
            "spark.speculation.interval": "200ms",
            "spark.speculation.multiplier": "2",
            "spark.speculation.quantile": "0.5",
            "spark.speculation.minTaskRuntime": "2s",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("ware house%20")),
            **lakes(str(tmp_path_factory.mktemp("ice berg%20"))),
        },
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """logs/ with four files in two directories named region=VALUE, and ids.parquet.

    Keys are NULL at times, IDs repeat, and some have no row in the log.
    """
    folder = tmp_path_factory.mktemp("data")
    numbers = key_numbers(ROWS, 7)
    logs = pa.table({**key_columns(numbers), "row": pa.array(range(ROWS), pa.int64())})
    quarter = ROWS // 4
    for i in range(4):
        place = folder / "logs" / f"region={'a b' if i < 2 else '08'}"
        place.mkdir(parents=True, exist_ok=True)
        part = logs.slice(i * quarter, quarter)
        pq.write_table(part, place / f"part-{i}.parquet", row_group_size=1000)
    ids = [n if n is None else n * 20 for n in key_numbers(300, 1)]
    table = pa.table({**key_columns([*ids, *ids[:40]]), "plan": pa.array(range(340), pa.int32())})
    pq.write_table(table, folder / "ids.parquet", row_group_size=50)
    return folder


@pytest.fixture
def binary() -> str:
    return os.environ["BLOOMJOIN_BINARY"]
