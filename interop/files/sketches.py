"""Sketches of real data and of keys of many types against DuckDB's GROUP BY."""

import datetime
import random

import duckdb
import pyarrow as pa

from common import tables

TYPES = {
    "integers": pa.array([-(2**63), -1, 0, 7, 2**63 - 1], pa.int64()),
    "unsigned": pa.array([0, 7, 2**64 - 1], pa.uint64()),
    "text": pa.array(["", "a,b", 'say "x"', "ü", "tab\there"]),
    "dates": pa.array([datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)]),
    "decimals": pa.array(["-1.25", "0.01", "12.34"]).cast(pa.decimal128(9, 2)),
    "booleans": pa.array([False, True]),
}


def counted(sql):
    return dict(duckdb.sql(sql).fetchall())


def real(t):
    logs = t.shared / "data" / "flights" / "flights-3m.parquet"
    airports = t.shared / "data" / "flights" / "airports.csv"
    sketch, ids = t.path("origins.bjs"), t.path("airports.bjs")
    total = t.run("sketch", "--json", "--key", "origin", "-o", sketch, logs, opens=False).json["total"]
    truth = counted(f"SELECT origin, count(*) FROM '{logs}' WHERE origin IS NOT NULL GROUP BY 1")
    t.equal("rows with a key", total, sum(truth.values()))
    ask = [a for k in truth for a in ("--value", k)]
    got = t.run("sketch", "query", "--json", *ask, sketch, opens=False).json["values"]
    t.ok("no estimate is too low", all(g["most"] >= truth[g["of"]] for g in got))
    t.ok("nearly all are within the bound", sum(g["most"] > truth[g["of"]] + g["error"] for g in got) <= 0.01 * len(got))
    heavy = t.run("sketch", "query", "--json", "--heavy", "0.02", sketch, logs, opens=False).json["heavy"]
    t.equal("heavy keys", {k["key"]: k["count"] for k in heavy["keys"]}, {k: n for k, n in truth.items() if n >= 0.02 * total})
    t.run("sketch", "--key", "iata", "-o", ids, airports, opens=False)
    inner = t.run("sketch", "query", "--json", "--inner", ids, sketch, opens=False).json["inner"]
    rows = duckdb.sql(f"SELECT count(*) FROM '{logs}' JOIN '{airports}' ON origin = iata").fetchall()[0][0]
    t.ok("rows of a join", rows <= inner["most"] <= rows + inner["error"], f"{rows}, {inner}")


def types(t):
    rng = random.Random(5)
    for name, values in TYPES.items():
        rows = [rng.randrange(len(values)) for _ in range(500)] + list(range(len(values)))
        weights = [rng.randrange(1000) for _ in rows]
        table = pa.table({"k": values.take(pa.array(rows)), "w": pa.array(weights)})
        log = tables.write(table, t.path("log.parquet"), row_group_size=100)
        for what, options in {"rows": [], "weights": ["--weight", "w"]}.items():
            sketch = t.path("x.bjs")
            t.run("sketch", "--key", "k", *options, "-o", sketch, log, opens=False)
            heavy = t.run("sketch", "query", "--json", "--heavy", "0.0001", sketch, log, opens=False).json["heavy"]["keys"]
            sum_ = "count(*)" if what == "rows" else "sum(w)::BIGINT"
            want = counted(f"SELECT k::VARCHAR, {sum_} FROM '{log}' GROUP BY 1")
            t.equal(f"{name}: {what}", {k["key"]: k["count"] for k in heavy}, {k: n for k, n in want.items() if n})
            ask = [f"--value={k['key']}" for k in heavy]
            if name == "text":
                ask = [a for a in ask if "\t" not in a] + ["--value=tab\there"]
            got = t.run("sketch", "query", "--json", *ask, sketch, opens=False).json["values"]
            t.ok(f"{name}: {what}, asked", all(g["most"] == want[g["of"]] for g in got), got)


def ranges(t):
    rng = random.Random(6)
    for name, make, typ in (
        ("integers", lambda: rng.randrange(-1000, 100_000), pa.int64()),
        ("dates", lambda: datetime.date(2020, 1, 1) + datetime.timedelta(rng.randrange(900)), pa.date32()),
        ("times", lambda: datetime.datetime(2020, 1, 1) + datetime.timedelta(seconds=rng.randrange(90_000)), pa.timestamp("us")),
    ):
        log = tables.write(pa.table({"k": pa.array([make() for _ in range(20_000)], typ)}), t.path("log.parquet"))
        sketch = t.path("x.bjs")
        t.run("sketch", "--key", "k", "--range", "--epsilon", "0.001", "-o", sketch, log, opens=False)
        ends = [sorted((make(), make())) for _ in range(40)]
        ask = [f"--range={lo}..{hi}" for lo, hi in ends]
        got = t.run("sketch", "query", "--json", *ask, sketch, opens=False).json["ranges"]
        want = [duckdb.sql(f"SELECT count(*) FROM '{log}' WHERE k BETWEEN '{lo}' AND '{hi}'").fetchall()[0][0] for lo, hi in ends]
        t.ok(f"{name}: none is too low", all(g["most"] >= n for g, n in zip(got, want, strict=True)))
        t.ok(f"{name}: within the bound", sum(g["most"] > n + g["error"] for g, n in zip(got, want, strict=True)) <= 1)


def run(t, _repository):
    t.group("sketches real", real)
    t.group("sketches types", types)
    t.group("sketches ranges", ranges)
