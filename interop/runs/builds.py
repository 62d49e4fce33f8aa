"""The same filter, whatever the ID files look like and however the work is divided; all its members pass."""

import datetime
import decimal
import gzip
import json
import math
import os
import random
import struct

import numpy as np
import pyarrow as pa

from common import harness, tables

# For a longer search: another seed, and more rounds than it takes to notice what was broken lately.
SEED, ROUNDS = int(os.environ.get("BUILDS_SEED", 6)), int(os.environ.get("BUILDS_ROUNDS", 3 if harness.FULL else 1))
CODECS = ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]


class Filter:
    """A filter file by codec/FORMAT.md: its header sections by type, and its payload."""

    def __init__(self, path):
        b = path.read_bytes()
        assert b[:8] == b"\x89BJF\r\n\x1a\n", b[:8]
        end = 24 + struct.unpack_from("<I", b, 12)[0]
        self.sections, pos = {}, 24
        while pos < end:
            kind, _, size = struct.unpack_from("<HHI", b, pos)
            self.sections[kind] = b[pos + 8 : pos + 8 + size]
            pos += 16 + (size + 7) // 8 * 8
        chunk, parts = struct.unpack_from("<II", self.sections[4])
        size = sum(struct.unpack_from(f"<{parts}Q", self.sections[4], 8))
        count = -(-size // chunk)
        payload = []
        for i in range(count):
            stored, coding = struct.unpack_from("<IB", b, len(b) - 16 - 8 - 16 * (count - i))
            n = min(chunk, size - i * chunk)
            pos = pos if coding else (pos + 4095) // 4096 * 4096
            raw = b[pos : pos + stored]
            payload.append(pa.decompress(raw, n, codec="zstd", asbytes=True) if coding else raw)
            pos += stored
        self.payload = b"".join(payload)
        assert len(self.payload) == size, (len(self.payload), size)

    @property
    def content(self):
        """All but the build id, which tells the inputs."""
        return {k: v for k, v in self.sections.items() if k != 6}, self.payload


def ints(rng, n):
    """Integers of a shape, and the types that hold them all."""
    shape = rng.choice(["dense", "sparse", "clusters", "negative", "beyond int64", "tiny", "few", "steps"])
    g = np.random.default_rng(rng.getrandbits(64))
    match shape:
        case "dense":
            values = g.permutation(n) + rng.choice([0, 10**6, 2**40])
        case "sparse":
            values = g.integers(-(2**63), 2**63 - 1, n)
        case "clusters":
            values = (g.integers(0, max(n // 300, 1), n) << 16) + g.integers(0, 400, n)
        case "negative":
            values = -g.integers(0, 5 * n + 1, n)
        case "beyond int64":
            values = [2**64 - 1 - int(v) for v in g.integers(0, 2 * n + 1, n)]
        case "tiny":
            values = g.integers(-128, 128, n)
        case "few":
            values = g.choice(g.integers(0, 2**62, 37), n)
        case "steps":
            values = np.arange(n) * rng.choice([1000, 65536, 65535, 7])
    values = [int(v) for v in values]
    lo, hi = min(values, default=0), max(values, default=0)
    types = [
        t
        for t, (a, b) in {
            **{getattr(pa, f"int{w}")(): (-(2 ** (w - 1)), 2 ** (w - 1) - 1) for w in (8, 16, 32, 64)},
            **{getattr(pa, f"uint{w}")(): (0, 2**w - 1) for w in (8, 16, 32, 64)},
        }.items()
        if a <= lo and hi <= b
    ]
    return shape, values, types


def others(rng, n):
    """Values of a type that is no integer, and the types that hold them."""
    g = np.random.default_rng(rng.getrandbits(64))
    shape = rng.choice(["text", "long text", "binary", "fixed", "decimal", "instant", "timestamp", "float", "date", "bool"])
    draw = g.integers(0, 3 * n + 1, n).tolist()
    match shape:
        case "text":
            return shape, [f"user-{v}" if v % 9 else "ü" * (v % 4) for v in draw], [pa.string(), pa.large_string()]
        case "long text":
            return shape, [f"{v:x}" * (v % min(200, 10**7 // n)) for v in draw], [pa.string(), pa.large_string()]
        case "binary":
            return shape, [v.to_bytes(1 + v % 17, "little", signed=False)[:17] if v < 256 ** (1 + v % 17) else b"\0" * (v % 5) for v in draw], [pa.binary(), pa.large_binary()]  # fmt: skip
        case "fixed":
            return shape, [v.to_bytes(16, "big") for v in draw], [pa.binary(16)]
        case "decimal":
            return shape, [decimal.Decimal(v) / 4 - 100 for v in draw], [pa.decimal256(50, 9), pa.decimal128(38, 5), pa.decimal128(20, 2)]
        case "instant":
            base = datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC)
            return shape, [base + datetime.timedelta(milliseconds=v) for v in draw], [pa.timestamp(u, "UTC") for u in ("ms", "us", "ns")]
        case "timestamp":
            base = datetime.datetime(1960, 1, 1)
            return shape, [base + datetime.timedelta(seconds=v * 7919) for v in draw], [pa.timestamp(u) for u in ("ms", "us", "ns")]
        case "float":
            return shape, [[0.0, -0.0, math.nan, math.inf][v % 4] if v % 5 == 0 else v / 8 for v in draw], [pa.float32(), pa.float64()]
        case "date":
            return shape, [datetime.date(1970, 1, 1) + datetime.timedelta(v % 60000 - 30000) for v in draw], [pa.date32()]
        case "bool":
            return shape, [v % 3 == 0 for v in draw], [pa.bool_()]


def write(t, rng, table, columns):
    """The rows in files of some layout; their paths."""
    n, files, at = table.num_rows, [], 0
    cuts = sorted(rng.randint(0, n) for _ in range(rng.choice([0, 0, 1, 2, 5])))
    for end in [*cuts, n]:
        part, at = table.slice(at, end - at), end
        if rng.random() < 0.2:
            path = t.path(f"ids{len(files)}.arrow")
            options = pa.ipc.IpcWriteOptions(compression=rng.choice([None, "lz4", "zstd"]))
            with pa.ipc.new_file(path, part.schema, options=options) as out:
                out.write_table(part, max_chunksize=rng.choice([None, max(part.num_rows // 3, 1)]))
        else:
            dictionary = rng.random() < 0.5
            encodings = {}
            for c in columns if not dictionary else []:
                kind = part.schema.field(c).type
                if pa.types.is_integer(kind) and kind.bit_width >= 32:
                    encodings[c] = rng.choice(["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"])
                elif pa.types.is_string(kind) or pa.types.is_binary(kind):
                    encodings[c] = rng.choice(["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
            path = tables.write(
                part, t.path(f"ids{len(files)}.parquet"), compression=rng.choice(CODECS), use_dictionary=dictionary,
                column_encoding=encodings or None, data_page_version=rng.choice(["1.0", "2.0"]),
                data_page_size=rng.choice([100, 5000, 2**20]), dictionary_pagesize_limit=rng.choice([1000, 2**20]),
                row_group_size=rng.choice([None, max(part.num_rows // 7, 1), 2**17]), write_page_checksum=rng.random() < 0.5,
                write_statistics=rng.random() < 0.5, write_page_index=rng.random() < 0.3, store_schema=rng.random() < 0.5,
            )  # fmt: skip
        files.append(path)
    rng.shuffle(files)
    return files


def built(t, options, files, *more, stdin=b"", little=False):
    """The filter of the files, and what build says of it; None if it had too little memory, which may be."""
    out = t.path("built.filter")
    r = t.run("build", "--json", *options, *more, "-o", out, *files, stdin=stdin, want=None if little else 0)
    if r.code == 0:
        return out, json.loads(r.out)
    assert r.code == 1 and "over the memory budget" in r.text and not out.exists(), str(r)
    return None, None


def in_little_memory(t, rng, options, files):
    """How the work was shared in budgets around the size of the filter, and what came out."""
    for memory in ["16MiB", rng.choice(["18MiB", "20MiB"]), rng.choice(["24MiB", "32MiB", "48MiB"])]:
        threads = rng.choice([1, 2, 5, 16])
        out, said = built(t, options, files, "--memory", memory, "--threads", threads, little=True)
        if out:
            yield f"{memory}, {threads} threads, {said['sharing']}, {said['passes']} passes", said["sharing"], out


def by_shards(t, rng, options, files):
    """The filter of the files by way of shards, merged in some order and in steps."""
    n = rng.choice([1, 2, 3, 7, 20])
    parts = [built(t, options, files, "--shard", f"{i}/{n}", "--threads", rng.choice([1, 2, 5]))[0] for i in range(n)]
    rng.shuffle(parts)
    while len(parts) > 2 and rng.random() < 0.7:
        k, out = rng.randint(2, len(parts) - 1), t.path("partial.filter")
        t.run("merge", "--partial", "-o", out, *parts[:k], *(["--uncompressed"] if rng.random() < 0.5 else []))
        parts = [*parts[k:], out]
    out = t.path("merged.filter")
    t.run("merge", "-o", out, *parts)
    return out


def as_text(t, rng, values):
    """The values, which are integers or texts and None, as a text input: (files, options, standard input)."""
    text = [None if v is None else str(v) for v in values]
    form = rng.choice(["csv", "ndjson", "txt"] if values else ["csv", "txt"])
    end = rng.choice(["\n", "\r\n"])
    match form:
        case "csv":
            quote = lambda s: '"' + s.replace('"', '""') + '"' if rng.random() < 0.1 and s else s  # noqa: E731
            lines = ["other,k", *(f"x,{quote(v or '')}" for v in text)]
        case "ndjson":
            lines = [json.dumps({"k": v}) for v in values]
        case "txt":
            lines = [v for v in text if v]
    data = end.join(lines) + rng.choice([end, end, ""])
    data = (rng.choice(["", "\ufeff"]) + data).encode()
    if rng.random() < 0.3:
        return ["-"], ["--ids-format", {"txt": "lines"}.get(form, form)], data
    path = t.path(f"ids.{form}" + (ending := rng.choice(["", "", ".gz"])))
    path.write_bytes(gzip.compress(data, 1) if ending else data)
    return [path], [], b""


def distinct_of(t, key, table):
    columns = ", ".join(key)
    present = " and ".join(f"{c} is not null" for c in key)
    return tables.sql(f"select count(*) from (select distinct {columns} from ids where {present})", ids=table)[0][0]


def one(t, rng, n, ways, spilled):
    """One ID set in many forms; notes in ways how the work was shared, and what waited on disk."""
    kind = rng.choice(["int", "int", "int", "other", "two"])
    shape, values, types = ints(rng, n) if kind != "other" else others(rng, n)
    for i in range(n) if rng.random() < 0.4 else []:
        if rng.random() < 0.05:
            values[i] = None
    columns = {"k": (values, types)}
    if kind == "two":
        _, more, kinds = ints(rng, n) if rng.random() < 0.5 else others(rng, n)
        columns["j"] = (more, kinds)
    key = list(columns)
    table = pa.table({c: pa.array(v, k[-1]) for c, (v, k) in columns.items()})
    present = sum(all(v[0][i] is not None for v in columns.values()) for i in range(n))
    want = rng.choice(["auto", "bloom", *(["exact"] if kind == "int" else [])])
    options = ["--key", ",".join(key), "--expect", max(n, 1) * rng.choice([1, 1, 1, 3]), "--kind", want]
    options += rng.choice([[], ["--fpr", 0.01], ["--fpr", 1e-4], ["--fpr", 1e-7], ["--max-size", "100KiB"], ["--geometry", "split-512"], ["--no-key-range"]])
    name = f"{n} of {kind} {shape}, {' '.join(map(str, options[2:]))}"
    first = tables.write(table, t.path("first.parquet"))
    out, said = built(t, options, [first], "--threads", 1)
    whole = Filter(out)
    t.equal(f"{name}: rows, keys", (said["rows"], said["keys"]), (n, present))
    if shape != "float" and kind != "two":
        count = distinct_of(t, key, table)
        error = 0.05 * count + 2 if said["distinct_estimated"] and said["fpr_predicted"] < 0.9 else 0
        if said["fpr_predicted"] < 0.9:
            t.ok(f"{name}: distinct", abs(said["distinct"] - count) <= error, f"{said['distinct']}, want {count}")
    wrong = []

    def same(how, got):
        if Filter(got).content != whole.content:
            wrong.append(how)

    for _ in range(ROUNDS):
        types = {c: rng.choice(k) for c, (_, k) in columns.items()}
        order = np.random.default_rng(rng.getrandbits(64)).permutation(n)
        other = pa.table({c: pa.array(v, types[c]) for c, (v, _) in columns.items()}).take(pa.array(order))
        files = write(t, rng, other, key)
        more = rng.choice([["--threads", 3], ["--threads", 8], ["--threads", 64], ["--memory", "300MiB"], ["--uncompressed"]])
        out, said = built(t, options, files, *more, little=want == "exact")  # a set of far keys takes much
        if not out:
            continue
        same(f"{types}, {more}, {files}", out)
        t.ok(f"{name}: {more}: rows, keys", (said["rows"], said["keys"]) == (n, present), said)
        same(f"{types}, shards of {files}", by_shards(t, rng, options, files))
        for how, sharing, out in in_little_memory(t, rng, options, files):
            same(f"{types}, {how}, {files}", out)
            ways.add(sharing)
        passed = t.run("scan", "--json", "--count", "--filter", out, "--key", ",".join(key), first, *files).json
        t.ok(f"{name}: all members pass", (passed["rows_in"], passed["rows_out"]) == (2 * n, 2 * present), passed)
        if kind == "int" or shape == "text" and "" not in values:
            files, more, data = as_text(t, rng, values)
            more += ["--key-type", "string" if kind == "other" else str(columns["k"][1][-1])]
            same(f"{files} {more}", built(t, options, files, *more, stdin=data)[0])
            free = [o for i, o in enumerate(options) if o != "--expect" and options[i - 1] != "--expect"]
            more += rng.choice([[], ["--memory", "32MiB"], ["--memory", "128MiB"]])
            out, said = built(t, free, files, *more, stdin=data, little=True)
            if not out:
                continue
            spilled.append(said.get("spilled_bytes", 0))
            passed = t.run("scan", "--json", "--count", "--filter", out, "--key", "k", first).json
            t.ok(f"{name}: all pass without --expect", passed["rows_out"] == present == said["keys"], (passed, said))
            if "--max-size" not in options:
                t.ok(f"{name}: the rate without --expect", said["fpr_predicted"] <= 1.05 * said["fpr_asked"], said)
    t.equal(f"{name}: other bytes from", wrong, [])


def sets(t, _repository):
    rng, ways, spilled = random.Random(SEED), set(), []
    for n in (0, 1, 2, 100, 5000, 5000, 70_000, 70_000, 300_000, 300_000, 700_000) if harness.FULL else (0, 1, 100, 5000, 70_000, 300_000):
        one(t, rng, n, ways, spilled)
    # Private filters would exceed the budget here, so the workers share one.
    ids = tables.write(pa.table({"k": pa.array(rng.sample(range(2**40), 100_000))}), t.path("ids.parquet"), row_group_size=9000)
    options = ["--key", "k", "--kind", "bloom", "--expect", 20_000_000]
    (alone, _), (shared, said) = (built(t, options, [ids], "--threads", n) for n in (1, 5))
    t.ok("one filter that five workers fill", Filter(alone).content == Filter(shared).content)
    ways.add(said["sharing"])
    if SEED != 6:
        return
    t.equal("all ways of sharing the work were gone", ways, {"alone", "private", "ranges"})
    if harness.FULL:  # with fewer sets none may be large enough
        t.ok("keys waited on disk, and in memory", any(spilled) and not all(spilled), spilled)


def edges(t, _repository):
    """ID sets that are hardly any, and sizes that are hardly right: a filter whose members all pass, or a clear error."""
    many = list(range(0, 10**9, 3331 if harness.FULL else 33_331))
    for name, columns, kind in [
        ("no row", [[]], pa.int64()),
        ("NULLs", [[None] * 1000], pa.int64()),
        ("NULLs of text", [[None] * 1000, []], pa.string()),
        ("one key", [[], [7], []], pa.int64()),
        ("one key, many times", [[5] * 300_000], pa.int64()),
        ("one text, many times", [["x"] * 300_000], pa.string()),
        ("empty text", [["", None]], pa.string()),
        ("the ends of int64", [[2**63 - 1, -(2**63)]], pa.int64()),
        ("the ends of uint64", [[0, 2**64 - 1]], pa.uint64()),
        ("many keys", [many], pa.int64()),
        ("many texts", [[str(v) for v in many]], pa.string()),
    ]:
        files = [tables.write(pa.table({"k": pa.array(v, kind)}), t.path("edge.parquet")) for v in columns]
        rows, present = sum(map(len, columns)), sum(v is not None for c in columns for v in c)
        for more in [[], ["--kind", "bloom"], ["--expect", 1], ["--fpr", 1e-9], ["--fpr", 0.9], ["--max-size", 64], ["--expect", 10**7, "--threads", 64], ["--memory", "16MiB"]]:  # fmt: skip
            out, said = built(t, ["--key", "k", *more], files, little=True)
            if not out:
                t.ok(f"{name}, {more}: refused", more == ["--memory", "16MiB"] and rows > 1000)
                continue
            passed = t.run("scan", "--json", "--count", "--filter", out, "--key", "k", *files).json
            got = said["rows"], said["keys"], passed["rows_in"], passed["rows_out"]
            t.equal(f"{name}, {more}: rows, keys, members that pass", got, (rows, present, rows, present))
    ids = tables.write(pa.table({"k": pa.array(many[:9000])}), t.path("ids.parquet"))
    out = t.path("small.filter")
    r = t.run("build", "--key", "k", "--kind", "bloom", "--expect", 10, "-o", out, ids)
    t.ok("a filter that is too small: a warning", "warning" in r.text and "--expect" in r.text, r.text)
    for name, other, words in [
        ("the second file lacks the key", pa.table({"other": [1]}), ["second.parquet", '"k"']),
        ("the second file has text", pa.table({"k": ["1"]}), ["integer", "text or binary"]),
    ]:
        path, out = t.path("d") / "second.parquet", t.path("none.filter")
        r = t.run("build", "--key", "k", "-o", out, ids, tables.write(other, path), want=1)
        t.ok(f"{name}: {words}, no output", all(w in r.text for w in words) and not out.exists(), r.text)
    untyped = tables.write(pa.table({"k": pa.nulls(3)}), t.path("untyped.parquet"))
    r = t.run("build", "--key", "k", "-o", t.path("untyped.filter"), ids, untyped)
    t.ok("a key without a type has no IDs", "9,000 keys" in r.text, r.text)


def run(t, repository):
    t.group("builds at the edges", edges, repository)
    t.group("builds of random ID sets", sets, repository, sampled=25)
