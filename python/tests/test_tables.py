"""Tables of pyiceberg and deltalake as logs and as IDs, against what these libraries read."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StagedTable, StaticTable, Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

import bloomjoin
from bloomjoin.dask import scan_dask
from bloomjoin.polars import join_lazy

IDS = pa.array(range(0, 100, 3))


def rows(start: int, stop: int, url: str = "url") -> pa.Table:
    ids = range(start, stop)
    first = datetime.date(2024, 1, 1)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            url: [None if i % 7 == 0 else f"/p/{i}" for i in ids],
            "day": [first + datetime.timedelta(days=i % 3) for i in ids],
        }
    )


def delta(place: Path, **more: Any) -> DeltaTable:
    """Version 0 has 30 rows, 1 has more, 2 fewer, 3 others of another column."""
    uri = str(place)
    write_deltalake(uri, rows(0, 30), partition_by=["day"])
    write_deltalake(uri, rows(30, 60), mode="append")
    DeltaTable(uri).delete("id % 5 = 0")
    added = rows(60, 80).append_column("n", pa.array(range(20)))
    write_deltalake(uri, added, mode="append", schema_mode="merge")
    return DeltaTable(uri, **more)


def catalog(place: Path, scheme: str = "file://") -> SqlCatalog:
    place.mkdir(parents=True, exist_ok=True)
    made = SqlCatalog("c", uri="sqlite:///:memory:", warehouse=f"{scheme}{place}")
    made.create_namespace("db")
    return made


def iceberg(place: Path, scheme: str = "file://") -> Table:
    """A table with deleted rows, whose columns were renamed and added after its files."""
    fields = (("id", LongType()), ("url", StringType()))
    schema = Schema(*(NestedField(i, n, t) for i, (n, t) in enumerate(fields, 1)))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "by_url"))
    table = catalog(place, scheme).create_table("db.t", schema, partition_spec=spec)
    some = rows(0, 40).select(["id", "url"])
    table.append(some.set_column(1, "url", pc.if_else(pc.is_null(some["url"]), "none", "some")))
    table.delete("id in (3, 4, 5, 6)")
    with table.update_schema() as change:
        change.rename_column("url", "page")
        change.add_column("n", LongType())
    return table


def read(table: Any) -> pa.Table:
    """What the table's own library reads."""
    return table.to_pyarrow_table() if isinstance(table, DeltaTable) else table.scan().to_arrow()


def wanted(table: Any, key: str = "id") -> list[dict[str, Any]]:
    every = read(table)
    return ordered(every.filter(pc.is_in(every[key], IDS)))


def ordered(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: row["id"])


def answer(logs: Any, **options: Any) -> list[dict[str, Any]]:
    return ordered(bloomjoin.join(logs, IDS, "id", **options).read_all())


MAKE: dict[str, Callable[[Path], Any]] = {"delta": delta, "iceberg": iceberg}


@pytest.mark.parametrize("kind", MAKE)
def test_logs_and_ids(kind: str, tmp_path: Path) -> None:
    table = MAKE[kind](tmp_path / "t")
    want = wanted(table)
    assert want
    assert answer(table) == answer([table]) == answer((table,)) == want
    report = bloomjoin.join_to(table, IDS, "id", out=f"{tmp_path}/out/")
    assert report.rows_out == len(want)
    assert report.rows_in == read(table).num_rows
    built = bloomjoin.build(table, "id")
    assert built.keys == read(table).num_rows
    log = pa.table({"id": pa.array(range(100))})
    every = read(table)["id"].to_pylist()
    for ids in (table, [table]):
        found = bloomjoin.join(log, ids, "id").read_all()["id"].to_pylist()
        assert found == sorted(every)
    candidates = bloomjoin.scan(bloomjoin.build(IDS), table, "id", where="id < 30").read_all()
    assert ordered(candidates) == [row for row in want if row["id"] < 30]
    assert bloomjoin.plan(table, IDS, "id").selectivity is not None
    lazy = join_lazy(table, IDS, "id").sort("id").collect()
    assert lazy.select(list(want[0])).to_dicts() == want
    with pytest.raises(bloomjoin.UsageError, match="want files, got a table"):
        scan_dask(built, table, "id")


def test_both_in_one_list(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    write_deltalake(str(one), rows(0, 9))
    write_deltalake(str(other), rows(9, 20))
    found = answer([DeltaTable(str(one)), f"delta:{other}"])
    assert [row["id"] for row in found] == [0, 3, 6, 9, 12, 15, 18]


@pytest.mark.parametrize("version", range(4))
def test_versions_of_delta(version: int, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    delta(tmp_path / "t")
    old = DeltaTable(place, version=version)
    loaded = DeltaTable(place)
    loaded.load_as_version(version)
    want = wanted(old)
    assert answer(old) == answer(loaded) == want
    assert len({len(wanted(DeltaTable(place, version=v))) for v in range(4)}) == 4


def test_a_table_that_changes(tmp_path: Path) -> None:
    table = delta(tmp_path / "d")
    want = wanted(table)
    lazy = join_lazy([table], IDS, "id")
    write_deltalake(str(tmp_path / "d"), rows(90, 99), mode="append", schema_mode="merge")
    assert answer(table) == want
    table.update_incremental()
    assert len(answer(table)) == len(want) + 3
    assert lazy.collect().height == len(want)

    mine = iceberg(tmp_path / "i")
    want = wanted(mine)
    lazy = join_lazy(mine, IDS, "id")
    other = mine.catalog.load_table("db.t")
    other.delete("id < 20")
    with other.update_schema() as change:
        change.delete_column("n")
    assert answer(mine) == want
    mine.refresh()
    assert len(answer(mine)) < len(want)
    assert answer(mine) == wanted(mine)
    assert lazy.collect().height == len(want)


def test_static_tables_have_the_current_schema(tmp_path: Path) -> None:
    table = iceberg(tmp_path / "t")
    static = StaticTable.from_metadata(table.metadata_location)
    assert answer(static) == wanted(static)
    assert list(answer(static)[0]) == ["id", "page", "n"]


@pytest.mark.parametrize(
    "name", ["a b", "at@v0", "x@branch=main", "y@2024-01-01", "ü", "-o", "a,b", "h#x", "p%20q"]
)
def test_names_of_directories(name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    for scheme in ("file://", "file:", ""):
        if not scheme or "#" not in name:  # pyiceberg itself takes this for a fragment
            table = iceberg(place / f"i{len(scheme)}", scheme)
            assert answer(table) == wanted(table)
    if "%" in name:  # deltalake itself takes this for an escape
        return
    table = delta(place / "d", version=1)
    assert answer(table) == wanted(table)


def test_tables_without_rows(tmp_path: Path) -> None:
    empty = catalog(tmp_path / "e").create_table("db.t", rows(1, 2).schema)
    assert empty.current_snapshot() is None
    deleted = iceberg(tmp_path / "i")
    deleted.delete("true")
    nothing = DeltaTable.create(str(tmp_path / "d"), rows(1, 2).schema)
    for table in (empty, deleted, nothing):
        with pytest.raises(bloomjoin.DataError, match="the table holds no files"):
            bloomjoin.join(table, IDS, "id")
        out = f"{tmp_path}/{type(table).__module__}{id(table)}/"
        assert bloomjoin.join_to(table, IDS, "id", out=out, allow_empty=True).rows_out == 0


def test_a_vacuumed_version_is_an_error(tmp_path: Path) -> None:
    table = delta(tmp_path / "t", version=0)
    shutil.rmtree(tmp_path / "t" / "day=2024-01-01")
    with pytest.raises(bloomjoin.Error, match="version"):
        bloomjoin.join(table, IDS, "id").read_all()


def test_what_is_no_table(tmp_path: Path) -> None:
    table = iceberg(tmp_path / "t")
    staged = catalog(tmp_path / "s")._create_staged_table("db.u", table.schema())
    assert isinstance(staged, StagedTable)
    builder = deltalake.QueryBuilder()
    for given, says in (
        (table.scan(row_filter="id < 9"), "where="),
        (staged, "commit the table first"),
        (builder, "execute"),
        (table.schema(), "tables of pyiceberg or deltalake"),
    ):
        for call in (
            lambda given=given: bloomjoin.join(given, IDS, "id"),
            lambda given=given: bloomjoin.join([given], IDS, "id"),
            lambda given=given: bloomjoin.build(given, "id"),
        ):
            with pytest.raises(bloomjoin.UsageError, match=r"^(logs|ids): ") as raised:
                call()
            assert says in str(raised.value) or "in it" in str(raised.value)


def test_secrets_stay_where_they_are(tmp_path: Path) -> None:
    """A name has no settings of the object: those may be secrets, and names appear in errors."""
    table = iceberg(tmp_path / "t")
    table.io.properties["s3.secret-access-key"] = "hush"
    with pytest.raises(bloomjoin.DataError) as raised:
        bloomjoin.join(table, IDS, "other=key").read_all()
    assert "hush" not in str(raised.value) + str(raised.value.command)
