"""Chunks of a log that a join copies as they are stored: bytes, statistics, page index, Bloom filters, row groups.

A chunk was copied if its pages, headers and all, are those of a chunk of the log, byte by byte.
"""

import random

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from common import rawfile, readers, tables
from files import identity
from joins import pagejoins

KEEPING = ("left", "full", "anti", "inner", "right")  # with the IDs that let each keep all rows


def stored(f, chunk):
    """A chunk's pages with their headers."""
    ends = [(pos, end) for pos, _, _, end in f.walk(chunk)]
    return f.bytes[ends[0][0] : ends[-1][1]] if ends else b""


def copied(out, log):
    """For each row group of an output the numbers of the log's leaves that it has from one of the log's row groups."""
    n = len(rawfile.leaves(log.schema))
    whole = [{stored(log, g[1][leaf]) for g in log.groups} for leaf in range(n)]
    return [[leaf for leaf in range(n) if stored(out, g[1][leaf]) in whole[leaf]] for g in out.groups]


def bloom(f, chunk):
    """The bytes of a chunk's Bloom filter, header and all; None: it has none."""
    at = chunk[3].get(14)
    if at is None:
        return None
    header, body = rawfile.thrift(f.bytes, at)
    return bytes(f.bytes[at : body + header[1]])


MAY_GO = (1, 2, 4, 9)  # the legacy max and min, whose order nobody defined; counts of distinct values and of NaN
INDEX = (1, 2, 3, 5)  # of a ColumnIndex: which pages are NULL, min, max and counts of NULLs
FLOATS = (4, 5)  # physical types
PRICE = 3  # the leaf of doubles, among them NaN, which many writers leave out of the bounds


def extras(f, group, leaf):
    """What a chunk says beside its pages: statistics, column index, Bloom filter, sizes of pages and where each begins."""
    chunk = f.groups[group][1][leaf]
    offsets, statistics, index = f.offset_index(chunk), chunk[3].get(12, {}), f.column_index(chunk)
    return {
        "statistics": {k: v for k, v in statistics.items() if k not in MAY_GO},
        "column index": index and {k: index.get(k) for k in INDEX},
        "Bloom filter": bloom(f, chunk), "pages": offsets and [(p[2], p[3]) for p in offsets[1]],
    }  # fmt: skip


def copyable(log):
    """The leaves of a log that a join copies: the headers of their pages claim no bounds that are not to be trusted.

    Those of doubles, from which some writers lose what precedes a NaN, and those of files that declare no order.
    """
    trusted = 7 in log.footer and log.footer[6].startswith(b"parquet-cpp-arrow")
    claims = lambda h: {5, 6} & set(h.get(5, {}).get(5, {}) | h.get(8, {}).get(8, {}))  # noqa: E731
    claimed = lambda leaf: any(claims(h) for g in log.groups for _, h, _, _ in log.walk(g[1][leaf]))  # noqa: E731
    all_leaves = enumerate(rawfile.leaves(log.schema))
    return [i for i, e in all_leaves if trusted or 7 in log.footer and e[1] not in FLOATS or not claimed(i)]


def lost(out, log, groups):
    """What row groups that were copied say less, or otherwise, than those of the log."""
    wrong = []
    for g, leaves in enumerate(groups):
        for leaf in leaves:
            got, want = extras(out, g, leaf), extras(log, g, leaf)
            if leaf == PRICE:  # asked() shows whether its bounds are of use
                want["column index"] = got["column index"]
                want["statistics"] = got["statistics"] | {3: want["statistics"][3]}
            wrong += [f"row group {g}, leaf {leaf}: {k} {str(got[k])[:200]}, want {str(v)[:200]}" for k, v in want.items() if (v or got[k]) and got[k] != v and k != "pages"]
            if want["pages"] and got["pages"] != want["pages"]:
                wrong.append(f"row group {g}, leaf {leaf}: pages {got['pages'][:9]}, want {want['pages'][:9]}")
    return wrong


# ---- logs


def events(n, seed=3, nullable=True):
    """A log in the order of time, with columns whose statistics are of use."""
    g = np.random.default_rng(seed)
    host = np.char.add("host-", g.integers(0, 9, n).astype(str))
    table = pa.table({
        "row": pa.array(np.arange(n)), "user": pa.array(g.permutation(n) * 3), "host": pa.array(host),
        "price": pa.array(np.where(g.random(n) < 0.01, np.nan, np.round(g.normal(50, 9, n), 2)), mask=g.random(n) < 0.1 if nullable else None),
        "url": pa.array(np.char.add("/p/", g.integers(0, n, n).astype(str))),
        "tags": pa.ListArray.from_arrays(np.arange(n + 1, dtype=np.int32) // 2, pa.array(np.arange(n // 2 + 1))),
    })  # fmt: skip
    return table if nullable else table.cast(pa.schema([f.with_nullable(f.name == "tags") for f in table.schema]))


def logs(t, n=6000):
    """Name and path of logs by several writers, each in three row groups."""
    table, third = events(n), n // 3
    place = lambda name: t.work / f"whole {name}.parquet"  # noqa: E731
    ways = {
        "pyarrow": dict(write_page_index=True, compression="zstd", bloom_filter_options={"user": {"ndv": third, "fpp": 0.01}, "host": True}),
        "pyarrow V2 with checksums": dict(data_page_version="2.0", write_page_checksum=True, write_page_index=True, data_page_size=3000),
        "pyarrow plain": dict(use_dictionary=False, compression="none", data_page_size=1000, write_batch_size=100),
        "pyarrow overflowing": dict(dictionary_pagesize_limit=500, compression="gzip", data_page_size=2000, sorting_columns=[pq.SortingColumn(0)]),
    }
    for name, how in ways.items():
        yield name, tables.write(table, place(name), row_group_size=third, **how)
    duck = place("DuckDB")
    with duckdb.connect() as db:
        db.execute("set threads = 1; set preserve_insertion_order = true")
        db.register("e", table)
        db.execute(f"copy (from e) to '{duck}' (format parquet, row_group_size 2048)")
    yield "DuckDB", duck
    polars.from_arrow(table).write_parquet(place("Polars"), row_group_size=third, data_page_size=4000)
    yield "Polars", place("Polars")


def every_row(log, kind, rng):
    """IDs with which a join keeps each row of the log once: some of them for left, all of them for inner."""
    users = log.table.column("user").to_pylist()
    chosen = users if kind in ("inner", "right") else [-1, -2] if kind == "anti" else rng.sample(users, len(users) // 100)
    if kind == "full":
        chosen = [*chosen, -5, -6]
    return pa.table({"user id": chosen, "name": [f"name of {v}" for v in chosen]})


def joined(t, log, ids, kind, *how):
    """Joins a log on its users: the output, and all that pagejoins finds wrong with it."""
    idpath = tables.write(ids, identity.fresh(t, "ids.parquet"))
    out, r = pagejoins.join(t, kind, log.path, idpath, 'user="user id"', *how)
    if r.code:
        return out, [str(r)]
    mine, theirs = (pagejoins.plain(c) for c in (log.table.column("user"), ids.column("user id")))
    wrong = pagejoins.problems(out, kind, log, ids, pagejoins.pairs(mine, theirs, kind), idfile=rawfile.File(idpath))
    return out, wrong + pagejoins.unchecked(t, out)


def kept(t):
    """Each row of a log once: its chunks are copied with all that they say."""
    rng = random.Random(1)
    for name, path in logs(t):
        log = pagejoins.Log(path)
        for kind in KEEPING:
            out, wrong = joined(t, log, every_row(log, kind, rng), kind)
            t.ok(f"{name}, {kind}: the answer", not wrong, " | ".join(wrong)[:1500])
            f = rawfile.File(out)
            groups = len(log.raw.groups)
            same = copied(f, log.raw)
            t.equal(f"{name}, {kind}: chunks copied in each row group", same[:groups], [copyable(log.raw)] * groups)
            t.ok(f"{name}, {kind}: row groups", groups <= len(f.groups) <= groups + 1, f"{len(f.groups)}, the log has {groups}")
            wrong = lost(f, log.raw, same[:groups])
            t.ok(f"{name}, {kind}: statistics, indexes and Bloom filters", not wrong, f"{len(wrong)} differ: " + "; ".join(wrong[:2]))
            asked(t, f"{name}, {kind}", out)


def asked(t, name, out):
    """Readers that skip by statistics, page index and Bloom filters answer as they do of the rows in memory. NaN is there."""
    whole = pq.ParquetFile(out).read()
    user = whole.column("user").drop_null()
    some = [user[len(user) // 3].as_py(), user[0].as_py(), 3 * whole.num_rows + 1]
    questions = [("user", "=", v) for v in some] + [
        ("host", "=", "host-4"), ("host", "=", "no host"), ("row", "<", 100), ("row", ">", 4100), ("price", ">", 1000.0), ("price", "<", 30.0), ("url", "<", "/p/11"),
    ]  # fmt: skip
    db, frame = readers.connection(), polars.from_arrow(whole)
    db.execute("create or replace temporary table rows_of_it as from whole")  # copied: a filter handed on to Arrow has another place for NaN
    wrong = []
    for column, op, value in questions:
        count = lambda source: db.execute(f'select count(*) from {source} where "{column}" {op} ?', [value]).fetchall()[0][0]  # noqa: B023, E731
        test = {"=": polars.Expr.eq, "<": polars.Expr.lt, ">": polars.Expr.gt}[op](polars.col(column), value)
        for reader, got, want in (
            ("DuckDB", count(f"read_parquet({readers.quoted(out)})"), count("rows_of_it")),
            ("pyarrow", pq.read_table(out, columns=[column], filters=[(column, op, value)]).num_rows, pq.read_table(out, columns=[column]).filter(expression(column, op, value)).num_rows),
            ("Polars", polars.scan_parquet(out).filter(test).select(polars.len()).collect().item(), frame.filter(test).height),
        ):  # fmt: skip
            if got != want:
                wrong.append(f"{column} {op} {value}: {got} rows by {reader}, want {want}")
    t.ok(f"{name}: asked by values", not wrong, "; ".join(wrong[:5]))


def expression(column, op, value):
    return {"=": pc.equal, "<": pc.less, ">": pc.greater}[op](pc.field(column), value)


def multiplied(t):
    """Rows that multiply, or are dropped, in the second of three row groups: the others are copied."""
    for name, path in logs(t):
        log = pagejoins.Log(path)
        second = pq.read_metadata(path).row_group(0).num_rows + 7
        user = log.table.column("user")[second].as_py()
        groups = range(len(log.raw.groups))
        for kind, chosen in (("left", [user, user]), ("full", [user, user, user, -1]), ("anti", [user])):
            ids = pa.table({"user id": chosen, "name": [str(i) for i in range(len(chosen))]})
            for threads in (1, 2):
                out, wrong = joined(t, log, ids, kind, "--threads", threads)
                t.ok(f"{name}, {kind}, {threads} threads: the answer", not wrong, " | ".join(wrong)[:1500])
            f = rawfile.File(out)
            got, want = copied(f, log.raw), copyable(log.raw)
            t.ok(f"{name}, {kind}: all row groups but one are copied", got.count(want) == len(groups) - 1, f"leaves copied in each row group: {got}, want {want}")
            asked(t, f"{name}, {kind}, multiplied", out)


def told_by(path, writer, of=b"parquet-cpp-arrow version 26.0.1"):
    """A copy of a file by pyarrow in which another program says that it wrote it."""
    b = path.read_bytes()
    here = rawfile.File(path).footer[6]
    if len(writer) > len(here) or b.count(here) != 1:
        raise ValueError(f"{writer} does not fit in the place of {here}")
    copy = path.with_name(f"{path.stem} by {writer.split()[0].decode()}.parquet")
    copy.write_bytes(b.replace(here, writer.ljust(len(here))))
    return copy


def not_whole(t):
    """What may not be copied as it is, or not with all that it says."""
    path = tables.write(events(3000), t.work / "not whole.parquet", row_group_size=1000, write_page_index=True, compression="snappy", bloom_filter_options={"user": True})
    log, rng = pagejoins.Log(path), random.Random(2)
    out, wrong = joined(t, log, every_row(log, "left", rng), "left", "--compression", "zstd")
    codecs = {c[3][4] for g in rawfile.File(out).groups for c in g[1]}
    t.equal("another --compression: all of it", (wrong, codecs), ([], {6}))
    required = pagejoins.Log(tables.write(events(3000, nullable=False), t.work / "required.parquet", row_group_size=1000, data_page_version="1.0"))
    for kind in ("left", "full", "right"):
        out, wrong = joined(t, required, every_row(required, kind, rng), kind)
        t.ok(f"REQUIRED columns, {kind}", not wrong, " | ".join(wrong)[:1000])
    for writer in (b"parquet-cpp version 1.2.0", b"hyparquet version 1.0", b"parquet-rs version 5.0.0"):
        other = pagejoins.Log(told_by(path, writer))
        out, wrong = joined(t, other, every_row(other, "left", rng), "left")
        t.ok(f"{writer.decode()}: the answer", not wrong, " | ".join(wrong)[:1000])
        f = rawfile.File(out)
        host = [n for n, e in enumerate(rawfile.leaves(f.schema)) if e[4] == b"host"][0]
        kept = [g for g, group in enumerate(f.groups) if stored(f, group[1][host]) in {stored(other.raw, og[1][host]) for og in other.raw.groups}]
        told = [(g, k) for g in kept for k in (5, 6) if k in f.groups[g][1][host][3].get(12, {})]
        t.equal(f"{writer.decode()}: bounds of strings that it may have got wrong", told, [])
    lie = pagejoins.Log(tables.write(events(3000), t.work / "unsorted.parquet", row_group_size=1000, sorting_columns=[pq.SortingColumn(1)]))
    for kind in ("left", "anti", "semi"):
        out, wrong = joined(t, lie, every_row(lie, "left" if kind == "semi" else kind, rng), kind)
        t.equal(f"sorting_columns that do not hold, {kind}", (wrong, [g.get(4) for g in rawfile.File(out).groups if g.get(4)]), ([], []))


def sizes(t):
    """Small row groups of many files become large ones; large ones stay what they are."""
    small = [tables.write(events(200, seed), identity.fresh(t, f"{seed}.parquet"), compression="snappy") for seed in range(20)]
    ids = tables.write(pa.table({"user": pa.array(range(0, 600, 30)), "name": [str(i) for i in range(20)]}), identity.fresh(t, "ids.parquet"))
    for kind in ("left", "anti", "inner"):
        out, r = pagejoins.join(t, kind, small, ids, "user")
        groups = pq.read_metadata(out).num_row_groups if r.code == 0 else str(r)
        t.ok(f"20 small files, {kind}: few row groups", r.code == 0 and groups <= 2, groups)
    big = []
    for seed in range(2):
        g = np.random.default_rng(seed)
        n = 700_000
        table = pa.table({"user": g.permutation(n), "value": g.integers(0, 1 << 62, n)})
        big.append(tables.write(table, identity.fresh(t, f"big{seed}.parquet"), row_group_size=n, compression="snappy", use_dictionary=False))
    ids = tables.write(pa.table({"user": pa.array(range(0, 700_000, 7000)), "name": [str(i) for i in range(100)]}), identity.fresh(t, "ids.parquet"))
    out, r = pagejoins.join(t, "left", big, ids, "user")
    f = rawfile.File(out)
    t.equal("two files of one large row group each: chunks copied", [len(g) for log in big for g in copied(f, rawfile.File(log)) if g], [2, 2])


def corpora(t):
    """Files of other programs whose row groups stay whole."""
    names = ["data_index_bloom_encoding_stats", "data_index_bloom_encoding_with_length", "alltypes_tiny_pages", "alltypes_tiny_pages_plain", "datapage_v2.snappy", "page_v2_empty_compressed", "concatenated_gzip_members", "lz4_raw_compressed", "byte_stream_split.zstd"]
    for name in names:
        path = t.shared / "corpora/parquet-testing/data" / f"{name}.parquet"
        log = pagejoins.Log(path)
        key = next((p for p, k in identity.paths(log.table.schema) if not pa.types.is_boolean(k)), None)
        if key is None:
            print(f"      {name}: no key")
            continue
        absent = next(iter(identity.absent(identity.values_at(log.table, key).type)))
        ids = pa.table({"the id": pa.array([absent.as_py()], pagejoins.storage(identity.values_at(log.table, key)).type)})
        idpath = tables.write(ids, identity.fresh(t, "ids.parquet"))
        out, r = pagejoins.join(t, "left", path, idpath, f'{identity.quoted(key)}="the id"')
        if r.code:
            t.ok(name, "unsupported" in r.text, str(r))
            continue
        f = rawfile.File(out)
        same, want = copied(f, log.raw), copyable(log.raw)
        rows = pagejoins.pairs(pagejoins.plain(identity.values_at(log.table, key)), pagejoins.plain(ids.column(0)), "left")
        wrong = pagejoins.problems(out, "left", log, ids, rows, idfile=rawfile.File(idpath))
        t.ok(f"{name}: the answer", not wrong, " | ".join(wrong)[:1000])
        t.ok(f"{name}: chunks copied", same and all(leaves == want for leaves in same), f"{same}, want {want} of each")


def run(t):
    t.group("pagejoins whole copies", kept)
    t.group("pagejoins whole copies but one", multiplied)
    t.group("pagejoins not copied whole", not_whole)
    t.group("pagejoins sizes of row groups", sizes)
    t.group("pagejoins whole copies of the corpora", corpora)
