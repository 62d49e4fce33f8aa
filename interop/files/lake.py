"""The recipes of docs/lake.md: tables of Iceberg and Delta from what commit --as writes, and bounds of columns in it."""

import contextlib
import datetime
import decimal
import json
import math
import pathlib
import re
import shutil
import subprocess
import urllib.parse
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
        """What the blocks leave: of the manifest, of the schema, and of the named recipe."""
        left = {}
        if name in ("iceberg", "delta"):
            self.lines(name)
        with contextlib.chdir(self.dir):
            for block in ("manifest", "schema", name):
                exec(compile(self.blocks[block], f"docs/lake.md: {block}", "exec"), left)
        return left

    def lines(self, kind):
        """What commit writes for a table."""
        added = self.t.run("commit", "--as", kind, "--json", f"{self.dir}/out/").json["added"]
        return [json.loads(line) for line in pathlib.Path(added).read_text().splitlines()]

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
    "text > 'déé'", "short = ''", "flag", "not flag", "\"some\" is null", "none is null", "none is not null", "dt is null", "dt = '2024-01-02'",
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
UNBOUNDED = {"iceberg": {"binary", "nan", "half", "u8", "u64", "nanos", "uuid"}, "delta": {"nan", "half", "u8", "u64", "uuid", "binary", "bytes", "flag", "fixed", "time", "wealth"}}


def lines(t, repository):
    """Bounds and NULLs in the lines are those of the values that pyarrow reads."""
    long = lambda k, n=100: {"long": pa.array([chr(97 + k) * (i % 40) + "𝄞é\U0010ffff" * 400 for i in range(n)]), "bytes": pa.array([b"\xff\xff" + bytes([i]) * 2000 for i in range(n)])}
    lake = Lake(t, repository, lambda k: {**common(k), **others(k % 4), **long(k)})
    lake.write(9, "2024-01-09")
    lake.join()
    for kind, unbounded in UNBOUNDED.items():
        read = Iceberg if kind == "iceberg" else Delta
        found = lake.lines(kind)
        t.equal(f"{kind}: written again", lake.lines(kind), found)
        names = [f["name"] for f in json.loads((lake.dir / "out.bloomjoin/manifest.json").read_text())["files"]]
        t.equal(f"{kind}: files", [read(line).path for line in found], names)
        wrong, without = [], set()
        for line in map(read, found):
            compare(line, pq.read_table(lake.dir / "out" / line.path, partitioning=None), wrong, without)
        t.equal(f"{kind}: bounds and NULLs", wrong, [])
        t.equal(f"{kind}: without bounds", sorted(without), sorted(unbounded))
    partitions(t, lake)
    empty(t, lake)
    groups(t, lake)
    stale(t, lake)


class Iceberg:
    def __init__(self, line):
        self.line, self.path, self.rows = line, line["file_path"], line["record_count"]

    def column(self, at, kind):
        """NULLs, and bounds as Python values, dates and times as integers."""
        from pyiceberg import types as i
        from pyiceberg.conversions import from_bytes

        name, types = ".".join(at), pa.types
        if types.is_decimal(kind):
            to = i.DecimalType(min(kind.precision, 38), kind.scale)
        elif types.is_fixed_size_binary(kind):
            to = i.FixedType(kind.byte_width)
        elif types.is_timestamp(kind) or types.is_time(kind):
            to = i.LongType()
        else:
            to = {pa.int16(): i.IntegerType(), pa.int32(): i.IntegerType(), pa.int64(): i.LongType(), pa.float32(): i.FloatType(), pa.float64(): i.DoubleType(), pa.bool_(): i.BooleanType(), pa.date32(): i.IntegerType(), pa.string(): i.StringType()}.get(kind, i.BinaryType())
        ends = (self.line[which].get(name) for which in ("lower_bounds", "upper_bounds"))
        nulls = self.line["null_value_counts"].get(name)
        assert self.line["value_counts"].get(name) == (None if nulls is None else self.rows)
        return nulls, *(None if v is None else from_bytes(to, bytes.fromhex(v)) for v in ends)


class Delta:
    def __init__(self, line):
        add = line["add"]
        self.stats = json.loads(add["stats"], parse_float=decimal.Decimal)
        self.path, self.rows = urllib.parse.unquote(add["path"]), self.stats["numRecords"]

    def column(self, at, kind):
        return tuple(self.value(self.stats[which], at, kind) for which in ("nullCount", "minValues", "maxValues"))

    def value(self, v, at, kind):
        for name in at:
            v = v.get(name) if v else None
        if pa.types.is_floating(kind) and v is not None:
            return float(v)
        if isinstance(v, str) and pa.types.is_timestamp(kind):
            at = datetime.datetime.fromisoformat(v).replace(tzinfo=None) - datetime.datetime(1970, 1, 1)
            return at // datetime.timedelta(microseconds=1)
        return (datetime.date.fromisoformat(v) - datetime.date(1970, 1, 1)).days if isinstance(v, str) and pa.types.is_date(kind) else v


def flat(column, at=()):
    """The columns of a table outside lists, as (path, array)."""
    if pa.types.is_struct(column.type):
        for field in column.type:
            yield from flat(pc.struct_field(column, [field.name]), (*at, field.name))
    elif not pa.types.is_list(column.type):
        yield at, column


def compare(line, table, wrong, without):
    if line.rows != table.num_rows:
        wrong.append((line.path, "rows", line.rows))
    for name in table.column_names:
        for at, column in flat(table.column(name).combine_chunks(), (name,)):
            kind = column.type
            if pa.types.is_date(kind):
                column = column.cast(pa.int32())
            elif pa.types.is_timestamp(kind):
                column = column.cast(pa.int64())
                scale = {"ms": 1000, "us": 1, "ns": 1}[kind.unit]
                column = pc.multiply(column, scale)
            elif pa.types.is_time(kind):
                column = column.cast(pa.int64())
            there = [v.bytes if isinstance(v, uuid.UUID) else v for v in column.to_pylist() if v is not None]
            if kind == pa.timestamp("ns"):
                there = [min(there) // 1000, -(-max(there) // 1000)] if there else []
            nulls, lo, hi = line.column(at, kind)
            if nulls != column.null_count:
                wrong.append((line.path, at, "NULLs", nulls, column.null_count))
            if not there:
                wrong += [(line.path, at, lo, hi)] if (lo, hi) != (None, None) else []
            elif lo is None or hi is None:
                if not any(isinstance(v, float) and math.isinf(v) for v in there):
                    without.add(name)
            elif isinstance(lo, (str, bytes)):
                short = lambda v: len(v.encode() if isinstance(v, str) else v) <= 31 or pa.types.is_fixed_size_binary(kind)
                exact = lo == min(there) if short(min(there)) else min(there).startswith(lo)
                exact = exact and (hi == max(there) if short(max(there)) else hi > max(there) and hi[:-1] == max(there)[: len(hi) - 1])
                wrong += [] if exact and short(lo) and short(hi) else [(line.path, at, lo, hi, min(there), max(there))]
            elif (lo, hi) != (min(there), max(there)):
                wrong.append((line.path, at, lo, hi, min(there), max(there)))


def partitions(t, lake):
    """Values of directories, of each type, as both formats have them."""
    types = {"hour": "int64", "at": "timestamp", "utc": "timestamptz", "ok": "boolean", "price": "decimal(9,2)", "day": "date", "name": "string", "x": "double"}
    texts = ["hour=08/at=2024-01-01 10:00/utc=2024-01-01T10%3A00%3A00Z/ok=true/price=1.5/day=2024-01-02/name=a%26ü:<=/x=1", "hour=__HIVE_DEFAULT_PARTITION__/at=NULL/utc=/ok=/price=/day=/name=__HIVE_DEFAULT_PARTITION__/x="]
    want = {
        "iceberg": [8, "2024-01-01T10:00:00.000000", "2024-01-01T10:00:00.000000+00:00", True, "1.50", "2024-01-02", "a&ü:<=", 1],
        "delta": ["8", "2024-01-01 10:00:00.000000", "2024-01-01T10:00:00.000000Z", "true", "1.50", "2024-01-02", "a&ü:<=", "1"],
    }
    log, out = lake.t.path("typed"), lake.t.path("typed-out")
    for text in texts:
        (log / text).mkdir(parents=True)
        pq.write_table(pa.table({"user_id": pa.array([1], pa.int64())}), log / text / "part.parquet")
    t.run("join", "--ids", lake.ids, "--on", "user_id", "--hive-types", ",".join(f"{n}:{k}" for n, k in types.items()), "-o", f"{out}/", f"{log}/")
    for kind, values in want.items():
        added = t.run("commit", "--as", kind, "--json", f"{out}/").json["added"]
        lines = [json.loads(line) for line in pathlib.Path(added).read_text().splitlines()]
        got = [line["partition"] if kind == "iceberg" else line["add"]["partitionValues"] for line in lines]
        t.equal(f"{kind}: values of directories", sorted(map(repr, got)), sorted(repr(dict(sorted(zip(types, v, strict=True)))) for v in (values, [None] * len(types))))
        paths = sorted(line["file_path"] if kind == "iceberg" else urllib.parse.unquote(line["add"]["path"]) for line in lines)
        t.equal(f"{kind}: paths of odd directories", paths, sorted(str(p.relative_to(out)) for p in out.rglob("*.parquet")))


def empty(t, lake):
    """A file without rows has no bounds, and no NULLs."""
    log, out = lake.t.path("nobody.parquet"), lake.t.path("nobody-out")
    pq.write_table(pa.table({**common(1), "user_id": pa.array([77] * 100, pa.int64())}), log)
    t.run("join", "--ids", lake.ids, "--on", "user_id", "--empty", "write", "-o", f"{out}/", log)
    for kind, read in {"iceberg": Iceberg, "delta": Delta}.items():
        line = read(json.loads(pathlib.Path(t.run("commit", "--as", kind, "--json", f"{out}/").json["added"]).read_text()))
        wrong = []
        compare(line, pq.read_table(out / line.path), wrong, set())
        t.equal(f"{kind}: no rows", (line.rows, wrong), (0, []))


def groups(t, lake):
    """Bounds of three row groups, which a left join copies as they are; where one has none, the column has none."""
    n = 50000
    numbers = lambda start: range(start, start + n)
    columns = {
        "user_id": pa.array(range(3 * n), pa.int64()),
        "up": pa.array(range(3 * n)),
        "down": pa.array([*numbers(2 * n), *numbers(n), *numbers(0)]),
        "gap": pa.array([*numbers(n), *[None] * n, *numbers(0)], pa.int32()),
        "nan": pa.array([0.5] * n + [math.nan] * n + [0.5] * n),
        "text": pa.array([c for c in "abc" for _ in range(n)]),
        "empty": pa.array([c for c in ("b", "", "c") for _ in range(n)]),
    }
    want = {"up": (0, 0, 3 * n - 1), "down": (0, 0, 3 * n - 1), "gap": (n, 0, 2 * n - 1), "nan": (0, None, None), "text": (0, "a", "c"), "empty": (0, "", "c")}
    for label, statistics in {"several row groups": True, "no statistics": False}.items():
        log, out = lake.t.path("groups.parquet"), lake.t.path("groups")
        pq.write_table(pa.table(columns), log, row_group_size=n, write_statistics=statistics)
        t.run("join", "--ids", lake.ids, "--on", "user_id", "--type", "left", "-o", f"{out}/", log)
        footer = pq.read_metadata(out / log.name)
        t.equal(f"{label}: row groups", footer.num_row_groups, 3)
        for kind, read in {"iceberg": Iceberg, "delta": Delta}.items():
            added = t.run("commit", "--as", kind, "--json", f"{out}/").json["added"]
            line = read(json.loads(pathlib.Path(added).read_text()))
            got = {name: line.column((name,), columns[name].type) for name in want}
            t.equal(f"{kind}: {label}", got, want if statistics else dict.fromkeys(want, (None, None, None)))
            if kind == "iceberg":
                starts = [c.dictionary_page_offset or c.data_page_offset for c in (footer.row_group(g).column(0) for g in range(3))]
                t.equal(f"{kind}: {label}: split offsets", line.line["split_offsets"], starts)


def stale(t, lake):
    """The next commit removes the lines, and nothing takes them for something else."""
    beside = lake.dir / "out.bloomjoin"
    t.equal("--sweep", t.run("commit", "--sweep", "--older", "0s", "--json", f"{lake.dir}/out/").json["left"], [])
    lake.join()
    t.ok("the same run keeps them", len([*beside.glob("add-*")]) == 2)
    lake.write(11, "2024-01-11")
    lake.join("--prune")
    t.equal("after another commit", [*beside.glob("add-*")], [])
    t.equal("files of the directory", t.run("inspect", "--json", f"{lake.dir}/out/").code, 0)
    t.ok("lines of the new day", any("dt=2024-01-11" in line["file_path"] for line in lake.lines("iceberg")))


def others_read(t, repository):
    """What DuckDB's extensions and the command itself read of the tables, and what bounds let them leave out."""
    lake = Lake(t, repository, common)
    metadata = lake.recipe("iceberg")["table"].metadata_location.removeprefix("file://")
    lake.recipe("delta")
    rows = lake.rows()
    right = {text: rows.sql(f"select count(*) from self where {text}").item() for text in SQL}
    for kind, table in {"iceberg": metadata, "delta": lake.dir / "out"}.items():
        out = lake.t.path(f"{kind}.parquet")
        join = ("join", "--ids", lake.ids, "--on", "user_id")
        t.run(*join, "-o", out, f"{kind}:{table}")
        t.equal(f"{kind}: the rows that the command reads", plain(pl.read_parquet(out, hive_partitioning=False).select(rows.columns)), plain(rows))
        got = {text: t.run(*join, "--where", text, "--count", "--allow-empty", "--json", f"{kind}:{table}").json["rows_out"] for text in OWN}
        t.equal(f"{kind}: conditions of the command", got, {text: rows.sql(f"select count(*) from self where {text}").item() for text in OWN})
        if t.delta:
            p = subprocess.run([t.delta, pathlib.Path(__file__).parent / "deltascan.py", kind, table, "-", *SQL], check=True, capture_output=True, timeout=60)
            t.equal(f"{kind}: DuckDB", dict(zip(SQL, json.loads(p.stdout), strict=True)), right)


# Conditions as the command has them.
OWN = ["user_id = 5", "big = 1152921504606847071", "big > 1152921504606849071", "text > 'déé'", "text < 'b'", "short = ''", "money >= 0.95", "day = '2024-04-05'", "some is null", "none is null", "dt = '2024-01-02'", "zeros = 0.0", "nan > 3.0"]


def run(t, repository):
    for name, function in {"reads": reads, "lines": lines, "delta": delta, "iceberg": iceberg, "tables": others_read}.items():
        t.group(f"lake {name}", function, repository)
