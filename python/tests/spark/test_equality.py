"""Files and settings that Spark and bloomjoin might read differently: the answer is Spark's."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_cases import MODES, digest

from bloomjoin.spark import Staging, join, report


@pytest.fixture
def staging(tmp_path: Path):
    with Staging(str(tmp_path / "staging")) as found:
        yield found


def write(folder: Path, **files: dict[str, pa.Array]) -> Path:
    """Write files in the order of their names, each a table, and return their directory."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in files.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return folder


def numbers(*values: int | None, kind: pa.DataType | None = None) -> pa.Array:
    return pa.array(values, kind or pa.int64())


def check(spark, staging, logs, ids, on, how="inner", why=None, whole=None, **options):
    """Compare with Spark's own join; ``why`` is a part of the reason if Spark does all of it.

    ``whole`` is the reason why tasks cannot join, if they can filter.
    """
    left = spark.read.parquet(f"file://{logs}")
    right = ids if hasattr(ids, "columns") else spark.read.parquet(f"file://{ids}")
    names = {"semi": "left_semi", "anti": "left_anti"}
    want = digest(left.join(right, on, names.get(how, how)))
    for mode in MODES[how]:
        found = join(spark, logs, ids, on, how=how, staging=staging, mode=mode, **options)
        reason = (whole if mode == "whole" else None) or why
        if reason is None:
            assert report(found).mode == mode, report(found).why
        else:
            assert reason in (report(found).fallback or ""), report(found).why
        assert digest(found) == want
    return want[0]


def test_columns_that_differ_in_case(spark, staging, tmp_path):
    """Spark finds a column of each file whatever the case of its name."""
    values = pa.array(["x", "y"])
    logs = write(
        tmp_path / "logs",
        a={"id": numbers(1, 2), "url": values},
        b={"id": numbers(1, 3), "URL": values},
    )
    ids = spark.createDataFrame([(1,)], "id long")
    assert check(spark, staging, logs, ids, "id", why="in a file") == 2


def test_key_that_differs_in_case(spark, staging, tmp_path):
    logs = write(
        tmp_path / "logs",
        a={"id": numbers(1, 2), "n": numbers(1, 2)},
        b={"ID": numbers(1, 3), "n": numbers(3, 4)},
    )
    ids = spark.createDataFrame([(1,)], "id long")
    assert check(spark, staging, logs, ids, "id", why="in a file") == 2


@pytest.mark.parametrize("how", ["inner", "right", "semi", "left", "full", "anti"])
def test_key_of_another_case_on_each_side(spark, staging, tmp_path, how):
    """A key of one name is one column of the answer, with the name that Spark gives it."""
    logs = write(tmp_path / "logs", a={"Id": numbers(1, 2, None), "n": numbers(1, 2, 3)})
    ids = spark.createDataFrame([(1, 5), (7, 6), (None, 7)], "iD long, plan int")
    check(spark, staging, logs, ids, "ID", how=how)


@pytest.mark.parametrize("how", ["inner", "full", "left"])
def test_one_name_on_both_sides(spark, staging, tmp_path, how):
    """Columns beside the key that have one name stay two columns."""
    logs = write(tmp_path / "logs", a={"id": numbers(1, 2, 3), "n": numbers(1, 2, 3)})
    ids = spark.createDataFrame([(1, 5), (7, 6)], "id long, n int")
    check(spark, staging, logs, ids, "id", how=how)


def test_files_of_other_columns(spark, staging, tmp_path):
    """A column that a file does not have is NULL there."""
    logs = write(
        tmp_path / "logs",
        a={"id": numbers(1, 2), "n": numbers(1, 2), "m": numbers(1, 2)},
        b={"m": numbers(3, 4), "id": numbers(1, 3)},
    )
    ids = spark.createDataFrame([(1,)], "id long")
    assert check(spark, staging, logs, ids, "id", whole="some files lack n") == 2
    found = join(spark, logs, ids, "id", columns=["m"], mode="whole")
    assert report(found).mode == "whole"
    assert sorted(row["m"] for row in found.collect()) == [1, 3]


def test_files_of_other_widths(spark, staging, tmp_path):
    if spark.version.startswith("3."):
        pytest.skip("Spark 3.5 refuses such files itself")
    logs = write(
        tmp_path / "logs",
        a={"id": numbers(1, 2), "n": numbers(1, 2)},
        b={"id": numbers(1, 3, kind=pa.int32()), "n": numbers(3, 4)},
    )
    ids = spark.createDataFrame([(1,), (3,)], "id long")
    assert check(spark, staging, logs, ids, "id", whole="stored as int32 and as int64") == 3


@pytest.mark.parametrize("setting", ["ignoreCorruptFiles", "ignoreMissingFiles"])
def test_files_that_spark_may_pass_over(spark, staging, tmp_path, setting):
    logs = write(tmp_path / "logs", a={"id": numbers(1, 2)})
    ids = spark.createDataFrame([(1,)], "id long")
    spark.conf.set(f"spark.sql.files.{setting}", "true")
    try:
        check(spark, staging, logs, ids, "id", why=setting)
    finally:
        spark.conf.unset(f"spark.sql.files.{setting}")


def test_ids_that_cannot_be_written(spark, staging, tmp_path):
    """Columns of one name, which a frame may have and a file may not."""
    logs = write(tmp_path / "logs", a={"id": numbers(1, 2, 3)})
    ids = spark.createDataFrame([(1, 5, 6), (2, 7, 8)], "id long, a int, b int")
    twice = ids.toDF("id", "a", "a")
    check(spark, staging, logs, twice, "id", why="cannot be written", whole="have one name")


def test_patterns_and_strange_names(spark, staging, tmp_path):
    """The files of a pattern are those that Spark finds; names may have any character."""
    one = {"id": numbers(1)}
    folder = write(tmp_path / "a b%20c#d", **{"part-1": one, "part-2": one, "other": one})
    ids = spark.createDataFrame([(1,)], "id long")
    found = join(spark, folder / "part-[12].parquet", ids, "id", staging=staging, mode="files")
    assert found.count() == 2
    found = join(spark, folder / "{part-2,other}.parquet", ids, "id", staging=staging, mode="files")
    assert found.count() == 2


def test_partitions_of_many_types(spark, staging, tmp_path):
    values = ["2024-01-02", "2024-01-03", "__HIVE_DEFAULT_PARTITION__"]
    others = ["n=01/t=a%2Fb", "n=2/t=1e3", "n=3/t=x y"]
    for i, day in enumerate(values):
        folder = tmp_path / "logs" / f"day={day}" / others[i]
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": numbers(1, i), "row": numbers(i, i)}), folder / "f.parquet")
    ids = spark.createDataFrame([(1,)], "id long")
    for how in ("inner", "semi", "left", "anti"):
        check(spark, staging, tmp_path / "logs", ids, "id", how=how)


def test_unsigned_and_small_decimals(spark, staging, tmp_path):
    from decimal import Decimal

    unsigned = numbers(1, 2**31, 2**32 - 1, None, kind=pa.uint32())
    price = pa.array(
        [Decimal("1.50"), Decimal("-2.25"), None, Decimal("3.00")], pa.decimal128(6, 2)
    )
    logs = tmp_path / "logs"
    logs.mkdir()
    pq.write_table(
        pa.table({"u": unsigned, "price": price}), logs / "a.parquet", store_decimal_as_integer=True
    )
    ids = spark.createDataFrame([(2**31,), (2**32 - 1,)], "u long")
    assert check(spark, staging, logs, ids, "u") == 2
    ids = spark.createDataFrame([(Decimal("-2.25"),), (Decimal("3.00"),)], "price decimal(6,2)")
    assert check(spark, staging, logs, ids, "price") == 2


def test_strings_that_are_not_text(spark, staging, tmp_path):
    """Spark reads bytes without a mark as binary, or as strings if it is told to."""
    logs = write(
        tmp_path / "logs", a={"k": pa.array([b"a", b"b\xff", None]), "n": numbers(1, 2, 3)}
    )
    ids = spark.createDataFrame([("a",), ("c",)], "k string")
    spark.conf.set("spark.sql.parquet.binaryAsString", "true")
    try:
        check(spark, staging, logs, ids, "k", why="stored as binary")
    finally:
        spark.conf.unset("spark.sql.parquet.binaryAsString")
    assert check(spark, staging, logs, ids.selectExpr("cast(k as binary) k"), "k") == 1


def test_nested_columns_beside_the_key(spark, staging, tmp_path):
    rows = [{"a": 1, "b": [1, None, 3]}, None, {"a": None, "b": []}]
    nested = pa.array(rows, pa.struct([("a", pa.int32()), ("b", pa.list_(pa.int16()))]))
    pairs = pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64()))
    logs = write(tmp_path / "logs", a={"id": numbers(1, 2, 3), "nested": nested, "pairs": pairs})
    ids = spark.createDataFrame([(1,), (3,)], "id long")
    want = spark.read.parquet(f"file://{logs}").join(ids, "id").orderBy("id").collect()
    for mode in ("files", "whole"):
        found = join(spark, logs, ids, "id", staging=staging, mode=mode)
        assert report(found).mode == mode
        assert found.orderBy("id").collect() == want


def test_empty_log_files(spark, staging, tmp_path):
    logs = write(tmp_path / "logs", a={"id": numbers(1, 2)}, b={"id": numbers()})
    ids = spark.createDataFrame([], "id long")
    for how in ("inner", "right", "semi", "anti", "left", "full"):
        check(spark, staging, logs, ids, "id", how=how)


@pytest.mark.parametrize("how", ["inner", "left", "full"])
def test_paths_named_twice(spark, staging, tmp_path, how):
    """Spark reads the rows of a path as often as it is named."""
    folder = write(tmp_path / "logs", a={"id": numbers(1, 2)})
    ids = spark.createDataFrame([(1,), (3,)], "id long")
    for names in [folder, folder], [folder, folder / "a.parquet"], [f"{folder}/{{a,a}}.parquet"]:
        found = join(spark, names, ids, "id", how=how, staging=staging, mode="files")
        every = names if isinstance(names, list) else [names]
        logs = spark.read.parquet(*[f"file://{n}" for n in every])
        assert digest(found) == digest(logs.join(ids, "id", how))
    given = [folder, folder]
    found = join(spark, folder, given, "id", how=how, staging=staging, mode="files")
    logs = spark.read.parquet(f"file://{folder}")
    twice = spark.read.parquet(*[f"file://{n}" for n in given])
    assert digest(found) == digest(logs.join(twice, "id", how))


@pytest.mark.parametrize("value", ["%C3%A9", "%E9", "a%zz", "100%", "a%20b", "\u00e9"])
def test_escapes_in_paths(spark, staging, tmp_path, value):
    folder = write(tmp_path / "logs" / f"name={value}", a={"id": numbers(1, 2)}).parent
    ids = spark.createDataFrame([(1,), (3,)], "id long")
    why = None if value in ("a%20b", "\u00e9") else "escapes"
    assert check(spark, staging, folder, ids, "id", why=why) == 1


def test_paths_without_values(spark, staging, tmp_path):
    """Spark gives a column of type void."""
    folder = write(tmp_path / "logs" / "h=__HIVE_DEFAULT_PARTITION__", a={"id": numbers(1, 2)})
    ids = spark.createDataFrame([(1,), (3,)], "id long")
    for how in ("inner", "full"):
        assert check(spark, staging, folder.parent, ids, "id", how=how) > 0


def test_named_directories_above(spark, tmp_path):
    """A directory name=value that was named, or is above, gives Spark no column."""
    folder = write(tmp_path / "id=5" / "logs", a={"id": numbers(1, 2)})
    ids = spark.createDataFrame([(1,), (3,)], "id long")
    with Staging(str(tmp_path / "id=7")) as staging:
        for names in folder, tmp_path / "id=5" / "*", tmp_path / "id=*" / "logs":
            assert check(spark, staging, names, ids, "id") == 1


def test_columns_in_some_files_and_their_paths(spark, staging, tmp_path):
    """Spark takes the paths' values."""
    write(tmp_path / "logs" / "n=1", a={"id": numbers(1, 2), "n": numbers(1, 7)})
    write(tmp_path / "logs" / "n=2", a={"id": numbers(1, 3)})
    ids = spark.createDataFrame([(1,), (3,)], "id long")
    found = join(spark, tmp_path / "logs", ids, "id", staging=staging, mode="files")
    assert "of that name" in (report(found).fallback or "")
    logs = spark.read.parquet(f"file://{tmp_path}/logs")
    assert digest(found) == digest(logs.join(ids, "id"))


def test_timestamps_that_are_cut_when_written(spark, staging, tmp_path):
    instants = pa.array([1_700_000_000_000_001, 1_700_000_000_000_002], pa.timestamp("us", "UTC"))
    folder = write(tmp_path / "logs", a={"at": instants})
    ids = spark.read.parquet(f"file://{folder}").where("at is not null")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "timestamp_millis")
    try:
        found = join(spark, folder, ids, "at", staging=staging, mode="files")
        assert "lose microseconds" in (report(found).fallback or "")
        assert found.count() == 2
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")


ONE = numbers(1)
INSTANT = ONE.cast(pa.timestamp("us"))
OTHER_TYPES = {
    "text and bytes": (pa.array(["a"]), pa.array([b"a"]), "stored as"),
    "decimals": (ONE.cast(pa.decimal128(21, 2)), ONE.cast(pa.decimal128(20, 1)), "stored as"),
    "instants and clocks": (INSTANT, ONE.cast(pa.timestamp("us", "UTC")), "stored as"),
    "names of fields": (pa.array([{"a": 1}]), pa.array([{"A": 1}]), "differ in case"),
    "units": (INSTANT, ONE.cast(pa.timestamp("ms")), None),
    "a new field": (pa.array([{"a": 1}]), pa.array([{"a": 1, "b": 2}]), None),
    "widths": (ONE, ONE.cast(pa.int32()), None),
}


@pytest.mark.parametrize("name", OTHER_TYPES)
def test_files_of_other_types(spark, staging, tmp_path, name):
    """Where there is no union of the files, the answer or the error is Spark's own."""
    one, other, why = OTHER_TYPES[name]
    logs = write(tmp_path / "logs", a={"id": ONE, "x": one}, b={"id": ONE, "x": other})
    ids = spark.createDataFrame([(1,)], "id long")
    found = join(spark, logs, ids, "id", staging=staging, mode="files")
    said = report(found).fallback or ""
    assert why in said if why else not said
    frame = spark.read.parquet(f"file://{logs}")
    try:
        want = digest(frame.join(ids, "id"))
    except Exception:
        if why is None and not spark.version.startswith("3."):
            raise
        return
    assert digest(found) == want


def test_files_with_and_without_int96(spark, staging, tmp_path):
    instants = {"id": ONE, "at": INSTANT.cast(pa.timestamp("us", "UTC"))}
    logs = write(tmp_path / "logs", a=instants)
    path = logs / "b.parquet"
    pq.write_table(pa.table(instants), path, use_deprecated_int96_timestamps=True)
    ids = spark.createDataFrame([(1,)], "id long")
    assert check(spark, staging, logs, ids, "id", why="stored as") == 2


def test_keys_named_twice(spark, staging, tmp_path):
    logs = write(tmp_path / "logs", a={"id": numbers(1, 2)})
    ids = spark.createDataFrame([(1,), (3,)], "id long")
    check(spark, staging, logs, ids, ["id", "id"], how="full", why="twice")


def test_columns_named_as_placeholders(spark, staging, tmp_path):
    logs = write(tmp_path / "logs", a={"@OUT@": numbers(1, 2), "@SHARD@": numbers(1, 2)})
    ids = spark.createDataFrame([(1,), (3,)], "`@OUT@` long")
    check(spark, staging, logs, ids, "@OUT@")
