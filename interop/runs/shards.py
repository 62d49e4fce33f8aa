"""The same answer, whatever the number of shards and threads."""

import itertools
import random

import pyarrow as pa
import pyarrow.compute as pc

from common import harness, tables

SHARDS = 7
MANY = ([], ["--kind", "bloom"])  # options with which there are more shards than row groups, unless all are tried


def id_sets(t):
    """ID sets of several files: (name, key type, files)."""
    random.seed(7)
    dense = random.sample(range(200_000), 60_000)
    sparse = [random.getrandbits(63) for _ in range(150_000)]
    names = [f"user-{random.getrandbits(40)}" for _ in range(50_000)]
    for name, values, kind in [
        ("dense integers", dense, pa.int64()),
        ("sparse integers", sparse, pa.int64()),
        ("strings", names, pa.string()),
    ]:
        values += random.sample(values, 1000) + [None]  # doubles and a NULL
        files = []
        for i in range(3):
            part = pa.table({"k": pa.array(values[i::3], kind)})
            files.append(tables.write(part, t.path(f"ids-{name.split()[0]}-{i}.parquet"), row_group_size=6000))
        yield name, files


def build_all(t, files, *options):
    """One filter in one process; its path."""
    flt = t.path("whole.filter")
    t.run("build", "--key", "k", *options, "-o", flt, *files)
    return flt


def build_parts(t, files, *options, of=SHARDS):
    parts = []
    for i in range(of):
        parts.append(t.path(f"part{i}.filter"))
        t.run("build", "--key", "k", *options, "--shard", f"{i}/{of}", "-o", parts[-1], *files)
    return parts


def merged(t, parts, *options):
    flt = t.path("merged.filter")
    t.run("merge", *options, "-o", flt, *parts)
    return flt


def builds(t, files, every):
    ways = ([], ["--kind", "bloom"], ["--kind", "bloom", "--fpr", "0.03"], ["--kind", "bloom", "--max-size", "64KiB"])
    for options in ways if every else MANY:
        said = " ".join(options) or "defaults"
        whole = build_all(t, files, *options).read_bytes()
        parts = build_parts(t, files, *options)
        t.ok(f"{said}: 7 shards merged", merged(t, parts).read_bytes() == whole, "bytes differ")
        t.ok(f"{said}: in another order", merged(t, parts[::-1]).read_bytes() == whole, "bytes differ")
        tree = [merged(t, parts[a:b], "--partial") for a, b in [(0, 3), (3, 5), (5, 7)]]
        t.ok(f"{said}: as a tree", merged(t, tree).read_bytes() == whole, "bytes differ")
        for threads in (1, 8):
            one = build_all(t, files, *options, "--threads", threads)
            t.ok(f"{said}: {threads} threads", one.read_bytes() == whole, "bytes differ")
        if options not in MANY and not harness.FULL or not every:
            continue
        whole, parts = build_all(t, files[:1], *options), build_parts(t, files[:1], *options, of=40)
        t.ok(
            f"{said}: more shards than row groups", merged(t, parts).read_bytes() == whole.read_bytes(), "bytes differ"
        )


def merge_refusals(t, files):
    """A merge that is not of all parts of one build, each once."""
    parts, other = build_parts(t, files), build_parts(t, files[:1])
    for name, some in [
        ("a part is missing", parts[:-1]),
        ("a part twice", [*parts, parts[0]]),
        ("a part of another build", [*parts[:-1], other[-1]]),
        ("a sealed filter among them", [*parts, merged(t, parts)]),
    ]:
        out = t.path("refused.filter")
        r = t.run("merge", "-o", out, *some, want=None)
        t.ok(f"{name}: exit 1", r.code == 1 and r.text.strip(), str(r))
        t.ok(f"{name}: no output", not out.exists())
    out = t.path("refused.parquet")
    r = t.run("scan", "--filter", parts[0], "--key", "k", "-o", out, files[0], want=None)
    t.ok("a scan with a partial filter: exit 1", r.code == 1 and not out.exists(), str(r))


def log_files(t):
    random.seed(11)
    logs = []
    for i in range(3):
        keys = pa.array(
            [random.randrange(2_000_000) if random.random() > 0.01 else None for _ in range(20_000)], pa.int64()
        )
        part = pa.table(
            {"k": keys, "row": pa.array(range(i * 20_000, i * 20_000 + 20_000)), "text": pc.cast(keys, pa.string())}
        )
        logs.append(tables.write(part, t.path(f"log{i}.parquet"), row_group_size=3000, data_page_size=4000))
    return logs


def scans(t, files):
    """Threads change no byte; shards of a scan are the whole scan, cut."""
    logs, flt = log_files(t), build_all(t, files, "--kind", "bloom", "--fpr", "0.02")
    for form in ("parquet", "arrow"):
        outs = []
        for threads in (1, 8):
            outs.append(t.path(f"threads{threads}.{form}"))
            t.run("scan", "--filter", flt, "--format", form, "--threads", threads, "-o", outs[-1], *logs)
        t.ok(f"{form}: 1 and 8 threads", outs[0].read_bytes() == outs[1].read_bytes(), "bytes differ")
    dirs = []
    for threads in (1, 8):
        dirs.append(t.path(f"dir{threads}"))
        t.run("scan", "--filter", flt, "--threads", threads, "-o", f"{dirs[-1]}/", *logs)
    contents = [{p.relative_to(d): p.read_bytes() for p in tables.data_files(d)} for d in dirs]
    t.ok(
        "directories: 1 and 8 threads", contents[0] == contents[1] and len(contents[0]) == 3, [len(c) for c in contents]
    )

    whole = tables.read(scanned(t, flt, logs))["row"].to_pylist()
    t.ok("rows are in input order", whole == sorted(whole))
    for of in (2, 5, 64):
        rows = []
        for i in range(of):
            part = t.path("part.parquet")
            t.run("scan", "--filter", flt, "--shard", f"{i}/{of}", "-o", part, *logs)
            rows.append(tables.read(part)["row"].to_pylist())
        t.ok(
            f"{of} shards are the whole, each row once",
            sorted(itertools.chain(*rows)) == whole,
            f"{sum(map(len, rows))} rows, want {len(whole)}",
        )


def scanned(t, flt, logs):
    out = t.path("whole.parquet")
    t.run("scan", "--filter", flt, "-o", out, *logs)
    return out


def joins(t, files):
    """Threads, shards and strategies leave a join's rows as they are."""
    logs = log_files(t)
    ids = list(itertools.chain(*(["--ids", f] for f in files)))
    rows = lambda out, kind: sorted(tables.sql("select * from o", o=tables.read(out)), key=str)  # noqa: E731
    for kind in ("semi", "anti", "inner", "left"):
        out = t.path("whole.parquet")
        t.run("join", *ids, "--on", "k", "--type", kind, "-o", out, *logs)
        whole = rows(out, kind)
        for threads in (1, 8):
            out = t.path("threads.parquet")
            t.run("join", *ids, "--on", "k", "--type", kind, "--threads", threads, "-o", out, *logs)
            t.ok(f"{kind}: {threads} threads", rows(out, kind) == whole)
        parts = []
        for i in range(3):
            out = t.path("shard.parquet")
            t.run("join", *ids, "--on", "k", "--type", kind, "--shard", f"{i}/3", "-o", out, *logs)
            parts += rows(out, kind)
        t.ok(f"{kind}: 3 shards", sorted(parts, key=str) == whole, f"{len(parts)} rows, want {len(whole)}")


def run(t, _repository):
    sets = dict(id_sets(t))
    for name, files in sets.items():
        t.group(f"builds {name}", builds, files, harness.FULL or name == "sparse integers")
    t.group("merge refusals", merge_refusals, sets["sparse integers"])
    t.group("scans", scans, sets["dense integers"])
    t.group("joins", joins, sets["dense integers"])
