"""A slow reader of payloads: codec/FORMAT.md once more, in plain Python.

It is the oracle of the C one. ValueError means: refuse.
"""

from __future__ import annotations

import struct
from itertools import pairwise


def want(condition: object) -> None:
    if not condition:
        raise ValueError


class Cursor:
    def __init__(self, b: bytes) -> None:
        self.b, self.at = b, 0

    def take(self, n: int) -> bytes:
        want(self.at + n <= len(self.b))
        self.at += n
        return self.b[self.at - n : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")


def code(d: int, k: int) -> str:
    """Return the code of a gap, the first bit first."""
    q = d >> k
    if q >= 32:
        return "0" * 32 + "1" + f"{d:064b}"[::-1]
    low = d & ((1 << k) - 1)
    return "0" * q + "1" + (f"{low:0{k}b}"[::-1] if k else "")


def packed(bits: str) -> bytes:
    return int("0" + bits[::-1], 2).to_bytes((len(bits) + 7) // 8, "little")


def unpacked(b: bytes) -> str:
    return "".join(f"{byte:08b}"[::-1] for byte in b)


def gaps(values: list[int]) -> bytes:
    """Return the part of sorted 64-bit values."""
    out = struct.pack("<Q", len(values))
    for start in range(0, len(values), 65536):
        block = values[start : start + 65536]
        between = [b - a - 1 for a, b in pairwise(block)]
        if between and not any(between):
            out += struct.pack("<QB", block[0], 255)
            continue
        k = next(k for k in range(65) if 8 * sum(d >> k == 0 for d in between) >= 3 * len(between))
        bits = "".join(code(d, k) for d in between)
        out += struct.pack("<QB", block[0], k) + packed(bits)
    return out


def read_gaps(part: bytes) -> list[int]:
    """Return the members of a part, read leniently."""
    c, values = Cursor(part), []
    left = c.number(8)
    while left:
        n = min(left, 65536)
        v, k = c.number(8), c.number(1)
        if k == 255:
            want(n > 1)
            values += range(v, v + n)
            left -= n
            continue
        values.append(v)
        bits, at = unpacked(part[c.at :]), 0
        for _ in range(n - 1):
            q = bits.find("1", at) - at
            size = 64 if q == 32 else k
            want(0 <= q <= 32 and k <= 64 and at + q + 1 + size <= len(bits))
            low = int("0" + bits[at + q + 1 : at + q + 1 + size][::-1], 2)
            v += 1 + (low if q == 32 else q << k | low)
            values.append(v)
            at += q + 1 + size
        c.take((at + 7) // 8)
        left -= n
    return values


def members(part: bytes, negative: bool) -> list[int]:
    """Return the members of a part. It has only one encoding, so that is compared."""
    values = read_gaps(part)
    want(all(a < b for a, b in pairwise(values)))
    want(all(v < 1 << 64 and (not negative or v >> 63) for v in values))
    want(gaps(values) == part)
    return values


def bits_of(counters: bytes) -> bytes:
    """Return the bits that counters of four bits stand for."""
    bits = "".join(f"{b & 15 > 0:d}{b >> 4 > 0:d}" for b in counters)
    return packed(bits)
