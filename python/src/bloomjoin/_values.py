"""Keys as the command takes them in flags: text."""

from __future__ import annotations

import csv
import datetime
import io
import os
from collections.abc import Iterable, Sequence
from typing import Any

from bloomjoin._errors import UsageError


def texts(keys: Any) -> list[str]:
    """Return the texts of a key or of several. A tuple is a key of several columns."""
    if hasattr(keys, "to_pylist"):
        keys = keys.to_pylist()
    elif isinstance(keys, (str, bytes, tuple)) or not isinstance(keys, Iterable):
        keys = [keys]
    return [_key(key) for key in keys]


def _key(key: Any) -> str:
    if not isinstance(key, tuple):
        return _text(key)
    if len(key) == 1:
        return _text(key[0])
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL, lineterminator="").writerow(map(_text, key))
    return line.getvalue()


def _text(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value  # of NumPy
    value = value.as_py() if hasattr(value, "as_py") else value
    if isinstance(value, bytes):
        value = os.fsdecode(value)
    elif isinstance(value, bool):
        value = str(value).lower()
    elif isinstance(value, (datetime.date, datetime.time)):
        value = value.isoformat()
    if value is None or "\0" in str(value):
        what = "NULL" if value is None else "text with a zero byte"
        raise UsageError(f"key: want a value that the command can be given, got {what}")
    return str(value)


def of_class(text: str, classes: Sequence[str]) -> Any:
    """Return the key that the command has written: an integer, or text."""
    return int(text) if tuple(classes) == ("integer",) else text
