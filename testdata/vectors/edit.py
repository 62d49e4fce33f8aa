"""Edit Parquet files: footers and page headers as trees that encode back to the bytes they came from.

A Thrift structure is a dict from field number to (type, value), types being those of the compact protocol. Files are put
together from pages by hand, for what no current writer makes.
"""

import struct

BOOL, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, STRUCT = 1, 3, 4, 5, 6, 7, 8, 9, 12


def varint(b, pos):
    shift = value = 0
    while True:
        c = b[pos]
        pos += 1
        value |= (c & 127) << shift
        shift += 7
        if c < 128:
            return value, pos


def decode(b, pos, kind):
    """A value of a type, and where it ends."""
    if kind == BYTE:
        return b[pos], pos + 1
    if kind in (I16, I32, I64):
        v, pos = varint(b, pos)
        return v >> 1 ^ -(v & 1), pos
    if kind == DOUBLE:
        return b[pos : pos + 8], pos + 8
    if kind == BINARY:
        n, pos = varint(b, pos)
        return bytes(b[pos : pos + n]), pos + n
    if kind == STRUCT:
        return decode_struct(b, pos)
    n, of = b[pos] >> 4, b[pos] & 15
    pos += 1
    if n == 15:
        n, pos = varint(b, pos)
    values = []
    for _ in range(n):
        if of in (1, 2):
            v, pos = b[pos] == 1, pos + 1
        else:
            v, pos = decode(b, pos, of)
        values.append(v)
    return (of, values), pos


def decode_struct(b, pos=0):
    fields, last = {}, 0
    while b[pos]:
        head = b[pos]
        pos += 1
        if head >> 4:
            last += head >> 4
        else:
            v, pos = varint(b, pos)
            last = v >> 1 ^ -(v & 1)
        if head & 15 in (1, 2):
            fields[last] = (BOOL, head & 15 == 1)
        else:
            value, pos = decode(b, pos, head & 15)
            fields[last] = (head & 15, value)
    return fields, pos + 1


def unsigned(v):
    out = bytearray()
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    return bytes(out + bytes([v]))


def zigzag(v):
    return unsigned(v << 1 if v >= 0 else (-v << 1) - 1)


def encode(kind, v):
    if kind == BYTE:
        return bytes([v])
    if kind in (I16, I32, I64):
        return zigzag(v)
    if kind == DOUBLE:
        return v
    if kind == BINARY:
        return unsigned(len(v)) + v
    if kind == STRUCT:
        return encode_struct(v)
    of, values = v
    head = bytes([len(values) << 4 | of]) if len(values) < 15 else bytes([0xF0 | of]) + unsigned(len(values))
    return head + b"".join(bytes([1 if x else 2]) if of in (1, 2) else encode(of, x) for x in values)


def encode_struct(fields):
    out, last = b"", 0
    for number, (kind, v) in sorted(fields.items()):
        wire = (1 if v else 2) if kind == BOOL else kind
        out += bytes([number - last << 4 | wire]) if 0 < number - last < 16 else bytes([wire]) + zigzag(number)
        last = number
        if kind != BOOL:
            out += encode(kind, v)
    return out + b"\0"


def footer(b):
    """The footer of a file, and where it begins."""
    at = len(b) - 8 - struct.unpack("<I", b[-8:-4])[0]
    return decode_struct(b, at)[0], at


def with_footer(data, fields):
    """A file of everything before the footer, and a footer."""
    foot = encode_struct(fields)
    return data + foot + struct.pack("<I", len(foot)) + b"PAR1"


def element(name, repetition=None, kind=None, children=None, converted=None, length=None):
    """An element of the schema. Repetition 0 is required, 1 optional, 2 repeated."""
    e = {4: (BINARY, name.encode())}
    for number, v in ((1, kind), (2, length), (3, repetition), (5, children), (6, converted)):
        if v is not None:
            e[number] = (I32, v)
    return e


def data_page(body, values, encoding=0, levels=3):
    """A V1 page. Encodings are those of the format: 0 PLAIN, 3 RLE, 4 BIT_PACKED, 8 RLE_DICTIONARY."""
    header = {1: (I32, values), 2: (I32, encoding), 3: (I32, levels), 4: (I32, levels)}
    return page(0, {5: (STRUCT, header)}, body)


def data_page_v2(rep, definition, body, values, nulls, rows, encoding=0):
    header = {1: values, 2: nulls, 3: rows, 4: encoding, 5: len(definition), 6: len(rep)}
    header = {k: (I32, v) for k, v in header.items()} | {7: (BOOL, False)}
    return page(3, {8: (STRUCT, header)}, rep + definition + body)


def dictionary_page(body, values):
    return page(2, {7: (STRUCT, {1: (I32, values), 2: (I32, 0)})}, body)


def page(kind, header, body):
    return encode_struct({1: (I32, kind), 2: (I32, len(body)), 3: (I32, len(body))} | header) + body


def file(schema, rows, columns, created_by=b"made by hand"):
    """A file of one row group. A column is path, physical type, number of values, and its pages."""
    data, chunks = b"PAR1", []
    for path, kind, values, pages in columns:
        start = len(data)
        first = start
        for p in pages:
            if decode_struct(p)[0][1][1] == 2:
                first += len(p)
            data += p
        md = {
            1: (I32, kind),
            2: (LIST, (I32, [0, 3])),
            3: (LIST, (BINARY, [n.encode() for n in path])),
            4: (I32, 0),
            5: (I64, values),
            6: (I64, len(data) - start),
            7: (I64, len(data) - start),
            9: (I64, first),
        }
        if first != start:
            md[11] = (I64, start)
        chunks.append({2: (I64, start), 3: (STRUCT, md)})
    group = {1: (LIST, (STRUCT, chunks)), 2: (I64, len(data) - 4), 3: (I64, rows)}
    fields = {1: (I32, 1), 2: (LIST, (STRUCT, schema)), 3: (I64, rows), 4: (LIST, (STRUCT, [group])), 6: (BINARY, created_by)}
    return with_footer(data, fields)


def runs(levels, width):
    """Levels or indices as runs of one value each."""
    return b"".join(unsigned(1 << 1) + v.to_bytes((width + 7) // 8, "little") for v in levels)


def prefixed(b):
    return struct.pack("<I", len(b)) + b


def bit_packed(levels, width):
    """The deprecated encoding: bits from the highest down, without a length."""
    bits = "".join(format(v, f"0{width}b") for v in levels)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))
