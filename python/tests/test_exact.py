"""Exact sets, against a slow reader and against the command."""

from __future__ import annotations

import random
from pathlib import Path

import golden
import pyarrow as pa
import pytest
import reference

from bloomjoin import _native
from bloomjoin._filter import Filter

CASES = 20_000 if golden.LONG else 500


def measured(part: bytes, negative: bool) -> tuple[int, ...] | None:
    """Return what the C reader makes of a part, None if it refuses it."""
    b = pa.py_buffer(part)
    try:
        return _native.exact_measure(b.address, len(part), negative)
    except ValueError:
        return None


def some_set(r: random.Random, negative: bool) -> list[int]:
    """Return a set with runs and gaps of many sizes, sorted."""
    values: set[int] = set()
    for _ in range(r.randint(0, 4)):
        start = r.getrandbits(r.choice([8, 16, 20, 33, 64]))
        step = r.choice([1, 1, 2, 3, 7, 1000, 1 << 20, 1 << 40])
        count = r.choice([1, 2, 3, 100, 6000]) if r.random() < 0.9 else 40_000
        for _ in range(count):
            if start >= 1 << 64:
                break
            values.add(start)
            start += step if r.random() < 0.5 else r.randint(1, step)
    if r.random() < 0.1:
        start = r.getrandbits(40)
        values.update(range(start, start + r.choice([65535, 65536, 140_000])))
    if r.random() < 0.2:
        values.add((1 << 64) - 1)
    return sorted(v | 1 << 63 if negative else v for v in values)


def test_sizes_and_members() -> None:
    r = random.Random(1)
    for _ in range(CASES // 10):
        negative = r.random() < 0.5
        values = sorted(set(some_set(r, negative)))
        words = len({v // 64 for v in values})
        first, last = (values[0], values[-1]) if values else (0, 0)
        assert measured(reference.gaps(values), negative) == (len(values), first, last, words)


def test_changed_parts_are_accepted_only_if_they_are_the_encoding_of_a_set() -> None:
    r = random.Random(2)
    accepted = 0
    for _ in range(CASES):
        negative = r.random() < 0.5
        values = sorted(set(some_set(r, negative)))[: r.choice([1, 3, 50, 300])]
        part = bytearray(reference.gaps(values))
        for _ in range(r.randint(1, 2)):
            at = r.randrange(len(part))
            part[at] ^= 1 << r.randrange(8)
        if r.random() < 0.1:
            part = part[: r.randrange(len(part) + 1)]
        try:
            want = len(reference.members(bytes(part), negative))
        except ValueError:
            want = None
        got = measured(bytes(part), negative)
        assert (None if got is None else got[0]) == want, (negative, part.hex())
        accepted += want is not None
    assert accepted > CASES // 50


def test_example_of_the_format() -> None:
    part = bytes.fromhex("04000000000000000a0000000000000001e300")
    assert reference.gaps([10, 12, 20, 21]) == part
    assert measured(part, False) == (4, 10, 21, 1)


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ("0100000000000000050000000000000001", "want the one"),
        ("0100000000000000050000000000000041", "want at most 64"),
        ("02000000000000000500000000000000010b", "padding"),
        ("0200000000000000ffffffffffffffff0001", "above 2"),
        ("02000000000000000500000000000000000000000000", "zero bits"),
        ("0200000000000000050000000000000000", "too short"),
        ("00000000000000", "too short"),
        ("000000000000000000", "bytes behind"),
        ("01000000000000000500000000000000ff", "two or more"),
        ("0200000000000000ffffffffffffffffff", "two or more"),
        ("020000000000000005000000000000000001", "want 255"),
    ],
)
def test_reasons(part: str, reason: str) -> None:
    b = pa.py_buffer(bytes.fromhex(part))
    with pytest.raises(ValueError, match=reason):
        _native.exact_measure(b.address, b.size, False)


def test_signs_are_told_apart(tmp_path: Path) -> None:
    top, bits = (1 << 64) - 1, (1 << 63) + 5
    natural = pa.array([top, bits, 3], pa.uint64())
    negative = pa.array([-1, bits - (1 << 64), 3], pa.int64())
    of_naturals = Filter.load(golden.build(tmp_path, natural, "--kind", "exact", name="a.bjf"))
    of_negatives = Filter.load(golden.build(tmp_path, negative, "--kind", "exact", name="b.bjf"))
    assert of_naturals.probe(natural).to_pylist() == [True, True, True]
    assert of_naturals.probe(negative).to_pylist() == [False, False, True]
    assert of_negatives.probe(natural).to_pylist() == [False, False, True]
    assert of_negatives.probe(negative).to_pylist() == [True, True, True]


SHAPES = {
    "empty": [],
    "dense": range(100_000),
    "one in 40": range(0, 4_000_000, 40),
    "around zero": range(-50_000, 50_000, 3),
    "far apart": range(-(1 << 62), 1 << 62, 1 << 50),
    "extremes": [-(1 << 63), (1 << 63) - 1, 0, -1],
    "far negative": range(-(1 << 62), -(1 << 62) + 3000 * 977, 977),
    "clusters": [i * (1 << 40) + j for i in range(50) for j in range(100)],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_answers_are_those_of_a_python_set(tmp_path: Path, shape: str) -> None:
    members = set(SHAPES[shape])
    r = random.Random(3)
    f = Filter.load(
        golden.build(tmp_path, pa.array(sorted(members), pa.int64()), "--kind", "exact")
    )
    near = [
        v + d for v in r.sample(sorted(members), min(len(members), 5000)) for d in (-1, 0, 1, 64)
    ]
    values = [v for v in near if -(1 << 63) <= v < 1 << 63] + [
        r.getrandbits(63) for _ in range(999)
    ]
    r.shuffle(values)
    assert f.probe(pa.array(values, pa.int64())).to_pylist() == [v in members for v in values]
    naturals = [v for v in values if v >= 0] + [(1 << 64) - 1, 1 << 63]
    assert f.probe(pa.array(naturals, pa.uint64())).to_pylist() == [v in members for v in naturals]
