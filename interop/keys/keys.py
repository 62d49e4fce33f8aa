"""Runs the key cases through build + scan and through every join type, and the pairs that must not compare."""

import pyarrow as pa

from common import harness, tables
from keys import keycases


def expected(case, kind):
    """The answer as pairs (log row, ID row), None for no partner, from the pairs listed by hand."""
    matched_logs = {log for log, _ in case.pairs}
    matched_ids = {i for _, i in case.pairs}
    rest_logs = [(log, None) for log in range(case.logs.num_rows) if log not in matched_logs]
    rest_ids = [(None, i) for i in range(case.ids.num_rows) if i not in matched_ids]
    return {
        "semi": [(log, None) for log in matched_logs],
        "anti": rest_logs,
        "inner": case.pairs,
        "left": case.pairs + rest_logs,
        "right": case.pairs + rest_ids,
        "full": case.pairs + rest_logs + rest_ids,
    }[kind]


def rows(table):
    """(l, r) of each row, ordered; a column that is not there counts as NULL."""
    get = lambda name: table[name].to_pylist() if name in table.column_names else [None] * table.num_rows  # noqa: E731
    return ordered(zip(get("l"), get("r"), strict=True))


def ordered(pairs):
    return sorted(pairs, key=lambda p: tuple((x is None, x or 0) for x in p))


def one(t, case, every):
    ids = tables.write(case.ids, t.path("ids" + case.id_form), **case.id_options)
    logs = tables.write(case.logs, t.path("logs" + case.log_form), **case.log_options)
    for kind in ("auto", "bloom") if every else ("bloom",):
        flt, out = t.path("k.filter"), t.path("candidates.parquet")
        t.run("build", "--key", case.key, "--kind", kind, "-o", flt, ids)
        t.run("scan", "--filter", flt, "--key", case.log_key, "-o", out, logs)
        kept = {log for log, _ in rows(tables.read(out))}
        matched = {log for log, _ in case.pairs}
        t.ok(f"candidates ({kind}) hold every match", kept >= matched, f"lost rows {sorted(matched - kept)}")
    for kind in ("semi", "anti", "inner", "left", "right", "full"):
        out = t.path("out.parquet")
        t.run("join", "--ids", ids, "--on", case.on, "--type", kind, "-o", out, logs)
        t.equal(kind, rows(tables.read(out)), ordered(expected(case, kind)))


def coalesced(t):
    """A key of one name on both sides is one column, and holds the ID's key where no log row has it."""
    ids = tables.write(keycases.numbered("r", k=pa.array([1, 3, None])), t.path("ids.parquet"))
    logs = tables.write(keycases.numbered("l", k=pa.array([2, 1, None])), t.path("logs.parquet"))
    out = t.path("out.parquet")
    t.run("join", "--ids", ids, "--on", "k", "--type", "full", "-o", out, logs)
    got = tables.sql("select k, l, r from got order by all", got=tables.read(out))
    t.equal("keys of a full join", got, [(1, 1, 0), (2, 0, None), (3, None, 1), (None, 2, None), (None, None, 2)])


def refused(t, name, ids, logs, classes):
    """Keys of two classes: both named, exit 1, nothing left behind."""
    idp, logp = (
        tables.write(keycases.numbered("r", k=ids), t.path("ids.parquet")),
        tables.write(keycases.numbered("l", k=logs), t.path("logs.parquet")),
    )
    flt, where = t.path("k.filter"), t.path("refused")
    where.mkdir()
    t.run("build", "--key", "k", "-o", flt, idp)
    for verb in (["scan", "--filter", flt, "--key", "k"], ["join", "--ids", idp, "--on", "k"]):
        r = t.run(*verb, "-o", where / "out.parquet", logp, want=None)
        t.ok(f"{verb[0]} exits 1", r.code == 1, str(r))
        t.ok(f"{verb[0]} names both classes", all(c in r.text for c in classes), r.text)
        t.equal(f"{verb[0]} leaves nothing", list(where.iterdir()), [])


def mismatches():
    text, number = pa.array(["1", "2"]), pa.array([1, 2])
    zoned, zoneless = pa.array([0, 1], pa.timestamp("us", "UTC")), pa.array([0, 1], pa.timestamp("us"))
    yield "string IDs, integer column", text, number, ["text or binary", "integer"]
    yield "integer IDs, string column", number, text, ["integer", "text or binary"]
    yield "zoned IDs, zoneless column", zoned, zoneless, ["instant", "timestamp"]
    yield "zoneless IDs, zoned column", zoneless, zoned, ["timestamp", "instant"]
    yield (
        "binary(16) IDs, binary column",
        pa.array([b"0" * 16], pa.binary(16)),
        pa.array([b"0" * 16]),
        ["fixed[16]", "text or binary"],
    )
    yield "date IDs, timestamp column", pa.array([0, 1], pa.date32()), zoneless, ["date", "timestamp"]


TEXTS = {
    "ids.csv": "other,k\nx,5\ny,-1\nz,\n",
    "ids.tsv": "other\tk\nx\t5\ny\t-1\n",
    "ids.ndjson": '{"k": 5}\n{"other": 1, "k": -1}\n{"k": null}\n',
    "ids.txt": "5\n-1\n",
}


def text_ids(t):
    """IDs as text take the type of the log's column in a join, and of --key-type in a build."""
    logs = tables.write(keycases.numbered("l", k=pa.array([5, -1, 6, None, 5])), t.path("logs.parquet"))
    for name, text in TEXTS.items():
        ids = t.path(name)
        ids.write_text(text)
        key, on = ("k", "k")
        out = t.path("out.parquet")
        t.run("join", "--ids", ids, "--on", on, "-o", out, logs)
        t.equal(f"{name} in a join", rows(tables.read(out)), [(0, None), (1, None), (4, None)])
        flt, out = t.path("k.filter"), t.path("out.parquet")
        t.run("build", "--key", key, "--key-type", "int64", "-o", flt, ids)
        t.run("scan", "--filter", flt, "--key", "k", "-o", out, logs)
        t.equal(f"{name} in a build", rows(tables.read(out)), [(0, None), (1, None), (4, None)])
    flt, out = t.path("k.filter"), t.path("out.parquet")
    t.run("build", "--key", "k", "--key-type", "int64", "-o", flt, "-", stdin=TEXTS["ids.txt"].encode())
    t.run("scan", "--filter", flt, "--key", "k", "-o", out, logs)
    t.equal("standard input in a build", rows(tables.read(out)), [(0, None), (1, None), (4, None)])


def text_floats(t):
    """Text is read as the log's float32: 0.1 is another number in 64 bits. Values that a type does not hold are refused."""
    f32 = pa.array([0.1, 0.5, 16777216, 0.3, 1e-45, 3.4028235e38, 2], pa.float32())
    logs = tables.write(keycases.numbered("l", k=f32), t.path("logs.parquet"))
    ids, flt, out = t.path("ids.txt"), t.path("k.filter"), t.path("out.parquet")
    ids.write_text("0.1\n0.300000001\n16777216\n1e-45\n3.4028235e38\n0.7\n")
    want = [(n, None) for n in (0, 2, 3, 4, 5)]
    t.run("join", "--ids", ids, "--on", "k", "-o", out, logs)
    t.equal("float32 in a join", rows(tables.read(out)), want)
    t.run("build", "--key", "k", "--key-type", "float32", "-o", flt, ids)
    t.run("scan", "--filter", flt, "--key", "k", "-o", out, "--force", logs)
    t.equal("float32 in a build", rows(tables.read(out)), want)
    logs = tables.write(keycases.numbered("l", k=pa.array([0.1, float(f32[0].as_py())])), t.path("wide.parquet"))
    t.run("join", "--ids", ids, "--on", "k", "-o", out, "--force", logs)
    t.equal("float64 in a join", rows(tables.read(out)), [(0, None)])
    for name, kind, values, text in (
        ("float32", pa.float32(), [1e38, 16777216], "1e39"), ("an integer in float32", pa.float32(), [1, 16777216], "16777217"),
        ("int64", pa.int64(), [1, 2], "1.5"), ("decimal", pa.decimal128(10, 2), [keycases.D("1.00"), keycases.D("1.01")], "1.005"),
        ("timestamp", pa.timestamp("ms"), [1000, 1001], "1970-01-01T00:00:01.0005"),
    ):  # fmt: skip
        logs = tables.write(keycases.numbered("l", k=pa.array(values, kind)), t.path("logs.parquet"))
        ids.write_text(f"{text}\n")
        r = t.run("join", "--ids", ids, "--on", "k", "-o", t.path("none.parquet"), logs, want=None)
        t.ok(f"{name} does not hold {text}", r.code == 1 and "line 1" in r.text, str(r))


def bad_text(t):
    """A value that is no number is an error of file and line, and is not shown."""
    logs = tables.write(keycases.numbered("l", k=pa.array([5])), t.path("logs.parquet"))
    ids = t.path("bad.csv")
    ids.write_text("k\n5\n6\nsecret77\n")
    r = t.run("join", "--ids", ids, "--on", "k", "-o", t.path("out.parquet"), logs, want=1)
    t.ok("file and line are named", ids.name in r.text and "line 4" in r.text, r.text)
    t.ok("the value is not shown", "secret77" not in r.text, r.text)


def duckdb_uuid(t):
    """DuckDB's own UUID column, and text that spells UUIDs."""
    logs, ids = t.path("logs.parquet"), t.path("ids.csv")
    tables.sql(
        f"copy (select i::integer as l, ('00000000-0000-0000-0000-' || lpad(i::varchar, 12, '0'))::uuid as k from range(100) s(i))"
        f" to '{logs}' (format parquet)"
    )
    ids.write_text(
        "k\n00000000-0000-0000-0000-000000000007\n00000000-0000-0000-0000-000000000042\n00000000-0000-0000-0000-000000000100\n"
    )
    out = t.path("out.parquet")
    t.run("join", "--ids", ids, "--on", "k", "-o", out, logs)
    t.equal("UUID text in a join", rows(tables.read(out)), [(7, None), (42, None)])
    flt, out = t.path("k.filter"), t.path("out.parquet")
    t.run("build", "--key", "k", "--key-type", "uuid", "-o", flt, ids)
    t.run("scan", "--filter", flt, "--key", "k", "-o", out, logs)
    t.ok("UUID text in a build", {(7, None), (42, None)} <= set(rows(tables.read(out))), "rows are lost")


def run(t, _repository):
    for n, case in enumerate(keycases.cases()):
        t.group(f"keys {case.name}", one, case, harness.FULL or n % 3 == 0)
    for name, ids, logs, classes in mismatches():
        t.group(f"refused {name}", refused, name, ids, logs, classes)
    t.group("coalesced key", coalesced)
    t.group("text IDs", text_ids)
    t.group("text floats", text_floats)
    t.group("bad text", bad_text)
    t.group("duckdb uuid", duckdb_uuid)
