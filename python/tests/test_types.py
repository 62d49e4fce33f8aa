"""Types and NULLs of many columns, through the six joins, against DuckDB's rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flights import rows

import bloomjoin

ROWS = 60
SPAN = dt.timedelta(days=1, microseconds=3)
BERLIN = pa.timestamp("us", "Europe/Berlin")

# name: type, and a value for each row; every seventh is NULL.
COLUMNS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "flag": (pa.bool_(), lambda i: i % 2 == 0),
    "small": (pa.int8(), lambda i: i - 30),
    "unsigned": (pa.uint64(), lambda i: 2**63 + i),
    "half": (pa.float32(), lambda i: i / 4),
    "real": (pa.float64(), lambda i: i / 8),
    "text": (pa.string(), lambda i: f"ü{i}"),
    "large": (pa.large_string(), lambda i: "x" * i),
    "bytes": (pa.binary(), lambda i: bytes([0, i])),
    "four": (pa.binary(4), lambda i: bytes([i, 0, 255, 1])),
    "day": (pa.date32(), lambda i: dt.date(1999, 12, 1) + i * dt.timedelta(days=1)),
    "local": (pa.timestamp("us"), lambda i: dt.datetime(1960, 1, 1) + i * SPAN),
    "nanos": (pa.timestamp("ns"), lambda i: dt.datetime(2020, 1, 1) + i * SPAN),
    "instant": (BERLIN, lambda i: dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc) + i * SPAN),
    "clock": (pa.time64("us"), lambda i: dt.time(1, i, 2, 3)),
    "money": (pa.decimal128(12, 2), lambda i: Decimal(i) / 4),
    "list": (pa.list_(pa.int32()), lambda i: [None, *range(i % 3)]),
    "struct": (pa.struct({"a": pa.int64(), "b": pa.string()}), lambda i: {"a": i, "b": None}),
    "word": (pa.dictionary(pa.int32(), pa.string()), lambda i: "abc"[i % 3]),
}

HOW = ["semi", "anti", "inner", "left", "right", "full"]


def column(of: pa.DataType, value: Callable[[int], Any]) -> pa.Array:
    values = [None if i % 7 == 6 else value(i) for i in range(ROWS)]
    if pa.types.is_dictionary(of):
        return pa.array(values, of.value_type).dictionary_encode()
    return pa.array(values, of)


# Keys of the log: each three times, some NULL; and IDs: some twice, one NULL, some unmatched.
LOG = pa.table(
    {
        "k": pa.array([None if i % 10 == 9 else i % 20 for i in range(ROWS)], pa.int32()),
        **{name: column(*how) for name, how in COLUMNS.items()},
    }
)
IDS = pa.table({"id": pa.array([3, 4, 4, None, 11, 100], pa.int64()), "name": list("abcdef")})


def expected(how: str) -> list[tuple[object, ...]]:
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    con.register("log", LOG)
    con.register("ids", IDS)
    return rows(con.sql(f"FROM log {how.upper()} JOIN ids ON k = id").to_arrow_table())


def as_instants(table: pa.Table) -> pa.Table:
    """Return a table whose instants are in UTC, as DuckDB gives them."""
    index = table.schema.get_field_index("instant")
    return table.set_column(index, "instant", table["instant"].cast(pa.timestamp("us", "UTC")))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", ["path", "table", "reader", "polars", "pandas", "duckdb"])
def test_rows(kind: str, how: str, tmp_path: Path) -> None:
    pq.write_table(LOG, tmp_path / "log.parquet")
    logs: Any = {
        "path": tmp_path / "log.parquet",
        "table": LOG,
        "reader": LOG.to_reader(17),
        "polars": pl.from_arrow(LOG),
        "pandas": LOG.to_pandas(types_mapper=pd.ArrowDtype),
        "duckdb": duckdb.from_arrow(LOG),
    }[kind]
    got = bloomjoin.join(logs, IDS, "k=id", how=how).read_all()  # type: ignore[arg-type]
    assert rows(as_instants(got)) == expected(how)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", ["path", "table"])
def test_types(kind: str, how: str, tmp_path: Path) -> None:
    """They stay as they are, but for dictionaries as docs/types.md has it."""
    pq.write_table(LOG, tmp_path / "log.parquet")
    logs = LOG if kind == "table" else tmp_path / "log.parquet"
    got = bloomjoin.join(logs, IDS, "k=id", how=how).schema  # type: ignore[arg-type]
    for field in LOG.schema:
        want = field.type
        if field.name == "word" and (kind == "path" or how in ("right", "full")):
            want = pa.string()
        assert got.field(field.name).type == want, field.name
    assert ("name" in got.names) == (how not in ("semi", "anti"))


@pytest.mark.parametrize("name", [n for n in COLUMNS if n not in ("list", "struct")])
def test_every_type_is_a_key(name: str) -> None:
    """In a join, and in a filter: in process or through the command."""
    some = LOG[name].take([1, 5, 5, 8, 6])
    want = [v is not None and v in some.to_pylist() for v in LOG[name].to_pylist()]
    got = bloomjoin.join(LOG.select([name]), pa.table({name: some}), name).read_all()
    assert got.num_rows == sum(want) > 0
    built = bloomjoin.build(pa.table({name: some}), name, fpr=1e-9)
    assert built.probe(LOG[name]).to_pylist() == want
