"""Sections of a filter file: typed, checked bodies in ascending order."""

from __future__ import annotations

import struct

import pyarrow as pa

from bloomjoin import _native
from bloomjoin._broken import Broken

# Sections: name, and whether it is critical.
SECTIONS = {
    1: ("key", True),
    2: ("parameters", True),
    3: ("set", True),
    4: ("payload", True),
    5: ("partial", True),
    6: ("build id", False),
    7: ("key range", False),
    8: ("registers", False),
    9: ("parents", False),
    10: ("chunks", True),
    11: ("capacity", False),
    12: ("rule", True),
    13: ("division", True),
    14: ("exceptions", True),
    15: ("counting", True),
}
CHUNKS = 10
_NEEDED = (1, 2, 3, 4)


def xxh3(b: bytes) -> int:
    """Return the XXH3 of some bytes."""
    return _native.xxh3(pa.py_buffer(b).address, len(b))


class Body:
    """The rest of a section's body."""

    def __init__(self, section: str, body: bytes) -> None:
        self.section, self.body, self.at = section, body, 0

    def take(self, n: int) -> bytes:
        if n > len(self.body) - self.at:
            raise Broken(f"section {self.section}: too short")
        self.at += n
        return self.body[self.at - n : self.at]

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")

    def text(self) -> str:
        return self.take(self.number(2)).decode("utf-8", "surrogateescape")

    def reserved(self, n: int) -> None:
        if any(self.take(n)):
            raise Broken(f"section {self.section}: reserved bytes: want zeros")

    def rest(self) -> bytes:
        return self.take(len(self.body) - self.at)

    def end(self) -> None:
        if self.at != len(self.body):
            raise Broken(f"section {self.section}: too long")


def read_sections(header: bytes) -> tuple[dict[int, bytes], bytes, tuple[int, ...]]:
    """Return the bodies of known sections, their bytes, and the types of others."""
    bodies: dict[int, bytes] = {}
    known, skipped = [], []
    at, last = 0, -1
    while at < len(header):
        kind, flags, body, size = read_section(header, at)
        name, critical = SECTIONS.get(kind, (f"of type {kind}", False))
        if flags & ~1:
            raise Broken(f"section {name}: flags: {flags:#x}")
        if kind == last:
            raise Broken(f"section {name}: stands twice")
        if kind < last:
            raise Broken(f"section {name}: order: after a section of type {last}")
        if kind == CHUNKS:
            raise Broken("section chunks: before the payload")
        if kind in SECTIONS:
            if bool(flags) != critical:
                raise Broken(f"section {name}: critical flag: {flags}")
            bodies[kind] = body
            known.append(header[at : at + size])
        elif flags:
            raise Broken(f"section of type {kind}: a newer version is needed", newer=True)
        else:
            skipped.append(kind)
        at, last = at + size, kind
    for kind in _NEEDED:
        if kind not in bodies:
            raise Broken(f"section {SECTIONS[kind][0]}: missing")
    return bodies, b"".join(known), tuple(skipped)


def read_section(b: bytes, at: int) -> tuple[int, int, bytes, int]:
    """Return the type, flags, body and size of the section at an offset."""
    if len(b) - at < 24:
        raise Broken(f"section at {at}: length: {len(b) - at} bytes are left")
    kind, flags, length = struct.unpack_from("<HHI", b, at)
    name = SECTIONS.get(kind, (f"of type {kind}",))[0]
    padded = (length + 7) // 8 * 8
    if padded > len(b) - at - 16:
        raise Broken(f"section {name}: length: {length} bytes, of which fewer are left")
    checksum = at + 8 + padded
    if xxh3(b[at:checksum]) != int.from_bytes(b[checksum : checksum + 8], "little"):
        raise Broken(f"section {name}: checksum")
    if any(b[at + 8 + length : checksum]):
        raise Broken(f"section {name}: padding: want zeros")
    if length == 0:
        raise Broken(f"section {name}: empty")
    return kind, flags, b[at + 8 : at + 8 + length], 16 + padded
