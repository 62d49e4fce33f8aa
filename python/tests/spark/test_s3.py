"""Logs, IDs and staging in an object store.

BLOOMJOIN_S3GW names versitygw, and BLOOMJOIN_SPARK_S3_JARS a directory with hadoop-aws, the AWS
SDK's bundle and analyticsaccelerator-s3, of the versions that Spark's Hadoop wants.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from spark_cases import MODES, digest, start_session
from test_faults import FAULTY

sys.path.append(str(Path(__file__).parents[1]))
from s3gateway import ACCESS, SECRET, Gateway, gateway

from bloomjoin.spark import Staging, join, prefilter, report

pytestmark = pytest.mark.skipif(
    not {"BLOOMJOIN_S3GW", "BLOOMJOIN_SPARK_S3_JARS"} <= os.environ.keys(),
    reason="no server or no jars named",
)
HOWS = {"inner": "inner", "semi": "left_semi", "anti": "left_anti", "left": "left",
        "right": "right", "full": "full"}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Gateway]:
    with gateway() as found:
        yield found


@pytest.fixture(scope="module")
def lake(server: Gateway, data: Path) -> Iterator[str]:
    server.copy_in(data, "lake/data")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment().items():
            patch.setenv(name, value)  # of the driver, which empties the staging
        yield "s3a://lake"


@pytest.fixture(scope="module")
def session(cluster: Any, server: Gateway, lake: str) -> Iterator[Any]:
    jars = Path(os.environ["BLOOMJOIN_SPARK_S3_JARS"]).glob("*.jar")
    found = start_session(
        cluster,
        **{
            "spark.jars": ",".join(map(str, jars)),
            "spark.hadoop.fs.s3a.endpoint": server.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": ACCESS,
            "spark.hadoop.fs.s3a.secret.key": SECRET,
        },
    )
    yield found
    found.stop()


@pytest.fixture
def staging(lake: str, server: Gateway) -> Iterator[Staging]:
    with Staging(f"{lake}/staging") as found:
        yield found
    assert staged(server) == []


def staged(server: Gateway) -> list[str]:
    from pyarrow.fs import FileSelector, FileType

    selector = FileSelector("lake/staging", recursive=True, allow_not_found=True)
    found = server.filesystem().get_file_info(selector)
    return [info.path for info in found if info.type == FileType.File]


def check(session, lake, server, staging, how, ids=None, on="name", **options):
    # Executors do not have the credentials in their environment: they travel with the tasks.
    found = join(
        session, f"{lake}/data/logs/", f"{lake}/data/ids.parquet" if ids is None else ids, on,
        how=how, staging=staging, mode=options.pop("mode", MODES[how][0]), tasks=3,
        **{"environment": dict(server.environment()), **options},
    )  # fmt: skip
    assert report(found).mode in MODES[how], report(found).why
    logs = session.read.parquet(f"{lake}/data/logs")
    right = session.read.parquet(f"{lake}/data/ids.parquet") if ids is None else ids
    want = digest(logs.join(right, on, HOWS[how]))
    assert want[0] > 0
    assert digest(found) == want
    return report(found)


@pytest.mark.parametrize("how", HOWS)
def test_joins(session, lake, server, staging, how):
    for mode in MODES[how]:
        check(session, lake, server, staging, how, mode=mode)


def test_both_ways(session, lake, server, staging):
    assert check(session, lake, server, staging, "inner", both_ways=True).ids_kept


def test_ids_of_a_frame(session, lake, server, staging):
    ids = session.read.parquet(f"{lake}/data/ids.parquet").select("id", "plan").repartition(3)
    check(session, lake, server, staging, "inner", ids=ids, on="id")


def test_prefilter(session, lake, server, staging):
    found = prefilter(
        session, f"{lake}/data/logs/*/*.parquet", f"{lake}/data/ids.parquet", "name",
        staging=staging, environment=server.environment(),
    )  # fmt: skip
    assert report(found).fallback is None
    assert found.count() == report(found).candidates > 0


def test_task_is_killed(session, lake, server, staging, tmp_path, binary):
    """An object that a lost attempt has written is no row of the answer, and is removed."""
    (tmp_path / "notes").mkdir()
    check(
        session, lake, server, staging, "inner",
        binaries={os.uname().machine: FAULTY},
        environment={
            **server.environment(),
            "BLOOMJOIN_REAL": binary,
            "BLOOMJOIN_FAULT": "kill after",
            "BLOOMJOIN_NOTES": str(tmp_path / "notes"),
        },
    )  # fmt: skip
    assert len(list((tmp_path / "notes").glob("1-*"))) >= 2, "there was one attempt only"
    rows = [name for name in staged(server) if "/rows/" in name]
    assert 0 < len(rows) <= 3, rows
