"""Joins drawn at random, of files as many writers make them, beside Spark's own.

A seed draws types, files, directories, settings and a join. BLOOMJOIN_ALL runs many.
"""

from __future__ import annotations

import datetime
import decimal
import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_cases import digest

from bloomjoin.spark import Staging, join, report

SEEDS = 200 if os.environ.get("BLOOMJOIN_ALL") else 4
HOWS = {"inner": "inner", "semi": "left_semi", "anti": "left_anti", "left": "left",
        "right": "right", "full": "full"}  # fmt: skip

START = 1_710_050_000_000_000  # a night in which New York changes its clocks
TEXTS = ["", "a", "a ", "A", "\u00e9" * 3, "x" * 80]
KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "int8": (pa.int8(), lambda n: n % 100 - 50),
    "int16": (pa.int16(), lambda n: n - 50),
    "int32": (pa.int32(), lambda n: n * 7 - 99),
    "int64": (pa.int64(), lambda n: n * 10**9 - 3 * 10**9),
    "uint32": (pa.uint32(), lambda n: n * 40_000_000),
    "string": (pa.string(), lambda n: TEXTS[n % 6] + (str(n // 6) if n >= 6 else "")),
    "binary": (pa.binary(), lambda n: bytes([n, 255 - n]) * (n % 3)),
    "bool": (pa.bool_(), lambda n: n % 2 == 0),
    "decimal9": (pa.decimal128(9, 2), lambda n: decimal.Decimal(n - 30) / 100),
    "decimal38": (pa.decimal128(38, 4), lambda n: decimal.Decimal(n * 10**25 - 7) / 10**4),
    "date": (pa.date32(), lambda n: datetime.date(1990, 1, 1) + datetime.timedelta(n * 33)),
    "instant_ms": (pa.timestamp("ms", "UTC"), lambda n: START // 1000 + n * 3_600_000),
    "instant_us": (pa.timestamp("us", "UTC"), lambda n: START + n * 1_800_000_001),
    "clock_us": (pa.timestamp("us"), lambda n: START + n * 1_800_000_001),
    "double": (pa.float64(), lambda n: [0.0, -0.0, float("nan"), 1.5][n % 4]),
}
WIDER = {"int8": "int64", "int16": "int32", "int32": "int64", "int64": "int32"}
DIRECTORIES = [
    [""], [""], ["h=1", "h=2"], ["h=a b", "h=\u00e9"], ["h=01", "h=x%2Fy"],
    ["h=2024-01-01", "h=__HIVE_DEFAULT_PARTITION__"],
    ["h=2024-01-01 10%3A00%3A00", "h=2024-03-10 02%3A30%3A00"],
]  # fmt: skip
SETTINGS = {
    "spark.sql.parquet.mergeSchema": "true",
    "spark.sql.parquet.enableVectorizedReader": "false",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "Asia/Kolkata",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
}


@dataclass
class Draw:
    """Files of a log and of IDs, and how to join them."""

    random: random.Random
    folder: Path
    keys: list[str] = field(default_factory=list)
    values: int = 4
    nulls: float = 0.0

    def __post_init__(self) -> None:
        draw = self.random
        self.keys = draw.choices(list(KINDS), k=draw.choice([1, 1, 1, 2, 3]))
        self.values, self.nulls = draw.choice([4, 30, 70]), draw.choice([0, 0.05, 0.4])

    def column(self, kind: str, rows: int) -> pa.Array:
        """Draw values of a kind."""
        stored, value = KINDS[kind]
        drawn: list[Any] = []
        for _ in range(rows):
            number = self.random.randrange(self.values)
            drawn.append(None if self.random.random() < self.nulls else value(number))
        return pa.array(drawn, stored)

    def write(self, path: Path, columns: dict[str, pa.Array]) -> None:
        """Write a file as one of many writers would."""
        draw = self.random
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            pa.table(columns),
            path,
            row_group_size=draw.choice([7, 100, 10_000]),
            use_dictionary=draw.random() < 0.5,
            compression=draw.choice(["snappy", "zstd", "gzip", "none"]),
            data_page_version=draw.choice(["1.0", "2.0"]),
            use_deprecated_int96_timestamps=draw.random() < 0.08,
            write_statistics=draw.random() < 0.8,
            write_page_index=draw.random() < 0.3,
        )

    def logs(self) -> Path:
        """Write the log: files that differ in the order of columns, and at times in columns."""
        draw, places = self.random, self.random.choice(DIRECTORIES)
        beside = draw.choices(list(KINDS), k=draw.randrange(4))
        for i in range(draw.randrange(1, 5)):
            rows = draw.choice([0, 1, 5, 300])
            columns = {f"k{j}": self.column(kind, rows) for j, kind in enumerate(self.keys)}
            for j, kind in enumerate(beside):
                if i == 0 or draw.random() < 0.9:
                    columns[f"e{j}"] = self.column(kind, rows)
            columns["row"] = pa.array(range(rows), pa.int64())
            names = draw.sample(list(columns), len(columns)) if draw.random() < 0.3 else columns
            place = self.folder / "logs" / draw.choice(places) / f"part-{i}.parquet"
            self.write(place, {name: columns[name] for name in names})
        return self.folder / "logs"

    def ids(self, names: list[str]) -> Path:
        """Write the IDs, some of whose integers are of other widths than the log's."""
        draw = self.random
        rows = draw.choice([0, 1, 20, 200])
        columns = {}
        for name, kind in zip(names, self.keys, strict=True):
            column = self.column(kind, rows)
            if kind in WIDER and draw.random() < 0.3 and self.values <= 30 and kind != "int64":
                column = column.cast(KINDS[WIDER[kind]][0])
            columns[name] = column
        columns["plan"] = pa.array(range(rows), pa.int32())
        if draw.random() < 0.5:
            columns["row"] = pa.array(range(rows), pa.int64())
        self.write(self.folder / "ids.parquet", columns)
        return self.folder / "ids.parquet"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_joins(spark, tmp_path, seed):
    draw = random.Random(seed)
    case = Draw(draw, tmp_path)
    logs, same = case.logs(), draw.random() < 0.6
    keys = [f"k{i}" for i in range(len(case.keys))]
    names = keys if same else [f"q{i}" for i in range(len(case.keys))]
    ids, how = case.ids(names), draw.choice(list(HOWS))
    on: Any = keys if same else dict(zip(keys, names, strict=True))
    settings = draw.sample(sorted(SETTINGS), draw.choice([0, 0, 1, 2]))
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name in settings:
            spark.conf.set(name, SETTINGS[name])
        left, right = spark.read.parquet(f"file://{logs}"), spark.read.parquet(f"file://{ids}")
        probe, frame = draw.random() < 0.25, draw.random() < 0.5
        with Staging(str(tmp_path / "staging")) as staging:
            found = join(
                spark,
                left if probe else logs,
                right.repartition(2) if frame else ids,
                on,
                how=how,
                staging=staging,
                mode="probe" if probe else draw.choice(["files", "whole"]),
                tasks=draw.choice([None, 1, 3]),
                both_ways=draw.choice([None, None, True, False]),
            )
            if same:
                want = left.join(right, on, HOWS[how])
            else:
                conditions = [left[a] == right[b] for a, b in on.items()]
                want = left.join(right, conditions, HOWS[how])
            text = f"{case.keys} {how} {settings} {report(found).mode}: {report(found).why}"
            assert digest(found) == digest(want), text
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
