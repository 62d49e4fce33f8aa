"""Every way to ask for a join from Parquet to Parquet: strategies, threads, memory, shards, several files, directories,
--columns, --suffix, key columns that both sides have, and IDs in every format and of every type.
"""

import decimal
import json
import random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from common import harness, rawfile, tables
from files import identity, pages
from joins import joins, pagejoins
from writers import samples

TYPES = joins.TYPES
SEEDS = range(60 if harness.FULL else 1)


def log_of(rng, n, files=1):
    """A log with columns of all kinds and a key of which some values are frequent, in some files."""
    table = pages.log(rng, n)
    keys = [None if rng.random() < 0.05 else 7 if rng.random() < 0.1 else rng.randrange(n) for _ in range(n)]
    table = table.add_column(rng.randrange(table.num_columns), "who", pa.array(keys, pa.int64()))
    bounds = [n * i // files for i in range(files + 1)]
    return [table.slice(lo, hi - lo) for lo, hi in zip(bounds, bounds[1:], strict=False)]


def ids_of(rng, n, m):
    """IDs, some of them several times, with nested payload and long texts."""
    keys = [None if rng.random() < 0.03 else 7 if rng.random() < 0.02 else rng.randrange(2 * n) for _ in range(m)]
    part = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])
    return pa.table({
        "name": pa.array([None if i % 9 == 1 else "n" * rng.randrange(60) for i in range(m)]), "id": pa.array(keys, pa.int64()),
        "list": pa.array([None if i % 7 == 2 else list(range(i % 4)) for i in range(m)], pa.list_(pa.int16())),
        "part": pa.array([None if i % 8 == 3 else {"x": i, "y": ["y"] * (i % 3)} for i in range(m)], part),
        "fixed": pa.array([i.to_bytes(3, "big") for i in range(m)], pa.binary(3)), "flag": pa.array([i % 3 == 0 for i in range(m)]),
    })  # fmt: skip


def store(t, parts, **how):
    place = identity.fresh(t, "logs")
    return [tables.write(p, place / f"{i}.parquet", **how) for i, p in enumerate(parts)]


def wanted(kind, log, ids, on, **more):
    rows = pagejoins.pairs(pagejoins.plain(log.column(on[0])), pagejoins.plain(ids.column(on[1])), kind)
    return pagejoins.Want(kind, log, ids, rows, **more), rows


def strategies(t):
    """One answer, byte by byte, whatever the strategy, the threads and the memory, in the order of the oracle."""
    for seed in SEEDS:
        rng = random.Random(f"ways {seed}")
        n, m, files = rng.choice([(3000, 900, 1), (8000, 5000, 3), (500, 20, 2)])
        pagejoins.attempt(t, f"seed {seed}", by_strategies, rng, n, m, files)


def by_strategies(t, name, rng, n, m, files):
    parts = log_of(rng, n, files)
    how = pages.options(rng, parts[0])
    logs = store(t, parts, **how)
    table = pa.concat_tables(identity.by_pyarrow(p)[0] for p in logs)
    ids = ids_of(rng, n, m)
    cut = rng.randrange(m)
    idpaths = [tables.write(p, identity.fresh(t, "ids.parquet"), data_page_size=3000) for p in (ids.slice(0, cut), ids.slice(cut))]
    given = ["--ids", idpaths[0], "--ids", idpaths[1], "--on", "who=id"]
    for kind in TYPES:
        want, _ = wanted(kind, table, ids, ("who", "id"))
        first = None
        for strategy in ("lookup", "broadcast", "reverse", "shuffle"):
            ways = [(1, "1GiB"), (2, "24MiB")]
            for threads, memory in ways if harness.FULL or strategy == "shuffle" else [rng.choice(ways) if first else ways[0]]:
                out = identity.fresh(t, "out.parquet")
                r = t.run("join", *given, "--type", kind, "--strategy", strategy, "--threads", threads, "--memory", memory, "-o", out, *logs, want=None, opens=first is None)
                label = f"{name}: {kind}, {strategy}, {threads} threads, {memory}"
                if r.code:
                    t.ok(label, memory != "1GiB" and "--memory" in r.text, str(r))
                elif first is None:
                    first, d = out, want.differences(identity.by_pyarrow(out)[0])
                    t.ok(label, not d, f"{d}; {how}")
                else:
                    t.ok(label, out.read_bytes() == first.read_bytes(), f"not the bytes of {first}")


def spilled(t):
    """IDs with nested payload that exceed the memory, and a log whose rows multiply."""
    n, m = 15_000, 120_000
    rng = random.Random("spilled")
    log = pa.table({
        "row": range(n), "who": pa.array([None if i % 50 == 3 else rng.randrange(150_000) for i in range(n)], pa.int64()),
        "words": pa.array([[f"word {i % 7}"] * (i % 4) for i in range(n)]), "far": pa.array([i * 10**7 for i in range(n)], pa.timestamp("s")),
    })  # fmt: skip
    keys = rng.sample(range(150_000), m)
    keys[: m // 10] = keys[m // 10 : m // 5]  # twice
    ids = pa.table({
        "id": pa.array(keys, pa.int64()), "name": [f"name of {k} " + "x" * (k % 90) for k in keys],
        "visits": pa.array([[k, k + 1][: k % 3] for k in keys], pa.list_(pa.int64())), "part": [{"a": k % 100, "b": f"b{k % 1000}"} for k in keys],
    })  # fmt: skip
    (path,), (idpath,) = store(t, [log], row_group_size=4000), store(t, [ids], row_group_size=20_000)
    file, temp = pagejoins.Log(path), identity.fresh(t, "temp")
    temp.mkdir()
    for kind in TYPES if harness.FULL else ("inner", "full"):
        want, _ = wanted(kind, file.table, ids, ("who", "id"))
        for strategy, memory in (("lookup", "1GiB"), ("shuffle", "24MiB"), ("auto", "24MiB")):
            out, r = pagejoins.join(t, kind, path, idpath, "who=id", "--strategy", strategy, "--memory", memory, "--temp-dir", temp)
            d = str(r) if r.code else want.differences(identity.by_pyarrow(out)[0])
            t.ok(f"{kind}, {strategy} in {memory}", not d, d)
            t.ok(f"{kind}, {strategy} in {memory}: spills where it must", r.code or strategy != "shuffle" or r.json["spilled_bytes"] > 0, str(r))
            t.equal(f"{kind}, {strategy} in {memory}: leaves no temporary file", list(temp.iterdir()), [])
            out.unlink(missing_ok=True)


def shards(t):
    """Each row of the answer is in one shard."""
    rng = random.Random("shards")
    logs = store(t, log_of(rng, 4000, 3), row_group_size=300)
    table = pa.concat_tables(identity.by_pyarrow(p)[0] for p in logs)
    ids = ids_of(rng, 4000, 1500)
    idpath = tables.write(ids, identity.fresh(t, "ids.parquet"))
    for kind in ("inner", "left", "anti"):
        want, _ = wanted(kind, table, ids, ("who", "id"))
        got = []
        for shard in range(3):
            out, r = pagejoins.join(t, kind, logs, idpath, "who=id", "--shard", f"{shard}/3")
            got.append(identity.by_pyarrow(out)[0])
        together = pa.concat_tables(got)
        # A log row is in one shard, with all its IDs in their order.
        order = pc.sort_indices(pa.table({"row": together["row"], "at": range(together.num_rows)}), [("row", "ascending"), ("at", "ascending")])
        d = want.differences(together.take(order))
        t.ok(f"{kind}: three shards", not d and all(g.num_rows for g in got), f"{d}; {[g.num_rows for g in got]}")
        rows = [g["row"].to_pylist() for g in got]
        t.ok(f"{kind}: rows of a shard in the log's order", rows == [sorted(r) for r in rows], "not in order")


def directories(t):
    """One output for each log, and IDs without a row in one of their own."""
    rng = random.Random("directories")
    logs = store(t, log_of(rng, 2500, 3), row_group_size=400)
    parts = [identity.by_pyarrow(p)[0] for p in logs]
    ids = ids_of(rng, 2500, 900)
    idpath = tables.write(ids, identity.fresh(t, "ids.parquet"))
    for kind in TYPES:
        out = identity.fresh(t, "out")
        t.run("join", "--ids", idpath, "--on", "who=id", "--type", kind, "-o", f"{out}/", *logs)
        files = {p.name: p for p in tables.data_files(out)}
        for log, part in zip(logs, parts, strict=True):
            alone = {"right": "inner", "full": "left"}.get(kind, kind)  # what this log gives
            want, _ = wanted(alone, part, ids, ("who", "id"))
            d = want.differences(identity.by_pyarrow(files.pop(log.name))[0], nullable=False)
            t.ok(f"{kind}: {log.name}", not d, d)
        whole = pa.concat_tables(parts)
        keys = pagejoins.plain(whole.column("who"))
        rest = [j for j, v in enumerate(pagejoins.plain(ids.column("id"))) if v is None or v not in set(keys)] if kind in pagejoins.KEEPS_IDS else []
        got = [identity.by_pyarrow(p)[0] for p in files.values()]
        want = pagejoins.Want(kind, whole, ids, ([None] * len(rest), rest)) if rest else None
        d = want.differences(pa.concat_tables(got)) if want else [p.name for p in files.values() if identity.by_pyarrow(p)[0].num_rows]
        t.ok(f"{kind}: IDs without a row", not d, d)


def columns(t):
    """--columns of both sides in any order, of one side only, and --suffix."""
    rng = random.Random("columns")
    (part,) = log_of(rng, 1500)
    (path,) = store(t, [part], row_group_size=400)
    log = pagejoins.Log(path)
    ids = ids_of(rng, 1500, 700).append_column("row", pa.array(range(700))).append_column("who", pa.array(range(700), pa.int32()))
    idpath = tables.write(ids, identity.fresh(t, "ids.parquet"))
    names = [c for c in log.table.column_names if c not in ("row", "who")]
    choices = [["part", "log.row", "name", "log.who"], ["log.row"], ["name", "list"], [names[0]], ["ids.row", "log.row", names[-1], "fixed"], ["id"], ["log.who", "ids.who", "part"]]
    for kind in TYPES[2:]:
        whole, _ = wanted(kind, log.table, ids, ("who", "id"), suffix="_right")
        out, r = pagejoins.join(t, kind, path, idpath, "who=id", "--suffix", "_right")
        d = whole.differences(identity.by_pyarrow(out)[0]) if r.code == 0 else str(r)
        t.ok(f"{kind}: --suffix", not d, d)
        at = {n: i for i, n in enumerate(whole.names)}
        for chosen in choices:
            out, r = pagejoins.join(t, kind, path, idpath, "who=id", "--columns", ",".join(chosen), "--suffix", "_right")
            if r.code:
                t.ok(f"{kind}: --columns {chosen}", False, str(r))
                continue
            taken = {c.removeprefix("log.") for c in chosen if not c.startswith("ids.")}
            some = pagejoins.Want.__new__(pagejoins.Want)
            picked = [c.removeprefix("log.") if not c.startswith("ids.") else f"{c[4:]}_right" for c in chosen]
            some.rows, some.theirs = whole.rows, set()
            some.names = [c[4:] if c.startswith("ids.") and c[4:] not in taken else p for c, p in zip(chosen, picked, strict=True)]
            some.columns = [whole.columns[at[p]] for p in picked]
            some.nullable = [whole.nullable[at[p]] for p in picked]
            d = some.differences(identity.by_pyarrow(out)[0])
            t.ok(f"{kind}: --columns {chosen}", not d, d)


def pairs_of_types(n):
    """Name, keys of the log and of the IDs, of two types."""
    dec = lambda p: pa.array([decimal.Decimal(i % 50).scaleb(-2) for i in range(n)], pa.decimal128(p, 2))  # noqa: E731
    at = lambda unit, zone=None: pa.array([i % 60 * 10**3 for i in range(n)], pa.timestamp("ms", zone)).cast(pa.timestamp(unit, zone))  # noqa: E731
    some = [i % 40 for i in range(n)]
    text = pa.array([f"k{v}" for v in some])
    yield "int64", pa.array(some, pa.int64()), pa.array(some[5:], pa.int64())
    yield "int32 and int64", pa.array(some, pa.int32()), pa.array(some[5:], pa.int64())
    yield "int64 and int8", pa.array(some, pa.int64()), pa.array(some[5:], pa.int8())
    yield "uint8 and int64", pa.array(some, pa.uint8()), pa.array(some[5:], pa.int64())
    yield "text", text, text[5:]
    yield "dictionary and text", text.dictionary_encode(), text[5:]
    yield "text and dictionary", text, text[5:].dictionary_encode()
    yield "large text", text.cast(pa.large_string()), text[5:]
    yield "decimals", dec(9), dec(20)
    yield "decimals of bytes", dec(25), dec(9)
    yield "milliseconds and microseconds", at("ms"), at("us")
    yield "nanoseconds and milliseconds", at("ns", "UTC"), at("ms", "UTC")
    yield "floats", pa.array(some, pa.float32()), pa.array(some[5:], pa.float64())
    yield "flags", pa.array([v % 2 == 0 for v in some]), pa.array([True, None])
    yield "fixed bytes", pa.array([b"%03d" % v for v in some], pa.binary(3)), pa.array([b"%03d" % v for v in some[5:]], pa.binary(3))


def shared_keys(t):
    """A key column of one name stands once, in the log's type; where there is no log row it has the ID's value."""
    n = 120
    for name, ours, theirs in pairs_of_types(n):
        ours = pa.chunked_array([ours.slice(0, n - 20)])  # so that IDs remain
        theirs = pa.concat_arrays([theirs, theirs[:3], pa.nulls(1, theirs.type)]) if not pa.types.is_dictionary(theirs.type) else theirs
        ours = pc.if_else(pa.array([i % 13 != 4 for i in range(len(ours))]), ours, pa.scalar(None, ours.type)) if not pa.types.is_dictionary(ours.type) else ours
        log = pa.table({"row": range(len(ours)), "k": ours, "words": [["w"] * (i % 3) for i in range(len(ours))]})
        for payload in (True, False):
            ids = pa.table({"k": theirs} | ({"p": range(len(theirs))} if payload else {}))
            path, idpath = (tables.write(x, identity.fresh(t, "x.parquet"), row_group_size=50) for x in (log, ids))
            file = pagejoins.Log(path)
            for kind in TYPES[2:] if payload or harness.FULL else ("inner", "full"):
                _, rows = wanted(kind, file.table, ids, ("k", "k"), shared=("k",))
                out, r = pagejoins.join(t, kind, path, idpath, "k")
                wrong = [str(r)] if r.code else pagejoins.problems(out, kind, file, identity.by_pyarrow(idpath)[0], rows, ("k",), rawfile.File(idpath))
                t.ok(f"{name}, {kind}{'' if payload else ', no other columns'}", not wrong, " | ".join(wrong)[:900])


def formats(t):
    """IDs as text and as Arrow, with Arrow types that Parquet does not have as such."""
    n = 200
    log = pa.table({"row": range(n), "who": pa.array([i * 7 % 90 for i in range(n)], pa.int64()), "tags": [[f"t{i}"] * (i % 3) for i in range(n)]})
    path = tables.write(log, identity.fresh(t, "log.parquet"), row_group_size=60)
    file = pagejoins.Log(path)
    keys = [i * 3 for i in range(40)] + [3, 6]
    texts = [None if i % 5 == 2 else f"text {i}" for i in range(len(keys))]
    ids = pa.table({"id": pa.array(keys), "name": pa.array(texts)})
    csv, lines, nd = (identity.fresh(t, f"ids.{e}") for e in ("csv", "txt", "ndjson"))
    pa.csv.write_csv(ids, csv)
    nd.write_text("".join(json.dumps({"id": k, "name": v}) + "\n" for k, v in zip(keys, texts, strict=True)))
    lines.write_text("".join(f"{k}\n" for k in keys))
    for idpath, table in ((csv, ids), (nd, ids), (lines, ids.select(["id"]))):
        for kind in TYPES[2:]:
            _, rows = wanted(kind, file.table, table, ("who", "id"))
            out, r = pagejoins.join(t, kind, path, idpath, "who=id")
            wrong = [str(r)] if r.code else pagejoins.problems(out, kind, file, table, rows)
            t.ok(f"{idpath.suffix}, {kind}", not wrong, " | ".join(wrong)[:900])
    few = pa.array([f"f{i % 4}" for i in range(n)])
    arrow = {
        name: samples.table(name, "some").slice(0, n) for name in ("numbers", "strings", "times", "nested", "wide")
    } | {
        "dictionaries": pa.table({"few": few.dictionary_encode(), "list": pa.ListArray.from_arrays(pa.array(range(n + 1), pa.int32()), few.dictionary_encode())}),
        "fixed": pa.table({"two": pa.array([[i, None] for i in range(n)], pa.list_(pa.int32(), 2)), "large": pa.array([[i % 100] for i in range(n)], pa.large_list(pa.int8()))}),
        "rare": pa.table({"nothing": pa.nulls(n), "map": pa.array([[("k", i)] for i in range(n)], pa.map_(pa.string(), pa.int64()))}),
    }  # fmt: skip
    for name, table in arrow.items():
        table = table.select([c for c in table.column_names if c != "id"]).add_column(0, "id", pa.array([i * 2 for i in range(n)], pa.int64()))
        idpath = tables.write(table, identity.fresh(t, "ids.arrow"))
        for kind in TYPES[2:] if harness.FULL else ("left", "right"):
            _, rows = wanted(kind, file.table, table, ("who", "id"))
            out, r = pagejoins.join(t, kind, path, idpath, "who=id")
            wrong = [str(r)] if r.code else pagejoins.problems(out, kind, file, stored(table), rows)
            t.ok(f"Arrow, {name}, {kind}", not wrong, " | ".join(wrong)[:900])


def stored(table):
    """A table of Arrow IDs as pyarrow reads it from the answer, where dictionaries are their values."""
    table = table.cast(pa.schema([f.with_type(valued(f.type)) for f in table.schema]))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return pq.read_table(pa.BufferReader(sink.getvalue()))


def valued(kind):
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return pa.list_(valued(kind.value_type)) if pa.types.is_list(kind) else kind


def composite(t):
    """Keys of several columns, one of them in a struct, another shared."""
    n = 400
    rng = random.Random("composite")
    user = [{"id": rng.randrange(9), "name": f"n{i}"} if i % 17 else None for i in range(n)]
    log = pa.table({"row": range(n), "user": pa.array(user), "day": pa.array([rng.choice("abc") if i % 19 else None for i in range(n)])})
    m = 60
    ids = pa.table({"day": pa.array([rng.choice("abcd") for _ in range(m)]), "p": range(m), "id": pa.array([rng.randrange(12) for _ in range(m)])})
    path, idpath = (tables.write(x, identity.fresh(t, "x.parquet"), row_group_size=90) for x in (log, ids))
    file = pagejoins.Log(path)
    both = lambda a, b: [None if None in v else v for v in zip(a, b, strict=True)]  # noqa: E731
    ours = both([u and u["id"] for u in user], log["day"].to_pylist())
    theirs = both(ids["id"].to_pylist(), ids["day"].to_pylist())
    for kind in TYPES:
        out, r = pagejoins.join(t, kind, path, idpath, "user.id=id,day")
        wrong = [str(r)] if r.code else pagejoins.problems(out, kind, file, ids, pagejoins.pairs(ours, theirs, kind), ("day",), rawfile.File(idpath))
        t.ok(f"{kind} on user.id=id,day", not wrong, " | ".join(wrong)[:900])


def run(t):
    for check in (strategies, spilled, shards, directories, columns, shared_keys, formats, composite):
        t.group(f"pagejoins {check.__name__}", check, sampled=30 if check is strategies else 0)
