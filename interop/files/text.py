"""Text ID sets as pyarrow and DuckDB read them: line ends, quotes, marks, compression; bad lines that are left out."""

import gzip
import random

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.json as pj

from common import tables

# Bytes of CSV with the columns id and name. A CR alone is left out where there is an LF: pyarrow takes it for a line's end.
CSV = {
    "LF": b"id,name\n1,a\n2,b\n",
    "CR LF": b"id,name\r\n1,a\r\n2,b\r\n",
    "no end": b"id,name\n1,a\n2,b",
    "a mark": b"\xef\xbb\xbfid,name\r\n1,a\r\n",
    "empty lines": b"id,name\n\n1,a\n\n\n2,b\n\n",
    "NULL": b'id,name\n1,\n,a\n"",b\n2,""\n',
    "blanks": b"id,name\n 1, a \n\t2,\t\n",
    "quotes": b'"id","name"\n"1","a,""b"""\n"2",""""\n"""3""",c\n',
    "LF in quotes": b'id,name\n1,"a\nb\n\nc"\n"2\n","\n"\n3,c\n',
    "CR LF in quotes": b'id,name\r\n1,"a\r\nb\r\n\r\nc"\r\n"2\r\n","\r\n"\r\n3,c\r\n',
    "LF in quotes, CR LF outside": b'id,name\r\n1,"a\nb"\r\n2,c\r\n',
    "CR": b"id,name\r1,a\r2,b\r",
    "CR, no end": b"id,name\r1,a\r\r2,b",
    "CR in quotes": b'id,name\r1,"a\rb"\r"2\r","\r"\r3,c\r',
    "NUL": b"id,name\na\x00b,x\n\x00,y\na,\x00\n",
    "no ASCII": "id,name\né,日本\n\U0001f600,ß\n".encode(),
}  # fmt: skip


def as_read(t, ids, *options):
    """The rows of an ID file as the tool reads them: a right join with a log that has no row."""
    log = tables.write(pa.table({"id": pa.array([], pa.string())}), t.path("empty.parquet"))
    out = t.path("right.parquet")
    t.run("join", "--ids", ids, "--on", "id", "--type", "right", *options, "-o", out, log)
    return tables.read(out)


def found(t, ids, wanted, *options):
    """Which of the keys are IDs to the tool: a semi join, which reads nothing but the key."""
    log = tables.write(pa.table({"id": wanted}), t.path("wanted.parquet"))
    out = t.path("semi.parquet")
    t.run("join", "--ids", ids, "--on", "id", *options, "-o", out, log)
    return tables.read(out)["id"].to_pylist()


def near(keys):
    """Keys that are none, but nearly."""
    return [k + e for k in keys for e in ("\r", "\n", " ", '"')] + [k.strip() for k in keys if k != k.strip()]


def check(t, name, path, want):
    """want: the column that another reader finds, as a list of strings and None."""
    got = as_read(t, path)["id"].to_pylist()
    t.equal(f"{name}: rows", sorted(map(str, got)), sorted(map(str, want)))
    keys = sorted({k for k in want if k is not None})
    others = [k for k in near(keys) if k not in keys]
    t.equal(f"{name}: keys", found(t, path, pa.array(keys + others, pa.string())), keys)


def csv(t):
    for name, data in CSV.items():
        path = t.path("ids.csv")
        path.write_bytes(data)
        table = pc.read_csv(
            path,
            parse_options=pc.ParseOptions(newlines_in_values=True),
            convert_options=pc.ConvertOptions(
                column_types={"id": pa.string(), "name": pa.string()},
                null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=True,
            ),
        )  # fmt: skip
        check(t, f"{name}, pyarrow", path, table["id"].to_pylist())
        rows = tables.sql(
            f"select id from read_csv('{path}', header=true, all_varchar=true, delim=',', quote='\"', escape='\"',"
            " nullstr='')"
        )
        check(t, f"{name}, DuckDB", path, [r[0] for r in rows])


def blanks(t):
    """Blanks around numbers and dates do not count where pyarrow and DuckDB leave them out, but do in text."""
    for typ, arrow, texts in [
        ("bigint", pa.int64(), [" 5", "-6 ", "\t7 \t"]),
        ("double", pa.float64(), [" 1.5", "2.5 ", "\t-3.5"]),
        ("decimal(9,2)", pa.decimal128(9, 2), [" 1.50", "2 ", "\t-3.5 "]),
        ("date", pa.date32(), [" 2024-05-01", "2024-05-02 "]),
    ]:
        path = t.path("ids.csv")
        path.write_text("id,name\n" + "".join(f"{x},n\n" for x in texts))
        want = pc.read_csv(path, convert_options=pc.ConvertOptions(column_types={"id": arrow}))["id"]
        rows = tables.sql(f"select id from read_csv('{path}', header=true, columns={{'id': '{typ}', 'name': 'varchar'}})")
        t.equal(f"{typ}: DuckDB is pyarrow", [r[0] for r in rows], want.to_pylist())
        t.equal(f"{typ}: keys", found(t, path, want), want.to_pylist())
        padded = pa.table({"id": texts})
        log = tables.write(padded, t.path("padded.parquet"))
        ids = tables.write(pa.table({"k": want}), t.path("typed.parquet"))
        r = t.run("join", "--ids", ids, "--on", f"id::{typ.replace('bigint', 'int64')}=k", "--count", log)
        t.equal(f"{typ}: casts", int(r.out), len(texts))
    path.write_text("id\n 5\n")
    t.equal("text", found(t, path, pa.array(["5", " 5", "5 "])), [" 5"])
    path.write_text("id\n5 5\n")
    log = tables.write(pa.table({"id": [55]}), t.path("ints.parquet"))
    t.equal("a blank within", t.run("join", "--ids", path, "--on", "id", "--count", log, want=None).code, 1)


# Text, the encoding that pyarrow and Python call so, and the options of the tool.
LETTERS = "id,naïve\né,ÿ\nßß,x\nplain,\xad\n"
ENCODED = {
    "latin1": (LETTERS, "latin1", ["--encoding", "latin1"]),
    "windows-1252": (LETTERS + "€,„x“\nŠŒž™,…\n", "cp1252", ["--encoding", "windows-1252"]),
    "utf-16le": (LETTERS + "€,\U0001f600\n日本,𝄞\n", "utf-16-le", ["--encoding", "utf-16le"]),
    "utf-16be": (LETTERS + "€,\U0001f600\n日本,𝄞\n", "utf-16-be", ["--encoding", "utf-16be"]),
    "utf-16 with a mark": (LETTERS + "€,\U0001f600\n日本,𝄞\n", "utf-16", []),
    "utf-16 with a mark, said": (LETTERS + "€,\U0001f600\n日本,𝄞\n", "utf-16", ["--encoding", "utf-16"]),
}


def encodings(t):
    """Text in other encodings is what pyarrow reads of it, in each place where the tool reads text."""
    for name, (text, encoding, options) in ENCODED.items():
        data = (text + "".join(f"key-é-{i},n\n" for i in range(20_000))).encode(encoding)
        path, packed = t.path("ids.csv"), t.path("ids.csv.gz")
        path.write_bytes(data)
        packed.write_bytes(gzip.compress(data))
        want = pc.read_csv(path, read_options=pc.ReadOptions(encoding=encoding))
        rows = lambda table: sorted(map(str, table.select(["id", "naïve"]).to_pylist()))  # noqa: E731
        for file in (path, packed):
            table = as_read(t, file, *options)
            table.validate(full=True)
            t.equal(f"{name}: rows{' of gzip' if file is packed else ''}", rows(table), rows(want))
        keys = want["id"].to_pylist()
        t.equal(f"{name}: keys", found(t, path, pa.array([*keys, "plai", "key-é-"]), *options), keys)
        flt, out = t.path("ids.filter"), t.path("of-filter.parquet")
        log = tables.write(pa.table({"id": keys}), t.path("wanted.parquet"))
        t.run("build", "--key", "id", "--ids-format", "csv", *options, "-o", flt, "-", stdin=data)
        t.run("scan", "--filter", flt, "-o", out, log)
        t.equal(f"{name}: a filter from standard input", tables.read(out).num_rows, len(keys))


def strict_utf8(t):
    """Bytes that are not UTF-8 are an error with their place, or a bad line; keys that are bytes are taken as they are."""
    log = tables.write(pa.table({"id": pa.array([b"a", b"caf\xe9", b"b"], pa.binary())}), t.path("binary.parquet"))
    text = tables.write(pa.table({"id": ["a", "b", "c"]}), t.path("text.parquet"))
    good = b"".join(b"%d,x\n" % i for i in range(9))
    for name, data, place in [
        ("ids.csv", b"id,name\na,x\ncaf\xe9,y\n" + good, "line 3: column id"),
        ("ids.tsv", b"id\tname\na\tx\nb\t\xff\n" + good.replace(b",", b"\t"), "line 3: column name"),
        ("ids.txt", b"a\ncaf\xe9\nb\n", "line 2: column id"),
        ("ids.ndjson", b'{"id":"a"}\n{"id":"caf\xe9"}\n{"id":"b"}\n', "line 2"),
    ]:
        ids = t.path(name)
        ids.write_bytes(data)
        to = ["--on", "id", "--type", "inner", "-o", t.path("none.parquet")]
        r = t.run("join", "--ids", ids, *to, text, want=None)
        t.ok(f"{name}: refused", r.code == 1 and place in r.text and "--encoding latin1" in r.text, str(r))
        r = t.run("join", "--json", "--skip-bad", "--ids", ids, *to, text)
        t.equal(f"{name}: left out", r.json["bad_lines"], 1)
    named = t.path("named.csv")
    named.write_bytes(b"id,pr\xe9nom\na,x\n")
    r = t.run("join", "--ids", named, "--on", "id", "-o", t.path("none.parquet"), text, want=None)
    t.ok("a name: refused", r.code == 1 and "line 1" in r.text and "column 2" in r.text, str(r))
    out, flt = t.path("bytes.parquet"), t.path("bytes.filter")
    ids = t.path("ids.txt")
    ids.write_bytes(b"caf\xe9\nb\n")
    t.run("join", "--ids", ids, "--on", "id", "--type", "right", "-o", out, log)
    t.equal("bytes in a join", sorted(tables.read(out)["id"].to_pylist()), [b"b", b"caf\xe9"])
    t.run("build", "--key-type", "binary", "-o", flt, ids)
    t.run("scan", "--filter", flt, "--key", "id", "-o", out, "--force", log)
    t.equal("bytes in a build", sorted(tables.read(out)["id"].to_pylist()), [b"b", b"caf\xe9"])


def cr(t):
    """Lines that end with CR are IDs of anti joins, too; doubt is an error."""
    log = tables.write(pa.table({"id": ["a", "b", "c"]}), t.path("letters.parquet"))
    for name, data in {
        "ids.csv": b"id,name\ra,x\rb,y\r", "ids.tsv": b"id\tname\ra\tx\rb\ty\r", "ids.txt": b"a\rb",
        "ids.ndjson": b'{"id":"a"}\r{"id":"b"}\r', "ids.ids": b"a\r" + b"x" * 3_000_000 + b"\rb\r" + b"y" * 3_000_000 + b"\r",
    }.items():  # fmt: skip
        ids, out = t.path(name), t.path("anti.parquet")
        ids.write_bytes(data)
        r = t.run("join", "--ids", ids, "--on", "id", "--type", "anti", "-o", out, log, want=None)
        t.equal(name, tables.read(out)["id"].to_pylist() if r.code == 0 else str(r), ["c"])
    for name, data in {"names.csv": b"id,name\ra,x\rb,y\r\n", "names.tsv": b"id\tname\ra\tx\r\n", "one.txt": b"a\rb\n"}.items():
        ids = t.path(name)
        ids.write_bytes(data)
        r = t.run("join", "--ids", ids, "--on", "id", "--type", "anti", "-o", t.path("none.parquet"), log, want=None)
        t.ok(f"{name}: refused", r.code == 1 and "line 1" in r.text and "end alike" in r.text, str(r))


def tsv(t):
    for name, data in CSV.items():
        if "quotes" in name or name == "NULL":
            continue
        path = t.path("ids.tsv")
        path.write_bytes(data.replace(b"\t", b"|").replace(b",", b"\t"))
        table = pc.read_csv(
            path,
            parse_options=pc.ParseOptions(delimiter="\t", quote_char=False),
            convert_options=pc.ConvertOptions(column_types={"id": pa.string()}, null_values=[""], strings_can_be_null=True),
        )  # fmt: skip
        check(t, name, path, table["id"].to_pylist())


def ndjson(t):
    for name, data in {
        "strings": '{"id":"a"}\n{"id":"\\u00e9\\n\\ud83d\\ude00"}\r\n\n{"id":null}\n{"x":[1,{"y":"}"}]}\n{"id":"","x":null}'.encode(),
        "NUL": b'{"id":"a\\u0000b"}\n{"id":"\\u0000"}\n',
        "key last": b' { "x" : {"id":"no"} , "id" : "yes" } \n{"id":"\\"\\\\\\/"}\n',
    }.items():
        path = t.path("ids.ndjson")
        path.write_bytes(data)
        rows = tables.sql(f"select id from read_ndjson('{path}', columns={{'id': 'varchar'}})")
        check(t, f"{name}, DuckDB", path, [r[0] for r in rows])
        options = pj.ParseOptions(explicit_schema=pa.schema([("id", pa.string())]), unexpected_field_behavior="ignore")
        table = pj.read_json(path, parse_options=options)
        check(t, f"{name}, pyarrow", path, table["id"].to_pylist())


def packed(t):
    """Compressed in one piece and in several, by other libraries."""
    lines = [f"user-{i}" for i in range(50_000)]
    data = "\n".join(lines).encode()
    for kind in ("gzip", "zstd"):
        for pieces in (1, 3):
            path = t.path({'gzip': 'ids.txt.gz', 'zstd': 'ids.txt.zst'}[kind])
            with open(path, "wb") as f:
                for i in range(pieces):
                    part = data[len(data) * i // pieces : len(data) * (i + 1) // pieces]
                    f.write(gzip.compress(part) if kind == "gzip" else pa.compress(part, codec="zstd", asbytes=True))
            got = found(t, path, pa.array([*lines, "user-", "user-50000", "user-0\n"]))
            t.ok(f"{kind} in {pieces}", got == lines, f"{len(got)} rows, want {len(lines)}")


def bad_lines(t):
    """--skip-bad leaves out the rows, and names the lines, that DuckDB rejects."""
    random.seed(5)
    lines = ["id,name"]
    for i in range(30_000):
        kind = random.randrange(3000)
        good = f'{random.getrandbits(62)},"n{i}"'
        lines.append({0: "x,y", 1: f"{good},more", 2: str(i), 3: f"{2**63 + i},y", 4: f"12a{i},y"}.get(kind, good))
    path = t.path("ids.csv")
    path.write_text("\r\n".join(lines), newline="")
    flt, good, of_good = t.path("skipped.filter"), t.path("good.parquet"), t.path("good.filter")
    rows, rejected = tables.rejects(path, {"id": "BIGINT", "name": "VARCHAR"})
    r = t.run("build", "--key", "id", "--key-type", "int64", "--kind", "exact", "--skip-bad", "--json", "-o", flt, path)
    t.ok("there are bad lines", len(rejected) > 20, rejected)
    t.equal("bad_lines", r.json["bad_lines"], len(rejected))
    first = {"file": str(path), "bad_lines": len(rejected), "lines": rejected[:20]}
    t.equal("their numbers", r.json["bad_lines_in"], [first])
    t.equal("rows", r.json["rows"], len(rows))
    tables.write(pa.table({"id": pa.array([row[0] for row in rows], pa.int64())}), good)
    t.run("build", "--key", "id", "--kind", "exact", "-o", of_good, good)
    same = t.run("inspect", "--json", "--compare", flt, of_good).json
    t.equal("the IDs", [same[k]["keys"] for k in ("a_without_b", "b_without_a")], [0, 0])
    r = t.run("build", "--key", "id", "--key-type", "int64", "-o", t.path("no.filter"), path, want=1)
    t.ok("without the flag the first is named", f"line {rejected[0]}:" in r.text, str(r))


def run(t, _repository):
    t.group("text csv", csv)
    t.group("text tsv", tsv)
    t.group("text ndjson", ndjson)
    t.group("text packed", packed)
    t.group("text blanks", blanks)
    t.group("text encodings", encodings)
    t.group("text not UTF-8", strict_utf8)
    t.group("text CR", cr)
    t.group("text bad lines", bad_lines)
