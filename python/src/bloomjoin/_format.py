"""The header of a filter file: an independent reader of codec/FORMAT.md.

Nothing in a file is trusted before it is checked: against a checksum, against
the size of the file, and against the rules that give each filter one file.
The payload is read in ``_payload``.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from bloomjoin import _native
from bloomjoin._bounds import check_bound, known_class
from bloomjoin._broken import Broken, unlike
from bloomjoin._chunks import CHUNK, Chunk, read_chunks
from bloomjoin._sections import SECTIONS, Body, read_sections, xxh3

MAGIC = b"\x89BJF\r\n\x1a\n"
READER = 1
MAX_BLOCKS = 1 << 32
MAX_SHARDS = 1 << 20
MAX_PART = 1 << 38
REGISTERS = 1 << 14
MAX_COUNTING_BLOCKS = 1 << 31
MAX_EXCEPTIONS = 15 << 20
PROLOGUE, SMALLEST = 24, 56

BLOOM, ROARING, GAPS, COUNTING = 1, 2, 3, 4
KINDS: dict[int, Literal["bloom", "exact", "counting"]] = {
    BLOOM: "bloom",
    GAPS: "exact",
    COUNTING: "counting",
}
_NAMES = {BLOOM: "Bloom filter", COUNTING: "counting filter"}
RULES = ("trim", "lower", "uuid", "url", "url-host")
# Without the bit UNICODE, trim and lower are of ASCII, as in filters of earlier versions.
TRIM_LOWER, UNICODE = 3, 1 << 5
_UUID, _HOST = 1 << 2, 1 << 4
URLS = 1 << 3 | _HOST


def rule_names(rule: int) -> tuple[str, ...]:
    """Return the names of the steps of a rule, as ``--normalize`` wants them."""
    names = [name for i, name in enumerate(RULES) if rule >> i & 1]
    if rule & TRIM_LOWER and not rule & UNICODE:
        names.append("ascii-only")
    return tuple(names)


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of the key. The bounds have the form of a part of a composite key."""

    name: str
    key_class: str
    lower: bytes | None = None
    upper: bytes | None = None
    has_nan: bool = False


@dataclass(frozen=True, slots=True)
class Exceptions:
    """Hashes that do not pass a Bloom filter: a part of an exact payload."""

    digest: bytes  # of the files of known good keys
    known: int
    hashes: bytes
    measure: _native._Measure


@dataclass(frozen=True, slots=True)
class Header:
    """All of a filter file except its payload."""

    version: int
    normal_form: str
    key: tuple[KeyColumn, ...]
    geometry: int  # of the Bloom filter, in bits per block: 256 or 512
    hash: int  # 1: XXH3, 2: XXH64
    seed: int
    blocks: int
    kind: int  # BLOOM, GAPS or COUNTING
    wanted: int  # 0: the smaller one, 1: Bloom filter, 2: exact set, 4: counting filter
    keys: int
    fpr_asked: float
    parts: tuple[int, ...]  # sizes in bytes before compression
    shards: tuple[int, tuple[int, ...]] | None  # number of shards, and those held
    build_id: bytes | None
    registers: bytes | None
    parents: tuple[bytes, ...]
    capacity: tuple[int, int] | None  # keys and blocks
    rule: int  # bits, in the order of RULES
    division: bytes | None
    exceptions: Exceptions | None
    multiset: bool  # of a counting filter
    saturated: int  # number of its counters that are
    skipped: tuple[int, ...]  # types of sections that this version does not know
    chunks: tuple[Chunk, ...]
    payload_start: int  # offset of the first chunk, or of the padding before it
    payload_end: int  # offset of the padding after the last chunk
    size: int  # of the file
    digest: bytes

    @property
    def exact(self) -> bool:
        """Whether the payload is an exact set."""
        return self.kind == GAPS

    @property
    def memory(self) -> int:
        """The bytes that the payload takes in memory, at least. Counters become bits."""
        return self.payload_bytes // 4 if self.kind == COUNTING else self.payload_bytes

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the steps of the rule."""
        return rule_names(self.rule)

    @property
    def payload_bytes(self) -> int:
        """The size of the payload in bytes before compression."""
        return sum(self.parts)


def read_header(file: memoryview) -> Header:
    """Read and check everything but the payload of a filter file.

    Raises Broken. Only the chunks, the padding before them and the checksum over
    the whole file remain to be checked.
    """
    version, header_size = _read_prologue(file)
    end = PROLOGUE + header_size
    sections, raw, skipped = read_sections(bytes(file[PROLOGUE:end]))
    fields = _Fields(sections)
    chunks, payload_end = read_chunks(file, end, sum(fields.parts))
    digest = hashlib.sha256(raw)
    for chunk in chunks:
        digest.update(chunk.checksum.to_bytes(8, "little"))
    return Header(
        version=version,
        normal_form=fields.normal_form,
        key=fields.key,
        geometry=fields.geometry,
        hash=fields.hash,
        seed=fields.seed,
        blocks=fields.blocks,
        kind=fields.kind,
        wanted=fields.wanted,
        keys=fields.keys,
        fpr_asked=fields.fpr_asked,
        parts=fields.parts,
        shards=fields.shards,
        build_id=fields.build_id,
        registers=fields.registers,
        parents=fields.parents,
        capacity=fields.capacity,
        rule=fields.rule,
        division=fields.division,
        exceptions=fields.exceptions,
        multiset=fields.multiset,
        saturated=fields.saturated,
        skipped=skipped,
        chunks=chunks,
        payload_start=end,
        payload_end=payload_end,
        size=len(file),
        digest=digest.digest(),
    )


def _read_prologue(file: memoryview) -> tuple[int, int]:
    """Return the format version and the size of the header."""
    start = bytes(file[:PROLOGUE])
    if start[:8] != MAGIC:
        if start[:4] == MAGIC[:4]:
            raise Broken("magic: line ends were changed: a transfer in text mode?")
        if start[: len(MAGIC)] != MAGIC[: len(start)]:
            raise Broken("magic: not a filter file")
    if len(file) < SMALLEST:
        raise Broken(f"cut short: want at least {SMALLEST} bytes, got {len(file)}")
    if xxh3(start[:16]) != int.from_bytes(start[16:], "little"):
        raise Broken("prologue: checksum")
    version, reader, header_size = struct.unpack_from("<HHI", start, 8)
    if not 1 <= reader <= version:
        raise Broken(f"versions: want 1 to {version} for readers, got {reader}")
    if reader > READER:
        raise Broken(f"format version {reader}: a newer version is needed", newer=True)
    if header_size % 8 or header_size > 1 << 24 or header_size > len(file) - SMALLEST:
        raise Broken(f"header size: {header_size} bytes in a file of {len(file)}")
    return version, header_size


class _Fields:
    """What the sections of a header state, and whether they agree."""

    def __init__(self, sections: dict[int, bytes]) -> None:
        self._sections = sections
        self._read_key()
        self._read_parameters()
        self._read_set()
        self._read_payload()
        self._read_partial()
        self._read_lists()
        self._read_range()
        self._read_capacity()
        self._read_rule()
        self._check_blocks()
        self._read_counting()
        self._read_exceptions()

    def _body(self, kind: int) -> Body | None:
        body = self._sections.get(kind)
        return None if body is None else Body(SECTIONS[kind][0], body)

    def _needed(self, kind: int) -> Body:
        return Body(SECTIONS[kind][0], self._sections[kind])

    def _read_key(self) -> None:
        b = self._needed(1)
        self.normal_form = b.text()
        if not self.normal_form:
            raise Broken("section key: normal form: want a name")
        columns = b.number(2)
        if columns == 0:
            raise Broken("section key: key columns: want at least 1")
        key = []
        for _ in range(columns):
            name, key_class = b.text(), b.text()
            if not known_class(key_class):
                raise Broken(f"section key: key class {key_class!r}", newer=True)
            key.append(KeyColumn(name, key_class))
        b.end()
        self.key = tuple(key)

    def _read_parameters(self) -> None:
        b = self._needed(2)
        geometry, self.hash = b.number(1), b.number(1)
        b.reserved(6)
        self.seed, self.blocks = b.number(8), b.number(8)
        b.end()
        if geometry not in (1, 2):
            raise Broken(f"section parameters: geometry {geometry}", newer=True)
        if self.hash == 3:
            raise Broken("section parameters: a keyed hash", newer=True)
        if self.hash not in (1, 2):
            raise Broken(f"section parameters: hash {self.hash}", newer=True)
        if self.hash == 2 and self.seed:
            raise Broken(f"section parameters: xxh64 seed {self.seed}", newer=True)
        if self.blocks > MAX_BLOCKS:
            raise unlike("section parameters: blocks", f"at most {MAX_BLOCKS}", self.blocks)
        self.geometry = 256 * geometry

    def _read_set(self) -> None:
        b = self._needed(3)
        self.kind, self.wanted = b.number(1), b.number(1)
        b.reserved(6)
        self.keys = b.number(8)
        (self.fpr_asked,) = struct.unpack("<d", b.take(8))
        b.end()
        if self.kind == ROARING:
            raise Broken(
                "section set: kind: unsupported: an exact set as a Roaring bitmap",
                newer=True,
                hint="build the filter again",
            )
        if self.kind not in (BLOOM, GAPS, COUNTING):
            raise Broken(f"section set: kind {self.kind}", newer=True)
        if self.kind == COUNTING and self.geometry != 256:
            raise Broken(f"a counting filter in split-{self.geometry}", newer=True)
        if self.kind == COUNTING and self.blocks > MAX_COUNTING_BLOCKS:
            raise Broken(f"a counting filter of {self.blocks} blocks", newer=True)
        if self.wanted > 2 and self.wanted != COUNTING:
            raise Broken(f"section set: wanted kind {self.wanted}", newer=True)
        if not 0 < self.fpr_asked < 1:
            raise unlike("section set: fpr asked", "above 0 and below 1", self.fpr_asked)
        classes = [column.key_class for column in self.key]
        if self.kind == GAPS and classes != ["integer"]:
            raise unlike(
                "key of an exact filter", "one column of class integer", ", ".join(classes)
            )

    def _read_payload(self) -> None:
        b = self._needed(4)
        chunk, parts = b.number(4), b.number(4)
        if chunk != CHUNK:
            raise unlike("section payload: chunk size", CHUNK, chunk)
        expected = 2 if self.kind == GAPS else 1
        if parts != expected:
            raise unlike("section payload: payload parts", expected, parts)
        self.parts = tuple(b.number(8) for _ in range(parts))
        b.end()
        want = self.geometry // 8 * self.blocks * (4 if self.kind == COUNTING else 1)
        if self.kind != GAPS and self.blocks and self.parts[0] != want:
            raise unlike(f"payload of the {_NAMES[self.kind]}", f"{want} bytes", self.parts[0])
        for size in self.parts:
            if size > MAX_PART:
                raise unlike("payload part", f"at most {MAX_PART} bytes", size)

    def _read_partial(self) -> None:
        self.shards: tuple[int, tuple[int, ...]] | None = None
        if b := self._body(5):
            n = b.number(4)
            if not 1 <= n <= MAX_SHARDS:
                raise unlike("section partial: shards of the build", f"1 to {MAX_SHARDS}", n)
            bits = int.from_bytes(b.take((n + 7) // 8), "little")
            b.end()
            if bits == 0:
                raise unlike("section partial: shards held", "at least 1", 0)
            if bits.bit_length() > n:
                raise unlike("section partial: shard held", f"below {n}", bits.bit_length() - 1)
            flags = bin(bits)[:1:-1]
            self.shards = n, tuple(i for i, bit in enumerate(flags) if bit == "1")

    def _identity(self, kind: int) -> bytes | None:
        b = self._body(kind)
        if b is None:
            return None
        identity = b.take(32)
        b.end()
        if not any(identity):
            raise Broken(f"section {b.section}: says nothing")
        return identity

    def _read_lists(self) -> None:
        self.build_id, self.division = self._identity(6), self._identity(13)
        if self.shards is not None and self.build_id is None:
            raise Broken("build id: a partial filter needs one")
        if self.shards is None and self.division is not None:
            raise Broken("section division: in a filter that is not partial")
        self.registers = None
        if b := self._body(8):
            self.registers = b.rest()
            if len(self.registers) != REGISTERS:
                raise unlike("registers", f"{REGISTERS} bytes", len(self.registers))
            if max(self.registers) > 51:
                raise unlike("register", "at most 51", max(self.registers))
        self.parents: tuple[bytes, ...] = ()
        if b := self._body(9):
            count = (len(b.body) + 31) // 32
            self.parents = tuple(b.take(32) for _ in range(count))

    def _read_range(self) -> None:
        b = self._body(7)
        if b is None:
            return
        key = []
        for column in self.key:
            flags = b.number(1)
            if flags & ~3:
                raise Broken(f"section key range: flags: {flags:#x}")
            if flags & 2 and column.key_class != "float":
                raise Broken(f"section key range: NaN among keys of class {column.key_class}")
            lower = upper = None
            if flags & 1:
                lower, upper = b.take(b.number(4)), b.take(b.number(4))
                check_bound(column.key_class, lower)
                check_bound(column.key_class, upper)
            key.append(KeyColumn(column.name, column.key_class, lower, upper, bool(flags & 2)))
        b.end()
        if tuple(key) == self.key:
            raise Broken("section key range: says nothing")
        self.key = tuple(key)

    def _read_capacity(self) -> None:
        self.capacity: tuple[int, int] | None = None
        if b := self._body(11):
            keys, blocks = b.number(8), b.number(8)
            b.end()
            if keys == 0 and blocks == 0:
                raise Broken("section capacity: says nothing")
            if keys == 0:
                raise unlike("capacity", "at least 1 key", 0)
            if not 1 <= blocks <= MAX_BLOCKS:
                raise unlike("blocks for the capacity", f"1 to {MAX_BLOCKS}", blocks)
            if not self._sealed_exact and blocks != self.blocks:
                want = f"{self.blocks} as in the parameters"
                raise unlike("blocks for the capacity", want, blocks)
            self.capacity = keys, blocks

    def _read_rule(self) -> None:
        self.rule = 0
        if b := self._body(12):
            self.rule = b.number(4)
            b.end()
            if self.rule == 0:
                raise Broken("section rule: says nothing")
            if self.rule >> len(RULES) + 1:
                raise Broken(f"section rule: unknown steps: {self.rule:#x}", newer=True)
            self._check_rule()

    def _check_rule(self) -> None:
        classes = [column.key_class for column in self.key]
        alone = self.rule & UNICODE and not self.rule & TRIM_LOWER
        if alone or (self.rule & (_UUID | URLS)).bit_count() > 1:
            raise unlike("rule", "some of " + ",".join(RULES), f"{self.rule:#x}")
        if self.rule & _HOST and len(classes) != 1:
            raise unlike("key under the rule url-host", "one column", len(classes))
        to_uuid = bool(self.rule & _UUID)
        want = "fixed[16]" if to_uuid else "bytes"
        if want not in classes or (to_uuid and "bytes" in classes):
            names = ",".join(rule_names(self.rule))
            raise unlike(
                f"key under the rule {names}", f"a column of class {want}", ", ".join(classes)
            )

    @property
    def _sealed_exact(self) -> bool:
        return self.kind == GAPS and self.shards is None

    def _check_blocks(self) -> None:
        if self._sealed_exact:
            if self.blocks:
                raise unlike("blocks of a sealed exact filter", 0, self.blocks)
        elif self.blocks == 0:
            raise Broken("section parameters: 0 blocks")

    def _read_counting(self) -> None:
        self.multiset, self.saturated = False, 0
        b = self._body(15)
        counting = self.kind == COUNTING
        if counting != (b is not None):
            raise Broken("section counting: want it in a counting filter, and only there")
        if counting != (self.wanted == COUNTING):
            raise unlike("section set: wanted kind", self.kind, self.wanted)
        if b is None:
            return
        mode = b.number(1)
        b.reserved(7)
        self.saturated = b.number(8)
        b.end()
        if mode > 1:
            raise Broken(f"section counting: mode {mode}", newer=True)
        self.multiset = mode == 1
        if self.shards is not None and not self.multiset:
            raise unlike("partial counting filter", "a multiset", "a set")
        if self.saturated > 256 * self.blocks:
            raise unlike("saturated counters", f"at most {256 * self.blocks}", self.saturated)

    def _read_exceptions(self) -> None:
        self.exceptions: Exceptions | None = None
        b = self._body(14)
        if b is None:
            return
        digest, known, hashes = b.take(32), b.number(8), b.rest()
        try:
            place = pa.py_buffer(hashes)
            measure = _native.exact_measure(place.address, len(hashes), False)
        except ValueError as err:
            raise Broken(f"section exceptions: {err}") from None
        if self._sealed_exact:
            raise unlike("exceptions", "a Bloom filter or a partial one", "an exact filter")
        if self.kind == COUNTING:
            raise unlike("exceptions", "a Bloom filter or a partial one", "a counting filter")
        if self.shards is not None and not any(digest):
            raise unlike("known keys of a partial", "a digest", "none")
        if self.shards is None and known == 0 and (measure[0] == 0 or any(digest)):
            raise unlike("exceptions", "some, or known keys", "none")
        if len(hashes) > MAX_EXCEPTIONS:
            raise unlike("exceptions", f"at most {MAX_EXCEPTIONS} bytes", len(hashes))
        self.exceptions = Exceptions(digest, known, hashes, measure)
