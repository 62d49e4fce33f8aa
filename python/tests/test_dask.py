"""Dask frames: each file of a log is a partition, and all of them are the eager answer."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flights import JOINS, LOGS, ON, TEXAS, expected, rows

import bloomjoin

pytest.importorskip("dask.dataframe")
pytest.importorskip("pandas")

from bloomjoin import dask as lazy

SCHEDULERS = ["sync", "threads", "processes"]


@pytest.fixture(scope="module")
def texas() -> bloomjoin.Filter:
    return bloomjoin.build(TEXAS, "iata")


def table(frame: Any) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_scan(texas: bloomjoin.Filter, scheduler: str) -> None:
    frame = lazy.scan_dask(texas, LOGS, "origin")
    assert frame.npartitions == 4
    answer = frame.compute(scheduler=scheduler)
    assert list(answer.dtypes) == list(frame.dtypes)
    eager = bloomjoin.scan(texas, LOGS, "origin").read_all()
    assert [t.pyarrow_dtype for t in frame.dtypes] == eager.schema.types
    assert rows(table(answer)) == rows(eager)


@pytest.mark.parametrize("how", ["semi", "anti", "inner", "left"])
def test_join(how: str) -> None:
    answer = lazy.join_dask(LOGS, TEXAS, ON, how=how).compute(scheduler="threads")
    assert rows(table(answer)) == expected(JOINS[how])


@pytest.mark.parametrize("how", ["right", "full"])
def test_joins_that_no_file_can_answer(how: str) -> None:
    with pytest.raises(bloomjoin.UsageError, match=how):
        lazy.join_dask(LOGS, TEXAS, ON, how=how)


def test_a_filter_travels(tmp_path: Path) -> None:
    """As a path where it has one, and otherwise as a whole."""
    texas = bloomjoin.build(TEXAS, "iata", out=tmp_path / "texas.bjf")
    for given in (texas, tmp_path / "texas.bjf", bloomjoin.build(TEXAS, "iata")):
        frame = lazy.scan_dask(given, LOGS, "origin")
        assert len(frame.compute(scheduler="processes", num_workers=2)) == 5867


def test_only_columns_of_the_computation_are_read(
    texas: bloomjoin.Filter, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = []

    def scan(**options: Any) -> Any:
        columns.append(options.get("columns"))
        return bloomjoin.scan(**options)

    monkeypatch.setattr(lazy, "scan", scan)
    frame = lazy.scan_dask(texas, LOGS, "origin")
    columns.clear()
    total = frame["delay"].sum().compute(scheduler="sync")
    assert [(total,)] == expected(JOINS["semi"].replace("*", "sum(delay)"))
    assert columns == [["delay"]] * 4


def test_columns_of_both_sides(tmp_path: Path) -> None:
    for name in ("a", "b"):
        pq.write_table(pa.table({"k": [1, 2], "v": [3, None]}), tmp_path / f"{name}.parquet")
    ids = pa.table({"k": [2, 9], "v": ["x", "y"]})
    frame = lazy.join_dask(tmp_path, ids, "k", how="left")
    assert table(frame.compute(scheduler="sync")).to_pydict() == {
        "k": [1, 2, 1, 2], "v": [3, None, 3, None], "v_ids": [None, "x", None, "x"],
    }  # fmt: skip
    assert frame["v_ids"].count().compute(scheduler="sync") == 2


def test_types_of_columns_in_paths_follow_from_all_files(tmp_path: Path) -> None:
    """hour=10 alone would be an integer."""
    for hour in ("08", "10"):
        (tmp_path / f"hour={hour}").mkdir()
        pq.write_table(pa.table({"k": [1, 2]}), tmp_path / f"hour={hour}" / "[x]?*.parquet")
    frame = lazy.join_dask(tmp_path, pa.array([2]), "k=key")
    assert frame.npartitions == 2
    assert table(frame.compute(scheduler="sync")).to_pydict() == {"k": [2, 2], "hour": ["08", "10"]}


def test_directories_are_listed_as_the_command_does(
    texas: bloomjoin.Filter, tmp_path: Path
) -> None:
    shutil.copytree(LOGS, tmp_path / "logs")
    (tmp_path / "logs" / "_SUCCESS").touch()
    assert lazy.scan_dask(texas, tmp_path / "logs", "origin").npartitions == 4
    june = lazy.scan_dask(texas, tmp_path / "logs", "origin", include="*.arrow")
    assert june.npartitions == 1
    pattern = lazy.scan_dask(texas, [tmp_path / "logs" / "2001-0*.parquet"], "origin")
    assert pattern.npartitions == 2
    (tmp_path / "logs" / "notes.txt").write_text("no data")
    with pytest.raises(bloomjoin.DataError, match=r"notes\.txt"):
        lazy.scan_dask(texas, tmp_path / "logs", "origin")


def test_a_file_that_has_changed(texas: bloomjoin.Filter, tmp_path: Path) -> None:
    log = tmp_path / "log.parquet"
    pq.write_table(pa.table({"origin": ["DFW"], "n": pa.array([1], pa.int32())}), log)
    frame = lazy.scan_dask(texas, log, "origin")
    pq.write_table(pa.table({"origin": ["DFW"], "n": pa.array([1], pa.int64())}), log)
    with pytest.raises(bloomjoin.DataError, match=r"log\.parquet: mismatch: .*int32.*int64"):
        frame.compute(scheduler="sync")


def test_what_tasks_cannot_read_is_refused(texas: bloomjoin.Filter) -> None:
    log = pa.table({"origin": ["DFW"]})
    with pytest.raises(bloomjoin.UsageError, match="paths or URLs"):
        lazy.scan_dask(texas, log, "origin")
    with pytest.raises(bloomjoin.UsageError, match="read_all"):
        lazy.join_dask(LOGS, log.to_reader(), "origin")
    with pytest.raises(bloomjoin.UsageError, match="ProgressBar"):
        lazy.scan_dask(texas, LOGS, "origin", progress=print)
    with pytest.raises(TypeError, match="colums"):
        lazy.scan_dask(texas, LOGS, "origin", colums=["delay"])
