"""Where two features meet: joins with two or more of them at once, against DuckDB, and what was once a wrong answer."""

import datetime
import decimal
import io
import itertools
import json
import os
import random
import shutil

import pyarrow as pa
import pyarrow.csv

from common import tables

DAYS = [datetime.date(2024, 5, d) for d in (1, 2, 3)]

# What a join can have, by the feature.
FACTORS = {
    "type": ["semi", "anti", "inner", "left", "right", "full"],
    "log": ["file", "directory", "list", "names", "pattern", "url", "arrow", "stream"],
    "ids": ["parquet", "arrow", "csv", "ndjson", "lines", "stdin", "twice"],
    "out": ["file", "arrow", "directory", "shards", "grown", "grown shards", "stream", "count"],
    "key": ["int64", "cast", "lower", "float32", "decimal"],
    "where": ["", "one", "two", "path"],
    "columns": ["", "some", "parts"],
    "strategy": ["auto", "lookup", "broadcast", "reverse", "shuffle"],
    "memory": ["", "16MiB"],
    "logs": ["", "twice", "exclude"],
    "again": ["", "force", "prune"],
    "require": ["", "rows"],
    "files": ["", "empty", "target"],
}
IN_DIRECTORY = ("directory", "list", "names", "pattern", "url")
IN_SHARDS = ("shards", "grown shards")
GROWN = ("grown", "grown shards")


def possible(c):
    """Whether the combination is not one that the tool refuses by contract."""
    directory = c["out"] in ("directory", *IN_SHARDS, *GROWN)
    return not (
        (c["log"] == "stream" and (directory or c["ids"] == "stdin" or c["strategy"] in ("broadcast", "reverse", "shuffle")))
        or (c["out"] in IN_SHARDS and (c["type"] in ("right", "full") or c["ids"] == "stdin"))
        or (c["out"] in GROWN and (c["log"] not in ("directory", "list", "url") or c["ids"] == "stdin" or c["logs"]))
        or (c["where"] == "path" and c["log"] not in IN_DIRECTORY)
        or (c["ids"] == "stdin" and c["strategy"] in ("broadcast", "reverse", "shuffle", "auto"))
        or (c["columns"] and c["out"] == "count")
        or (c["logs"] == "exclude" and c["log"] not in ("directory", "pattern", "url"))
        or (c["logs"] == "twice" and c["log"] not in ("file", "directory", "names", "arrow"))
        or ((c["files"] or c["again"] == "prune") and not directory)
        or (c["again"] == "force" and c["out"] in ("stream", "count", *IN_SHARDS))
        or (c["require"] and c["out"] == "stream")
    )


def combinations(count=400):
    """Combinations in which every pair of values that can meet does."""
    rnd = random.Random(5)
    draw = lambda: {f: rnd.choice(v) for f, v in FACTORS.items()}  # noqa: E731
    pairs = lambda c: set(itertools.combinations(sorted(c.items()), 2))  # noqa: E731
    there = [c for c in (draw() for _ in range(60_000)) if possible(c)]
    left = set().union(*map(pairs, there))
    chosen = []
    while left and len(chosen) < count:
        best = max(rnd.sample(there, 300), key=lambda c: len(pairs(c) & left))
        if not pairs(best) & left:
            pair = min(left)
            best = next(c for c in there if pair in pairs(c))
        left -= pairs(best)
        chosen.append(best)
    return chosen


class Data:
    """A log of three days and IDs, in the forms that a combination asks for."""

    def __init__(self, t, key):
        self.t, self.key, rnd = t, key, random.Random(key)
        of = {
            "int64": lambda n: n, "cast": lambda n: f"{n}", "lower": lambda n: rnd.choice(["Id-%d", "ID-%d", "id-%d"]) % n,
            "float32": lambda n: n / 10, "decimal": lambda n: f"{n}.50",
        }[key]  # fmt: skip
        kind = {"int64": pa.int64(), "float32": pa.float32(), "decimal": pa.decimal128(9, 2)}.get(key, pa.string())
        keys = [None if rnd.random() < 0.05 else of(rnd.randrange(400)) for _ in range(3000)]
        column = pa.array([k and decimal.Decimal(k) for k in keys]) if key == "decimal" else pa.array(keys, kind)
        self.log = pa.table({
            "k": column.cast(kind), "v": pa.array(range(3000)), "s": [f"s{n % 7}" for n in range(3000)],
            "dt": pa.array([DAYS[n // 1000] for n in range(3000)]),
        })  # fmt: skip
        ids = [rnd.randrange(600) for _ in range(120)]
        as_id = {"cast": lambda n: n, "lower": lambda n: f"id-{n}"}.get(key, of)
        values = [as_id(n) for n in ids]
        kind = {"cast": pa.int64()}.get(key, kind)
        column = pa.array([decimal.Decimal(k) for k in values]) if key == "decimal" else pa.array(values, kind)
        self.ids = pa.table({"id": column.cast(kind), "p": [f"p{n}" for n in range(len(ids))]})
        self.dir = t.path(f"seams-{key}")
        for day, file in itertools.product(DAYS, range(2)):
            n = 1000 * DAYS.index(day) + 500 * file
            tables.write(self.log.slice(n, 500).drop_columns(["dt"]), self.dir / f"log/dt={day}/{file}.parquet", row_group_size=170)
        tables.write(self.log.drop_columns(["dt"]), self.dir / "log.parquet", row_group_size=700)
        tables.write(self.log.drop_columns(["dt"]), self.dir / "log.arrow")
        for ending in ("parquet", "arrow"):
            tables.write(self.ids, self.dir / f"ids.{ending}")
        rows = [[str(v) for v in r.values()] for r in self.ids.to_pylist()]
        if key == "float32":  # as people write them, with fewer digits than a float64 has
            rows = [[str(of(n)), p] for n, (_, p) in zip(ids, rows, strict=True)]
        (self.dir / "ids.csv").write_text("id,p\n" + "".join(f"{a},{b}\n" for a, b in rows))
        quote = '"' if key == "lower" else ""
        (self.dir / "ids.ndjson").write_text("".join(f'{{"id":{quote}{a}{quote},"p":"{b}"}}\n' for a, b in rows))
        (self.dir / "ids.txt").write_text("".join(f"{a}\n" for a, _ in rows))
        (self.dir / "names.txt").write_text("".join(f"{p}\n" for p in sorted((self.dir / "log").rglob("*.parquet"))))
        index = ["--index", "k", "--index-fpr", "0.001", *(["--normalize", "lower"] if key == "lower" else [])]
        t.run("inputs", *index, "-o", self.dir / "list.jsonl", self.dir / "log")

    def stream(self):
        out = io.BytesIO()
        with pa.ipc.new_stream(out, self.log.schema.remove(3)) as w:
            w.write_table(self.log.drop_columns(["dt"]), max_chunksize=400)
        return out.getvalue()


def join(t, d, c):
    """Runs the combination and returns its rows, or their number, and what DuckDB says."""
    on = {"cast": "k::int64=id"}.get(d.key, "k=id")
    args = ["join", "--type", c["type"], "--on", on, "--strategy", c["strategy"]]
    args += ["--normalize", "lower"] * (d.key == "lower") + ["--memory", c["memory"]] * bool(c["memory"])
    ids = d.dir / {"csv": "ids.csv", "ndjson": "ids.ndjson", "lines": "ids.txt", "arrow": "ids.arrow"}.get(c["ids"], "ids.parquet")
    stdin = b""
    if c["ids"] == "stdin":
        stdin = (d.dir / "ids.txt").read_bytes()
        ids = "-"
    args += ["--ids", ids] + (["--ids", f"{ids.parent}/./{ids.name}"] if c["ids"] == "twice" else [])
    conditions = {"one": ["v >= 700"], "two": ["v >= 700 OR s = 's1'", "s <> 's3'"], "path": [f"dt <> '{DAYS[1]}'"]}.get(c["where"], [])
    args += [a for w in conditions for a in ("--where", w)]
    has_ids = c["type"] not in ("semi", "anti")
    has_p = has_ids and c["ids"] not in ("lines", "stdin")
    columns = ["v", "k"] + ["id"] * has_ids
    if c["columns"]:
        named = [f"ids.{n}" if n == "id" else n for n in columns]
        args += ["--columns", ",".join(named)] if c["columns"] == "some" else [a for n in named for a in ("--columns", n)]
    else:
        columns = ["k", "v", "s"] + ["dt"] * (c["log"] in IN_DIRECTORY) + ["id"] * has_ids + ["p"] * has_p
    logs = log_of(d, c)
    if c["logs"] == "exclude":
        args += ["--exclude", f"dt={DAYS[2]}/"]
        conditions = [*conditions, f"dt <> '{DAYS[2]}'"]
    args += ["--require-rows", "1"] * bool(c["require"]) + ["--prune"] * (c["again"] == "prune")
    args += {"empty": ["--empty", "write"], "target": ["--target-file-size", "1MiB"]}.get(c["files"], [])
    if c["log"] == "stream":
        stdin = d.stream()
    got = answer(t, d, c, args, logs, stdin, columns)
    on = {"cast": "try_cast(l.k as bigint) = i.id", "lower": "lower(l.k) = i.id"}.get(d.key, "l.k = i.id")
    log = "(select * from log" + (" where " + " and ".join(f"({w})" for w in conditions) if conditions else "") + ") l"
    kind = {"right": "right", "full": "full", "semi": "semi", "anti": "anti"}.get(c["type"], c["type"])
    names = [("i." if n in ("id", "p") else "l.") + n for n in columns]
    what = "count(*)" if c["out"] == "count" else ", ".join(names)
    want = tables.sql(f"select {what} from {log} {kind} join ids i on {on}", log=d.log, ids=d.ids)
    return got, want[0][0] if c["out"] == "count" else sorted(map(repr, want))


def log_of(d, c):
    """The arguments that name the log."""
    log = {
        "file": [d.dir / "log.parquet"], "arrow": [d.dir / "log.arrow"], "directory": [d.dir / "log"], "stream": ["-"],
        "url": [f"file://{d.dir}/log/"], "list": ["--files-from", d.dir / "list.jsonl"], "names": ["--files-from", d.dir / "names.txt"], "pattern": [f"{d.dir}/lo*/**/[!x].parquet"],
    }[c["log"]]  # fmt: skip
    if c["logs"] == "twice":
        if c["log"] == "names":
            twice = d.dir / "twice.txt"
            twice.write_text((d.dir / "names.txt").read_text() * 2)
            return ["--files-from", twice]
        return [*log, f"{log[0].parent}/./{log[0].name}"]
    return log


def answer(t, d, c, args, logs, stdin, columns):
    """Runs the join into the output that the combination has, and reads it."""
    if c["out"] == "count":
        return int(t.run(*args, "--count", *logs, stdin=stdin).out)
    if c["out"] == "stream":
        with pa.ipc.open_stream(t.run(*args, "-o", "-", *logs, stdin=stdin).out) as r:
            return rows(r.read_all(), columns)
    out = t.path({"file": "out.parquet", "arrow": "out.arrow"}.get(c["out"], "out"))
    if c["out"] in ("file", "arrow"):
        for again in range(1 + (c["again"] == "force")):
            t.run(*args, *["--force"] * again, "-o", out, *logs, stdin=stdin)
        return rows(tables.read(out), columns)
    shards = [["--shard", f"{n}/2"] for n in range(2)] if c["out"] in IN_SHARDS else [[]]
    for shard in shards * (c["out"] in GROWN):
        day = log_of(d, c | {"log": "directory"})[0] / f"dt={DAYS[0]}"
        t.run(*args, *shard, "-o", f"{out}/", f"file://{day}" if c["log"] == "url" else day)
    for shard in shards:
        for again in range(1 + (c["again"] == "force")):
            t.run(*args, *shard, *["--force"] * again, "-o", f"{out}/", *logs, stdin=stdin)
    read = [rows(in_path(p, out, columns), columns) for p in tables.data_files(out)]
    shutil.rmtree(out)
    shutil.rmtree(f"{out}.bloomjoin")
    return sorted(itertools.chain.from_iterable(read))


def in_path(file, out, columns):
    """A table with the columns of its path."""
    table = tables.read(file)
    for part in file.relative_to(out).parts[:-1]:
        name, _, value = part.partition("=")
        if name in columns and name not in table.column_names:
            table = table.append_column(name, pa.array([None if value.startswith("__HIVE") else datetime.date.fromisoformat(value)] * len(table), pa.date32()))
    return table


def rows(table, columns):
    return sorted(repr(tuple(r[c] for c in columns)) for r in table.select(columns).to_pylist())


def pairs(t):
    data = {key: Data(t, key) for key in FACTORS["key"]}
    for c in combinations():
        name = ", ".join(f"{f} {v}" for f, v in c.items() if v)
        try:
            got, want = join(t, data[c["key"]], c)
        except AssertionError as e:
            t.ok(name, False, str(e))
            continue
        t.ok(name, got == want, f"want {len(want) if isinstance(want, list) else want} rows, got {len(got) if isinstance(got, list) else got}")


def once_wrong(t):
    """What once gave a wrong answer with exit 0, each with DuckDB's rows or the error that it is now."""
    d = Data(t, "int64")
    base = d.dir
    log = base / "log"
    first, other = f"{log}/dt={DAYS[0]}/0.parquet", f"{log}/dt={DAYS[1]}"
    join = ["join", "--ids", base / "ids.parquet", "--on", "k=id", "--type", "inner"]

    def rows_of(name, where, args, ids="ids"):
        """Counts the rows of an inner join, with DuckDB's number of those of the log that satisfy a condition."""
        want = tables.sql(f"select count(*) from log l join {ids} i on l.k = i.id where {where}", log=d.log, ids=d.ids)
        r = t.run(*join, "--count", *args, want=None)
        t.ok(name, r.code == 0 and int(r.out) == want[0][0], f"want {want[0][0]}, got {r.out} {r}")
        return r

    def refused(name, code, words, *args):
        r = t.run(*args, want=None)
        t.ok(name, r.code == code and all(w in r.text for w in words), str(r))

    # A flag twice.
    refused("--on twice", 64, ["--on", "k=id"], *join, "--on", "v=id", "--count", log)
    refused("--memory twice", 64, ["--memory"], *join, "--memory", "1GiB", "--memory", "2GiB", "--count", log)
    rows_of("a flag twice with one value", "true", ["--memory", "1GiB", "--memory", "1GiB", log])
    rows_of("--where twice", "(v < 900 or s = 's1') and s <> 's2'", ["--where", "v < 900 OR s = 's1'", "--where", "s <> 's2'", log])
    refused("--where twice, brackets across", 64, ["--where"], *join, "--where", "v < 900) OR (s = 's1'", "--where", "s <> 's2'", "--count", log)
    filters = [t.path("a.bjf"), t.path("b.bjf")]
    for f, key in zip(filters, ("id", "p"), strict=True):
        t.run("build", "--key", key, "-o", f, base / "ids.parquet")
    refused("--filter twice", 64, ["--filter"], "scan", "--filter", filters[0], "--key", "k", "--filter", filters[1], "--key", "s", "--count", log)
    refused("--key twice", 64, ["--key"], "build", "--key", "id", "--key", "p", "-o", t.path("c.bjf"), base / "ids.parquet")
    out = t.path("columns.parquet")
    t.run(*join, "--columns", "v", "--columns", "ids.p,s", "-o", out, log)
    t.equal("--columns twice", tables.read(out).column_names, ["v", "p", "s"])
    rows_of("--include and --exclude twice", f"dt = '{DAYS[0]}'", ["--include", f"dt={DAYS[0]}/", "--include", f"dt={DAYS[1]}/", "--exclude", f"dt={DAYS[1]}/", "--exclude", "none", log])

    # One file by several names.
    day = f"dt = '{DAYS[0]}' and v < 500"
    r = rows_of("a file by three names", day, [first, f"{log}/./dt={DAYS[0]}/0.parquet", f"{base}/log/../log/dt={DAYS[0]}/0.parquet"])
    t.ok("a file by three names: a note", "read once" in r.text, r.text)
    rows_of("a directory and a pattern in it", "true", [log, f"{log}/**/0.parquet"])
    names = t.path("names.txt")
    names.write_text(f"{first}\n{first}\n")
    rows_of("a list that names a file twice", day, ["--files-from", names])
    rows_of("IDs by two names", "true", ["--ids", f"{base}/./ids.parquet", log])
    t.run("inputs", "-o", t.path("l.jsonl"), log, first)
    t.equal("a list of inputs by several names", t.run("inputs", "--json", "-o", t.path("l.jsonl"), log, first).json["inputs"], 6)
    links = t.path("links")
    for n, day_of in enumerate(("2024-05-01", "2024-05-09")):
        (links / f"dt={day_of}").mkdir(parents=True)
        (links / f"dt={day_of}/{n}.parquet").symlink_to(first)
    twice = tables.sql("select 2 * count(*) from log l join ids i on l.k = i.id where " + day, log=d.log, ids=d.ids)[0][0]
    t.equal("links in two partitions are two files", int(t.run(*join, "--count", links).out), twice)
    (links / "dt=2024-05-09/1.parquet").unlink()
    os.link(first, links / "dt=2024-05-01/hard.parquet")
    r = t.run(*join, "--count", links)
    t.ok("hard links are read, with a note", int(r.out) == twice and "hard links" in r.text, str(r))

    # Patterns.
    flat = t.path("flat")
    shutil.copytree(log / f"dt={DAYS[0]}", flat)
    shutil.copytree(log / f"dt={DAYS[1]}", flat / "deep/er")
    both, above, below = "v < 2000", "v < 1000", "v >= 1000 and v < 2000"
    for pattern, where in {
        "**": both, "**/*.parquet": both, "*/*/0.parquet": "v >= 1000 and v < 1500", "{0,1}.parquet": above, "[!0].parquet": "v >= 500 and v < 1000",
        "d*/**": below, "**/[!0].parquet": "v >= 500 and v < 1000 or v >= 1500 and v < 2000",
    }.items():  # fmt: skip
        rows_of(f"pattern {pattern}", where, [f"{flat}/{pattern}"])
    for exclude, where in {
        "{0,1}.parquet": "false", "deep/": above, "./0.parquet": "v >= 500 and v < 2000", "/0.parquet": "v >= 500 and v < 2000", "er": above,
        "[!1].parquet": "v >= 500 and v < 1000 or v >= 1500 and v < 2000", "deep/*/0.parquet": "v < 1000 or v >= 1500 and v < 2000", "**/0.*": "v >= 500 and v < 1000 or v >= 1500 and v < 2000",
    }.items():  # fmt: skip
        if where == "false":
            refused(f"--exclude {exclude}", 1, ["leave out all"], *join, "--exclude", exclude, "--count", flat)
        else:
            rows_of(f"--exclude {exclude}", f"v < 2000 and ({where})", ["--exclude", exclude, flat])
    rows_of("--exclude an absolute path", "v >= 500 and v < 2000", ["--exclude", flat / "0.parquet", flat])
    rows_of("--exclude of a pattern", above, ["--exclude", "er/", f"{flat}/**"])
    r = rows_of("--exclude that matches nothing", both, ["--exclude", "x.parquet", flat])
    t.ok("--exclude that matches nothing: a warning", "x.parquet leaves out no file" in r.text, r.text)
    refused("a pattern that matches nothing", 1, ["matches no file"], *join, "--count", flat, f"{flat}/*.nothing")

    unfinished(t, d, rows_of, refused)
    replaced(t, d, refused, filters[0], first, other)


def unfinished(t, d, rows_of, refused):
    """Outputs of which no run is committed, or one is and another is not: a reader sees all rows of a run or none."""
    parent, mixed = t.path("parent"), t.path("mixed")
    out, log = parent / "out", d.dir / "log"
    mixed.mkdir()
    (mixed / "out").symlink_to(out)
    (mixed / "out.bloomjoin").symlink_to(f"{out}.bloomjoin")
    shutil.copytree(log / f"dt={DAYS[0]}", mixed / f"other/dt={DAYS[0]}")
    shards = ["join", "--ids", d.dir / "ids.parquet", "--on", "k=id", "--shard"]
    t.run(*shards, "0/3", "-o", f"{out}/", log)
    r = t.run(*shards, "2/3", "--json", "-o", f"{out}/", log, want=None)
    said = "2 of 3 workers are done, without 1"
    t.ok("a worker says what is missing", said in r.text and r.json["unfinished"] == said, str(r))
    t.equal("unfinished: no file has its name", tables.data_files(out), [])
    staged = sorted(out.rglob("*.staged"))
    names = t.path("parts.txt")
    names.write_text("".join(f"{p}\n" for p in staged))
    count = ["join", "--ids", d.dir / "ids.parquet", "--on", "k=id", "--type", "inner", "--count"]
    for name, args in {
        "a directory": [f"{out}/"], "its parent": [parent], "a pattern": [f"{parent}/o*"], "a pattern of partitions": [f"{parent}/*/dt=*/"],
        "a staged file": [staged[0]], "one of its partitions": [staged[0].parent], "a list of staged files": ["--files-from", names],
        "a pattern, beside other data": [f"{mixed}/o*"], "a pattern of partitions, beside other data": [f"{mixed}/*/dt=*/"], "a deep pattern, beside other data": [f"{mixed}/**/*.parquet"],
    }.items():  # fmt: skip
        refused(f"unfinished: {name}", 1, [said, "--uncommitted"], *count, *args)
    refused("unfinished: a file that will be", 1, ["no such file"], *count, out / f"dt={DAYS[0]}/0.parquet")
    refused("unfinished: a deep pattern", 1, ["matches no file"], *count, f"{parent}/**/*.parquet")
    for name, args in {
        "inputs": ["inputs", "-o", t.path("l.jsonl"), parent], "build": ["build", "--key", "k", "-o", t.path("k.bjf"), parent],
        "plan": ["plan", "--ids", d.dir / "ids.parquet", "--on", "k=id", parent], "IDs": ["join", "--ids", out, "--on", "k", "--count", log],
        "inspect --check": ["inspect", "--check", out],
    }.items():  # fmt: skip
        refused(f"unfinished: {name}", 1, [said], *args)
    r = t.run("inspect", "--check", "--json", out, want=None)
    t.ok("unfinished: inspect --json", said in str(r.json["directories"][0]["problems"]) and not r.json["directories"][0]["complete"], str(r))
    refused("--uncommitted finds no files", 1, ["holds no files"], *count, "--uncommitted", parent)
    t.equal("--uncommitted reads what is beside it", int(t.run(*count, "--uncommitted", mixed).out), int(t.run(*count, mixed / "other").out))
    t.run(*shards, "1/3", "--no-commit", "-o", f"{out}/", log)
    refused("not committed", 1, ["3 of 3 workers are done, and nothing is committed"], *count, parent)
    t.run("commit", out)
    rows_of("a finished output is read", "true", [parent])
    t.equal("nothing is left that is staged", sorted(parent.rglob("*.staged")), [])
    # What a commit leaves that is killed while it publishes.
    files = {f["name"]: f["staged"] for f in json.loads((parent / "out.bloomjoin/manifest-00000001.json").read_text())["files"]}
    one, hidden = (out / min(files)), (out / max(files))
    hidden.rename(hidden.with_name(files[max(files)]))
    for p in [parent / "out.bloomjoin/settled-00000001.json", *out.rglob("_SUCCESS")]:
        p.unlink()
    names.write_text(f"{one}\n")
    for name, args in {
        "a directory": [f"{out}/"], "its parent": [parent], "a list": ["--files-from", names], "a pattern": [f"{parent}/o*"], "a pattern of partitions": [f"{parent}/*/dt=*/"],
        "a deep pattern": [f"{parent}/**/*.parquet"], "one of its files": [one], "one of its partitions": [one.parent],
    }.items():  # fmt: skip
        refused(f"cut short: {name}", 1, ["its commit was cut short", "--uncommitted"], *count, *args)
    t.ok("cut short: --uncommitted reads it", int(t.run(*count, "--uncommitted", parent).out) > 0)
    t.run("commit", out)
    rows_of("cut short, and finished", "true", [parent])
    grown(t, d, rows_of)


def grown(t, d, rows_of):
    """While a run over more files is not committed, readers see what the one before it left."""
    out, log, day = t.path("grown") / "out", d.dir / "log", f"dt = '{DAYS[0]}'"
    join = ["join", "--ids", d.dir / "ids.parquet", "--on", "k=id", "-o", f"{out}/"]
    t.run(*join, log / f"dt={DAYS[0]}")
    t.run(*join, "--shard", "0/2", log)
    t.ok("grown: files are staged", list(out.rglob("*.staged")))
    ways = {"a directory": f"{out}/", "its parent": out.parent, "a pattern": f"{out.parent}/o*", "a pattern of partitions": f"{out}/dt=*/", "a pattern of files": f"{out}/*/*", "a deep pattern": f"{out.parent}/**/*.parquet"}
    for name, way in ways.items():
        rows_of(f"grown, not committed: {name}", day, [way])
    t.run(*join, "--shard", "1/2", log)
    for name, way in ways.items():
        rows_of(f"grown: {name}", "true", [way])


def replaced(t, d, refused, filter_file, first, other):
    """Outputs that would take the place of inputs, or that are not what their names say."""
    work = t.path("replaced")
    work.mkdir()
    for name in ("a", "b"):
        shutil.copy(first, work / f"{name}.parquet")
    a, b = work / "a.parquet", work / "b.parquet"
    before = b.read_bytes()
    jsonl, text = work / "l.jsonl", work / "l.list"
    t.run("inputs", "-o", jsonl, a, b)
    text.write_text(f"{a}\n{b}\n")
    scan, join = ["scan", "--filter", filter_file, "--key", "k", "--force"], ["join", "--ids", d.dir / "ids.parquet", "--on", "k=id", "--force"]
    hard, soft = work / "hard.parquet", work / "soft.parquet"
    os.link(b, hard)
    soft.symlink_to(b)
    for name, out in {"by its name": b, "by a hard link": hard, "by a link": soft, "by a longer path": f"{work}/./b.parquet"}.items():
        for verb, args in {"scan": scan, "join": join}.items():
            for how, logs in {"a list of inputs": ["--files-from", jsonl], "names": ["--files-from", text], "arguments": [a, b]}.items():
                refused(f"{verb} into an input of {how}, {name}", 1, ["is the input"], *args, "-o", out, *logs)
    refused("into the directory of a list", 1, ["is the input"], *scan, "-o", f"{work}/", "--files-from", jsonl)
    refused("into the list itself", 1, ["l.list"], *scan, "--format", "parquet", "-o", text, "--files-from", text)
    refused("inputs into its own list", 1, ["l.list"], "inputs", "--force", "-o", text, "--files-from", text)
    t.ok("the inputs are as they were", b.read_bytes() == before and text.read_text().startswith(str(a)))
    out = t.path("formats")
    for name, args in {
        "build": ["build", "--key", "k", "-o", f"{out}.parquet", a], "join": [*join, "-o", f"{out}.bjf", a], "scan": [*scan, "-o", f"{out}.parquet.gz", a],
        "inputs": ["inputs", "-o", f"{out}.parquet", a], "--format": [*scan, "--format", "arrow", "-o", f"{out}.parquet", a],
    }.items():  # fmt: skip
        refused(f"another format than the name says: {name}", 64, ["its name says"], *args)
    moved = work / "elsewhere"
    moved.mkdir()
    a.rename(moved / "a.parquet")
    refused("a list that is out of date", 1, ["inputs --update"], *join[:-1], "--count", "--files-from", jsonl)
    pruned, log = t.path("pruned"), t.path("prune")
    shutil.copytree(other, log)
    t.run(*join, "-o", f"{pruned}/", log)
    (log / "0.parquet").unlink()
    shutil.copy(first, pruned / "0.parquet")
    refused("--prune of another program's file", 1, ["0.parquet is not the file"], *join[:-1], "--prune", "-o", f"{pruned}/", log)
    t.ok("--prune keeps another program's file", (pruned / "0.parquet").read_bytes() == before)


def run(t, _repository):
    t.group("seams", once_wrong)
    t.group("seams pairs", pairs, sampled=60)
