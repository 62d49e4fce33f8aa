"""Tasks as they run on an executor, without a cluster."""

from __future__ import annotations

import os
import re
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomjoin
from bloomjoin.spark import _choose, _equality, _ship, _task
from bloomjoin.spark._plain import Unsuitable
from bloomjoin.spark._resources import Room


@pytest.fixture
def shipped(tmp_path: Path, binary: str, monkeypatch: pytest.MonkeyPatch) -> _task.Binary:
    """The command as an executor has it after addFile."""
    from pyspark import SparkFiles

    root = tmp_path / "executor"
    root.mkdir()
    (root / "bloomjoin").symlink_to(binary)
    monkeypatch.setattr(SparkFiles, "_root_directory", str(root))
    monkeypatch.setattr(SparkFiles, "_is_running_on_worker", True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return {"version": "", "shipped": {os.uname().machine: "bloomjoin"}}


def room(binary: _task.Binary) -> Room:
    return Room(binary, {}, [], "64MiB", 2, None)


def run(step: _task.Step, tasks: int) -> list[dict[str, Any]]:
    def one(shard: int) -> dict[str, Any]:
        batch = pa.RecordBatch.from_pydict({"id": [shard]})
        (row,) = _ship.each(step)(iter([batch]))
        return row.to_pylist()[0]

    with ThreadPoolExecutor(tasks) as pool:
        return list(pool.map(one, range(tasks)))


def scan_step(shipped: _task.Binary, folder: Path, binary: str, tasks: int) -> _task.Step:
    log = pa.table({"id": pa.array(range(8000), pa.int64())})
    pq.write_table(log, folder / "log.parquet", row_group_size=1000)
    ids = bloomjoin.build(pa.array([5, 4000, 9000], pa.int64()))
    ids.save(folder / "ids.bjf")
    command = ["scan", "--quiet", "--json", "--key", "id", "--filter", _task.FILTER]
    command += ["--shard", f"{_task.SHARD}/{tasks}"]
    step = room(shipped).step([*command, "-o", _task.OUT, str(folder / "log.parquet")])
    step["prefix"], step["suffix"] = str(folder / "out-"), ".parquet"
    step["filter"] = {"url": f"file://{folder}/ids.bjf", "digest": ids.digest}
    return step


def test_the_filter_is_fetched_once(shipped: _task.Binary, tmp_path: Path, binary: str) -> None:
    step = scan_step(shipped, tmp_path, binary, 4)
    cache = tmp_path / f"bloomjoin-filters-{os.getuid()}"
    cache.mkdir(mode=0o700)
    old = cache / "old.bjf"
    old.touch()
    os.utime(old, (0, time.time() - 2 * 24 * 3600))
    rows = run(step, 4)
    found = pa.concat_tables(pq.read_table(row["output"]) for row in rows)
    assert sorted(found["id"].to_pylist()) == [5, 4000]
    assert len({row["output"] for row in rows + run(step, 4)}) == 8, "attempts share a key"
    names = sorted(p.name for p in cache.iterdir())
    assert names == sorted([f"{step['filter']['digest']}.bjf", "lock"])
    kept = (cache / names[0]).stat().st_ino
    run(step, 1)
    assert (cache / names[0]).stat().st_ino == kept


def test_another_filter_at_the_url(shipped: _task.Binary, tmp_path: Path, binary: str) -> None:
    step = scan_step(shipped, tmp_path, binary, 1)
    step["filter"]["digest"] = "0" * 64
    with pytest.raises(RuntimeError, match="not the filter"):
        run(step, 1)


def test_bad_data_is_returned_and_not_tried_again(
    shipped: _task.Binary, tmp_path: Path, binary: str
) -> None:
    step = scan_step(shipped, tmp_path, binary, 1)
    (tmp_path / "log.parquet").write_bytes(b"PAR1 is not enough")
    (row,) = run(step, 1)
    assert row["exit_code"] == 1
    assert "log.parquet" in row["text"]


def test_tasks_need_no_package() -> None:
    """What travels must not import bloomjoin, which executors may not have."""
    from pyspark import cloudpickle

    step = room({"version": "", "shipped": {}}).step(["scan"])
    for mapper in _ship.each(step), _ship.listings([]), _ship.stream(step, pa.schema([]), True):
        assert not re.search(rb"bloomjoin\.spark|bloomjoin\._", cloudpickle.dumps(mapper))


@pytest.mark.parametrize(
    ("on", "want"),
    [
        ("id", [("id", "id")]),
        ("a=b", [("a", "b")]),
        (["a", "b = c"], [("a", "a"), ("b", "c")]),
        ({"a=b": "c"}, [("a=b", "c")]),
    ],
)
def test_on(on: Any, want: list[tuple[str, str]]) -> None:
    assert [(p.log, p.ids) for p in _equality.pairs(on)] == want


@pytest.mark.parametrize("on", ["", [], {}, "=b"])
def test_on_is_empty(on: Any) -> None:
    with pytest.raises(bloomjoin.UsageError, match="on"):
        _equality.pairs(on)


@pytest.mark.parametrize(
    ("cores", "log", "ids", "staged", "alone"),
    [
        (2, 1e9, 1e11, "whole", "whole"),  # a shuffle by two cores is slow
        (4, 1e12, 1e9, "whole", "whole"),
        (100, 1e12, 1e9, "whole", "whole"),
        (100, 1e12, 1e10, "files", "whole"),
        (100, 1e10, 1e11, "files", "spark"),
    ],
)
def test_what_auto_chooses(cores: int, log: float, ids: float, staged: str, alone: str) -> None:
    ways = {None: "whole", Unsuitable: "files", _choose.NotWorth: "spark"}
    for staging, want in (True, staged), (False, alone):
        try:
            _choose.check_ids(cores, int(log), int(ids), staging=staging)
            found = None
        except Unsuitable as error:
            found = type(error)
        assert ways[found] == want
