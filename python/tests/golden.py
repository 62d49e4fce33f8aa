"""The format's golden files and vectors, and the command as an oracle."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pyarrow as pa

from bloomjoin import _process
from bloomjoin._errors import BloomjoinWarning
from bloomjoin._filter import Filter

TESTDATA = Path(__file__).resolve().parents[2] / "internal" / "filters" / "testdata"
FILES = sorted((TESTDATA / "golden").glob("*.bjf"))
VECTORS = sorted((TESTDATA / "vectors").iterdir())
LONG = bool(os.environ.get("BLOOMJOIN_LONG_TESTS"))


def name_of(path: Path) -> str:
    return path.stem


def vector(path: Path) -> tuple[bytes, str, str]:
    """Return a vector's file, what is expected, and a part of the message."""
    head, _, body = path.read_bytes().partition(b"\n\n")
    lines = dict(line.partition(":")[::2] for line in head.decode().splitlines())
    return body, lines["expect"].strip(), lines["error"].strip()


def write_arrow(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


def build(tmp_path: Path, ids: pa.Array, *flags: str, name: str = "filter.bjf") -> Path:
    """Build a filter by the command."""
    write_arrow(tmp_path / "ids.arrow", pa.table({"id": ids}))
    out = tmp_path / name
    _process.run(
        ["build", "--key", "id", *flags, "--force", "-o", str(out), str(tmp_path / "ids.arrow")]
    )
    return out


def scanned(tmp_path: Path, f: Filter, table: pa.Table, key: str) -> list[bool]:
    """Return which rows of a table a scan by the command lets through."""
    rows = pa.array(range(table.num_rows), pa.int64())
    write_arrow(tmp_path / "log.arrow", table.append_column("row_number", rows))
    assert f.path is not None
    args = ["scan", "--filter", f.path, "--key", key, "-o", "-"]
    if f.rule:
        args += ["--normalize", f.rule]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BloomjoinWarning)  # that few rows pass, or many
        run = _process.run([*args, "--columns", "row_number", str(tmp_path / "log.arrow")])
    hits = set(pa.ipc.open_stream(run.stdout).read_all().column(0).to_pylist())
    return [row in hits for row in range(table.num_rows)]
