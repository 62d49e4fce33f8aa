"""The payload of a filter file, checked and ready to be probed.

The bits of an uncompressed Bloom filter stay where they are, in the mapped file,
which must not be changed in place as long as the filter is in use. Compressed
ones are unpacked into memory. A counting filter becomes the bits that its counters
stand for. An exact set becomes one or two indexes: a flat
bitmap if its members lie close together, else a hash table of up to 32 bytes a
member.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
from dataclasses import dataclass

import pyarrow as pa

from bloomjoin import _native
from bloomjoin._broken import Broken, unlike
from bloomjoin._chunks import Chunk
from bloomjoin._format import COUNTING, TRIM_LOWER, UNICODE, Exceptions, Header
from bloomjoin._zstd import unpack

_FLAT, _TABLE = 1, 2
# A flat bitmap is small up to so many bytes, and dense enough up to so many bytes
# a member.
_FLAT_FLOOR, _FLAT_FACTOR = 32 << 10, 16
_EXACT = 3


@dataclass(frozen=True, slots=True)
class Payload:
    """A set in memory. ``held`` keeps the memory alive."""

    kind: int
    address: int
    second: int
    blocks: int
    hash: int
    seed: int
    rule: int
    nbytes: int
    mapped: bool
    held: tuple[object, ...]

    def native(self, *, portable: bool = False) -> _native._Set:
        """Return the set as ``_native`` wants it."""
        return (
            self.kind,
            self.address,
            self.second,
            self.blocks,
            self.hash,
            self.seed,
            self.rule & (TRIM_LOWER | UNICODE),
            portable,
        )

    def fpr(self) -> float:
        """Return the false-positive rate that follows from the bits."""
        return 0.0 if self.kind == _EXACT else _native.bloom_fpr(self.native())


class Memory:
    """Zeroed memory of its own, in huge pages where the system has them.

    Large filters are read at random, and huge pages save most of the address
    translation. Child processes share it until it is written.
    """

    def __init__(self, size: int) -> None:
        size = max(size, 1)
        if sys.platform == "win32":
            self.map = mmap.mmap(-1, size)
        else:
            self.map = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE") and size >= 4 << 20:
            with contextlib.suppress(OSError):  # a kernel without them
                self.map.madvise(mmap.MADV_HUGEPAGE)
        self.buffer = pa.py_buffer(self.map)
        self.address = self.buffer.address


def read_payload(file: memoryview, header: Header, limit: int | None) -> Payload:
    """Read and check the payload, and all of the file that is unchecked yet.

    ``limit`` bounds the memory in bytes that it may take, before any is allocated.
    A mapped payload counts too. Raises Broken, and MemoryError over the limit.
    """
    _within(limit, header.memory)
    whole = pa.py_buffer(file)
    if any(file[header.payload_end : (header.payload_end + 7) // 8 * 8]):
        raise Broken("padding before section chunks: want zeros")
    contiguous = header.kind != COUNTING and not any(chunk.zstd for chunk in header.chunks)
    memory = None if contiguous else Memory(header.memory)
    _read_chunks(file, header, memory)
    if _native.xxh3(whole.address, header.size - 8) != int.from_bytes(file[-8:], "little"):
        raise Broken("checksum over all of the file")
    address = memory.address if memory else whole.address + header.chunks[0].offset
    if header.exact:
        return _index(header, address, limit)
    excepted = _excepted(header.exceptions, header.memory, limit)
    return Payload(
        kind=header.geometry // 256,
        address=address,
        second=excepted.address if excepted else 0,
        blocks=header.blocks,
        hash=header.hash,
        seed=header.seed,
        rule=header.rule,
        nbytes=header.memory,
        mapped=contiguous,
        held=(memory or whole, excepted),
    )


def _within(limit: int | None, size: int) -> None:
    if limit is not None and size > limit:
        raise MemoryError(f"the filter takes {size:,} bytes of memory, and {limit:,} are allowed")


def _read_chunks(file: memoryview, header: Header, memory: Memory | None) -> None:
    """Check the chunks, and copy them into memory if there is any."""
    before, to, saturated = header.payload_start, 0, 0
    for i, chunk in enumerate(header.chunks):
        if any(file[before : chunk.offset]):
            raise Broken(f"chunk {i}: padding before it: want zeros")
        content = _read_chunk(file, i, chunk)
        if memory is not None and header.kind == COUNTING:
            counters, bits = pa.py_buffer(content).address, memory.address + to // 4
            saturated += _native.counters(counters, chunk.size, bits)
        elif memory is not None:
            memory.map[to : to + chunk.size] = content
        before, to = chunk.offset + chunk.stored, to + chunk.size
    if saturated != header.saturated:
        raise unlike("saturated counters", header.saturated, saturated)


def _read_chunk(file: memoryview, i: int, chunk: Chunk) -> memoryview:
    stored = file[chunk.offset : chunk.offset + chunk.stored]
    content = stored
    if chunk.zstd:
        try:
            content = memoryview(unpack(stored, chunk.size))
        except ValueError as err:
            raise Broken(f"chunk {i}: zstd: {err}") from None
    if _native.xxh3(pa.py_buffer(content).address, chunk.size) != chunk.checksum:
        raise Broken(f"chunk {i}: checksum")
    return content


def _index(header: Header, address: int, limit: int | None) -> Payload:
    """Return the indexes of an exact set whose parts are at an address."""
    places = ((address, header.parts[0], True), (address + header.parts[0], header.parts[1], False))
    measures = []
    for start, size, negative in places:
        try:
            measures.append(_native.exact_measure(start, size, negative))
        except ValueError as err:
            part = "negative" if negative else "other"
            raise Broken(f"payload: {part} members: {err}") from None
    sizes = [_native.index_bytes(_kind_of(m), m) for m in measures]
    _within(limit, header.payload_bytes + sum(sizes))
    memories = [_build(m, *place) for m, place in zip(measures, places, strict=True)]
    return Payload(
        kind=_EXACT,
        address=memories[1].address,
        second=memories[0].address,
        blocks=0,
        hash=0,
        seed=0,
        rule=0,
        nbytes=sum(sizes),
        mapped=False,
        held=tuple(memories),
    )


def _excepted(given: Exceptions | None, taken: int, limit: int | None) -> Memory | None:
    """Return the index of hashes that do not pass."""
    if given is None or given.measure[0] == 0:
        return None
    _within(limit, taken + _native.index_bytes(_kind_of(given.measure), given.measure))
    part = pa.py_buffer(given.hashes)
    return _build(given.measure, part.address, len(given.hashes), False)


def _build(measure: _native._Measure, address: int, size: int, negative: bool) -> Memory:
    """Return the index of a part, as read by exact_measure."""
    kind = _kind_of(measure)
    memory = Memory(_native.index_bytes(kind, measure))
    _native.index_build(memory.address, kind, measure, address, size, negative)
    return memory


def _kind_of(measure: _native._Measure) -> int:
    flat = _native.index_bytes(_FLAT, measure)
    return _FLAT if flat <= max(_FLAT_FLOOR, _FLAT_FACTOR * measure[0]) else _TABLE


def memory_limit() -> int | None:
    """Return nine tenths of the memory of the container or machine, None if unknown."""
    sizes = []
    with contextlib.suppress(OSError, ValueError), open("/sys/fs/cgroup/memory.max") as file:
        sizes.append(int(file.read()))  # "max" is no number
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(sizes) // 10 * 9 if sizes else None
