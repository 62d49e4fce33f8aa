"""Ten million keys a filter: the same answers as a scan by the command.

They run with BLOOMJOIN_LONG_TESTS=1, and take a few minutes and 2 GB of memory.
"""

from __future__ import annotations

from pathlib import Path

import golden
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bloomjoin import _keys, _process
from bloomjoin._filter import Filter

np = pytest.importorskip("numpy")
pytestmark = pytest.mark.skipif(not golden.LONG, reason="BLOOMJOIN_LONG_TESTS is not set")

ROWS = 10_000_000
BLOOM = ["--kind", "bloom", "--geometry"]
BUILT = {
    "split-256": ("far", 20_000_000, [*BLOOM, "split-256", "--fpr", "0.01"]),
    "split-512": ("far", 20_000_000, [*BLOOM, "split-512", "--fpr", "0.001"]),
    "split-256 mapped": ("far", 5_000_000, [*BLOOM, "split-256", "--uncompressed"]),
    "exact, one in 3": ("dense", 5_000_000, ["--kind", "exact"]),
    "exact, far apart": ("far", 2_000_000, ["--kind", "exact"]),
    "exact, both signs": ("signed", 3_000_000, ["--kind", "exact"]),
    "strings 256": ("text", 5_000_000, [*BLOOM, "split-256", "--fpr", "0.01"]),
    "strings 512": ("text", 5_000_000, [*BLOOM, "split-512", "--fpr", "0.001"]),
    "strings under a rule": ("text", 2_000_000, ["--normalize", "trim,lower"]),
    "bytes": ("bytes", 2_000_000, []),
    "uuids": ("fixed", 2_000_000, []),
}


def keys(how: str, n: int, seed: int) -> pa.Array:
    """Return keys from a domain in which two draws share some."""
    r = np.random.default_rng(seed)
    if how == "far":
        numbers = r.integers(0, 2**25, n, dtype=np.uint64)
        return pa.array((numbers * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(1)).astype(np.int64))
    if how == "signed":
        return pa.array(r.integers(-(2**23), 2**23, n) * 2**38)
    numbers = pa.array(r.integers(0, 2**24, n))
    if how == "dense":
        return numbers
    if how == "text":
        texts = pc.binary_join_element_wise("User-", numbers.cast(pa.string()), " ", "")
        return pc.if_else(pc.equal(pc.bit_wise_and(numbers, 7), 0), pc.ascii_lower(texts), texts)
    half = r.integers(0, 2**24, n, dtype=np.uint64)
    sixteen = pa.py_buffer(np.stack([half, half ^ np.uint64(7 << 40)], axis=1).tobytes())
    array = pa.Array.from_buffers(pa.binary(16), n, [None, sixteen])
    return array if how == "fixed" else array.cast(pa.binary())


def with_nulls(array: pa.Array) -> pa.Array:
    absent = pa.array(np.random.default_rng(9).integers(0, 50, len(array)) == 0)
    return pc.if_else(absent, pa.scalar(None, array.type), array)


def compare(
    tmp_path: Path, f: Filter, column: pa.Array, *, members: pa.Array | None = None
) -> None:
    rows = pa.array(np.arange(len(column)))
    golden.write_arrow(tmp_path / "log.arrow", pa.table({"k": column, "row": rows}))
    args = ["scan", "--filter", str(f.path), "--key", "k", "--columns", "row", "-o", "-"]
    if f.rule:
        args += ["--normalize", f.rule]
    run = _process.run([*args, str(tmp_path / "log.arrow")])
    want = np.zeros(len(column), bool)
    want[pa.ipc.open_stream(run.stdout).read_all().column(0).to_numpy()] = True
    masks = {"probe": f.probe(column)}
    if len(f.key_names) == 1:
        held, key_class = f._held(), f.key_classes[0]
        masks["portable"] = _keys.probe(held, key_class, column, portable=True)
    for mask in masks.values():
        assert np.array_equal(mask.to_numpy(zero_copy_only=False), want)


SEALED = [p for p in golden.FILES if "partial" not in p.stem]
SEALED = [p for p in SEALED if p.stem not in ("rule-uuid", "composite")]


@pytest.mark.parametrize("path", SEALED, ids=golden.name_of)
def test_golden_filter(tmp_path: Path, path: Path) -> None:
    f, r = Filter.load(path), np.random.default_rng(1)
    if f.key_classes == ("bytes",):
        column = keys("text", ROWS, 2)
    else:
        near = r.integers(-10_000, 400_000, ROWS)
        column = pa.array(
            np.where(r.integers(0, 2, ROWS) == 0, near, r.integers(-(2**63), 2**63 - 1, ROWS))
        )
    compare(tmp_path, f, with_nulls(column))


@pytest.mark.parametrize("name", BUILT)
def test_built_filter(tmp_path: Path, name: str) -> None:
    how, n, flags = BUILT[name]
    members = keys(how, n, 3)
    f = Filter.load(golden.build(tmp_path, members, *flags))
    assert f.probe(members).true_count == len(members)
    column = with_nulls(keys(how, ROWS, 4))
    assert 0 < f.probe(column).true_count < ROWS
    compare(tmp_path, f, column)
