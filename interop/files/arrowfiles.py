"""Arrow files and streams of every version in the corpora, all columns, against what pyarrow reads of them."""

import pyarrow as pa

from common import tables

KEYS = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal128)


def opened(path):
    return (pa.ipc.open_stream if path.suffix == ".stream" else pa.ipc.open_file)(path.read_bytes()).read_all()


def values(column):
    try:
        return column.to_pylist()
    except (KeyError, OverflowError, ValueError):  # intervals, and times far away, have no values in Python
        return column.to_string(window=10**6)


def key_of(table):
    """A column, or a field of a struct, that can be a key."""
    for f in table.schema:
        kind = f.type.value_type if pa.types.is_dictionary(f.type) else f.type
        if any(is_key(kind) for is_key in KEYS):
            return f.name, table[f.name]
        if pa.types.is_struct(f.type) and pa.types.is_integer(f.type[0].type):
            return f"{f.name}.{f.type[0].name}", table[f.name].combine_chunks().field(0)
    return None, None


def all_rows(t, path, name):
    """An anti join without IDs keeps every row."""
    want = opened(path)
    if len(set(want.column_names)) < want.num_columns:
        return
    key, column = key_of(want)
    if key is None or not want.num_rows:
        return
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    ids, out = tables.write(pa.table({"id": column.slice(0, 0)}), t.path("ids.parquet")), t.path("out.arrow")
    t.run("join", "--type", "anti", "--ids", ids, "--on", f"{key}=id", "-o", out, path, opens=False)
    got = pa.ipc.open_file(out).read_all()
    unlike = [f for f in want.column_names if values(got[f]) != values(want[f])]
    t.ok(name, got.num_rows == want.num_rows and not unlike, f"{got.num_rows} rows, want {want.num_rows}; columns that differ: {unlike}")


def versions(t):
    corpus = t.shared / "corpora/arrow-testing/data/arrow-ipc-stream/integration"
    for path in sorted(p for p in corpus.glob("*/*") if p.suffix in (".stream", ".arrow_file")):
        name = f"{path.parent.name}/{path.name}"
        if "bigendian" in name:
            r = t.run("inspect", "--check", path, want=1)
            t.ok(name, "unsupported: big-endian data" in r.text, r.text)
            continue
        r = t.run("inspect", "--check", path, want=None)
        t.ok(f"{name}: check", r.code == 0, r.text)
        all_rows(t, path, name)


def experimental(t, repository):
    """Arrow 0.17.0 named its codec in custom metadata."""
    path = repository / "internal/arrowipc/testdata/arrow0.17-lz4.feather"
    all_rows(t, path, "0.17.0, compressed by LZ4")


def run(t, repository):
    t.group("arrow versions", versions)
    t.group("arrow versions, compressed", experimental, repository)
