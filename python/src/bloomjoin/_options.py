"""Keyword options as flags of the command.

An option has the name of its flag, with underscores. None, False and empty
options give no flag, so the defaults are the command's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from bloomjoin._errors import UsageError

# Flags that are repeated for each element of a list.
_REPEATED = ("include", "exclude", "match", "no_match", "ids", "against", "add", "remove")

# Options whose flag has another name.
_NAMES = {"how": "type"}


def flags(options: Mapping[str, Any]) -> list[str]:
    """Return the flags for options. The names are those of parameters of a verb."""
    out: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        flag = "--" + _NAMES.get(name, name).replace("_", "-")
        if value is True:
            out.append(flag)
        elif name in _REPEATED:
            out += [f"{flag}={one}" for one in _several(name, value)]
        else:
            word = _WORDS.get(name, _word)(name, value)
            if word != "":
                out.append(f"{flag}={word}")
    return out


def quoted(names: str | Iterable[str]) -> str:
    """Return exact names of columns as one value of a flag."""
    given = [names] if isinstance(names, str) else list(names)
    if not given:
        raise UsageError("columns: want at least one, got none (the report has the number of rows)")
    return ",".join(_quote(name) for name in given)


def _quote(name: str) -> str:
    if name.isascii() and name.isidentifier():
        return name
    return '"' + name.replace('"', '""') + '"'


def _several(name: str, value: Any) -> list[str]:
    return [
        _word(name, one) for one in ([value] if isinstance(value, (str, os.PathLike)) else value)
    ]


def _word(name: str, value: Any) -> str:
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, timedelta):
        return f"{value // timedelta(microseconds=1)}us"
    raise UsageError(f"{name}: want text or a number, got a {type(value).__name__}")


def _list(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    return ",".join(_word(name, one) for one in value)


def _pairs(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{column}:{of}" for column, of in value.items())
    return _list(name, value)


def on(given: str | Iterable[str] | Mapping[str, str]) -> str:
    """Return pairs of columns as the command takes them, LOGCOL=IDCOL."""
    if isinstance(given, Mapping):
        return ",".join(f"{log}={ids}" for log, ids in given.items())
    return _list("on", given)


def combining(how: str) -> tuple[str, bool]:
    """Return the option with which filters are combined; that for partial ones is none."""
    if how not in ("union", "intersect", "difference", "subtract", "partials"):
        raise UsageError(
            f"how: want union, intersect, difference, subtract or partials, got {how!r}"
        )
    return how, how != "partials"


_WORDS: Mapping[str, Callable[[str, Any], str]] = {
    "key": _list,
    "columns": _list,
    "normalize": _list,
    "hive_types": _pairs,
    "on": lambda _, value: on(value),
}
