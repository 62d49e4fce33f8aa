"""Answers as text: DuckDB, pyarrow and pandas read in CSV, TSV and NDJSON the values of the Parquet answer."""

import datetime
import decimal
import gzip
import json
import math
import random
import uuid

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pc

from common import tables
from joins.joins import STRATEGIES, TYPES

DAY = datetime.datetime(2020, 1, 1)
WORDS = ["", "plain", "a,b", 'say "so"', "two\nlines", "CR\rLF\r\n", "\ttab", " blanks ", "null", "NULL", "NaN", "é\u2028\U0001f600", "\\", "#1", "'"]
FLOATS = [0.0, -0.0, 0.1, 1 / 3, 1e22, 5e-324, -1.7e308, 1234567.0, 2.0**60, float("inf"), float("-inf"), float("nan")]

# Columns of one value: the type, its values, DuckDB's type of the text, and the value of what DuckDB reads if it is another.
VALUES = {
    "i8": (pa.int8(), [-128, 0, 127], "TINYINT"), "i64": (pa.int64(), [-(2**63), 2**53 + 1, 2**63 - 1], "BIGINT"), "u64": (pa.uint64(), [0, 2**64 - 1], "UBIGINT"),
    "f64": (pa.float64(), FLOATS, "DOUBLE"), "f32": (pa.float32(), [0.5, -0.0, 16777216.0, 1.1, float("nan")], "FLOAT"),
    "dec": (pa.decimal128(38, 6), [decimal.Decimal(i * 10**30 + i).scaleb(-6) for i in range(-3, 4)], "DECIMAL(38,6)"),
    "flag": (pa.bool_(), [True, False], "BOOLEAN"), "word": (pa.string(), WORDS, "VARCHAR"), "code": (pa.dictionary(pa.int8(), pa.string()), WORDS[1:5], "VARCHAR"),
    "day": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(9999, 12, 31)], "DATE"),
    "at": (pa.timestamp("us"), [DAY + datetime.timedelta(microseconds=i * 86_399_999) for i in range(-3, 4)], "TIMESTAMP"),
    "when": (pa.timestamp("ms", "Europe/Rome"), [DAY + datetime.timedelta(milliseconds=i * 86_399_999) for i in range(-3, 4)], "TIMESTAMPTZ"),
    "time": (pa.time64("us"), [datetime.time(), datetime.time(23, 59, 59, 999999)], "TIME"),
    "id": (pa.uuid(), [uuid.UUID(int=i << 64 | i) for i in range(4)], "UUID"), "raw": (pa.binary(), [b"", b"\x00\xff", b"text"], "VARCHAR"),
}  # fmt: skip
NESTED = {
    "list": (pa.list_(pa.int16()), [[], [1, None], [2, 3]], "SMALLINT[]"),
    "pair": (pa.struct([("a", pa.int8()), ("b", pa.string())]), [{"a": 1, "b": 'x"'}, {"a": None, "b": None}], "STRUCT(a TINYINT, b VARCHAR)"),
    "deep": (pa.list_(pa.struct([("d", pa.list_(pa.date32()))])), [[{"d": [datetime.date(2020, 1, 1), None]}], [{"d": None}]], "STRUCT(d DATE[])[]"),
    "map": (pa.map_(pa.string(), pa.int32()), [[("k", 1), ("k", None)], []], "STRUCT(key VARCHAR, value INTEGER)[]"),
}  # fmt: skip
COLUMNS = VALUES | NESTED


def log(rows):
    """A table with every value of every column, and NULLs, beside a key."""
    r = random.Random(7)
    drawn = {c: pa.array([r.choice([None, *values]) for _ in range(rows)], kind) for c, (kind, values, _) in COLUMNS.items()}
    for c, (kind, values, _) in COLUMNS.items():
        drawn[c] = pa.chunked_array([pa.array(values, kind), drawn[c].slice(len(values))]).combine_chunks()
    return pa.table({"k": pa.array([None if i % 11 == 0 else i % 40 for i in range(rows)], pa.int64()), **drawn})


def alike(value):
    """A value so that equal ones have equal texts: NaN, and moments in UTC."""
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value).replace("nan", "NaN").replace("inf", "Infinity")
    if isinstance(value, datetime.datetime) and value.tzinfo:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {k: alike(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [alike(v) for v in value]
    return value if value is None or isinstance(value, int | str) else str(value)


def wanted(table, column):
    """The values of a column of the Parquet answer."""
    values = table[column].to_pylist()
    if pa.types.is_map(table[column].type):
        values = [v if v is None else [{"key": k, "value": x} for k, x in v] for v in values]
    return [alike(v) for v in values]


def unlike(table, columns, of):
    """The first column in which others have not the values of the Parquet answer, and the first such value."""
    for c in columns:
        want, got = wanted(table, c), [alike(v) for v in of(c)]
        if got != want:
            at = next((i for i, (a, b) in enumerate(zip(want, got, strict=False)) if a != b), min(len(want), len(got)))
            return f"{c}: {len(got)} values of {len(want)}, row {at}: want {want[at : at + 1]!r}, got {got[at : at + 1]!r}"
    return ""


def duck(query):
    """What DuckDB reads, by column."""
    with duckdb.connect() as db:
        db.execute("set timezone = 'UTC'")
        table = db.sql(query).to_arrow_table()
    return lambda c: table[c].to_pylist()


def sql_types(columns):
    return "{" + ", ".join(f"'{c}': '{kind}'" for c, kind in columns.items()) + "}"


def csv(path, table, delimiter=","):
    """What the readers find wrong in CSV or TSV, of which each tells NULL from an empty string if it is asked to."""
    names, quotes = table.column_names, delimiter == ","
    kinds = {c: COLUMNS[c][2] if c in VALUES else "VARCHAR" if c in NESTED else "BIGINT" for c in names}
    how = f"header=true, auto_detect=false, delim='{delimiter}', nullstr='', allow_quoted_nulls=false, columns={sql_types(kinds)}"
    quote = "'\"'" if quotes else "''"
    yield "DuckDB", unlike(table, [c for c in names if c not in NESTED], duck(f"from read_csv('{path}', {how}, quote={quote}, escape={quote})"))
    types = {"word": pa.string(), "i64": pa.int64(), "u64": pa.uint64(), "f64": pa.float64(), "dec": pa.decimal128(38, 6), "day": pa.date32(), "flag": pa.bool_()}
    read = pc.read_csv(
        path,
        parse_options=pc.ParseOptions(delimiter=delimiter, newlines_in_values=True, quote_char='"' if quotes else False),
        convert_options=pc.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()) | types,
            null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
        ),
    )  # fmt: skip
    yield "pyarrow", unlike(table, [c for c in types if c in names], lambda c: read[c].to_pylist())
    yield "JSON within", unlike(table, [c for c in NESTED if c in names], lambda c: [v and json.loads(v) for v in read[c].to_pylist()])
    frame = pd.read_csv(path, sep=delimiter, dtype=str, keep_default_na=False, quoting=0 if quotes else 3, lineterminator="\n")
    yield "pandas", [v or None for v in frame["word"]] == [v or None for v in table["word"].to_pylist()] or "other words"


def ndjson(path, table):
    """What the readers find wrong in NDJSON."""
    names = table.column_names
    kinds = {c: COLUMNS[c][2] if c in COLUMNS else "BIGINT" for c in names}
    yield "DuckDB", unlike(table, names, duck(f"from read_json('{path}', format='newline_delimited', columns={sql_types(kinds)})"))
    lines = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = [json.loads(line) for line in lines.split(b"\n")[:-1]]
    yield "Python", unlike(table, [c for c in names if c not in ("f32", "at", "when", "time", "deep")], lambda c: [r[c] for r in rows])
    yield "columns", all(list(r) == names for r in rows) or "not all columns in each row"
    frame = pd.read_json(path, lines=True, dtype=False, convert_dates=False)
    yield "pandas", [None if pd.isna(v) else v for v in frame["word"]] == table["word"].to_pylist() or "other words"


def check(t, name, problems):
    """One check of all readers. A problem is a text; other results are none."""
    t.equal(name, [(reader, wrong) for reader, wrong in problems if wrong and wrong is not True], [])


def answers(t):
    """Joins of all types: each strategy writes the same text, and its values are those of Parquet."""
    source = tables.write(log(600), t.path("log.parquet"), row_group_size=200)
    ids = tables.write(pa.table({"k": pa.array([*range(20, 60), None], pa.int64()), "rank": pa.array(range(41), pa.int64())}), t.path("ids.parquet"))
    for kind in TYPES:
        how = ["join", "--ids", ids, "--on", "k", "--type", kind]
        parquet = t.path("answer.parquet")
        t.run(*how, "-o", parquet, source)
        table = tables.read(parquet)
        for ending, read in {".csv": csv, ".ndjson": ndjson, ".csv.gz": csv, ".jsonl.gz": ndjson}.items():
            path = t.path(f"answer{ending}")
            r = t.run(*how, "--json", "-o", path, source, opens=False).json
            t.equal(f"{kind}{ending}: rows", r["rows_out"], table.num_rows)
            check(t, f"{kind}{ending}: values", read(path, table))
            if ending.endswith(".gz"):
                continue
            texts = {path.read_bytes(), t.run(*how, "--format", ending[1:], "-o", "-", source, opens=False).out}
            for strategy in STRATEGIES:
                other = t.path(f"{strategy}{ending}")
                t.run(*how, "--strategy", strategy, "--memory", "64MiB", "--threads", 3, "-o", other, source, opens=False)
                texts.add(other.read_bytes())
            t.equal(f"{kind}{ending}: texts of all strategies", len(texts), 1)


def scans(t):
    """Scans, also of Arrow files, with a condition and some columns; TSV has the columns that it can have."""
    flt, table = t.path("k.filter"), log(600)
    ids = tables.write(pa.table({"k": pa.array(range(20, 60), pa.int64())}), t.path("k.parquet"))
    t.run("build", "--key", "k", "--kind", "exact", "-o", flt, ids)
    for source in (tables.write(table, t.path("rows.parquet"), row_group_size=100), tables.write(table, t.path("rows.arrow"), max_chunksize=100)):
        name = source.suffix[1:]
        for ending, read in {".csv": csv, ".ndjson": ndjson}.items():
            parquet, path = t.path("rows-out.parquet"), t.path(f"rows-out{ending}")
            for out in (parquet, path):
                t.run("scan", "--filter", flt, "--where", "k < 30", "-o", out, source, opens=False)
            check(t, f"{name} as {ending[1:]}", read(path, tables.read(parquet)))
            parquet, some = t.path("some.parquet"), t.path(f"some{ending}")
            t.run("scan", "--filter", flt, "--columns", "word,i64", "--shard", "1/2", "-o", some, source, opens=False)
            t.run("scan", "--filter", flt, "--columns", "word,i64", "--shard", "1/2", "-o", parquet, source)
            check(t, f"{name} as {ending[1:]}: some columns of a shard", read(some, tables.read(parquet)))
    easy = tables.write(table.filter(pa.compute.is_in(table["word"], pa.array(["plain", "a,b", " blanks ", 'say "so"', "\\", "null", None]))), t.path("easy.parquet"))
    tsv, parquet = t.path("easy.tsv"), t.path("easy-out.parquet")
    for out in (tsv, parquet):
        t.run("scan", "--filter", flt, "--columns", "k,i64,word,day,when,list", "-o", out, easy, opens=False)
    check(t, "TSV", csv(tsv, tables.read(parquet), "\t"))
    tsv = t.path("rows.tsv")
    r = t.run("scan", "--filter", flt, "-o", tsv, source, want=1)
    t.ok("TSV that cannot be", "unsupported" in r.text and not tsv.exists(), r.text)


def back(t):
    """An answer as CSV is an ID set: its keys find the rows that they came from."""
    source = tables.write(log(600), t.path("log.parquet"))
    for column in ("word", "i64", "dec", "day", "when", "id"):
        some = t.path("keys.csv")
        t.run("join", "--ids", source, "--on", "k", "--columns", f"{column},k", "-o", some, source, opens=False)
        table = tables.read(source)
        keyed = table.filter(pa.compute.is_valid(table["k"]))[column]
        want = {str(v) for v in keyed.to_pylist() if v is not None and v != ""}
        out = t.path("found.parquet")
        t.run("join", "--ids", some, "--on", column, "-o", out, source)
        got = tables.read(out)
        t.equal(f"keys of {column} find their rows", {str(v) for v in got[column].to_pylist()}, want)


def run(t, _repository):
    t.group("text answers", answers)
    t.group("text scans", scans)
    t.group("text back", back)
