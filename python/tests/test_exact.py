"""Exact sets: both forms, against a slow reader and against the command."""

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


def measured(part: bytes, form: int, negative: bool) -> tuple[int, ...] | None:
    """Return what the C reader makes of a part, None if it refuses it."""
    b = pa.py_buffer(part)
    try:
        return _native.exact_measure(b.address, len(part), form, negative)
    except ValueError:
        return None


def some_set(r: random.Random, negative: bool) -> list[int]:
    """Return a set with arrays, runs, bitmaps and gaps of many sizes, sorted."""
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
    if r.random() < 0.2:
        values.add((1 << 64) - 1)
    return sorted(v | 1 << 63 if negative else v for v in values)


def test_sizes_and_members() -> None:
    r = random.Random(1)
    for _ in range(CASES // 10):
        negative = r.random() < 0.5
        values = sorted(set(some_set(r, negative)))
        forms = reference.roaring(values), reference.gaps(values)
        words = len({v // 64 for v in values})
        first, last = (values[0], values[-1]) if values else (0, 0)
        want = (len(values), first, last, words, len(forms[0]), len(forms[1]))
        for form, part in enumerate(forms, 1):
            assert measured(part, form, negative) == want


def test_changed_parts_are_accepted_only_if_they_are_the_encoding_of_a_set() -> None:
    r = random.Random(2)
    accepted = 0
    for case in range(CASES):
        negative = r.random() < 0.5
        values = sorted(set(some_set(r, negative)))[: r.choice([1, 3, 50, 300])]
        form = 1 + case % 2
        part = bytearray((reference.roaring if form == 1 else reference.gaps)(values))
        for _ in range(r.randint(1, 2)):
            at = r.randrange(len(part))
            part[at] ^= 1 << r.randrange(8)
        if r.random() < 0.1:
            part = part[: r.randrange(len(part) + 1)]
        try:
            want = len(reference.members(bytes(part), form, negative))
        except ValueError:
            want = None
        got = measured(bytes(part), form, negative)
        assert (None if got is None else got[0]) == want, (form, negative, part.hex())
        accepted += want is not None
    assert accepted > CASES // 50


def test_example_of_the_format() -> None:
    part = bytes.fromhex("04000000000000000a0000000000000001e300")
    assert reference.gaps([10, 12, 20, 21]) == part
    assert measured(part, 2, False) == (4, 10, 21, 1, len(reference.roaring([10, 12, 20, 21])), 19)


@pytest.mark.parametrize(
    ("form", "part", "reason"),
    [
        (2, "0100000000000000050000000000000001", "k: want the one"),
        (2, "0100000000000000050000000000000041", "k: want at most 64"),
        (2, "020000000000000005000000000000000003", "padding"),
        (2, "0200000000000000ffffffffffffffff0001", "above 2"),
        (2, "02000000000000000500000000000000000000000000", "zero bits"),
        (2, "0200000000000000050000000000000000", "too short"),
        (2, "00000000000000", "too short"),
        (1, "000000000000000000", "bytes behind"),
    ],
)
def test_reasons(form: int, part: str, reason: str) -> None:
    b = pa.py_buffer(bytes.fromhex(part))
    with pytest.raises(ValueError, match=reason):
        _native.exact_measure(b.address, b.size, form, False)


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
