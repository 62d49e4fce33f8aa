"""The same with a client of Spark Connect, which has no access to Spark's own process."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import bloomjoin

pytest.importorskip("grpc_status")
if version("pyspark").startswith("3."):
    pytest.skip("pyspark 3.5 comes without the server", allow_module_level=True)

CLIENT = """
import sys
sys.path[:0] = [sys.argv[1]]
from pathlib import Path
from pyspark.sql import SparkSession
from bloomjoin.spark import Staging, count, join, join_to, report
from spark_cases import digest, files_below
spark = SparkSession.builder.remote(sys.argv[2]).getOrCreate()
data, folder = sys.argv[3], Path(sys.argv[4])
out = str(folder.parent / "out")
logs, ids = spark.read.parquet(data + "/logs"), spark.read.parquet(data + "/ids.parquet")
with Staging(str(folder)) as staging:
    for given in data + "/ids.parquet", ids:
        for how in "inner", "left", "right":
            mode = "files" if how == "right" else "whole"
            options = {"how": how, "staging": staging, "mode": mode}
            found = join(spark, data + "/logs", given, "name", **options)
            assert report(found).mode == mode, report(found)
            assert digest(found) == digest(logs.join(ids, "name", how))
        found = join_to(spark, data + "/logs", given, "name", out, how="semi", overwrite=True)
        want = logs.join(ids, "name", "left_semi")
        assert found.mode == "whole" and found.rows_out == want.count(), found
        assert digest(spark.read.parquet("file://" + out).select(want.columns)) == digest(want)
        assert count(spark, data + "/logs", given, "name", "semi") == want.count()
    view = logs.where("row % 3 = 0")
    found = join(spark, view, ids, "name", staging=staging, mode="probe")
    assert report(found).mode == "probe", report(found)
    assert digest(found) == digest(view.join(ids, "name"))
    logs.drop("region").write.option("path", str(folder.parent / "table")).saveAsTable("plain")
    found = join(spark, "plain", ids, "name", mode="whole")
    assert report(found).mode == "whole", report(found)
    assert digest(found) == digest(logs.drop("region").join(ids, "name"))
    assert files_below(folder)
assert not files_below(folder)
print("the same rows")
"""


def test_connect(cluster: Any, data: Path, tmp_path: Path, binary: str) -> None:
    settings = {
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.executorEnv.PYTHONPATH": str(Path(bloomjoin.__file__).parents[1]),
    }
    here = str(Path(__file__).parent)
    with cluster.connect(settings) as url:
        client = subprocess.run(
            [sys.executable, "-c", CLIENT, here, url, str(data), str(tmp_path / "staging")],
            env={**os.environ, "BLOOMJOIN_BINARY": binary},
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
    said = [line for line in client.stderr.splitlines() if not line.startswith("\tat ")]
    assert client.returncode == 0, "\n".join(said)[-4000:]
    assert client.stdout.endswith("the same rows\n")
