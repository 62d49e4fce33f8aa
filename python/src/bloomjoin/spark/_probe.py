"""Probes of a data frame's keys, for logs that are no files: views, and tables with rules.

Spark reads the log, sends the key column to Python in Arrow batches, and drops the rows whose key
the filter does not let through. Executors need this package, whose C code does the probing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from bloomjoin import Filter

from . import _task
from ._plain import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def filler(kind: DataType) -> Any:
    """Return a value that stands for NULL keys of a type, or None if its keys cannot be probed.

    Before Spark 4.1, integers with NULLs reach Python as floating-point numbers.
    """
    name = kind.simpleString()
    if name in _INTEGERS:
        return 0
    return {"string": "", "binary": b""}.get(name)


def candidates(
    logs: DataFrame,
    key: str,
    binary: _task.Binary,
    wanted: dict[str, str],
    environment: dict[str, str],
) -> DataFrame:
    """Return the rows whose key may be in the filter that ``wanted`` names by URL and digest."""
    from pyspark.sql import functions

    column, kind = functions.col(quoted(key)), logs.schema[key].dataType
    known = functions.coalesce(column, functions.lit(filler(kind)).cast(kind))
    return logs.where(column.isNotNull() & _udf(binary, wanted, environment)(known))


def _udf(
    binary: _task.Binary, wanted: dict[str, str], environment: dict[str, str]
) -> Callable[..., Any]:
    from pyspark.sql import functions

    def probe(values: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        return cast("pa.Array[Any]", _opened(binary, wanted, environment).probe(values))

    # Spark reads the annotations as objects.
    probe.__annotations__ = dict.fromkeys(["values", "return"], pa.Array)
    if hasattr(functions, "arrow_udf"):
        return cast("Callable[..., Any]", functions.arrow_udf(probe, "boolean"))

    import pandas as pd

    def probe_series(values: pd.Series) -> pd.Series:
        return pd.Series(probe(pa.Array.from_pandas(values)).to_numpy(zero_copy_only=False))

    probe_series.__annotations__ = dict.fromkeys(["values", "return"], pd.Series)
    return cast("Callable[..., Any]", functions.pandas_udf(probe_series, "boolean"))


def _opened(binary: _task.Binary, wanted: dict[str, str], environment: dict[str, str]) -> Filter:
    """Return the filter, which a Python worker opens once."""
    found = _FILTERS.get(wanted["digest"])
    if found is None:
        path = wanted["url"]
        if "://" in path:
            path = _task.fetched(_task.find(binary), wanted, environment)
        found = Filter.load(path)
        _FILTERS.clear()
        _FILTERS[wanted["digest"]] = found
    return found


_FILTERS: dict[str, Filter] = {}
