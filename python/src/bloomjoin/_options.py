"""Keyword options as flags of the command.

An option has the name of its flag, with underscores. None, False and empty
options give no flag, so the defaults are the command's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from bloomjoin._errors import UsageError

# Flags that are repeated for each element of a list.
_REPEATED = (
    *("include", "exclude", "match", "no_match", "ids", "against", "add", "remove"),
    "columns",  # each by itself, as EXCEPT takes all that follows
)

# Options whose flag has another name.
_NAMES = {"how": "type"}

# Options that are files or directories.
_PATHS = ("output", "base", "schema_from", "manifest_dir", "temp_dir", "state", "against", "filter")

# What other libraries call a join.
_HOW = {
    "outer": "full",
    "full_outer": "full",
    "fullouter": "full",
    "left_outer": "left",
    "leftouter": "left",
    "right_outer": "right",
    "rightouter": "right",
    "left_semi": "semi",
    "leftsemi": "semi",
    "left_anti": "anti",
    "leftanti": "anti",
}


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


def chosen(columns: str | Iterable[str]) -> list[str]:
    """Return exact names of columns, and stars, as values of flags."""
    given = [columns] if isinstance(columns, str) else list(columns)
    return [c if c.startswith("*") else quoted(c) for c in given] or [quoted(given)]


def _quote(name: str) -> str:
    if name.isascii() and name.isidentifier():
        return name
    return '"' + name.replace('"', '""') + '"'


def _several(name: str, value: Any) -> list[str]:
    return [
        _word(name, one) for one in ([value] if isinstance(value, (str, os.PathLike)) else value)
    ]


def path(given: str | os.PathLike[str]) -> str:
    """Return a name of a file as text. A ~ at its start is a home directory, as in a shell."""
    name = os.fsdecode(given)
    return os.path.expanduser(name) if name.startswith("~") and not os.path.lexists(name) else name


def _word(name: str, value: Any) -> str:
    if isinstance(value, os.PathLike) or (name in _PATHS and isinstance(value, str)):
        return path(value)
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, timedelta):
        return f"{value // timedelta(microseconds=1)}us"
    raise UsageError(f"{name}: want text or a number, got a {type(value).__name__}")


def _how(name: str, value: Any) -> str:
    meant = _HOW.get(value) if isinstance(value, str) else None
    if meant:
        raise UsageError(
            f"how: want semi, anti, inner, left, right or full, got {value!r} "
            f"(did you mean how={meant!r}?)"
        )
    return _word(name, value)


def _list(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    return ",".join(_word(name, one) for one in value)


def _pairs(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{column}:{of}" for column, of in value.items())
    return _list(name, value)


def on(given: str | Iterable[str] | Mapping[str, str]) -> str:
    """Return pairs of columns as the command takes them, LOGCOL=IDCOL.

    In text, ``a|b`` is a column with another name; in other values, a name with a |.
    """
    if isinstance(given, str):
        return given
    if isinstance(given, Mapping):
        given = [f"{log}={ids}" for log, ids in given.items()]
    return re.sub(r'("(?:[^"]|"")*")|([^"=,:]*\|[^"=,:]*)', _whole, _list("on", given))


def _whole(name: re.Match[str]) -> str:
    return name[1] or f'"{name[2]}"'


# A quoted name, a cast, or another name.
_CAST = re.compile(r'("(?:[^"]|"")*")|::\s*\w+(?:\([^)]*\))?|\|(?:"(?:[^"]|"")*"|[^,=|:]+)')


def sides(pairs: str) -> tuple[list[str], list[str]]:
    """Return the references of both sides in a value of --on, without casts and other names."""
    plain = _CAST.sub(lambda m: m[1] or "", pairs)
    both = [_split(pair, "=") for pair in _split(plain, ",")]
    return [pair[0] for pair in both], [pair[-1] for pair in both]


def columns(key: str | Iterable[str] | None) -> list[str | None]:
    """Return the names of a key's columns; None for a field in a struct."""
    return [_column(one) for one in sides(_list("key", key))[1]] if key else []


def _split(text: str, at: str) -> list[str]:
    return [one.strip() for one in re.split(at + r'(?=(?:[^"]*"[^"]*")*[^"]*$)', text)]


def _column(reference: str) -> str | None:
    if re.fullmatch(r'"(?:[^"]|"")+"', reference):
        return reference[1:-1].replace('""', '"')
    return None if "." in reference or not reference else reference


def combining(how: str) -> tuple[str, bool]:
    """Return the option with which filters are combined; that for partial ones is none."""
    if how not in ("union", "intersect", "difference", "subtract", "partials"):
        raise UsageError(
            f"how: want union, intersect, difference, subtract or partials, got {how!r}"
        )
    return how, how != "partials"


_WORDS: Mapping[str, Callable[[str, Any], str]] = {
    "key": _list,
    "normalize": _list,
    "hive_types": _pairs,
    "how": _how,
}
