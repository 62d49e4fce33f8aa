"""The table of a filter file's chunks: what they are, and where."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from bloomjoin._broken import Broken, unlike
from bloomjoin._sections import CHUNKS, read_section

CHUNK = 1 << 20
TRAILER = 16


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of the payload, of ``size`` bytes, in ``stored`` bytes at ``offset``."""

    offset: int
    stored: int
    size: int
    zstd: bool
    checksum: int


def read_chunks(file: memoryview, start: int, payload: int) -> tuple[tuple[Chunk, ...], int]:
    """Return the chunks, and where the last one ends."""
    count = -(-payload // CHUNK)
    table = 16 * count
    if count == 0:
        raise Broken("payload: empty")
    if start + 32 + table > len(file):
        raise Broken(f"table of {count} chunks: the file of {len(file)} bytes is cut short")
    size = int.from_bytes(file[-16:-8], "little")
    if size != len(file):
        raise unlike("file size at the end", f"{len(file)} bytes", size)
    section = len(file) - TRAILER - 16 - table
    try:
        kind, flags, body, _ = read_section(bytes(file[section:-TRAILER]), 0)
    except Broken as broken:
        raise Broken(f"table of {count} chunks: {broken}") from None
    if (kind, flags, len(body)) != (CHUNKS, 1, table):
        raise Broken(f"table of {count} chunks: a section of type {kind} and {len(body)} bytes")
    chunks, at = _place_chunks(body, start, payload)
    if (at + 7) // 8 * 8 != section:
        raise unlike("section chunks: file offset", (at + 7) // 8 * 8, section)
    return chunks, at


def _place_chunks(table: bytes, at: int, payload: int) -> tuple[tuple[Chunk, ...], int]:
    """Return the chunks of a table whose payload starts at an offset, and its end."""
    chunks = []
    for i, (stored, coding, r0, r1, checksum) in enumerate(struct.iter_unpack("<IBHBQ", table)):
        size = min(CHUNK, payload - i * CHUNK)
        if r0 or r1:
            raise Broken(f"chunk {i}: reserved bytes: want zeros")
        if coding > 1:
            raise unlike(f"coding of chunk {i}", "0 or 1", coding)
        if coding == 0:
            if stored != size:
                raise unlike(f"size of raw chunk {i}", size, stored)
            at = (at + 4095) // 4096 * 4096
        elif not 1 <= stored < size:
            raise unlike(f"size of zstd chunk {i}", f"1 to {size - 1}", stored)
        chunks.append(Chunk(at, stored, size, coding == 1, checksum))
        at += stored
    return tuple(chunks), at
