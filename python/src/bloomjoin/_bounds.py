"""Classes of keys, and the form of their bounds in a filter file."""

from __future__ import annotations

import math
import re
import struct

from bloomjoin._broken import Broken, unlike

# Sizes of bounds in bytes; None: any.
_SIZES = {
    "integer": 9,
    "bytes": None,
    "boolean": 1,
    "date": 8,
    "instant": 12,
    "timestamp": 12,
    "decimal": None,
    "float": 8,
    "time": 8,
    "duration": 12,
    "null": 0,
}
_FIXED = re.compile(r"fixed\[(0|[1-9][0-9]{0,9})\]")


def fixed_width(key_class: str) -> int | None:
    """Return w of ``fixed[w]``, None for other classes."""
    match = _FIXED.fullmatch(key_class)
    return int(match[1]) if match and int(match[1]) < 1 << 31 else None


def known_class(key_class: str) -> bool:
    """Report whether this version knows the class."""
    return key_class in _SIZES or fixed_width(key_class) is not None


def check_bound(key_class: str, bound: bytes) -> None:
    """Raise Broken if a bound does not have the only form that its value has."""
    size = _SIZES.get(key_class, fixed_width(key_class))
    if key_class == "null":
        raise Broken("key bound: of a column that has only NULLs")
    if size is not None and len(bound) != size:
        raise unlike(f"key bound of class {key_class}", f"{size} bytes", len(bound))
    if not _canonical(key_class, bound):
        raise Broken(f"key bound of class {key_class}: {bound.hex()} is not its normal form")


def _canonical(key_class: str, bound: bytes) -> bool:
    if key_class == "integer":
        return bound[8] == 0 or (bound[8] == 1 and bound[7] >= 0x80)
    if key_class == "boolean":
        return bound[0] <= 1
    if key_class in ("instant", "timestamp", "duration"):
        return int.from_bytes(bound[8:], "little") < 10**9
    if key_class == "float":
        (value,) = struct.unpack("<d", bound)
        return not math.isnan(value) and bound != struct.pack("<d", -0.0)
    if key_class == "decimal":
        return len(bound) >= 5 and not _superfluous(bound[4:])
    return True


def _superfluous(unscaled: bytes) -> bool:
    """Report whether the first byte only repeats the sign of the second."""
    return len(unscaled) > 1 and (
        (unscaled[0] == 0 and unscaled[1] < 0x80) or (unscaled[0] == 0xFF and unscaled[1] >= 0x80)
    )
