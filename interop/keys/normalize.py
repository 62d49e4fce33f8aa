"""--normalize against DuckDB: trim and lower of Unicode and of ASCII, and its cast to UUID, over random strings."""

import random
import types
import uuid

import pyarrow as pa

from common import harness, tables
from keys import keycases, keys

TYPES = ("semi", "anti", "inner", "left", "right", "full")
SPACE = "chr(9) || chr(10) || chr(11) || chr(12) || chr(13) || ' '"
# DuckDB's trim without a list leaves what is not a space separator.
WIDE = " || ".join([SPACE, *(f"chr({c})" for c in (0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000))])
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def sql(rule, column):
    """What a rule makes of a column, in DuckDB. Its cast knows no urn:uuid:."""
    e = column
    ascii_only = "ascii-only" in rule
    if "trim" in rule:
        e = f"trim({e}, {SPACE if ascii_only else WIDE})"
    if "lower" in rule:
        e = f"translate({e}, '{UPPER}', '{UPPER.lower()}')" if ascii_only else f"lower({e})"
    if "uuid" in rule:
        e = f"try_cast(regexp_replace({e}, '^urn:uuid:', '', 'i') as uuid)"
    return e


def words(rng, n, nulls=0.1):
    """Strings that are equal to others, or nearly, under some rule."""
    spaces = ["", "", "", " ", "\t", "\r\n", "\v\f ", "\u00a0", "\u2003\u0085"]
    out = []
    for _ in range(n):
        if rng.random() < nulls:
            out.append(None)
            continue
        core = rng.choice(["", "a", "A", "anna", "ANNA", "Anna B", "ä", "Ä", "ß", "K", "\u212a", "İ", "i", "é", "É", "ẞ", "ΟΔΟΣ", "οδοσ", "οδος", "Ⱥ", "ⱥ"])
        if rng.random() < 0.6:
            core = str(uuid.UUID(int=rng.randrange(6) * 0xABCDEF0123456789ABCDEF))
            bare = core.replace("-", "")
            core = rng.choice([core, core.upper(), bare, "{" + core + "}", "urn:uuid:" + core, core[1:], core + "0"])
        out.append(rng.choice(spaces) + core + rng.choice(spaces))
    return out


def ids_of(rule, rng):
    """IDs that the rule takes."""
    got = words(rng, 60, nulls=0.05)
    if "uuid" not in rule:
        return got
    table = pa.table({"k": pa.array(got, pa.string())})
    fine = tables.sql(f"select k from ids where k is null or {sql(rule, 'k')} is not null", ids=table)
    return [k for (k,) in fine]


def pairs(rule, logs, ids):
    return tables.sql(f"select l, r from logs, ids where {sql(rule, 'logs.k')} = {sql(rule, 'ids.k')}", logs=logs, ids=ids)


FORMS = {
    "dictionaries": (".parquet", pa.string(), {"row_group_size": 50, "write_page_index": True}),
    "plain, small pages": (".parquet", pa.large_string(), {"use_dictionary": False, "data_page_size": 200, "write_page_index": True}),
    "V2 pages of binary": (".parquet", pa.binary(), {"data_page_version": "2.0", "row_group_size": 70, "compression": "zstd"}),
    "arrow": (".arrow", pa.string(), {}),
    "arrow dictionaries": (".arrow", pa.dictionary(pa.int16(), pa.string()), {}),
}


def joins(t, rule, form):
    rng = random.Random(f"{rule} {form}")
    ending, of, options = FORMS[form]
    ids = keycases.numbered("r", k=pa.array(ids_of(rule, rng), pa.string()))
    text = words(rng, 400)
    if rng.random() < 0.5:  # so that statistics tell row groups apart
        text.sort(key=lambda s: s or "")
    plain = keycases.numbered("l", k=pa.array(text, pa.string()))
    column = plain["k"].cast(pa.binary()) if of == pa.binary() else plain["k"].cast(of)
    logs = plain.set_column(plain.schema.get_field_index("k"), "k", column)
    found = pairs(rule, plain, ids)
    t.ok("some match, and some do not", 0 < len({log for log, _ in found}) < logs.num_rows, f"{len(found)} pairs")
    idp = tables.write(ids.rename_columns(["id" if c == "k" else c for c in ids.column_names]), t.path("ids.parquet"))
    logp = tables.write(logs, t.path("logs" + ending), **options)
    case = types.SimpleNamespace(pairs=found, logs=logs, ids=ids)
    for kind in TYPES:
        for strategy in ("lookup", "broadcast") if harness.FULL else [("lookup", "broadcast")[(TYPES.index(kind) + list(FORMS).index(form)) % 2]]:
            out = t.path("out.parquet")
            how = ["--on", "k=id", "--normalize", rule, "--type", kind, "--strategy", strategy]
            r = t.run("join", "--ids", idp, *how, "--json", "-o", out, logp)
            t.equal(f"{kind}, {strategy}", keys.rows(tables.read(out)), keys.ordered(keys.expected(case, kind)))
            t.equal(f"{kind}, {strategy}: NULLs", r.json["keys_null"], plain["k"].null_count)
    flt, out = t.path("k.filter"), t.path("candidates.parquet")
    t.run("build", "--key", "id", "--normalize", rule, "--fpr", "1e-9", "-o", flt, idp)
    t.run("scan", "--filter", flt, "--key", "k", "--normalize", rule, "-o", out, logp)
    t.equal("scan", keys.rows(tables.read(out)), keys.ordered(keys.expected(case, "semi")))
    kept = tables.read(out)
    want = dict(zip(logs["l"].to_pylist(), logs["k"].to_pylist(), strict=True))
    t.ok("rows are as they were", all(want[row["l"]] == row["k"] for row in kept.to_pylist()))


def uuid_column(t):
    """DuckDB's UUID column against text in every spelling, in either direction."""
    rng = random.Random(7)
    raw, text = t.path("raw.parquet"), t.path("text.parquet")
    tables.sql(
        f"copy (select i::integer as l, ('abcdef01-2345-6789-abcd-' || lpad((i % 40)::varchar, 12, '0'))::uuid as k from range(1000) s(i))"
        f" to '{raw}' (format parquet, row_group_size 100)"
    )
    spelled = []
    for i in range(20, 60):
        s = str(uuid.UUID(f"abcdef01-2345-6789-abcd-{i:012}"))
        spelled.append(rng.choice([s, s.upper(), s.replace("-", ""), "{" + s + "}", "URN:uuid:" + s]))
    tables.write(keycases.numbered("r", u=pa.array(spelled)), text)
    want = [(i, i % 40 - 20) for i in range(1000) if i % 40 >= 20]
    out = t.path("out.parquet")
    t.run("join", "--ids", text, "--on", "k=u", "--normalize", "uuid", "--type", "inner", "-o", out, raw)
    t.equal("a log of UUIDs", keys.rows(tables.read(out)), keys.ordered(want))
    other = t.path("other.parquet")
    t.run("join", "--ids", raw, "--on", "u=k", "--normalize", "uuid", "--type", "inner", "-o", other, text)
    t.equal("IDs of UUIDs", keys.rows(tables.read(other)), keys.ordered(want))


def characters(t):
    """lower of each character against DuckDB's; its trim removes fewer."""
    log, ids, out = t.path("log.parquet"), t.path("ids.parquet"), t.path("out.parquet")
    every = "from range(1, 1114112) r(i) where i not between 55296 and 57343"
    tables.sql(f"copy (select i as l, 'x' || chr(i::integer) as k {every}) to '{log}' (format parquet)")
    tables.sql(f"copy (select i as r, lower('x' || chr(i::integer)) as u {every} and lower(chr(i::integer)) <> chr(i::integer)) to '{ids}' (format parquet)")
    t.run("join", "--ids", ids, "--on", "k=u", "--normalize", "lower", "--type", "inner", "-o", out, log)
    want = tables.sql(f"select l, r from '{log}', '{ids}' where lower(k) = lower(u)")
    t.ok("1433 letters have a lower case", len({r for _, r in want}) == 1433, f"{len(want)} pairs")
    t.equal("pairs", sorted((row["l"], row["r"]) for row in tables.read(out).to_pylist()), sorted(want))


def run(t, _repository):
    for rule in ("trim", "lower", "trim,lower", "trim,uuid", "lower,trim,uuid", "trim,lower,ascii-only"):
        for form in FORMS:
            t.group(f"normalize {rule}, {form}", joins, rule, form)
    t.group("normalize uuid column", uuid_column)
    t.group("normalize all characters", characters)
