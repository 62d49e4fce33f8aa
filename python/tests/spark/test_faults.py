"""Tasks, executors and drivers fail; the answer is right, and nothing is left."""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from spark_cases import digest, files_below

from bloomjoin._errors import DataError, RetryableError
from bloomjoin.spark import SparkReport, Staging, join, join_to, report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FAULTY = Path(__file__).with_name("faulty.py")
TASKS = 4


class Case:
    """A join with a fault, over data and a staging of its own."""

    def __init__(self, spark: SparkSession, data: Path, folder: Path, binary: str) -> None:
        self.spark = spark
        self.data = folder / "data"
        self.staging = folder / "staging"
        self.notes = folder / "notes"
        self.notes.mkdir()
        self.binary = binary
        shutil.copytree(data, self.data)

    def join(self, fault: str, staging: Staging, **more: str) -> DataFrame:
        options = self.options(fault, **more)
        return join(*self.sides(), "name", staging=staging, mode="files", **options)

    def rows(self, fault: str) -> DataFrame:
        return join(*self.sides(), "name", mode="whole", **self.options(fault))

    def write(self, fault: str, out: Path | str, **more: str) -> SparkReport:
        return join_to(*self.sides(), "name", out, mode="whole", **self.options(fault, **more))

    def sides(self) -> tuple[SparkSession, Path, Path]:
        return self.spark, self.data / "logs", self.data / "ids.parquet"

    def options(self, fault: str, **more: str) -> dict[str, Any]:
        environment = {
            "BLOOMJOIN_REAL": self.binary,
            "BLOOMJOIN_FAULT": fault,
            "BLOOMJOIN_NOTES": str(self.notes),
            **more,
        }
        binaries = {os.uname().machine: FAULTY}
        return {"tasks": TASKS, "binaries": binaries, "environment": environment}

    def want(self) -> tuple[Any, ...]:
        logs = self.spark.read.parquet(f"file://{self.data}/logs")
        ids = self.spark.read.parquet(f"file://{self.data}/ids.parquet")
        return digest(logs.join(ids, "name"))

    def attempts(self, shard: int) -> list[int]:
        return [int(p.name.split("-")[1]) for p in self.notes.glob(f"{shard}-*")]


@pytest.fixture
def case(spark: SparkSession, data: Path, tmp_path: Path, binary: str) -> Case:
    return Case(spark, data, tmp_path, binary)


def ended(pid: int) -> bool:
    for _ in range(50):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.2)
    return False


def _can_mount() -> bool:
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    with contextlib.suppress(OSError):
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False


@pytest.mark.parametrize(
    "fault", ["error", "full disk", "kill before", "kill after", "kill executor", "straggle"]
)
def test_task(case: Case, fault: str) -> None:
    if fault == "full disk" and not _can_mount():
        pytest.skip("a small disk needs leave to mount")
    start = time.monotonic()
    with Staging(str(case.staging)) as staging:
        found = case.join(fault, staging)
        assert report(found).mode == "files"
        attempts = case.attempts(1)
        assert len(attempts) >= 2, "the fault did not lead to another attempt"
        assert time.monotonic() - start < 100, "the answer waited for the straggler"
        assert all(ended(pid) for pid in attempts), "a command outlived its task"
        rows = files_below(case.staging)
        assert rows, "nothing was staged"
        assert len(rows) <= TASKS, rows
        assert all(Path(name).suffix == ".parquet" for name in rows), rows
        assert digest(found) == case.want()
    assert files_below(case.staging) == []


def test_worker_is_killed(case: Case, cluster: Any) -> None:
    with Staging(str(case.staging)) as staging:
        found = case.join("kill worker", staging)
        cluster.revive()
        assert len(case.attempts(1)) >= 2
        assert all(ended(pid) for pid in case.attempts(1)), "a command outlived its worker"
        assert len(files_below(case.staging)) <= TASKS
        assert digest(found) == case.want()
    assert files_below(case.staging) == []


def test_log_file_vanishes(case: Case) -> None:
    victim = case.data / "logs" / "region=08" / "part-3.parquet"
    with Staging(str(case.staging)) as staging:
        with pytest.raises(RetryableError, match=r"part-3\.parquet"):
            case.join("vanish", staging, BLOOMJOIN_VICTIM=str(victim))
        assert files_below(case.staging) == []


def test_damaged_log_file(case: Case) -> None:
    victim = case.data / "logs" / "region=08" / "part-3.parquet"
    content = bytearray(victim.read_bytes())
    content[1000:3000] = bytes(2000)
    victim.write_bytes(content)
    with Staging(str(case.staging)) as staging:
        with pytest.raises(DataError, match=r"part-3\.parquet"):
            case.join("none", staging)
        assert files_below(case.staging) == []


DRIVER = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1]]
import test_faults
from bloomjoin.spark import Staging
from spark_cases import start_session
class Cluster: url = sys.argv[2]
case = test_faults.Case.__new__(test_faults.Case)
folder = Path(sys.argv[3])
case.data, case.notes, case.binary = folder / "data", folder / "notes", sys.argv[4]
case.spark = start_session(Cluster)
case.join("straggle", Staging(str(folder / "staging")))
"""


def test_driver_is_killed(case: Case, cluster: Any, tmp_path: Path, binary: str) -> None:
    here = str(Path(__file__).parent)
    arguments = [here, cluster.url, str(tmp_path), binary]
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, *arguments],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        for _ in range(1000):
            if case.attempts(1):
                break
            assert driver.poll() is None
            time.sleep(0.2)
        assert case.attempts(1), "the scan did not begin"
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    assert files_below(case.staging), "the driver left nothing to clean"
    assert all(ended(pid) for pid in case.attempts(1)), "a command outlived its driver"
    with Staging(str(case.staging), max_age=datetime.timedelta(0)) as staging:
        assert files_below(case.staging) == []
        assert digest(case.join("none", staging)) == case.want()
    assert files_below(case.staging) == []
