#!/usr/bin/env python3
"""Record what another reader sees in a file: NAME.json beside NAME.parquet or NAME.arrow.

    record.py [--oracle pyarrow|duckdb] [--columns a,b] SHOWS FILE...    rows
    record.py --error corrupt|unsupported --words W,W SHOWS FILE...      a file that must be refused

SHOWS says what the file is about. Values that JSON has no form for are strings: bytes "0x…" in hexadecimal, dates "…d"
(days since 1970), times, timestamps and durations "…ns" (since 1970), decimals in full, floats that are not finite by name.
A map is a list of pairs. The JSON has a row a line.
"""

import argparse
import json
import math
import pathlib

import pyarrow as pa

UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def each(values, f):
    return [None if v is None else f(v) for v in values]


def number(f):
    return f if math.isfinite(f) else str(f)


def shown(a):
    """The values of an array, as the JSON has them."""
    t = a.type
    if isinstance(t, pa.BaseExtensionType):
        return shown(a.storage)
    if pa.types.is_dictionary(t):
        values = shown(a.dictionary)  # pyarrow decodes none of views
        return each(a.indices.to_pylist(), lambda i: values[i])
    if pa.types.is_floating(t):
        return each(a.to_pylist(), number)
    if pa.types.is_decimal(t):
        return each(a.to_pylist(), lambda d: format(d, "f"))
    if pa.types.is_date32(t):
        return each(a.cast(pa.int32()).to_pylist(), lambda d: f"{d}d")
    if pa.types.is_date64(t):
        return each(a.cast(pa.int64()).to_pylist(), lambda d: f"{d // 86400000}d")
    if pa.types.is_timestamp(t) or pa.types.is_time(t) or pa.types.is_duration(t):
        stored = pa.int32() if pa.types.is_time32(t) else pa.int64()
        return each(a.cast(stored).to_pylist(), lambda n: f"{n * UNITS[t.unit]}ns")
    if pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_fixed_size_binary(t) or pa.types.is_binary_view(t):
        return each(a.to_pylist(), lambda b: "0x" + b.hex())
    if pa.types.is_struct(t):
        parts = [shown(a.field(i)) for i in range(t.num_fields)]
        names = [t.field(i).name for i in range(t.num_fields)]
        return [dict(zip(names, row)) if ok else None for ok, *row in zip(a.is_valid().to_pylist(), *parts)]
    if pa.types.is_map(t):
        return [None if not v.is_valid else [[p["key"], p["value"]] for p in entries(v.values)] for v in a]
    if pa.types.is_nested(t):
        return [None if not v.is_valid else shown(v.values) for v in a]
    return a.to_pylist()


def entries(a):
    keys, values = shown(a.field(0)), shown(a.field(1))
    return [{"key": k, "value": v} for k, v in zip(keys, values)]


def table(oracle, path):
    """What the oracle reads, and its version."""
    if oracle == "duckdb":
        import duckdb

        return duckdb.sql(f"select * from read_parquet('{path}')").to_arrow_table(), f"DuckDB {duckdb.__version__}"
    if path.suffix == ".arrow":
        import pyarrow.ipc

        return pyarrow.ipc.open_file(path).read_all(), f"pyarrow {pa.__version__}"
    import pyarrow.parquet

    return pyarrow.parquet.ParquetFile(path).read(), f"pyarrow {pa.__version__}"


def write(path, facts, rows=None):
    """The JSON: its facts, and then a row a line."""
    text = json.dumps(facts, ensure_ascii=False, indent=1)
    if rows is not None:
        lines = ",\n  ".join(json.dumps(r, ensure_ascii=False) for r in rows)
        text = text[:-2] + ',\n "rows": [\n  ' + lines + "\n ]\n}" if rows else text[:-2] + ',\n "rows": []\n}'
    path.with_suffix(".json").write_text(text + "\n")


def rows(shows, path, oracle="pyarrow", columns=None):
    t, by = table(oracle, path)
    if columns:
        t = t.select(columns)
    values = [shown(pa.concat_arrays(c.chunks) if c.num_chunks else pa.array([], c.type)) for c in t.columns]
    facts = {"shows": shows, "oracle": by, "columns": t.column_names}
    write(path, facts, [list(r) for r in zip(*values)] if values else [])


def refused(shows, path, kind, words):
    write(path, {"shows": shows, "error": {"kind": kind, "words": words}})


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--oracle", default="pyarrow")
    p.add_argument("--columns")
    p.add_argument("--error")
    p.add_argument("--words", default="")
    p.add_argument("shows")
    p.add_argument("files", nargs="+", type=pathlib.Path)
    o = p.parse_args()
    for path in o.files:
        if o.error:
            refused(o.shows, path, o.error, o.words.split(","))
        else:
            rows(o.shows, path, o.oracle, o.columns and o.columns.split(","))


if __name__ == "__main__":
    main()
