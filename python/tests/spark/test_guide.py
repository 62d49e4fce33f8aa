"""The recipe of docs/spark.md without any integration, as it is written there."""

from __future__ import annotations

import os
import re
import subprocess
from typing import Any

from spark_cases import REPOSITORY, digest

WORKERS = 16


def block(language: str) -> str:
    """Return the only code block of the section in a language."""
    text = (REPOSITORY / "docs" / "spark.md").read_text()
    section = text.split("## Without any integration")[1].split("\n## ")[0]
    (found,) = re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)
    return str(found)


def test_plain_recipe(spark, data, binary, tmp_path):
    lake = tmp_path / "lake"
    logs = spark.read.parquet(f"file://{data}/logs").withColumnRenamed("id", "user_id")
    ids = spark.read.parquet(f"file://{data}/ids.parquet").selectExpr("id user_id", "plan")
    logs.write.partitionBy("region").parquet(f"file://{lake}/logs")
    ids.write.parquet(f"file://{lake}/ids")

    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "bloomjoin").symlink_to(binary)
    build, scan = block("sh").replace("LAKE", str(lake)).splitlines()
    assert f"--shard auto/{WORKERS}" in scan
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-euc", build], env=environment, check=True)
    for worker in range(WORKERS):
        environment["JOB_COMPLETION_INDEX"] = str(worker)
        subprocess.run(["bash", "-euc", scan], env=environment, check=True)

    names: dict[str, Any] = {"spark": spark}
    exec(block("python").replace("LAKE", str(lake)), names)
    want = logs.join(ids, "user_id")
    assert digest(names["answer"].select(want.columns)) == digest(want)
    assert len(names["paths"]) > 1
