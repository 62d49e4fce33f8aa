"""Predicates of Polars as conditions on the log.

A condition lets a run skip row groups and pages. Polars still applies the whole
predicate to the rows that arrive, so a condition may be weaker than its
predicate, but never stronger. Only what surely means the same is translated:
comparisons of a column with a literal of the column's own type. Everything
else, and whatever another version of Polars writes differently, is left out.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any

import polars as pl

_OPERATORS = {"Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_BETWEEN = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}
_UNITS = {"Milliseconds": "ms", "Microseconds": "us", "Nanoseconds": "ns"}
_PER_SECOND = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH = datetime.datetime(1970, 1, 1)


class _Untranslatable(Exception):
    """The expression has no equivalent condition."""


def condition(predicate: pl.Expr, schema: Mapping[str, pl.DataType]) -> str | None:
    """Translate a predicate, or as many of its AND terms as possible.

    Returns None if no term can be translated.
    """
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except Exception:
        # The JSON form is not stable. The run is correct without a condition.
        return None
    terms = []
    for term in _terms(tree):
        try:
            terms.append(_Translator(schema).condition(term))
        except (_Untranslatable, KeyError, TypeError, ValueError, OverflowError):
            continue
    return " AND ".join(terms) or None


def _terms(tree: Any) -> list[Any]:
    """Return the terms of the outermost ANDs."""
    match tree:
        case {"BinaryExpr": {"left": left, "op": "And", "right": right}}:
            return _terms(left) + _terms(right)
    return [tree]


class _Translator:
    """Translates trees exactly: NULL, true and false are the same on both sides."""

    def __init__(self, schema: Mapping[str, pl.DataType]) -> None:
        self._schema = schema

    def condition(self, tree: Any) -> str:
        match tree:
            case {"BinaryExpr": {"left": left, "op": ("And" | "Or") as op, "right": right}}:
                return f"({self.condition(left)} {op.upper()} {self.condition(right)})"
            case {"BinaryExpr": {"left": {"Column": name}, "op": op, "right": {"Literal": value}}}:
                return f"{_quoted(name)} {_OPERATORS[op]} {self._literal(name, value)}"
            case {"Function": {"input": [tree], "function": {"Boolean": "Not"}}}:
                return f"(NOT {self.condition(tree)})"
            case {"Function": {"input": [{"Column": name}], "function": {"Boolean": test}}}:
                return f"{_quoted(name)} {_null_test(test)}"
            case {
                "Function": {
                    "input": [{"Column": name}, {"Literal": low}, {"Literal": high}],
                    "function": {"Boolean": {"IsBetween": {"closed": closed}}},
                }
            }:
                above, below = _BETWEEN[closed]
                column = _quoted(name)
                return (
                    f"({column} {above} {self._literal(name, low)}"
                    f" AND {column} {below} {self._literal(name, high)})"
                )
            case {"Column": name} if self._schema[name] == pl.Boolean:
                return _quoted(name)
        raise _Untranslatable

    def _literal(self, name: str, literal: Any) -> str:
        """Return a literal as it is written for a column of its own type."""
        dtype = self._schema[name]
        match literal:
            case {"Dyn": {"Int": int(number)}} if dtype.is_integer():
                if pl.select(pl.lit(number).cast(dtype, strict=False)).item() != number:
                    raise _Untranslatable
                return str(number)
            case {"Scalar": {"Date": int(days)}} if dtype == pl.Date:
                return f"DATE '{(_EPOCH + datetime.timedelta(days=days)).date().isoformat()}'"
            case {"Scalar": {"Datetime": [int(ticks), unit, zone]}}:
                zone = zone["inner"] if zone else None
                if dtype != pl.Datetime(_UNITS[unit], zone):  # type: ignore[arg-type]
                    raise _Untranslatable
                return _timestamp(ticks, _PER_SECOND[_UNITS[unit]], zone is not None)
            case {"Scalar": {"String": str(text)}} if dtype == pl.String and text.isprintable():
                return "'" + text.replace("'", "''") + "'"
            case {"Scalar": scalar} if dtype.is_integer():
                ((kind, number),) = scalar.items()
                if kind == str(dtype) and isinstance(number, int):
                    return str(number)
        raise _Untranslatable


def _quoted(name: str) -> str:
    if '"' in name or not name.isprintable():
        raise _Untranslatable
    return f'"{name}"'


def _null_test(test: Any) -> str:
    if test == "IsNull":
        return "IS NULL"
    if test == "IsNotNull":
        return "IS NOT NULL"
    raise _Untranslatable


def _timestamp(ticks: int, per_second: int, instant: bool) -> str:
    seconds, fraction = divmod(ticks, per_second)
    time = _EPOCH + datetime.timedelta(seconds=seconds)
    digits = len(str(per_second)) - 1
    clock = f"{time.isoformat(sep=' ')}.{fraction:0{digits}}"
    return f"TIMESTAMPTZ '{clock}Z'" if instant else f"TIMESTAMP '{clock}'"
