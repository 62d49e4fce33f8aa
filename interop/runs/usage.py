"""The command line as scripts see it: exit codes, messages, what is left behind."""

import io
import os
import pathlib

import pyarrow as pa

from common import tables

SCAN_FIELDS = """rows_in rows_out keys_null row_groups row_groups_skipped pages pages_skipped bytes_read bytes_written
fpr_asked fpr_predicted path seconds""".split()
JOIN_FIELDS = SCAN_FIELDS + "candidates ids_total ids_matched keys_matched fpr_measured strategy spilled_bytes".split()
BUILD_FIELDS = "keys distinct kind bits_per_key memory_bytes file_bytes fpr_predicted seconds".split()


class Inputs:
    """A small log, its IDs and their filter."""

    def __init__(self, t):
        self.logs = tables.write(
            pa.table({"user_id": pa.array(range(100)), "text": [f"t{i}" for i in range(100)]}), t.path("logs.parquet")
        )
        self.ids = tables.write(pa.table({"user_id": pa.array([1, 2, 3, 200])}), t.path("ids.parquet"))
        self.filter = t.path("ids.filter")
        t.run("build", "--key", "user_id", "-o", self.filter, self.ids)


def fails(t, name, code, words, *args):
    """The run ends with the code and says the words; -o OUT, if asked for by args, is not there afterwards."""
    where = t.path("failed")
    where.mkdir()
    out = where / ("out.bjf" if args[0] == "build" else "out.parquet")
    args = [out if a == "OUT" else a for a in args]
    r = t.run(*args, want=None)
    t.ok(f"{name}: exit {code}", r.code == code, str(r))
    t.ok(f"{name}: says {words}", all(w in r.text for w in words), r.text)
    t.equal(f"{name}: nothing is left", [p.name for p in where.iterdir()], [])


def fields(t):
    """The fields of the contract."""
    i = Inputs(t)
    for verb, want, args in [
        ("build", BUILD_FIELDS, ["--key", "user_id", "-o", t.path("f"), i.ids]),
        ("scan", SCAN_FIELDS, ["--filter", i.filter, "-o", t.path("o.parquet"), i.logs]),
        ("join", JOIN_FIELDS, ["--ids", i.ids, "--on", "user_id", "-o", t.path("o2.parquet"), i.logs]),
    ]:
        got = t.run(verb, "--json", *args).json
        t.equal(f"{verb} --json lacks", [f for f in want if f not in got], [])
    for verb, args in [("merge", ["-o", t.path("m.filter"), *parts(t, i)]), ("inspect", [i.filter])]:
        t.ok(f"{verb} --json", isinstance(t.run(verb, "--json", *args).json, dict))


def parts(t, i):
    both = [t.path("part0.filter"), t.path("part1.filter")]
    for n, p in enumerate(both):
        t.run("build", "--key", "user_id", "--shard", f"{n}/2", "-o", p, i.ids)
    return both


def wrong_usage(t):
    i = Inputs(t)
    scan, join = ["scan", "--filter", i.filter], ["join", "--ids", i.ids, "--on", "user_id"]
    for name, args in {
        "unknown flag": [*scan, "--no-such-flag", "-o", "OUT", i.logs],
        "unknown verb": ["frobnicate"],
        "no output": [*scan, i.logs],
        "no logs": [*scan, "-o", "OUT"],
        "no filter": ["scan", "-o", "OUT", i.logs],
        "unknown join type": [*join, "--type", "sideways", "-o", "OUT", i.logs],
        "unknown format": [*scan, "--format", "xml", "-o", "OUT", i.logs],
        "shard 7/7": [*scan, "--shard", "7/7", "-o", "OUT", i.logs],
        "shard that is none": [*scan, "--shard", "x", "-o", "OUT", i.logs],
        "right with shards": [*join, "--type", "right", "--shard", "0/2", "-o", "OUT", i.logs],
        "full with shards": [*join, "--type", "full", "--shard", "0/2", "-o", "OUT", i.logs],
        "fpr of 2": ["build", "--key", "user_id", "--fpr", "2", "-o", "OUT", i.ids],
        "fpr and max-size": ["build", "--key", "user_id", "--fpr", "0.1", "--max-size", "1MiB", "-o", "OUT", i.ids],
        "size that is none": ["build", "--key", "user_id", "--max-size", "big", "-o", "OUT", i.ids],
        "no key": ["build", "-o", "OUT", i.ids],
        "unknown key type": ["build", "--key", "user_id", "--key-type", "blob", "-o", "OUT", i.ids],
        "open quote in a key": ["build", "--key", '"user_id', "-o", "OUT", i.ids],
        "usage before inputs": [*scan, "--shard", "9/2", "-o", "OUT", "/nonexistent/x.parquet"],
    }.items():
        fails(t, name, 64, [], *args)
    t.run("--help")
    t.run("scan", "--help")


def bad_inputs(t):
    i = Inputs(t)
    scan, join = ["scan", "--filter", i.filter], ["join", "--ids", i.ids, "--on", "user_id"]
    fails(t, "missing column", 1, ["user_idd", "did you mean user_id"], *scan, "--key", "user_idd", "-o", "OUT", i.logs)
    fails(
        t,
        "missing column in a join",
        1,
        ["usr_id", "did you mean user_id"],
        "join",
        "--ids",
        i.ids,
        "--on",
        "usr_id=user_id",
        "-o",
        "OUT",
        i.logs,
    )
    fails(t, "missing file", 1, ["nowhere.parquet"], *scan, "-o", "OUT", t.path("nowhere.parquet"))
    fails(t, "glob of nothing", 1, ["*.nothing"], *scan, "-o", "OUT", t.work / "*.nothing")
    garbage = t.path("garbage.parquet")
    garbage.write_bytes(os.urandom(5000))
    fails(t, "a file that is no Parquet", 1, [garbage.name], *scan, "-o", "OUT", garbage)
    cut = t.path("cut.parquet")
    cut.write_bytes(i.logs.read_bytes()[:-20])
    fails(t, "a file cut short", 1, [cut.name], *scan, "-o", "OUT", cut)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, pa.schema([("user_id", pa.int64())])) as w:
        w.write_batch(pa.record_batch({"user_id": [1, 2]}))
        w.write_batch(pa.record_batch({"user_id": [3]}))
        second = sink.tell()
    for name in ("cut.arrows", "no-suffix"):
        cut = t.path(name)
        cut.write_bytes(sink.getvalue()[:second])
        fails(t, f"a stream without its end marker, {name}", 1, [cut.name, "end marker"], *scan, "-o", "OUT", cut)
        fails(t, f"its check, {name}", 1, [cut.name, "end marker"], "inspect", "--check", cut)
    nothing = t.path("empty-file.parquet")
    nothing.write_bytes(b"")
    fails(t, "an empty file", 1, [nothing.name], *join, "-o", "OUT", nothing)
    bare = t.path("bare")
    bare.mkdir()
    (bare / "_SUCCESS").write_text("")
    (bare / "readme.md").write_text("no data")
    fails(t, "a directory without data", 1, [bare.name], *scan, "-o", "OUT", bare)
    texts = tables.write(pa.table({"user_id": ["1"]}), t.path("texts.parquet"))
    fails(
        t,
        "ID files of two types",
        1,
        ["integer", "text or binary"],
        "join",
        "--ids",
        i.ids,
        "--ids",
        texts,
        "--on",
        "user_id",
        "-o",
        "OUT",
        i.logs,
    )
    fails(
        t,
        "ID files of two types in a build",
        1,
        ["integer", "text or binary"],
        "build",
        "--key",
        "user_id",
        "-o",
        "OUT",
        i.ids,
        texts,
    )
    lists = tables.write(pa.table({"user_id": pa.array([[1], [2]])}), t.path("lists.parquet"))
    fails(t, "a key that is a list", 1, ["unsupported"], *scan, "-o", "OUT", lists)


def bad_filters(t):
    i = Inputs(t)
    good = i.filter.read_bytes()
    middle = len(good) // 2
    for name, data in {
        "a bit flipped": good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :],
        "the last bit flipped": good[:-1] + bytes([good[-1] ^ 128]),
        "cut short": good[:-1],
        "a byte too many": good + b"\0",
        "empty": b"",
        "no filter": b"PAR1" * 100,
    }.items():
        bad = t.path("bad.filter")
        bad.write_bytes(data)
        fails(t, name, 1, [bad.name], "scan", "--filter", bad, "-o", "OUT", i.logs)
        fails(t, f"{name}, inspected", 1, [bad.name], "inspect", "--check", bad)
    t.ok("a good one, inspected", t.run("inspect", "--check", i.filter).code == 0)
    t.equal("a filter is for its owner alone", oct(i.filter.stat().st_mode & 0o777), "0o600")


def outputs(t):
    """An output that exists: done before, refused, forced."""
    i = Inputs(t)
    for verb, name, args, other in [
        ("scan", "out.parquet", ["--filter", i.filter], ["--columns", "text"]),
        ("join", "out.parquet", ["--ids", i.ids, "--on", "user_id"], ["--type", "anti"]),
        ("scan", "dir/", ["--filter", i.filter], ["--columns", "text"]),
    ]:
        out = str(t.path(f"again-{verb}-{name.strip('/')}")) + ("/" if name.endswith("/") else "")
        said = f"{verb} to {name}"
        t.run(verb, *args, "-o", out, i.logs)
        before = listing(out)
        r = t.run(verb, *args, "-o", out, i.logs, want=None)
        t.ok(f"{said}: already done", r.code == 0 and b"already done" in r.err + r.out, str(r))
        t.equal(f"{said}: nothing was written again", listing(out), before)
        r = t.run(verb, *args, *other, "-o", out, i.logs, want=None)
        t.ok(f"{said}: another run is refused", r.code == 1 and "--force" in r.text, str(r))
        t.equal(f"{said}: nothing was changed", listing(out), before)
        t.run(verb, *args, *other, "--force", "-o", out, i.logs)
        t.ok(f"{said}: --force replaces", listing(out) != before)
    foreign = t.path("foreign.parquet")
    foreign.write_bytes(b"somebody's")
    r = t.run("scan", "--filter", i.filter, "-o", foreign, i.logs, want=None)
    t.ok("a foreign file is refused", r.code == 1 and foreign.read_bytes() == b"somebody's", str(r))


def listing(path):
    """Every file below with its bytes, and data files with their modification times."""
    files = [path] if os.path.isfile(path) else [os.path.join(d, f) for d, _, names in os.walk(path) for f in names]
    time = lambda f: 0 if os.path.basename(f).startswith("_") else os.stat(f).st_mtime_ns  # noqa: E731
    return sorted((f, time(f), pathlib.Path(f).read_bytes()) for f in files)


def no_match(t):
    """--no-match drops the members of an exact filter and keeps NULL keys."""
    logs = tables.write(
        pa.table({"a": pa.array([1, 2, 3, None, 5]), "b": pa.array([1, 1, 9, 9, 9])}), t.path("logs.parquet")
    )
    filters = {}
    for name, values in [("yes", [1, 2, 3, 5]), ("no", [2, 5])]:
        ids = tables.write(pa.table({"a": pa.array(values)}), t.path("ids.parquet"))
        filters[name] = t.path(f"{name}.filter")
        t.run("build", "--key", "a", "--kind", "exact", "-o", filters[name], ids)
    out = t.path("out.parquet")
    t.run("scan", "--filter", filters["yes"], "--no-match", f"a={filters['no']}", "-o", out, logs)
    t.equal("kept", tables.read(out)["a"].to_pylist(), [1, 3])
    out = t.path("out.parquet")
    t.run("scan", "--filter", filters["yes"], "--match", f"b={filters['no']}", "--any", "-o", out, logs)
    t.equal("--any", tables.read(out)["a"].to_pylist(), [1, 2, 3, 5])


def run(t, _repository):
    t.group("json fields", fields)
    t.group("wrong usage", wrong_usage)
    t.group("bad inputs", bad_inputs)
    t.group("bad filters", bad_filters)
    t.group("outputs", outputs)
    t.group("no-match", no_match)
