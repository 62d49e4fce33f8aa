"""Parquet files as bytes: the footer, the page index and the pages, decoded by nothing but this file.

A Thrift structure is a dict from field number to value; the numbers are those of the format's parquet.thrift.
"""

import pathlib
import struct
import zlib

import pyarrow as pa

CODECS = {0: None, 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
DATA, DICTIONARY, DATA_V2 = 0, 2, 3
REPEATED = 2


def varint(b, pos):
    shift = value = 0
    while True:
        c = b[pos]
        pos += 1
        value |= (c & 127) << shift
        shift += 7
        if c < 128:
            return value, pos


def zigzag(b, pos):
    value, pos = varint(b, pos)
    return value >> 1 ^ -(value & 1), pos


def thrift(b, pos=0):
    """A structure of the compact protocol, and where it ends."""
    fields, last = {}, 0
    while True:
        head = b[pos]
        pos += 1
        if head == 0:
            return fields, pos
        if head >> 4:
            last += head >> 4
        else:
            last, pos = zigzag(b, pos)
        if head & 15 in (1, 2):
            fields[last] = head & 15 == 1
        else:
            fields[last], pos = item(b, pos, head & 15)


def item(b, pos, kind):
    match kind:
        case 1 | 2:
            return b[pos] == 1, pos + 1
        case 3:
            return b[pos], pos + 1
        case 4 | 5 | 6:
            return zigzag(b, pos)
        case 7:
            return struct.unpack_from("<d", b, pos)[0], pos + 8
        case 8:
            n, pos = varint(b, pos)
            return bytes(b[pos : pos + n]), pos + n
        case 9 | 10:
            n, kind = b[pos] >> 4, b[pos] & 15
            pos += 1
            if n == 15:
                n, pos = varint(b, pos)
            values = []
            for _ in range(n):
                value, pos = item(b, pos, kind)
                values.append(value)
            return values, pos
        case 12:
            return thrift(b, pos)
    raise ValueError(f"type {kind} at {pos}")


class Page:
    """A page: kind, where it begins, its header, its bytes in the file, and these decompressed."""

    def __init__(self, kind, offset, header, stored, raw):
        self.kind, self.offset, self.header, self.stored, self.raw = kind, offset, header, stored, raw
        self.size = 0  # with its header

    @property
    def values(self):
        return self.header.get({DATA: 5, DICTIONARY: 7, DATA_V2: 8}[self.kind], {}).get(1)

    @property
    def encoding(self):
        h = self.header
        return h[8][4] if self.kind == DATA_V2 else h[5 if self.kind == DATA else 7][2]


class File:
    """A Parquet file whose footer is not encrypted."""

    def __init__(self, path):
        self.bytes = pathlib.Path(path).read_bytes()
        n = struct.unpack("<I", self.bytes[-8:-4])[0]
        self.footer_at = len(self.bytes) - 8 - n
        self.footer, _ = thrift(self.bytes, self.footer_at)
        self.schema = self.footer[2]
        self.groups = self.footer.get(4, [])

    @property
    def metadata(self):
        """The key-value metadata but for what bloomjoin adds, in order."""
        pairs = [(e[1], e.get(2)) for e in self.footer.get(5, [])]
        return [p for p in pairs if not p[0].startswith(b"bloomjoin.")]

    def walk(self, chunk):
        """The pages of a chunk as they are stored: where each begins, its header, its body and where it ends."""
        md = chunk[3]
        pos = min(at for at in (md[9], md.get(11)) if at)
        end = pos + md[7]
        while pos < end:
            header, body = thrift(self.bytes, pos)
            yield pos, header, self.bytes[body : body + header[3]], body + header[3]
            pos = body + header[3]

    def pages(self, chunk):
        codec = CODECS[chunk[3][4]]
        for pos, header, stored, end in self.walk(chunk):
            page = Page(header[1], pos, header, stored, self.raw(header, stored, codec))
            page.size = end - pos
            yield page

    def bodies(self):
        """The bodies of all pages as they are stored: what an output may have copied."""
        chunks = [c for g in self.groups for c in g[1] if 3 in c]  # an encrypted one tells nothing
        return frozenset(stored for c in chunks for _, _, stored, _ in self.walk(c))

    def columns(self):
        """The top-level columns: the schema elements of each, and the numbers of its leaves."""
        at, leaf = 1, 0

        def end(i):
            children = self.schema[i].get(5, 0)
            i += 1
            for _ in range(children):
                i = end(i)
            return i

        while at < len(self.schema):
            part = self.schema[at : end(at)]
            at += len(part)
            n = len(leaves([None, *part]))
            yield part, range(leaf, leaf + n)
            leaf += n

    def raw(self, header, stored, codec):
        plain, size = b"", header[2]
        if header[1] == DATA_V2:
            v2 = header[8]
            levels = v2.get(5, 0) + v2.get(6, 0)
            plain, stored, size = stored[:levels], stored[levels:], size - levels
            codec = codec if v2.get(7, True) else None
        if codec is None:
            return plain + stored
        if size == 0:  # some writers compress nothing into a few bytes
            return plain
        return plain + pa.decompress(stored, size, codec=codec, asbytes=True)

    def offset_index(self, chunk):
        return thrift(self.bytes, chunk[4])[0] if 4 in chunk and 5 in chunk else None

    def column_index(self, chunk):
        return thrift(self.bytes, chunk[6])[0] if 6 in chunk and 7 in chunk else None

    def texts(self):
        """Everything that the file says, decompressed: for searching."""
        for group in self.groups:
            for chunk in group[1]:
                yield from (p.raw for p in self.pages(chunk))
        last = max([c[3].get(11) or c[3][9] for g in self.groups for c in g[1]], default=4)
        yield self.bytes[last:]  # pages of the last chunk as they are stored, the page indexes, the footer


def leaves(schema):
    """The schema elements that are columns, in order."""
    return [e for e in schema[1:] if not e.get(5)]


def sound(f, copied=frozenset()):
    """What is wrong with the structure of a file that bloomjoin has written: a list of sentences.

    Copied: the bodies of pages that may be those of an input, which come without a checksum if they had none.
    """
    wrong = []
    rows = 0
    flat = {i for part, at in f.columns() if REPEATED not in [e[3] for e in part] for i in at}
    for g, group in enumerate(f.groups):
        rows += group[3]
        for c, chunk in enumerate(group[1]):
            wrong += [f"row group {g}, column {c}: {w}" for w in chunk_sound(f, group, chunk, copied, c in flat)]
        total = sum(c[3][7] for c in group[1])
        if group.get(6) != total:
            wrong.append(f"row group {g}: {group.get(6)} bytes compressed, its chunks have {total}")
        if group[2] != sum(c[3][6] for c in group[1]):
            wrong.append(f"row group {g}: total_byte_size is not the sum of its chunks'")
    if rows != f.footer[3]:
        wrong.append(f"{rows} rows in the row groups, {f.footer[3]} in the footer")
    return wrong


def chunk_sound(f, group, chunk, copied, flat):
    md, pages = chunk[3], list(f.pages(chunk))
    data = [p for p in pages if p.kind != DICTIONARY]
    for p in pages:
        if p.header.get(4) is None:
            if p.stored not in copied:
                yield f"no checksum at {p.offset}"
        elif p.header[4] & 0xFFFFFFFF != zlib.crc32(p.stored):
            yield f"a wrong checksum at {p.offset}"
        if len(p.raw) != p.header[2]:
            yield f"{len(p.raw)} bytes where the header says {p.header[2]}"
        if p.encoding not in md[2] and p.kind != DICTIONARY:
            yield f"encoding {p.encoding} is not listed"
    if sum(p.size for p in pages) != md[7]:
        yield "compressed size"
    if sum(p.size - p.header[3] + p.header[2] for p in pages) != md[6]:
        yield "uncompressed size"
    if sum(p.values for p in data) != md[5]:
        yield "number of values"
    if data[0].offset != md[9] or (pages[0].kind == DICTIONARY) != bool(md.get(11)):
        yield "offsets of the first pages"
    counts = {}
    for p in pages:
        counts[p.kind, p.encoding] = counts.get((p.kind, p.encoding), 0) + 1
    if counts != {(s[1], s[2]): s[3] for s in md.get(13, [])}:
        yield f"encoding_stats {md.get(13)}, want {counts}"
    offsets, columns = f.offset_index(chunk), f.column_index(chunk)
    if offsets is None:
        if flat or not all(p.stored in copied for p in data):  # rows of nested V1 pages are not counted
            yield "no offset index"
        return
    places = offsets[1]
    if [(p.offset, p.size) for p in data] != [(x[1], x[2]) for x in places]:
        yield "the offset index does not point to the pages"
    firsts = [x[3] for x in places]
    if firsts[0] != 0 or sorted(set(firsts)) != firsts or firsts[-1] >= group[3]:
        yield f"first rows {firsts[:9]} of {group[3]}"
    if columns is None:
        return
    nulls, lo, hi = columns[1], columns[2], columns[3]
    if not len(nulls) == len(lo) == len(hi) == len(data):
        yield "the column index has another number of pages"
    if columns.get(5) is not None and md.get(12, {}).get(3) is not None and sum(columns[5]) != md[12][3]:
        yield f"{sum(columns[5])} NULLs in the column index, {md[12][3]} in the statistics"
