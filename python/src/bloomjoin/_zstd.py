"""Chunks that are compressed as zstd streams (RFC 8878)."""

from __future__ import annotations

import pyarrow as pa

_MAX_WINDOW = 1 << 20
_FRAME = 0xFD2FB528
_SKIPPABLE = 0x184D2A50


def unpack(stored: memoryview, size: int) -> pa.Buffer:
    """Decompress a stream to exactly ``size`` bytes, else raise ValueError.

    The stream must not need a dictionary, nor a window above 2^20 bytes. That is
    checked first, because pyarrow's codec has no such limits.
    """
    _check_frames(bytes(stored))
    try:
        return pa.Codec("zstd").decompress(pa.py_buffer(stored), size)
    except OSError as err:
        raise ValueError(str(err)) from None


def _check_frames(b: bytes) -> None:
    at = 0
    while at < len(b):
        magic = _number(b, at, 4)
        if magic & ~0xF == _SKIPPABLE:
            at += 8 + _number(b, at + 4, 4)
        elif magic == _FRAME:
            at = _check_frame(b, at + 4)
        else:
            raise ValueError("not a frame")
    if at != len(b):
        raise ValueError("cut short")


def _check_frame(b: bytes, at: int) -> int:
    """Check the header of a frame at an offset; return the frame's end."""
    about = _number(b, at, 1)
    single = about >> 5 & 1
    at += 1
    window = 0
    if not single:
        descriptor = _number(b, at, 1)
        base = 1 << (10 + (descriptor >> 3))
        window = base + base // 8 * (descriptor & 7)
        at += 1
    id_size = (0, 1, 2, 4)[about & 3]
    if _number(b, at, id_size):
        raise ValueError("it needs a dictionary")
    at += id_size
    content_size = (single, 2, 4, 8)[about >> 6]
    if single:
        window = _number(b, at, content_size) + (256 if content_size == 2 else 0)
    at += content_size
    if window > _MAX_WINDOW:
        raise ValueError(f"a window of {window} bytes, where {_MAX_WINDOW} are the limit")
    last = 0
    while not last:
        head = _number(b, at, 3)
        last = head & 1
        at += 3 + (1 if head >> 1 & 3 == 1 else head >> 3)
    return at + 4 * (about >> 2 & 1)


def _number(b: bytes, at: int, size: int) -> int:
    if at + size > len(b):
        raise ValueError("cut short")
    return int.from_bytes(b[at : at + size], "little")
