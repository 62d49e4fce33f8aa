"""The six joins from every kind of input, against DuckDB's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from flights import JOINS, ON, TEXAS, expected, plain, rows

import bloomjoin

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


def tables() -> tuple[pa.Table, pa.Table]:
    with plain() as con:
        return con.sql("FROM logs").to_arrow_table(), con.sql("FROM texas").to_arrow_table()


AS: dict[str, Callable[[pa.Table], Any]] = {
    "table": lambda table: table,
    "reader": lambda table: table.to_reader(1000),
    "polars": pl.from_arrow,
    "pandas": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
}


@pytest.mark.parametrize("how", JOINS)
@pytest.mark.parametrize("kind", AS)
def test_join_of_arrow_data(kind: str, how: str) -> None:
    logs, texas = tables()
    got = bloomjoin.join(AS[kind](logs), AS[kind](texas), ON, how=how).read_all()
    assert rows(got) == expected(JOINS[how])


@pytest.mark.parametrize("how", JOINS)
@pytest.mark.parametrize("kind", AS)
def test_join_of_arrow_data_with_a_file(kind: str, how: str) -> None:
    got = bloomjoin.join(AS[kind](tables()[0]), TEXAS, ON, how=how).read_all()
    assert rows(got) == expected(JOINS[how])
