"""Outputs as other readers see them: schema and values of every shape of output."""

import datetime
import decimal
import io
import itertools
import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from common import tables

ROWS = 3000
WANTED = [3, 4, 100, 999, 1500, 1501, 1502, 2999]


def rich():
    """A log of many types; the key is its row number, so that an exact filter keeps just the wanted rows."""
    n = range(ROWS)
    some = lambda f, every=7: [None if i % every == 0 else f(i) for i in n]  # noqa: E731
    item = pa.struct([("sku", pa.string()), ("count", pa.int16())])
    return pa.table({
        "k": pa.array(n, pa.int64()),
        "text": pa.array(some(lambda i: f"t{i % 50}")),
        "bytes": pa.array(some(lambda i: bytes([i % 256, 0])), pa.binary()),
        "coded": pa.array(some(lambda i: f"c{i % 5}")).dictionary_encode(),
        "flag": pa.array(some(lambda i: i % 3 == 0)),
        "tiny": pa.array(some(lambda i: i % 100), pa.int8()),
        "unsigned": pa.array(some(lambda i: 2**64 - 1 - i), pa.uint64()),
        "ratio": pa.array(some(lambda i: i / 3), pa.float32()),
        "double": pa.array(some(lambda i: -i / 7)),
        "money": pa.array(some(lambda i: decimal.Decimal(i) / 100), pa.decimal128(20, 2)),
        "day": pa.array(some(lambda i: datetime.date(2001, 1, 1) + datetime.timedelta(i))),
        "ms": pa.array(some(lambda i: i * 1001), pa.timestamp("ms")),
        "us": pa.array(some(lambda i: i * 1_000_001), pa.timestamp("us", "UTC")),
        "ns": pa.array(some(lambda i: i * 1_000_000_001), pa.timestamp("ns")),
        "clock": pa.array(some(lambda i: i * 1000), pa.time64("us")),
        "fixed": pa.array(some(lambda i: i.to_bytes(4, "big")), pa.binary(4)),
        "list": pa.array(some(lambda i: list(range(i % 4)), 5), pa.list_(pa.int32())),
        "lists": pa.array(some(lambda i: [[j] * (j % 3) for j in range(i % 3)], 5), pa.list_(pa.list_(pa.int64()))),
        "user": pa.array(some(lambda i: {"sku": None if i % 2 else f"s{i}", "count": i % 9}, 11), item),
        "items": pa.array(some(lambda i: [{"sku": f"s{j}", "count": None} for j in range(i % 3)], 5), pa.list_(item)),
        "tags": pa.array(some(lambda i: [(f"a{j}", j) for j in range(i % 3)], 5), pa.map_(pa.string(), pa.int64())),
        "nothing": pa.array([None] * ROWS, pa.string()),
    })  # fmt: skip


WRITERS = {
    "snappy": dict(compression="snappy", row_group_size=700, data_page_size=2000),
    "zstd, V2 pages, page index": dict(compression="zstd", data_page_version="2.0", write_page_index=True, row_group_size=1100, data_page_size=1000),
    "gzip, no dictionaries": dict(compression="gzip", use_dictionary=False, write_page_checksum=True),
    "lz4": dict(compression="lz4"),
    "brotli, delta": dict(compression="brotli", use_dictionary=False, column_encoding={"k": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY", "bytes": "DELTA_LENGTH_BYTE_ARRAY"}),
    "uncompressed, byte stream split": dict(compression="none", use_dictionary=False, column_encoding={"ratio": "BYTE_STREAM_SPLIT", "double": "BYTE_STREAM_SPLIT"}),
    "statistics off": dict(write_statistics=False),
}  # fmt: skip


def wanted(table):
    return table.filter(pc.is_in(table["k"], pa.array(WANTED, pa.int64())))


def id_filter(t):
    """An exact filter of the wanted keys."""
    ids = tables.write(pa.table({"k": pa.array(WANTED, pa.int32())}), t.path("ids.parquet"))
    flt = t.path("exact.filter")
    t.run("build", "--key", "k", "--kind", "exact", "-o", flt, ids)
    return flt


def plain(kind):
    """The type as both Parquet and Arrow can say it: no dictionaries, no names for the items of lists and maps."""
    if pa.types.is_dictionary(kind):
        return plain(kind.value_type)
    if pa.types.is_list(kind):
        return pa.list_(plain(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, plain(f.type)) for f in kind])
    return kind


def decoded(table):
    return table.cast(pa.schema([(f.name, plain(f.type)) for f in table.schema])).combine_chunks()


def same(t, name, got, want, converted=False):
    """Schema and values, row by row. What was converted from Parquet to Arrow or back has the plain schema."""
    types = lambda table: [(f.name, plain(f.type) if converted else f.type, f.nullable) for f in table.schema]  # noqa: E731
    unlike = [f"want {w}, got {g}" for g, w in itertools.zip_longest(types(got), types(want)) if g != w]
    t.ok(f"{name}: schema", not unlike, "; ".join(unlike))
    if got.schema.names != want.schema.names:
        return
    got, want = decoded(got), decoded(want)
    unlike = [c for c in want.column_names if not got[c].equals(want[c])]
    t.ok(f"{name}: values", not unlike, f"{got.num_rows} rows, want {want.num_rows}; columns that differ: {unlike}")


def duckdb_same(t, name, path, want_from):
    """DuckDB reads the output as it reads the wanted rows of the input: names, types, values."""
    keys = ", ".join(map(str, WANTED))
    one = f"select * from read_parquet('{path}')"
    two = f"select * from read_parquet('{want_from}') where k in ({keys})"
    t.equal(f"{name}: DuckDB's columns", tables.sql(f"describe {one}"), tables.sql(f"describe {two}"))
    t.equal(
        f"{name}: DuckDB's differences",
        tables.sql(f"(({one}) except all ({two})) union all (({two}) except all ({one}))"),
        [],
    )


def writer(t, options):
    """One way to write the rich log: scanned into Parquet and into Arrow."""
    logs, flt = tables.write(rich(), t.path("rich.parquet"), **options), id_filter(t)
    want = wanted(tables.read(logs))
    out = t.path("out.parquet")
    r = t.run("scan", "--filter", flt, "--json", "-o", out, logs).json
    t.equal("rows_in, rows_out", (r["rows_in"], r["rows_out"]), (ROWS, len(WANTED)))
    same(t, "parquet", tables.read(out), want)
    duckdb_same(t, "parquet", out, logs)
    arrow = t.path("out.arrow")
    t.run("scan", "--filter", flt, "--format", "arrow", "-o", arrow, logs)
    same(t, "arrow", tables.read(arrow), want, converted=True)


def duckdb_writer(t):
    """A log and IDs that DuckDB wrote."""
    logs, ids, flt, out = t.path("duck.parquet"), t.path("ids.parquet"), t.path("duck.filter"), t.path("out.parquet")
    query = "select * exclude (coded, nothing), uuid() as id, k::hugeint::decimal(38, 0) as huge from rich"
    tables.sql(f"copy ({query}) to '{logs}' (format parquet, compression zstd, row_group_size 2048)", rich=rich())
    tables.sql(f"copy (select unnest({WANTED})::uinteger as k) to '{ids}' (format parquet)")
    t.run("build", "--key", "k", "--kind", "exact", "-o", flt, ids)
    t.run("scan", "--filter", flt, "-o", out, logs)
    same(t, "parquet", tables.read(out), wanted(tables.read(logs)))
    duckdb_same(t, "parquet", out, logs)


def stream(t):
    """-o -: an Arrow stream on standard output, JSON on standard error."""
    logs, flt = tables.write(rich(), t.path("rich.parquet")), id_filter(t)
    r = t.run("scan", "--filter", flt, "--json", "-o", "-", logs)
    got = pa.ipc.open_stream(io.BytesIO(r.out)).read_all()
    same(t, "stream", got, wanted(tables.read(logs)), converted=True)
    t.equal("stream: rows_out", r.json["rows_out"], len(WANTED))


def arrow_log(t):
    """An Arrow file in, several record batches, compressed or not; out as Arrow and as Parquet."""
    flt = id_filter(t)
    for compression in (None, "lz4", "zstd"):
        logs = t.path("rich.arrow")
        table = rich()
        with pa.ipc.new_file(logs, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as f:
            f.write_table(table, max_chunksize=900)
        for ending in ("arrow", "parquet"):
            out = t.path(f"out.{ending}")
            t.run("scan", "--filter", flt, "--format", ending, "-o", out, logs)
            same(t, f"{compression} to {ending}", tables.read(out), wanted(table), converted=ending == "parquet")


def directory(t):
    """OUT/: a file for each partition, the tree mirrored, _SUCCESS, and the state beside; what is no data is left alone."""
    table, flt = rich(), id_filter(t)
    logs, parts = (
        t.path("logs"),
        [("a/1.parquet", 0, 1000), ("a/2.parquet", 1000, 1000), ("b/c/3.parquet", 2000, 999), ("4.parquet", 2999, 1)],
    )
    for name, start, rows in parts:
        tables.write(table.slice(start, rows), logs / name)
    (logs / "_metadata").write_bytes(b"no data")
    (logs / ".hidden.parquet").write_bytes(b"no data")
    (logs / "_tmp").mkdir()
    (logs / "_tmp" / "x.parquet").write_bytes(b"no data")
    out = t.path("out")
    t.run("scan", "--filter", flt, "-o", f"{out}/", logs)
    found = [str(p.relative_to(out)) for p in tables.data_files(out)]
    t.equal("one file per partition with rows", found, sorted(name for name, _, _ in parts if name != "b/c/3.parquet"))
    t.run("scan", "--filter", flt, "--force", "--empty", "write", "-o", f"{out}/", logs)
    found = [str(p.relative_to(out)) for p in tables.data_files(out)]
    t.equal("one file per partition", found, sorted(name for name, _, _ in parts))
    for name, start, rows in parts:
        same(t, name, tables.read(out / name), wanted(tables.read(logs / name)))
    t.ok("_SUCCESS", (out / "_SUCCESS").is_file())
    t.equal("nothing else at the top", sorted(p.name for p in out.iterdir()), ["4.parquet", "_SUCCESS", "a", "b"])
    t.ok("the state", (out.parent / f"{out.name}.bloomjoin" / "manifest.json").is_file())
    one = t.path("one.parquet")
    t.run("scan", "--filter", flt, "-o", one, logs / "a", logs / "b", logs / "4.parquet")
    same(t, "all in one file", tables.read(one), wanted(table), converted=True)
    glob = t.path("glob.parquet")
    t.run("scan", "--filter", flt, "-o", glob, logs / "a" / "*.parquet")
    same(t, "a glob", tables.read(glob), wanted(table.slice(0, 2000)), converted=True)


def columns(t):
    """--columns and --count."""
    logs, flt = tables.write(rich(), t.path("rich.parquet")), id_filter(t)
    out = t.path("out.parquet")
    t.run("scan", "--filter", flt, "--columns", "text,items,money", "-o", out, logs)
    same(t, "three columns", tables.read(out), wanted(tables.read(logs)).select(["text", "items", "money"]))
    r = t.run("scan", "--filter", flt, "--count", "--json", logs)
    t.equal("--count", r.json["rows_out"], len(WANTED))


def says_what_it_is(t):
    """Candidates say that they are candidates; an exact filter's rows say that they are exact."""
    logs = tables.write(rich(), t.path("rich.parquet"))
    flt = t.path("bloom.filter")
    ids = tables.write(pa.table({"k": pa.array(WANTED, pa.int32())}), t.path("ids.parquet"))
    t.run("build", "--key", "k", "--kind", "bloom", "-o", flt, ids)
    for name, f, want in [("bloom", flt, b"candidates"), ("exact", id_filter(t), b"exact")]:
        out = t.path("out.parquet")
        t.run("scan", "--filter", f, "-o", out, logs)
        t.equal(f"bloomjoin.result of {name}", pq.read_metadata(out).metadata.get(b"bloomjoin.result"), want)
        r = json.loads(t.run("inspect", "--json", out).out)
        t.ok(f"inspect reads the output of {name}", isinstance(r, dict))


def kept(t):
    """What a Parquet file says beside its values: field ids, nullability, metadata of the file."""
    fields = [
        pa.field("k", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "7"}),
        pa.field("text", pa.large_string(), metadata={"PARQUET:field_id": "9"}),
    ]
    table = pa.table([range(ROWS), ["x"] * ROWS], schema=pa.schema(fields, metadata={"owner": "us"}))
    logs, out = tables.write(table, t.path("logs.parquet")), t.path("out.parquet")
    t.run("scan", "--filter", id_filter(t), "-o", out, logs)
    got, want = pq.read_schema(out), pq.read_schema(logs)
    for name in ("k", "text"):
        t.ok(f"field {name}", got.field(name).equals(want.field(name), check_metadata=True), got.field(name).metadata)
    t.equal("metadata", pq.read_metadata(out).metadata.get(b"owner"), b"us")


def empty(t):
    """Nothing found: a valid file with the schema, in every shape."""
    logs = tables.write(rich(), t.path("rich.parquet"))
    ids, flt = tables.write(pa.table({"k": [ROWS + 1]}), t.path("ids.parquet")), t.path("none.filter")
    t.run("build", "--key", "k", "-o", flt, ids)
    want = tables.read(logs).slice(0, 0)
    for ending in ("parquet", "arrow"):
        out = t.path(f"out.{ending}")
        t.run("scan", "--filter", flt, "--format", ending, "-o", out, logs)
        same(t, ending, tables.read(out), want, converted=ending == "arrow")
    r = t.run("scan", "--filter", flt, "-o", "-", logs)
    same(t, "stream", pa.ipc.open_stream(io.BytesIO(r.out)).read_all(), want, converted=True)
    out = t.path("out")
    t.run("scan", "--filter", flt, "-o", f"{out}/", logs)
    t.equal("directory", sum(tables.read(p).num_rows for p in tables.data_files(out)), 0)


def run(t, _repository):
    for name, options in WRITERS.items():
        t.group(f"formats {name}", writer, options)
    t.group("formats duckdb", duckdb_writer)
    t.group("formats stream", stream)
    t.group("formats arrow log", arrow_log)
    t.group("formats directory", directory)
    t.group("formats columns", columns)
    t.group("formats metadata", says_what_it_is)
    t.group("formats kept", kept)
    t.group("formats empty", empty)
