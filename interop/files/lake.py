"""The recipes of docs/lake.md: tables of Iceberg and Delta from the manifest, and bounds of columns from the footers."""

import contextlib
import datetime
import decimal
import math
import re
import shutil
import uuid

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

BLOCK = re.compile(r"<!-- ci: (\S+) -->\n```python\n(.*?)```\n", re.DOTALL)
DAY = datetime.date(2024, 1, 1)
NOON = datetime.datetime(2024, 1, 1, 12, 0, 0, 123456)
DAYS = ["2024-01-01", "2024-01-02", "2024-01-03", "__HIVE_DEFAULT_PARTITION__"]


def common(k, n=100):
    """Columns of types that Iceberg and Delta have. Users 1, 2 and 5 of ten stay."""
    r = range(n)
    number = lambda i: decimal.Decimal(i * (k - 1)).scaleb(-2)
    return {
        "user_id": pa.array([i % 10 for i in r], pa.int64()),
        "small": pa.array([i - 50 * k for i in r], pa.int32()),
        "big": pa.array([2**60 + i + 1000 * k for i in r], pa.int64()),
        "single": pa.array([0.1 * i + 0.3 * k for i in r], pa.float32()),
        "double": pa.array([0.1 * i - k for i in r], pa.float64()),
        "zeros": pa.array([-0.0 if k % 2 else 0.0 for _ in r], pa.float64()),
        "nan": pa.array([math.nan if i == 21 else i / 3 for i in r], pa.float64()),
        "infinite": pa.array([(-1) ** i * math.inf if i in (11, 22) else i / 3 for i in r], pa.float64()),
        "money": pa.array([number(i) for i in r], pa.decimal128(9, 2)),
        "wealth": pa.array([decimal.Decimal(10**30 + i + 1000 * k) for i in r], pa.decimal128(38, 2)),
        "day": pa.array([DAY + datetime.timedelta(i + 100 * k) for i in r]),
        "ancient": pa.array([datetime.date(1600, 2, 3) + datetime.timedelta(i + 100 * k) for i in r]),
        "local": pa.array([NOON + datetime.timedelta(k, 0, i) for i in r], pa.timestamp("us")),
        "instant": pa.array([NOON - datetime.timedelta(36500 * k, 0, i) for i in r], pa.timestamp("us", "UTC")),
        "text": pa.array([f"{chr(97 + k)}{'é' * 30}{i}" for i in r]),
        "short": pa.array(["" if i == 31 else f"{k}<\"{i}" for i in r]),
        "binary": pa.array([bytes([255] * 40) if i == 22 else bytes([k, i]) for i in r]),
        "flag": pa.array([k > 1 for _ in r]),
        "some": pa.array([None if i % 3 else i + k for i in r], pa.int32()),
        "none": pa.array([None] * n, pa.int32()),
        "s": pa.array([{"a": i + k, "b": {"c": str(i)}} if i % 5 else None for i in r]),
        "list": pa.array([[i] for i in r]),
    }


def others(k, n=100):
    """Columns of other types."""
    r = range(n)
    return {
        "u8": pa.array([i + 50 * k for i in r], pa.uint8()),
        "u64": pa.array([2**63 + i + k for i in r], pa.uint64()),
        "half": pa.array([i / 4 for i in r], pa.float16()),
        "nanos": pa.array([10**18 + i for i in r], pa.timestamp("ns")),
        "millis": pa.array([10**12 + i for i in r], pa.timestamp("ms", "UTC")),
        "time": pa.array([datetime.time(1, 2, 3, i) for i in r]),
        "uuid": pa.array([uuid.UUID(int=i << 100).bytes for i in r], pa.uuid()),
        "fixed": pa.array([bytes([i, k, 255]) for i in r], pa.binary(3)),
        "wide": pa.array([decimal.Decimal(i) for i in r], pa.decimal256(60, 2)),
        "a.b": pa.array(r, pa.int16()),
    }


class Lake:
    """A log by day, its output, and the recipes, which run in a directory with both."""

    def __init__(self, t, repository, columns, days=DAYS, flat=False):
        self.t, self.columns, self.flat = t, columns, flat
        self.blocks = dict(BLOCK.findall((repository / "docs/lake.md").read_text()))
        self.dir = t.path("lake")
        (self.dir / "logs").mkdir(parents=True)
        self.ids = self.dir / "ids.parquet"
        pq.write_table(pa.table({"user_id": pa.array([1, 2, 5], pa.int64())}), self.ids)
        for k, day in enumerate(days):
            self.write(k, day)
        self.join()

    def write(self, k, day):
        where = self.dir / "logs" / (day if self.flat else f"dt={day}/country=a%20b")
        where.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(self.columns(k)), where / "part.parquet", row_group_size=40)

    def join(self, *options):
        self.t.run("join", "--ids", self.ids, "--on", "user_id", *options, "-o", f"{self.dir}/out/", f"{self.dir}/logs/")

    def recipe(self, name):
        """What the blocks leave: of the manifest, of the bounds, and of the named recipe."""
        left = {}
        with contextlib.chdir(self.dir):
            for block in ("manifest", "bounds", name):
                exec(compile(self.blocks[block], f"docs/lake.md: {block}", "exec"), left)
        return left

    def rows(self):
        """The rows of the log that belong to the output, by pyarrow alone."""
        log = pl.read_parquet(f"{self.dir}/logs/**/*.parquet", hive_partitioning=not self.flat)
        return log.filter(pl.col("user_id").is_in([1, 2, 5]))


def plain(table):
    """The rows as texts, whatever the order of rows and columns."""
    table = table if isinstance(table, pl.DataFrame) else pl.from_arrow(table)
    return sorted(repr(sorted(row.items())) for row in table.to_dicts())


def reads(t, repository):
    lake = Lake(t, repository, common)
    want = plain(lake.rows())
    t.ok("there are rows", len(want) == 30 * len(DAYS))
    t.equal("DuckDB: user_id", sorted(lake.recipe("duckdb")["rows"].to_arrow_table().column("user_id").to_pylist()), sorted(lake.rows()["user_id"].to_list()))
    t.equal("Polars", plain(lake.recipe("polars")["frame"].collect()), want)
    got = lake.recipe("pyarrow")["dataset"].to_table()
    t.equal("pyarrow: rows", got.num_rows, len(want))
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return
    got = lake.recipe("spark")
    t.equal("Spark: rows", got["frame"].where("dt > '2024-01-01'").count(), 60)
    got["spark"].stop()


OPERATORS = ["==", "!=", "<", "<=", ">", ">="]


def conditions(frame):
    """Conditions on each column that has an order, as (column, operator, value, type)."""
    for name, kind in frame.schema.items():
        if kind.is_nested():
            continue
        values = frame[name].drop_nulls().unique().sort()
        picks = values.gather(sorted({0, 1, len(values) // 2, len(values) - 2, len(values) - 1} & set(range(len(values))))).to_list()
        for value in picks:
            for op in OPERATORS:
                yield name, op, value, kind
        yield name, "null", None, kind


def polars_filter(name, op, value, kind):
    c = pl.col(name)
    if op == "null":
        return c.is_null()
    v = pl.lit(value, dtype=kind)
    return {"==": c == v, "!=": c != v, "<": c < v, "<=": c <= v, ">": c > v, ">=": c >= v}[op]


def delta(t, repository):
    from deltalake import DeltaTable, QueryBuilder

    lake = Lake(t, repository, common)
    lake.recipe("delta")
    want = lake.rows()
    got = pl.read_delta(f"{lake.dir}/out")
    t.equal("rows", plain(got), plain(want))
    lazy, wrong, n = pl.scan_delta(f"{lake.dir}/out"), [], 0
    for name, op, value, kind in conditions(got):
        n += 1
        f = polars_filter(name, op, value, kind)
        if lazy.filter(f).select(pl.len()).collect().item() != got.filter(f).height:
            wrong.append((name, op, value))
    t.equal(f"{n} conditions", wrong, [])
    engine = QueryBuilder().register("t", DeltaTable(str(lake.dir / "out")))
    for text in SQL:
        right = got.sql(f"select count(*) from self where {text}").item()
        t.equal(f"DataFusion: {text}", counted(engine, text), right)
    skips(t, lake)
    changes(t, lake)


def counted(engine, text):
    """The number of rows that DataFusion finds."""
    return pa.table(engine.execute(f"select count(*) from t where {text}").read_all()).column(0)[0].as_py()


def skips(t, lake):
    """Conditions that the bounds decide do not open the other files, which are not there meanwhile."""
    from deltalake import DeltaTable, QueryBuilder

    away = [lake.dir / f"out/dt={day}/country=a%20b/part.parquet" for day in DAYS[1:]]
    for path in away:
        path.rename(path.with_suffix(".away"))
    engine = QueryBuilder().register("t", DeltaTable(str(lake.dir / "out")))
    for text in ["day < '2024-04-11'", "text < 'b'", "big < 1152921504606847977", "\"local\" < '2024-01-02'"]:
        rows = counted(engine, text)
        t.equal(f"only one file is opened for {text}", rows, 30)
    for path in away:
        path.with_suffix(".away").rename(path)


# Conditions in SQL, at the edges of bounds.
SQL = [
    "user_id = 5", "big = 1152921504606847071", "big > 1152921504606849071", "single >= 9.5", "\"double\" <= -2.9", "zeros = 0.0", "nan > 3.0",
    "infinite > 1e300", "money >= 0.95", "\"day\" = '2024-04-05'", "ancient < '1600-05-09'",
    "text > 'déé'", "short = ''", "flag", "not flag", "some is null", "none is null", "none is not null", "dt is null", "dt = '2024-01-02'",
]  # fmt: skip


def changes(t, lake):
    """A day more, a day written again and a day removed reach the table in one version."""
    from deltalake import DeltaTable

    lake.write(7, "2024-01-04")
    lake.write(8, "2024-01-02")
    shutil.rmtree(lake.dir / "logs/dt=2024-01-01")
    lake.join("--prune")
    lake.recipe("delta")
    table = DeltaTable(str(lake.dir / "out"))
    t.equal("after changes: rows", plain(pl.read_delta(f"{lake.dir}/out")), plain(lake.rows()))
    t.equal("after changes: version", table.version(), 1)
    lake.recipe("delta")
    table.update_incremental()
    t.equal("without changes: version", table.version(), 1)


def iceberg(t, repository):
    lake = Lake(t, repository, common, ["a", "b", "c"], flat=True)
    table = lake.recipe("iceberg")["table"]
    t.equal("without partitions: rows", plain(table.scan().to_arrow()), plain(lake.rows()))
    lake = Lake(t, repository, common)
    table = lake.recipe("iceberg")["catalog"].load_table("lake.days")
    got = pl.from_arrow(table.scan().to_arrow())
    t.equal("partitions: rows", plain(got), plain(lake.rows()))
    filters(t, table, got)
    skips = lambda text: len(list(table.scan(row_filter=text).plan_files()))
    for text, files in {"dt = '2024-01-02'": 1, "dt is null": 1, "day < '2024-04-10'": 1, "text < 'b'": 1, "country = 'a b'": 4, "country = 'x'": 0, "none = 3": 0, "money > '0.90'": 2}.items():
        t.equal(f"files read for {text}", skips(text), files)


def filters(t, table, got):
    """A file that pyiceberg leaves out for a condition has no row that satisfies it."""
    from pyiceberg import expressions as e

    makes = dict(zip(OPERATORS, [e.EqualTo, e.NotEqualTo, e.LessThan, e.LessThanOrEqual, e.GreaterThan, e.GreaterThanOrEqual]))
    wrong, n = [], 0
    every = {task.file.file_path for task in table.scan().plan_files()}
    for name, op, value, kind in conditions(got):
        if isinstance(value, float) and not math.isfinite(value):
            continue
        n += 1
        f = e.IsNull(name) if op == "null" else makes[op](name, value.isoformat() if isinstance(value, datetime.datetime) else value)
        paths = {task.file.file_path for task in table.scan(row_filter=f).plan_files()}
        for path in every - paths:  # such a file has no such row
            rows = pl.from_arrow(pq.read_table(path.removeprefix("file://")))
            if name in rows.columns and rows.filter(polars_filter(name, op, value, kind)).height:
                wrong.append((name, op, value, path))
    t.equal(f"partitions: {n} conditions", wrong, [])


# Columns without bounds, of those that have values.
UNBOUNDED = {"nan"}


def bounds(t, repository):
    """Bounds and NULLs in the footers are those of the values that pyarrow reads."""
    lake = Lake(t, repository, lambda k: {**common(k), **others(k)})
    left = lake.recipe("duckdb")
    wrong, seen, unbounded, columns = [], 0, set(), set()
    for f in left["files"]:
        path = lake.dir / "out" / f["name"]
        table = pq.read_table(path, partitioning=None)
        for at, (nulls, lo, hi) in left["bounds"](path).items():
            column = table.column(at[0]).combine_chunks()
            for name in at[1:]:
                column = pc.struct_field(column, [name])
            values = column.to_pylist()
            there = [v.bytes if isinstance(v, uuid.UUID) else v for v in values if v is not None]
            seen += 1
            columns.add(at[0])
            if nulls != len(values) - len(there):
                wrong.append((at, "NULLs", nulls))
            if lo is None or hi is None:
                unbounded |= {at[0]} if there else set()
            elif (lo, hi) != (min(there), max(there)):
                wrong.append((at, lo, hi, min(there), max(there)))
    t.equal(f"bounds of {seen} columns", wrong, [])
    t.equal("columns", sorted(columns), sorted({*common(0), *others(0)} - {"list", "half"}))
    t.equal("without bounds", sorted(unbounded), sorted(UNBOUNDED))
    groups(t, lake.dir / "groups.parquet", left["bounds"])


def groups(t, path, bounds):
    """Bounds of three row groups; where one has none, the column has none."""
    at = lambda start: [float(i) for i in range(start, start + 4)]
    columns = {
        "up": at(0) + at(4) + at(8),
        "down": at(8) + at(4) + at(0),
        "gap": at(4) + [None] * 4 + at(0),
        "nan": at(0) + [math.nan] * 4 + at(8),
        "text": [*"abcdefghijkl"],
    }
    want = {("up",): (0, 0, 11), ("down",): (0, 0, 11), ("gap",): (4, 0, 7), ("nan",): (0, None, None), ("text",): (0, "a", "l")}
    pq.write_table(pa.table(columns), path, row_group_size=4)
    t.equal("several row groups", bounds(path), want)
    pq.write_table(pa.table(columns), path, row_group_size=4, write_statistics=False)
    t.equal("no statistics", bounds(path), dict.fromkeys(want, (None, None, None)))


def run(t, repository):
    for name, function in {"reads": reads, "bounds": bounds, "delta": delta, "iceberg": iceberg}.items():
        t.group(f"lake {name}", function, repository)
