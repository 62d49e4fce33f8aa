"""Which files hold a key, and joins that skip the others, by the index of a list of inputs."""

import decimal
import random

import pyarrow as pa

from common import tables

TYPES = {
    "integers": (pa.int32(), lambda n: n - 500),
    "strings": (pa.string(), lambda n: f"user,{n}"),
    "dates": (pa.date32(), lambda n: n),
    "decimals": (pa.decimal128(9, 2), lambda n: decimal.Decimal(n) / 4),
}
JOINS = {"semi": "semi", "anti": "anti", "inner": "inner", "left": "left", "right": "right", "full": "full"}


def keys(t, name):
    kind, of = TYPES[name]
    rnd = random.Random(name)
    log = t.path(f"find-{name}")
    parts = []
    for i in range(60):
        n = rnd.randrange(1, 400)
        column = pa.array([None if rnd.random() < 0.05 else of(rnd.randrange(i * 20, i * 20 + 150)) for _ in range(n)], kind)
        parts.append(pa.table({"k": column, "file": [f"{i:02}.parquet"] * n}))
        tables.write(parts[-1].select(["k"]), log / f"{i:02}.parquet", row_group_size=90)
    whole = pa.concat_tables(parts)
    index = t.path(f"find-{name}.jsonl")
    t.run("inputs", "--index", "k", "--index-row-groups", "-o", index, log)
    for n in (0, 7, 333, 800, 1300, 5000):
        value = pa.array([of(n)], kind)
        text = str(value[0].as_py())
        want = tables.sql("select file, count(*) from log join one on k = v group by file order by file", log=whole, one=pa.table({"v": value}))
        got = [(f["file"].rpartition("/")[2], f["rows"]) for f in t.run("find", "--json", "--verify", "--key", text, index).json["files"]]
        t.equal(f"{name}: key {n}", got, want)
        named = t.run("find", "--key", text, index).out.decode().split()
        t.ok(f"{name}: key {n}: no file is missing", {f for f, _ in want} <= {p.rpartition("/")[2] for p in named}, str(named))
    ids = pa.table({"id": pa.array([of(n) for n in (3, 50, 777, 4000)], kind)})
    file = tables.write(ids, t.path(f"find-{name}-ids.parquet"))
    for kind, sql in JOINS.items():
        want = tables.sql(f"select count(*) from log {sql} join ids on k = id", log=whole, ids=ids)[0][0]
        r = t.run("join", "--ids", file, "--on", "k=id", "--type", kind, "--count", "--json", "--files-from", index).json
        skips = r["files_skipped_by_index"] > 0
        t.ok(f"{name}: {kind} join", r["rows_out"] == want and skips == (kind in ("semi", "inner")), f"want {want}, got {r}")


def run(t, _):
    for name in TYPES:
        t.group("find", keys, name)
