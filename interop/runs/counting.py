"""Keys that are removed from counting filters and added again, with what DuckDB makes of the same lists."""

import random

import pyarrow as pa

from common import tables
from runs import builds

ROUNDS, UNIVERSE = 4, 40_000
TEXT = pa.string()
SIZE = ["--key", "k", "--expect", UNIVERSE, "--fpr", 1e-6]


def lists(t, rng, before):
    """Two files of keys: some of those that are in, and any."""
    present = sorted({k for (k,) in before})
    gone = pa.table({"k": pa.array(rng.sample(present, len(present) // 3), TEXT)})
    new = pa.table({"k": pa.array([f"user-{rng.randrange(UNIVERSE)}" for _ in range(4000)], TEXT)})
    return [(table, tables.write(table, t.path(name), row_group_size=700)) for table, name in ((gone, "gone.parquet"), (new, "new.parquet"))]


def history(t, mode):
    """A filter after updates, beside what DuckDB says is in."""
    rng, kind = random.Random(mode), ["--kind", "counting", *(["--multiset"] if mode == "multiset" else [])]
    ids = pa.table({"k": pa.array([f"user-{rng.randrange(UNIVERSE)}" for _ in range(20_000)], TEXT)})
    distinct = "" if mode == "multiset" else "distinct"
    now = tables.sql(f"select {distinct} k from ids", ids=ids)
    f = t.path("counting.filter")
    t.run("build", *kind, *SIZE, "-o", f, tables.write(ids, t.path("ids.parquet")))
    bits, counted, same = [], [], []
    for _ in range(ROUNDS):
        (gone, removed), (new, added) = lists(t, rng, now)
        held = pa.table({"k": pa.array([k for (k,) in now], TEXT)})
        union = "union all" if mode == "multiset" else "union"
        now = tables.sql(f"(select k from held except all select k from gone) {union} select k from new", held=held, gone=gone, new=new)
        left = tables.write(pa.table({"k": pa.array([k for (k,) in now], TEXT)}), t.path("left.parquet"))
        out, plain, built, again = (t.path(f"{name}.filter") for name in ("updated", "plain", "built", "again"))
        said = t.run("update", "--json", "--remove", removed, "--add", added, "-o", out, f).json
        t.run("build", "--from", out, "-o", plain)
        t.run("build", "--kind", "bloom", "--geometry", "split-256", *SIZE, "-o", built, left)
        t.run("build", *kind, *SIZE, "--threads", rng.choice([1, 3]), "-o", again, left)
        bits.append(builds.Filter(plain).payload == builds.Filter(built).payload)
        same.append(builds.Filter(out).payload == builds.Filter(again).payload)
        counted.append((said["keys"], said["removed"], said["missing"]) == (len(now), len(gone), 0))
        f = out
    t.ok("numbers of keys", all(counted), counted)
    t.ok("the bits are those of a build from what DuckDB leaves", all(bits), bits)
    t.ok("the counters, too", all(same), same)
    passed = t.run("scan", "--json", "--count", "--filter", f, "--key", "k", left).json
    t.equal("all members pass", passed["rows_out"], len(now))
    rest = t.path("rest.filter")
    t.run("merge", "--subtract", "-o", rest, f, again)
    t.ok("nothing is left of a filter minus itself", not any(builds.Filter(rest).payload))


def run(t, _repository):
    for mode in ("set", "multiset"):
        t.group(f"counting {mode}", history, mode)
