"""Tasks that join and write, or that hand the answer to Spark: what they write, and failures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from spark_cases import digest, files_below
from test_faults import TASKS, Case, ended

sys.path.append(str(Path(__file__).parents[1]))
from s3gateway import gateway

import bloomjoin
from bloomjoin._errors import DataError, UsageError
from bloomjoin.spark import _commit, count, join, join_to, report

HOWS = {"inner": "inner", "left": "left", "semi": "left_semi", "anti": "left_anti"}


@pytest.fixture
def case(spark: Any, data: Path, tmp_path: Path, binary: str) -> Case:
    return Case(spark, data, tmp_path, binary)


def sides(spark, data):
    logs = spark.read.parquet(f"file://{data}/logs")
    return logs, spark.read.parquet(f"file://{data}/ids.parquet")


def written(spark, out, like):
    """Return what a directory holds, in the order of other columns, if it is whole."""
    assert (out / "_SUCCESS").exists()
    bloomjoin.inspect(out, check=True)
    assert not [n for n in files_below(out) if n.endswith(".staged")]
    return spark.read.parquet(f"file://{out}").select(*like.columns)


@pytest.mark.parametrize("how", HOWS)
def test_answer_and_count(spark, data, tmp_path, how):
    logs, ids = sides(spark, data)
    ids = ids.select("name", "plan")
    want = logs.join(ids, "name", HOWS[how])
    out = tmp_path / "out"
    found = join_to(spark, data / "logs", ids, "name", out, how=how, tasks=3)
    assert found.mode == "whole", found.why
    assert found.rows_out == want.count() == count(spark, data / "logs", ids, "name", how) > 0
    assert digest(written(spark, out, want)) == digest(want)
    assert {n.split("/")[0] for n in files_below(out)} == {"_SUCCESS", "region=08", "region=a b"}


def test_columns_and_conditions(spark, data, tmp_path):
    logs, ids = sides(spark, data)
    want = (
        logs.where("row < 9000 and region = 'a b'")
        .select("id", "row")
        .join(ids.select("id"), "id", "left_semi")
    )
    where = ["row < 9000", "region = 'a b'"]
    given = (spark, data / "logs", data / "ids.parquet", "id")
    found = join(*given, how="semi", columns=["row"], where=where, mode="whole")
    assert digest(found) == digest(want)
    assert count(*given, "semi", where=where) == want.count()
    join_to(*given, tmp_path / "out", how="semi", columns=["row"], where=where)
    assert digest(written(spark, tmp_path / "out", want)) == digest(want)
    auto = join(*given, how="semi", columns=["row"], where=where)
    assert report(auto).mode == "whole", "Spark knows no conditions, however small the log is"
    with pytest.raises(UsageError, match="where: Spark has to"):
        join(*given, how="full", where=where)


def ways_to(data, link):
    """Return other names of the directory of the log."""
    return [f"{data}/logs/../logs", f"/{data}//logs", link / "logs", f"file://{link}/logs"]


def test_what_a_path_holds(spark, data, tmp_path):
    out = tmp_path / "out"
    given = (spark, data / "logs", data / "ids.parquet", "id", out)
    join_to(*given)
    with pytest.raises(UsageError, match="overwrite"):
        join_to(*given)
    (out / "other.parquet").write_text("another's")
    join_to(*given, how="anti", overwrite=True)
    logs, ids = sides(spark, data)
    want = logs.join(ids, "id", "left_anti")
    assert digest(written(spark, out, want)) == digest(want)
    assert not (out / "other.parquet").exists()
    (tmp_path / "link").symlink_to(data)
    for path in (data / "logs", data, data / "logs" / "out", *ways_to(data, tmp_path / "link")):
        with pytest.raises(UsageError, match="is in, the input"):
            join_to(*given[:4], path, overwrite=True)
    pattern = f"{data}/l?gs"
    with pytest.raises(UsageError, match="is in, the input"):
        join_to(spark, pattern, *given[2:4], data / "logs", overwrite=True)
    assert files_below(data / "logs")
    with pytest.raises(UsageError, match="absolute"):
        join_to(*given[:4], "out")
    with pytest.raises(UsageError, match="want inner"):
        join_to(*given, how="full", overwrite=True)


@pytest.mark.parametrize("mode", ["auto", "spark"])
def test_spark_writes_where_it_has_to(spark, data, tmp_path, mode):
    logs, ids = sides(spark, data)
    ids = ids.select("ratio")
    found = join_to(spark, data / "logs", ids, "ratio", tmp_path / "out", how="semi", mode=mode)
    assert found.mode == "spark"
    out = tmp_path / "out"
    want = logs.join(ids, "ratio", "left_semi")
    assert digest(spark.read.parquet(f"file://{out}").select(*want.columns)) == digest(want)
    assert {n.split("/")[0] for n in files_below(out) if n[0] == "r"} == {"region=08", "region=a b"}


def test_ids_are_evaluated_once(spark, data):
    from pyspark.sql import functions as f

    _, ids = sides(spark, data)
    ids = ids.where(f.rand() < 0.5).withColumn("draw", f.rand()).select("id", "draw")
    found = join(spark, data / "logs", ids, "id", mode="whole")
    first = digest(found)
    assert first[0] > 0
    assert digest(found) == first


def test_ids_that_change(spark, data, tmp_path):
    ids = tmp_path / "ids.parquet"
    shutil.copy(data / "ids.parquet", ids)
    found = join(spark, data / "logs", ids, "id", mode="whole")
    assert found.count() > 0
    pq.write_table(pa.table({"id": [1]}), ids)
    with pytest.raises(Exception, match="these IDs have changed"):
        found.count()


def test_a_failure_beside_another_run(spark, data, tmp_path, monkeypatch):
    real = _commit._written

    def late(*arguments: Any) -> None:
        real(*arguments)  # As another run would.
        raise OSError("this run fails")

    monkeypatch.setattr(_commit, "_written", late)
    with pytest.raises(OSError, match="this run fails"):
        join_to(spark, data / "logs", data / "ids.parquet", "id", tmp_path / "out", how="semi")
    logs, ids = sides(spark, data)
    want = logs.join(ids, "id", "left_semi")
    assert digest(written(spark, tmp_path / "out", want)) == digest(want)


def test_an_answer_without_rows(spark, data, tmp_path):
    logs, _ = sides(spark, data)
    ids = spark.createDataFrame([], "id long, plan string")
    found = join_to(spark, data / "logs", ids, "id", tmp_path / "out")
    assert (found.mode, found.rows_out) == ("whole", 0)
    want = logs.join(ids, "id")
    assert digest(written(spark, tmp_path / "out", want)) == digest(want)


def test_ids_that_are_added(spark, data, tmp_path):
    ids = tmp_path / "ids"
    ids.mkdir()
    pq.write_table(pa.table({"id": [1]}), ids / "a.parquet")
    found = join(spark, data / "logs", ids, "id", mode="whole")
    first = digest(found)
    pq.write_table(pa.table({"id": [2, 3]}), ids / "b.parquet")
    assert digest(found) == first


def test_schemas_of_several_files(spark, tmp_path):
    pq.write_table(pa.table({"k": [1], "n": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"k": [2]}), tmp_path / "b.parquet")
    ids = spark.createDataFrame([(1,), (2,)], "k long")
    want = spark.read.parquet(f"file://{tmp_path}/*.parquet").join(ids, "k", "left_semi")
    given = (spark, f"{tmp_path}/*.parquet", ids, "k")
    assert digest(join(*given, how="semi", mode="whole")) == digest(want)
    join_to(*given, tmp_path / "out", how="semi")
    assert digest(spark.read.parquet(f"file://{tmp_path}/out")) == digest(want)


def test_a_file_that_says_other_columns(spark, tmp_path):
    frame = spark.range(2).selectExpr("id", "array(1) as a", "1 as n")
    frame.coalesce(1).write.parquet(f"file://{tmp_path}/spark")
    (log,) = (tmp_path / "spark").glob("*.parquet")
    ids = spark.createDataFrame([(1,)], "id long")
    want = spark.read.parquet(f"file://{log}").join(ids, "id")
    found = join(spark, log, ids, "id", mode="whole")
    assert (report(found).mode, found.schema["a"]) == ("whole", want.schema["a"])
    pq.write_metadata(pq.read_schema(log).remove(2).remove_metadata(), log.parent / "_metadata")
    assert join(spark, log.parent, ids, "id", mode="whole").columns == ["id", "a"]
    # Other programs keep what the file says of its columns.
    table, other = pq.read_table(log), tmp_path / "other.parquet"
    pq.write_table(table.drop_columns(["n"]), other)
    assert join(spark, other, ids, "id", mode="whole").collect()[0].n is None
    pq.write_table(table.set_column(2, "n", pa.array([1, 1 << 40])), other)
    with pytest.raises(Exception, match="not in range"):
        join(spark, other, ids, "id", mode="whole").collect()


def test_a_file_without_the_key_is_named(spark, tmp_path):
    (tmp_path / "logs").mkdir()
    pq.write_table(pa.table({"k": [1], "n": [1]}), tmp_path / "logs" / "a.parquet")
    pq.write_table(pa.table({"n": [1]}), tmp_path / "logs" / "b.parquet")
    ids = spark.createDataFrame([(1,)], "k long")
    found = join(spark, tmp_path / "logs", ids, "k", mode="whole")
    assert "b.parquet lacks k" in report(found).why
    assert found.count() == 1


def test_old_days_of_a_marked_file(spark, tmp_path):
    days = pa.array([-400_000, 5], pa.date32())
    table = pa.table({"id": pa.array([1, 2], pa.int64()), "day": days})
    ids = spark.createDataFrame([(1,)], "id long")
    log = tmp_path / "log.parquet"
    pq.write_table(table, log)
    logs = spark.read.parquet(f"file://{log}")
    assert digest(join(spark, log, ids, "id", mode="whole")) == digest(logs.join(ids, "id"))
    pq.write_table(table.replace_schema_metadata({"org.apache.spark.version": "2.4.5"}), log)
    with pytest.raises(Exception, match="older calendar"):
        join(spark, log, ids, "id", mode="whole").collect()


def test_damaged_log_file(case: Case) -> None:
    victim = case.data / "logs" / "region=08" / "part-3.parquet"
    content = bytearray(victim.read_bytes())
    content[1000:3000] = bytes(2000)
    victim.write_bytes(content)
    out = case.staging.parent / "out"
    with pytest.raises(DataError, match=r"part-3\.parquet"):
        case.write("none", out)
    assert not out.exists()
    assert not Path(f"{out}.bloomjoin").exists()
    with pytest.raises(Exception, match=r"part-3\.parquet"):
        case.rows("none").collect()


FAULTS = ["error", "kill before", "kill after", "kill executor", "straggle"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("way", ["rows", "write"])
def test_faults(case: Case, fault: str, way: str) -> None:
    start = time.monotonic()
    out = case.staging.parent / "out"
    if way == "rows":
        assert digest(case.rows(fault)) == case.want()
    else:
        case.write(fault, out)
    attempts = case.attempts(1)
    assert len(attempts) >= 2, "the fault did not lead to another attempt"
    assert time.monotonic() - start < 100, "the answer waited for the straggler"
    assert all(ended(pid) for pid in attempts), "a command outlived its task"
    if way == "write":
        logs, ids = sides(case.spark, case.data)
        assert digest(written(case.spark, out, logs.join(ids, "name"))) == case.want()
        names = [n for n in files_below(out) if not n.endswith("_SUCCESS")]
        assert len(names) >= TASKS
        assert all(n.endswith(".parquet") for n in names), names
        assert not [n for n in os.listdir(f"{out}.bloomjoin") if n.startswith(("plan", "shard"))]


@pytest.mark.skipif("BLOOMJOIN_S3GW" not in os.environ, reason="no server named")
@pytest.mark.parametrize("fault", ["none", "kill before", "kill after", "straggle"])
def test_into_a_store(case: Case, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Objects appear at the end, and no upload of a lost attempt is left."""
    with gateway() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)  # of the driver, which commits
        files = server.filesystem()
        files.create_dir("lake")
        found = case.write(fault, "s3a://lake/out", **server.environment())
        with pytest.raises(UsageError, match="overwrite"):
            case.write("none", "s3a://lake/out")
        sweep = [case.binary, "commit", "--sweep", "--older", "0s", "--json", "s3a://lake/out/"]
        left = subprocess.run(sweep, check=True, capture_output=True).stdout
        assert json.loads(left)["left"] == []
        out = case.staging.parent / "out"
        pyarrow.fs.copy_files("lake/out", str(out), source_filesystem=files)
    logs, ids = sides(case.spark, case.data)
    rows = case.spark.read.parquet(f"file://{out}").select(*logs.join(ids, "name").columns)
    assert digest(rows) == case.want()
    assert found.rows_out == rows.count()
