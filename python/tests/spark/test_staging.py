"""What the staging removes, on disk and in a store."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem
from spark_cases import files_below

import bloomjoin
from bloomjoin.spark import Staging


def place(folder: Path, kind: str, **options: datetime.timedelta) -> Staging:
    if kind == "disk":
        return Staging(str(folder / "bucket" / "dir"), **options)
    store = SubTreeFileSystem(str(folder), LocalFileSystem())
    return Staging("s3a://bucket/dir/", filesystem=store, **options)


def fill(folder: Path, url: str, *names: str) -> list[str]:
    """Write files at a URL of the staging, and return their URLs."""
    below = url.removeprefix("s3a://").removeprefix(f"{folder}/")
    for name in names:
        path = folder / below / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("rows")
    return [f"{url}/{name}" for name in names]


@pytest.mark.parametrize("kind", ["disk", "store"])
def test_keeps_what_was_committed(tmp_path: Path, kind: str) -> None:
    with place(tmp_path, kind) as staging:
        first, second = staging.run(), staging.run()
        kept = fill(tmp_path, first, "rows/0-a.parquet", "ids/part-0.parquet")
        fill(tmp_path, first, "rows/0-b.parquet", "rows/0-a.parquet.tmp", "ids-2/part-0")
        other = fill(tmp_path, second, "rows/0-c.parquet")
        staging.keep_only(first, [kept[0], f"{first}/ids"])
        left = {name.split("/")[-1] for name in files_below(tmp_path)}
        assert left == {"0-a.parquet", "part-0.parquet", "0-c.parquet"}
        assert len(files_below(tmp_path)) == len(kept) + len(other)
    assert files_below(tmp_path) == []


@pytest.mark.parametrize("kind", ["disk", "store"])
def test_removes_old_sessions_only(tmp_path: Path, kind: str) -> None:
    staging = place(tmp_path, kind)
    fill(tmp_path, staging.run(), "rows/0.parquet")
    folder = tmp_path / "bucket" / "dir"
    for name in ("bloomjoin-run-20200101T000000Z-0123", "bloomjoin-run-x", "mine"):
        (folder / name).mkdir()
        (folder / name / "file").touch()
    with place(tmp_path, kind):
        left = files_below(tmp_path)
    assert len(left) == 3
    assert not any("20200101" in name for name in left)
    with place(tmp_path, kind, max_age=datetime.timedelta(0)):
        assert not any("rows" in name for name in files_below(tmp_path))
    staging.close()
    staging.close()


@pytest.mark.parametrize("url", ["relative", "hdfs://name/dir", "viewfs://x/y"])
def test_places_that_are_refused(url: str) -> None:
    with pytest.raises(bloomjoin.UsageError, match="staging"):
        Staging(url)
