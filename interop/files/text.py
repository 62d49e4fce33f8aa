"""Text ID sets as pyarrow and DuckDB read them: line ends, quotes, marks, compression; bad lines that are left out."""

import gzip
import random

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.json as pj

from common import tables

# Bytes of CSV with the columns id and name. A CR alone is left out: pyarrow takes it for a line's end.
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
    t.group("text bad lines", bad_lines)
