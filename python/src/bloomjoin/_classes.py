"""Classes of keys, as Arrow types have them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt

from bloomjoin._errors import DataError

_NUMBERS = ("integer", "decimal", "float")
_TYPES = {
    "integer": "int64",
    "bytes": "string",
    "boolean": "bool_",
    "date": "date32",
    "decimal": "decimal128",
    "float": "float64",
}


def class_of(of: pa.DataType) -> str | None:
    """Return the class of keys of a type, None for types that cannot be keys."""
    if isinstance(of, pa.BaseExtensionType):
        return class_of(of.storage_type)
    if pt.is_dictionary(of) or pt.is_run_end_encoded(of):
        return class_of(of.value_type)
    if pt.is_fixed_size_binary(of):
        return f"fixed[{of.byte_width}]"
    if pt.is_timestamp(of):
        return "timestamp" if of.tz is None else "instant"
    for is_one, name in (
        (pt.is_integer, "integer"),
        (is_text, "bytes"),
        (pt.is_boolean, "boolean"),
        (pt.is_date, "date"),
        (pt.is_decimal, "decimal"),
        (pt.is_floating, "float"),
        (pt.is_time, "time"),
        (pt.is_duration, "duration"),
        (pt.is_null, "null"),
    ):
        if is_one(of):
            return name
    return None


def is_text(of: pa.DataType) -> bool:
    """Report whether values of the type are of class ``bytes``."""
    return bool(
        pt.is_string(of)
        or pt.is_large_string(of)
        or pt.is_binary(of)
        or pt.is_large_binary(of)
        or is_view(of)
    )


def is_view(of: pa.DataType) -> bool:
    """Report whether the type is a view of text, which old versions do not have."""
    return str(of) in ("string_view", "binary_view")


def check_classes(
    names: Sequence[str], classes: Sequence[str], rule: int, given: pa.Schema
) -> None:
    """Raise DataError if columns cannot be compared with the keys of a filter."""
    if len(classes) != len(given):
        raise DataError(
            f"number of key columns: want {len(classes)} ({', '.join(names)}), got {len(given)}"
        )
    for name, want, field in zip(names, classes, given, strict=True):
        got = class_of(field.type)
        if got is None:
            raise DataError(f"key {name!r}: values of type {field.type} cannot be keys")
        if not _comparable(want, got, rule):
            raise DataError(
                f"key {name!r}: key class: want {_word(want)} (the filter), "
                f"got {_word(got)} ({field.type}) ({_remedy(want)})"
            )


def _comparable(want: str, got: str, rule: int) -> bool:
    if want == got or "null" in (want, got) or (want in _NUMBERS and got in _NUMBERS):
        return True
    return bool(rule & 4) and want == "fixed[16]" and got == "bytes"


def _word(key_class: str) -> str:
    return "text or binary" if key_class == "bytes" else key_class


def _remedy(want: str) -> str:
    """Return what to do about another class than that of the filter."""
    if want in _TYPES:
        call = f"pa.{_TYPES[want]}" + ("(38, 9)" if want == "decimal" else "()")
        return f"cast the array, as array.cast({call}), or build the filter from such values"
    return "cast the array, or build the filter from such values"
