"""LazyFrames: the rows are those of the eager run, and little more is read."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flights import JOINS, LOGS, ON, TEXAS, expected

import bloomjoin

pl = pytest.importorskip("polars")

from bloomjoin import polars as lazy  # noqa: E402

Runs = list[dict[str, Any]]
ENGINES = ["in-memory", "streaming"]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Return the options of the test's runs, apart from those for the schema alone."""
    seen: Runs = []

    def recorded(verb: Callable[..., Any]) -> Callable[..., Any]:
        def run(**options: Any) -> Any:
            if not str(options.get("where")).endswith("FALSE"):
                seen.append(options)
            return verb(**options)

        return run

    monkeypatch.setattr(lazy, "scan", recorded(bloomjoin.scan))
    monkeypatch.setattr(lazy, "join", recorded(bloomjoin.join))
    return seen


@pytest.fixture(scope="module")
def texas() -> bloomjoin.Filter:
    return bloomjoin.build(TEXAS, "iata")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", JOINS)
def test_join(how: str, engine: Any) -> None:
    frame = lazy.join_lazy(LOGS, TEXAS, ON, how=how)
    schema = frame.collect_schema()
    collected = frame.collect(engine=engine)
    assert collected.schema == schema
    assert sorted(collected.rows(), key=repr) == expected(JOINS[how])


def test_scan(texas: bloomjoin.Filter) -> None:
    frame = lazy.scan_lazy(texas, LOGS, "origin")
    eager = pl.from_arrow(bloomjoin.scan(texas, LOGS, "origin").read_all())
    assert frame.collect().equals(eager)
    assert frame.collect().equals(eager)  # each collection runs anew


def test_no_rows_have_types() -> None:
    frame = lazy.join_lazy(LOGS, pa.table({"iata": ["XXX"]}), ON)
    with pytest.warns(bloomjoin.BloomjoinWarning, match="no ID"):
        none = frame.collect()
    assert none.schema == frame.collect_schema()
    assert none.height == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_only_columns_of_the_query_are_read(
    texas: bloomjoin.Filter, runs: Runs, engine: Any
) -> None:
    frame = lazy.scan_lazy(texas, LOGS, "origin")
    total = frame.select(pl.col("delay").sum()).collect(engine=engine).item()
    assert [(total,)] == expected(JOINS["semi"].replace("*", "sum(delay)"))
    assert [run["columns"] for run in runs] == [["delay"]]

    runs.clear()
    late = frame.filter(pl.col("delay").abs() > 60).select("destination").collect(engine=engine)
    query = JOINS["semi"].replace("*", "destination") + " WHERE abs(delay) > 60"
    assert sorted(late.rows()) == expected(query)
    assert [sorted(run["columns"]) for run in runs] == [["delay", "destination"]]


def test_columns_given_are_those_of_the_frame(texas: bloomjoin.Filter, runs: Runs) -> None:
    frame = lazy.scan_lazy(texas, LOGS, "origin", columns=["delay", "date"])
    assert frame.collect_schema().names() == ["delay", "date"]
    frame.select("date").collect()
    assert runs[-1]["columns"] == ["date"]

    frame = lazy.join_lazy(LOGS, TEXAS, ON, how="inner", columns=["ids.city", "log.delay"])
    assert frame.collect_schema().names() == ["city", "delay"]
    frame.select("delay").collect()
    assert runs[-1]["columns"] == ["log.delay"]


@pytest.mark.parametrize("suffix", [None, "_ids", "_"])
@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_columns_of_both_sides_keep_their_names(how: str, suffix: str | None) -> None:
    """A column of the IDs loses its suffix if it is asked for alone."""
    log = pa.table({"k": [1, 2, 3], "a": [10, 20, 30], "b_ids": [5, 6, 7], "x.y": [1, 1, 1]})
    ids = pa.table({
        "k": [2, 3, 4], "a": ["p", "q", "r"], "a_ids": [1.5, 2.5, 3.5],
        "b": [7, 8, 9], "b_ids": [True, False, None], "c_ids": [0, 0, 0], "x.y": [2, 2, 2],
    })  # fmt: skip
    frame = lazy.join_lazy(log, ids, "k", how=how, suffix=suffix)
    everything = frame.collect().sort(pl.all())
    for name in everything.columns:
        (column,) = frame.select(name).collect().get_columns()
        assert column.name == name
        assert sorted(column, key=repr) == sorted(everything[name], key=repr)
    backwards = list(reversed(everything.columns))
    assert (
        frame.select(backwards)
        .collect()
        .sort(everything.columns)
        .equals(everything.select(backwards))
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_of_the_query(texas: bloomjoin.Filter, engine: Any) -> None:
    frame = lazy.scan_lazy(texas, LOGS, "origin")
    everything = frame.collect()
    assert frame.head(5).collect(engine=engine).equals(everything.head(5))
    assert frame.slice(700, 9).collect(engine=engine).equals(everything.slice(700, 9))
    late = pl.col("delay") > 60
    wanted = everything.head(600).filter(late)
    assert frame.head(600).filter(late).collect(engine=engine).equals(wanted)
    assert frame.filter(late).head(5).collect(engine=engine).height == 5
    assert frame.select(pl.len()).collect(engine=engine).item() == 5867


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_ends_with_the_query(
    texas: bloomjoin.Filter, children: Callable[[], set[int]], engine: Any
) -> None:
    frame = lazy.scan_lazy(texas, LOGS, "origin")
    frame.head(1).collect(engine=engine)
    frame.filter(pl.col("delay").abs() > 3).head(1).collect(engine=engine)
    deadline = time.monotonic() + 10
    while children():
        assert time.monotonic() < deadline
        pl.Series([1])  # Polars lets go of Python objects at its next call
        gc.collect()
        time.sleep(0.01)


UTC = timezone.utc
PUSHED = {
    'pl.col("i") > 3': '"i" > 3',
    'pl.col("i") != 3': '"i" <> 3',
    '3 >= pl.col("u8")': '"u8" <= 3',
    'pl.col("i").is_between(2, 5)': '("i" >= 2 AND "i" <= 5)',
    'pl.col("i").is_between(2, 5, closed="right")': '("i" > 2 AND "i" <= 5)',
    'pl.col("s") == "it\'s"': "\"s\" = 'it''s'",
    'pl.col("s") < "b"': "\"s\" < 'b'",
    'pl.col("s").is_null()': '"s" IS NULL',
    'pl.col("i").eq_missing(None)': '"i" IS NULL',
    'pl.col("c") == "a"': "\"c\" = 'a'",
    'pl.col("flag")': '"flag"',
    '~pl.col("flag")': '(NOT "flag")',
    'pl.col("d") >= date(2024, 3, 1)': "\"d\" >= DATE '2024-03-01'",
    'pl.col("t") > datetime(2024, 3, 1, 10, 30)': "\"t\" > TIMESTAMP '2024-03-01 10:30:00.000000'",
    'pl.col("tz") < datetime(2024, 3, 1, tzinfo=UTC)':
        "\"tz\" < TIMESTAMPTZ '2024-03-01 00:00:00.000000000Z'",
    '(pl.col("i") > 3) & (pl.col("i") + 1 > 5)': '"i" > 3',
    # These stay with Polars.
    'pl.col("i") + 1 > 5': "",
    'pl.col("i") > 2.5': "",
    'pl.col("f") > 1.5': "",
    'pl.col("i").is_in([1, 2])': "",
    'pl.col("i") > pl.col("u8")': "",
    '(pl.col("i") > 3) | (pl.col("f") > 1.5)': "",
    'pl.col("s") == "\\n"': "",
}  # fmt: skip


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log of many types with NULLs, in row groups and pages that can be skipped."""
    rng = random.Random(19)
    n = 2000

    def column(make: Callable[[int], Any], type_: pa.DataType) -> pa.Array:
        return pa.array([None if rng.random() < 0.1 else make(i) for i in range(n)], type_)

    table = pa.table({
        "key": pa.array(range(n)),
        "i": column(lambda i: i // 200, pa.int64()),
        "u8": column(lambda i: rng.randrange(9), pa.uint8()),
        "s": column(lambda i: rng.choice(["", "a", "b", "c", "it's", "\n", "é"]), pa.string()),
        "f": column(lambda i: rng.choice([0.5, 1.5, 2.5, float("nan")]), pa.float64()),
        "flag": column(lambda i: i % 3 == 0, pa.bool_()),
        "d": column(lambda i: date(2024, 1 + i // 200, 1), pa.date32()),
        "t": column(lambda i: datetime(2024, 1 + i // 200, 1, i % 24, 30), pa.timestamp("us")),
        "tz": column(lambda i: datetime(2024, 1 + i // 200, 1), pa.timestamp("ns", "UTC")),
        "c": column(lambda i: "ab"[i % 2], pa.string()).dictionary_encode(),
    })  # fmt: skip
    path = tmp_path_factory.mktemp("typed") / "log.parquet"
    pq.write_table(table, path, row_group_size=500, data_page_size=1, write_page_index=True)
    return path


@pytest.mark.parametrize("expression", PUSHED)
def test_conditions(typed: Path, runs: Runs, expression: str) -> None:
    ids = pa.array(range(0, 2000, 3))
    frame = lazy.join_lazy(typed, ids, "key=key")
    predicate = eval(expression)
    assert frame.filter(predicate).collect().equals(frame.collect().filter(predicate))
    assert (runs[0].get("where") or "") == PUSHED[expression]


def test_random_conditions(typed: Path, runs: Runs) -> None:
    rng = random.Random(7)

    def leaf() -> Any:
        column, value = rng.choice([
            ("i", rng.randrange(-1, 11)), ("u8", rng.randrange(9)), ("s", rng.choice("abcé")),
            ("d", date(2024, rng.randrange(1, 11), 1)), ("f", 1.5),
            ("t", datetime(2024, rng.randrange(1, 11), 1, 12)),
        ])  # fmt: skip
        compare = rng.choice(["__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"])
        return rng.choice([getattr(pl.col(column), compare)(value), pl.col(column).is_null()])

    def tree(depth: int) -> Any:
        match rng.randrange(4) if depth else 3:
            case 0:
                return tree(depth - 1) & tree(depth - 1)
            case 1:
                return tree(depth - 1) | tree(depth - 1)
            case 2:
                return ~tree(depth - 1)
        return leaf()

    frame = lazy.join_lazy(typed, pa.array(range(0, 2000, 2)), "key=key")
    everything = frame.collect()
    runs.clear()
    for _ in range(40):
        predicate = tree(3)
        assert frame.filter(predicate).collect().equals(everything.filter(predicate)), predicate
    assert sum("where" in run for run in runs) > 20


def test_conditions_join_where(typed: Path, runs: Runs) -> None:
    frame = lazy.join_lazy(typed, pa.array(range(2000)), "key=key", where="i < 5 OR i > 8")
    assert frame.filter(pl.col("i") > 3).select("i").unique().collect().to_series().to_list() in (
        [4, 9],
        [9, 4],
    )
    assert runs[-1]["where"] == '(i < 5 OR i > 8) AND "i" > 3'


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_conditions_do_not_change_what_is_joined(typed: Path, runs: Runs, how: str) -> None:
    """In a full join, a log row without its ID would leave an ID without its row."""
    ids = pa.table({"key": range(1990, 2010), "plan": ["x"] * 20})
    frame = lazy.join_lazy(typed, ids, "key", how=how)
    everything = frame.collect().sort("key")
    for predicate in (pl.col("i") > 3, pl.col("i").is_null(), pl.col("plan").is_null()):
        assert frame.filter(predicate).collect().sort("key").equals(everything.filter(predicate))
    assert not any(run.get("where") for run in runs)


def test_what_can_be_read_once_is_refused(texas: bloomjoin.Filter) -> None:
    table = pa.table({"origin": ["DFW"]})
    with pytest.raises(TypeError, match="read_all"):
        lazy.scan_lazy(texas, table.to_reader(), "origin")
    with pytest.raises(TypeError, match="read_all"):
        lazy.join_lazy(LOGS, table.to_reader(), "origin")
    assert lazy.scan_lazy(texas, table, "origin").collect().rows() == [("DFW",)]


def test_arguments_are_checked_at_once(texas: bloomjoin.Filter) -> None:
    with pytest.raises(TypeError, match="colums"):
        lazy.scan_lazy(texas, LOGS, "origin", colums=["delay"])
    with pytest.raises(TypeError, match="ids"):
        lazy.join_lazy(LOGS, on=ON)


@pytest.mark.parametrize("engine", ENGINES)
def test_errors_are_those_of_the_run(texas: bloomjoin.Filter, tmp_path: Path, engine: Any) -> None:
    with pytest.raises(bloomjoin.DataError, match="orgin"):
        lazy.scan_lazy(texas, LOGS, "orgin")
    log = tmp_path / "log.parquet"
    damaged = bytearray((LOGS / "2001-04.parquet").read_bytes())
    damaged[30000:32000] = bytes(2000)
    log.write_bytes(damaged)
    with pytest.raises(bloomjoin.DataError, match=r"log\.parquet: .*corrupt"):
        lazy.scan_lazy(texas, log, "origin").collect(engine=engine)


def test_sink(texas: bloomjoin.Filter, tmp_path: Path) -> None:
    frame = lazy.scan_lazy(texas, LOGS, "origin")
    frame.sink_parquet(tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet").equals(frame.collect())
