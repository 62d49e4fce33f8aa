"""Spark's own join, of whole sides or of candidates."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._equality import Pair

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Unsuitable(Exception):
    """Spark has to do the join, and this is why."""


def spark_join(logs: DataFrame, ids: DataFrame, on: Sequence[Pair], how: str) -> DataFrame:
    """Join as ``logs.join(ids, on, how)`` does: equal names of a key become one column."""
    if using(on):
        return logs.join(ids, [p.log for p in on], how)
    conditions = [logs[quoted(p.log)] == ids[quoted(p.ids)] for p in on]
    return logs.join(ids, functools.reduce(lambda a, b: a & b, conditions), how)


def using(on: Sequence[Pair]) -> bool:
    """Report whether all keys have one name on both sides: they are one column of the answer."""
    return all(p.using for p in on)


def quoted(name: str) -> str:
    """Return the name of a top-level column as Spark takes any such name."""
    return "`" + name.replace("`", "``") + "`"
