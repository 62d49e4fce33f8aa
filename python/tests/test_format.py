"""The reader of the filter file: what it accepts, what it makes of it, what it refuses."""

from __future__ import annotations

import hashlib
import json
import random
import struct
from pathlib import Path

import golden
import pyarrow as pa
import pytest
import reference

from bloomjoin import _native, _process, _zstd
from bloomjoin._broken import Broken
from bloomjoin._errors import DataError
from bloomjoin._filter import Filter
from bloomjoin._format import COUNTING, UNICODE, Header, read_header
from bloomjoin._payload import read_payload
from bloomjoin._sections import xxh3

KINDS = ("auto", "bloom", "exact", "", "counting")


def read(content: bytes) -> Header:
    """Read and check all of a file."""
    file = memoryview(content)
    header = read_header(file)
    read_payload(file, header, 1 << 30)
    return header


def payload_of(content: bytes, header: Header) -> bytes:
    out = b""
    for chunk in header.chunks:
        stored = memoryview(content)[chunk.offset : chunk.offset + chunk.stored]
        out += bytes(_zstd.unpack(stored, chunk.size)) if chunk.zstd else bytes(stored)
    return out


def number(x: float) -> str:
    return f"{x:g}"


def go_string(s: str) -> str:
    return json.dumps(s, ensure_ascii=False)


def describe(content: bytes, header: Header) -> str:
    """Return the text that lies beside a golden file."""
    names = [name for name in header.rules if name != "ascii-only"]
    if header.rule & UNICODE:
        names.append("unicode-15.0")
    rules = "".join("+" + ",".join(names) for _ in names[:1])
    lines = [
        f"kind {'exact' if header.exact else KINDS[header.kind]}",
        f"want {KINDS[header.wanted]}",
        f"sealed {str(header.shards is None).lower()}",
        f"normal form {go_string(header.normal_form + rules)}",
    ]
    for c in header.key:
        lower, upper = ("none" if b is None else b.hex() + "." for b in (c.lower, c.upper))
        nan = str(c.has_nan).lower()
        name = go_string(c.name)
        lines.append(f"key {name} class {c.key_class} min {lower} max {upper} nan {nan}")
    lines += [
        f"geometry {header.geometry // 256}",
        f"hash {header.hash} seed {header.seed}",
        f"blocks {header.blocks}",
        f"keys {header.keys}",
        f"fpr asked {number(header.fpr_asked)}",
        f"build {(header.build_id or bytes(32)).hex()}",
    ]
    if header.shards:
        held = " ".join(map(str, header.shards[1]))
        lines.append(f"shards [{held}] of {header.shards[0]}")
    lines += [f"parent {parent.hex()}" for parent in header.parents]
    payload = payload_of(content, header)
    if header.kind == COUNTING:
        digest = hashlib.sha256(payload).hexdigest()
        lines.append(f"multiset {str(header.multiset).lower()}")
        lines.append(f"saturated {header.saturated}")
        lines.append(f"counters {len(payload)} sha256 {digest}")
        payload = reference.bits_of(payload)
    if header.capacity:
        lines.append(f"capacity {header.capacity[0]} in {header.capacity[1]} blocks")
    if given := header.exceptions:
        hashes = reference.members(given.hashes, False)
        text = f" [{' '.join(f'{h:x}' for h in hashes)}]" if hashes else ""
        lines.append(f"exceptions against {given.known} of {given.digest.hex()}:{text}")
    if header.registers:
        digest = hashlib.sha256(header.registers).hexdigest()
        lines.append(f"registers {len(header.registers)} sha256 {digest}")
    lines.append(f"digest {header.digest.hex()}")
    if header.exact:
        below = reference.members(payload[: header.parts[0]], True)
        above = reference.members(payload[header.parts[0] :], False)
        values = [v - (1 << 64) for v in below] + above
        text = "".join(f" {v}" for v in values)
        digest = hashlib.sha256(text.encode()).hexdigest()
        lines.append(f"members {len(values)} in decimal, each after a space, sha256 {digest}")
        if len(values) < 300:
            lines.append(f"members{text}")
    else:
        lines.append(f"bits {len(payload)} sha256 {hashlib.sha256(payload).hexdigest()}")
    return "\n".join(lines) + "\n"


def refused(content: bytes) -> bool:
    try:
        read(content)
    except Broken:
        return True
    return False


def test_numbers_of_the_format() -> None:
    b = pa.py_buffer(bytes(range(8)))
    assert _native.xxh3(b.address, 0) == 0x2D06800538D394C2
    assert _native.xxh3(b.address, 8) == 0x3A1C2D7C85AF88F8


@pytest.mark.parametrize("path", golden.FILES, ids=golden.name_of)
def test_golden_file(path: Path) -> None:
    content = path.read_bytes()
    header = read(content)
    assert describe(content, header) == path.with_suffix(".txt").read_text()
    assert header.skipped == ((4000,) if path.stem == "unknown-section" else ())


@pytest.mark.parametrize("path", golden.FILES, ids=golden.name_of)
def test_golden_file_is_what_the_command_reports(path: Path) -> None:
    run = _process.run(["inspect", "--json", "--check", str(path)])
    want = json.loads(run.stdout)["files"][0]["filter"]
    f = Filter.load(path)
    assert f.digest == want["digest"]
    assert f.kind == want["kind"]
    assert f.keys == want["keys"]
    assert f.sealed == want["sealed"]
    assert f.fpr_asked == want["fpr_asked"]
    assert list(f.key_names) == [c["name"] for c in want["key"]]
    assert list(f.key_classes) == [c["class"] for c in want["key"]]
    assert f.fpr == pytest.approx(want.get("fpr_predicted", 0.0), rel=1e-12)
    assert f.path == str(path)


@pytest.mark.parametrize("path", golden.VECTORS, ids=golden.name_of)
def test_vector_is_refused_for_its_fault(path: Path) -> None:
    content, expect, text = golden.vector(path)
    with pytest.raises(Broken) as caught:
        read(content)
    assert text in str(caught.value)
    assert caught.value.newer == (expect == "newer")


SMALL = [p for p in golden.FILES if p.stat().st_size < (1 << 20 if golden.LONG else 900)]


@pytest.mark.parametrize("path", SMALL, ids=golden.name_of)
def test_every_changed_bit_is_refused(path: Path) -> None:
    content = bytearray(path.read_bytes())
    accepted = []
    for bit in range(8 * len(content)):
        content[bit // 8] ^= 1 << bit % 8
        if not refused(bytes(content)):
            accepted.append(bit)
        content[bit // 8] ^= 1 << bit % 8
    assert accepted == []


@pytest.mark.parametrize("path", SMALL, ids=golden.name_of)
def test_every_truncation_is_refused(path: Path) -> None:
    content = path.read_bytes()
    assert [n for n in range(len(content)) if not refused(content[:n])] == []


@pytest.mark.parametrize("path", golden.FILES, ids=golden.name_of)
def test_bytes_after_the_end_are_refused(path: Path) -> None:
    content = path.read_bytes()
    for more in (b"\0", bytes(8), bytes(4096), content):
        assert refused(content + more)


def test_payload_above_the_limit_is_refused_before_it_is_allocated() -> None:
    content = memoryview((golden.TESTDATA / "golden/bloom512-partial.bjf").read_bytes())
    header = read_header(content)
    with pytest.raises(MemoryError, match="46,080 bytes"):
        read_payload(content, header, 46_079)
    read_payload(content, header, 46_080)
    counters = memoryview((golden.TESTDATA / "golden/counting-set.bjf").read_bytes())
    with pytest.raises(MemoryError, match="1,440 bytes"):
        read_payload(counters, read_header(counters), 1_439)
    read_payload(counters, read_header(counters), 1_440)
    exceptions = memoryview((golden.TESTDATA / "golden/exceptions.bjf").read_bytes())
    with pytest.raises(MemoryError):
        read_payload(exceptions, read_header(exceptions), 1_440)


def test_index_above_the_limit_is_refused(tmp_path: Path) -> None:
    ids = pa.array(range(0, 1 << 40, 1 << 26))
    path = golden.build(tmp_path, ids, "--kind", "exact")
    with pytest.raises(MemoryError):
        Filter.load(path, memory_limit=1 << 18)
    assert Filter.load(path, memory_limit=2 << 20).probe(ids).true_count == len(ids)


def frame(window: int, *, dictionary: bytes = b"", content: bytes = b"abc") -> memoryview:
    """Return a zstd frame with one raw block."""
    about = {0: 0, 1: 1}[len(dictionary)]
    head = struct.pack("<IBB", 0xFD2FB528, about, window) + dictionary
    return memoryview(head + (len(content) << 3 | 1).to_bytes(3, "little") + content)


def test_zstd_streams() -> None:
    assert bytes(_zstd.unpack(frame(10 << 3), 3)) == b"abc"  # 2^20
    with pytest.raises(ValueError, match="window"):
        _zstd.unpack(frame(10 << 3 | 1), 3)
    with pytest.raises(ValueError, match="dictionary"):
        _zstd.unpack(frame(0, dictionary=b"\7"), 3)
    for n in (2, 4):
        with pytest.raises(ValueError, match=r".+"):
            _zstd.unpack(frame(0), n)
    whole = bytes(pa.Codec("zstd").compress(bytes(1 << 20)))
    assert bytes(_zstd.unpack(memoryview(whole), 1 << 20)) == bytes(1 << 20)
    for cut in range(len(whole)):
        with pytest.raises(ValueError, match=r".+"):
            _zstd.unpack(memoryview(whole[:cut]), 1 << 20)


def test_files_that_are_no_filters(tmp_path: Path) -> None:
    other = tmp_path / "other"
    with pytest.raises(FileNotFoundError):
        Filter.load(other)
    other.write_bytes(b"")
    with pytest.raises(DataError, match="empty"):
        Filter.load(other)
    with pytest.raises((DataError, IsADirectoryError, PermissionError)):
        Filter.load(tmp_path)
    other.write_bytes(b"PAR1" * 100)
    with pytest.raises(DataError, match="magic: not a filter file"):
        Filter.load(other)


def resealed(content: bytes, r: random.Random) -> bytes:
    """Change some bits of a section's body, and correct the checksums."""
    b = bytearray(content)
    end, at, sections = 24 + int.from_bytes(b[12:16], "little"), 24, []
    while at < end:
        length = int.from_bytes(b[at + 4 : at + 8], "little")
        sections.append((at, length))
        at += 16 + (length + 7) // 8 * 8
    start, length = r.choice(sections)
    for _ in range(r.choice([1, 1, 2])):
        b[start + 8 + min(r.randrange(length), r.randrange(length))] ^= 1 << r.randrange(8)
    seal = start + 8 + (length + 7) // 8 * 8
    b[seal : seal + 8] = xxh3(bytes(b[start:seal])).to_bytes(8, "little")
    b[-8:] = xxh3(bytes(b[:-8])).to_bytes(8, "little")
    return bytes(b)


def test_resealed_files_are_judged_as_by_the_command(tmp_path: Path) -> None:
    r = random.Random(11)
    path = tmp_path / "filter.bjf"
    differing = []
    for _ in range(2000 if golden.LONG else 60):
        source = r.choice(golden.FILES)
        content = resealed(source.read_bytes(), r)
        path.write_bytes(content)
        try:
            _process.run(["inspect", "--check", str(path)])
            accepted = True
        except DataError:
            accepted = False
        if refused(content) == accepted:
            kept = tmp_path / f"{source.stem}-{len(differing)}"
            kept.write_bytes(content)
            differing.append((kept, accepted))
    assert differing == []
