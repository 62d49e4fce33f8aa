"""A slow reader of exact payloads: codec/FORMAT.md once more, in plain Python.

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


def runs_of(values: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for v in values:
        if runs and v == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], v
        else:
            runs.append((v, v))
    return runs


def container(values: list[int]) -> tuple[str, bytes]:
    """Return the kind and the bytes of the container of 16-bit values."""
    runs = runs_of(values)
    if 2 + 4 * len(runs) < min(8192, 2 * len(values)):
        return "runs", struct.pack("<H", len(runs)) + b"".join(
            struct.pack("<HH", lo, hi - lo) for lo, hi in runs
        )
    if len(values) <= 4096:
        return "array", struct.pack(f"<{len(values)}H", *values)
    bits = bytearray(8192)
    for v in values:
        bits[v // 8] |= 1 << v % 8
    return "bitmap", bytes(bits)


def roaring(values: list[int]) -> bytes:
    """Return the part of sorted 64-bit values in form 1."""
    highs: dict[int, dict[int, list[int]]] = {}
    for v in values:
        highs.setdefault(v >> 32, {}).setdefault(v >> 16 & 0xFFFF, []).append(v & 0xFFFF)
    out = struct.pack("<Q", len(highs))
    for high, by_key in highs.items():
        made = [container(c) for c in by_key.values()]
        n = len(made)
        if any(kind == "runs" for kind, _ in made):
            flags = sum(1 << i for i, (kind, _) in enumerate(made) if kind == "runs")
            head = struct.pack("<HH", 12347, n - 1) + flags.to_bytes((n + 7) // 8, "little")
            offsets = n >= 4
        else:
            head, offsets = struct.pack("<II", 12346, n), True
        for key, c in by_key.items():
            head += struct.pack("<HH", key, len(c) - 1)
        at = len(head) + 4 * n * offsets
        for _, data in made:
            head += struct.pack("<I", at) if offsets else b""
            at += len(data)
        out += struct.pack("<I", high) + head + b"".join(data for _, data in made)
    return out


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
    """Return the part of sorted 64-bit values in form 2."""
    out = struct.pack("<Q", len(values))
    for start in range(0, len(values), 65536):
        block = values[start : start + 65536]
        between = [b - a - 1 for a, b in pairwise(block)]
        k = next(k for k in range(65) if 8 * sum(d >> k == 0 for d in between) >= 3 * len(between))
        bits = "".join(code(d, k) for d in between)
        out += struct.pack("<QB", block[0], k) + packed(bits)
    return out


def read_roaring(part: bytes) -> list[int]:
    """Return the members of a part in form 1, read leniently."""
    c, values = Cursor(part), []
    for _ in range(c.number(8)):
        high, cookie = c.number(4), c.number(4)
        if cookie == 12346:
            n, flags = c.number(4), 0
        else:
            want(cookie & 0xFFFF == 12347)
            n = (cookie >> 16) + 1
            flags = c.number((n + 7) // 8)
        want(n <= 65536)
        about = [(c.number(2), c.number(2) + 1) for _ in range(n)]
        if cookie == 12346 or n >= 4:
            c.take(4 * n)
        for i, (key, count) in enumerate(about):
            base = high << 32 | key << 16
            if flags >> i & 1:
                for _ in range(c.number(2)):
                    first, more = c.number(2), c.number(2)
                    want(first + more < 65536)
                    values += range(base + first, base + first + more + 1)
            elif count <= 4096:
                values += [base + c.number(2) for _ in range(count)]
            else:
                bits = c.number(8192)
                values += [base + v for v in range(65536) if bits >> v & 1]
    return values


def read_gaps(part: bytes) -> list[int]:
    """Return the members of a part in form 2, read leniently."""
    c, values = Cursor(part), []
    left = c.number(8)
    while left:
        n = min(left, 65536)
        v, k = c.number(8), c.number(1)
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


def members(part: bytes, form: int, negative: bool) -> list[int]:
    """Return the members of a part. It has only one encoding, so that is compared."""
    values = (read_roaring if form == 1 else read_gaps)(part)
    want(all(a < b for a, b in pairwise(values)))
    want(all(v < 1 << 64 and (not negative or v >> 63) for v in values))
    want((roaring if form == 1 else gaps)(values) == part)
    return values
