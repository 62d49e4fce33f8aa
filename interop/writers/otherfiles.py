"""Files by fastparquet, Polars, DuckDB and DataFusion."""

import datafusion
import duckdb
import fastparquet
import numpy as np
import pandas
import polars
import pyarrow as pa

from writers import samples


def place(out, name, file):
    path = out / name / f"{file}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


# ---- fastparquet, which has pandas' types

FASTPARQUET = {
    "defaults": {},
    "gzip": dict(compression="GZIP", row_group_offsets=900),
    "snappy": dict(compression="SNAPPY", has_nulls=True),
    "zstd": dict(compression="ZSTD", has_nulls=False, stats=True),
    "brotli": dict(compression="BROTLI"),
    "lz4": dict(compression="LZ4_RAW"),
    "int96": dict(times="int96"),
}


def pandas_frame(nulls):
    """Each type that fastparquet writes; NULLs are those of pandas' own types, NaT, None and NaN."""
    g = np.random.default_rng(11)
    n = samples.ROWS
    columns = {"id": g.permutation(n)}
    for bits in (8, 16, 32, 64):
        columns[f"i{bits}"], columns[f"u{bits}"] = samples.integers(g, bits, True), samples.integers(g, bits, False)
        columns[f"Int{bits}"] = pandas.array(columns[f"i{bits}"], f"Int{bits}")
        columns[f"UInt{bits}"] = pandas.array(columns[f"u{bits}"], f"UInt{bits}")
    flags = g.random(n) < 0.5
    at = samples.EPOCH + g.integers(-(10**8), 10**8, n)
    columns |= {
        "flag": flags, "Boolean": pandas.array(flags, "boolean"), "f32": samples.floats(g, "float32"), "f64": samples.floats(g, "float64"),
        "text": pandas.Series(samples.texts(g, n), dtype=object), "string": pandas.array(samples.texts(g, 500), "string"),
        "binary": pandas.Series([b"\0" * (i % 5) + str(i).encode() for i in g.integers(0, n, n)], dtype=object),
        "category": pandas.Categorical(samples.texts(g, 60)), "many": pandas.Categorical(samples.texts(g, 5000)),
        "ts_ns": pandas.to_datetime(at * 10**9 + 123_456_000).as_unit("ns"), "ts_us": pandas.to_datetime(at * 10**9).as_unit("us"),
        "tz": pandas.to_datetime(at * 10**9, utc=True).as_unit("us"),
        "delta": pandas.to_timedelta(at * 10**9).as_unit("us"),
        "json": pandas.Series([{"a": int(i)} for i in g.integers(0, 9, n)], dtype=object),
    }  # fmt: skip
    frame = pandas.DataFrame(columns)
    kept = ("id", *(c for c in frame.columns if c[0] in "iu" and c[1:].isdigit()), "flag")
    for c in frame.columns if nulls != "none" else ():
        if c not in kept:
            frame[c] = frame[c].mask(g.random(n) < 1 / 7) if nulls == "some" else frame[c].mask(np.ones(n, bool))
    return frame


def by_fastparquet(out):
    made = {nulls: pandas_frame(nulls) for nulls in samples.NULLS}
    encoding = {"text": "utf8", "string": "utf8", "binary": "bytes", "json": "json"}
    for i, (way, how) in enumerate(FASTPARQUET.items()):
        nulls = "none" if how.get("has_nulls") is False else samples.NULLS[(i + 1) % 3]
        for size in samples.SIZES:
            frame = made[nulls].iloc[:size].copy()
            path = place(out, "pandas" if way != "int96" else "old", f"{way}-{nulls}-{size}")
            fastparquet.write(str(path), frame, object_encoding=encoding, write_index=False, **how)


# ---- Polars

POLARS = {
    "defaults": {},
    "small": dict(data_page_size=300, row_group_size=1500, compression="snappy"),
    "none": dict(compression="uncompressed", statistics=False),
    "gzip": dict(compression="gzip", row_group_size=5000),
    "brotli": dict(compression="brotli", statistics="full"),
    "lz4": dict(compression="lz4", data_page_size=10_000),
}


def polars_extra(name, frame):
    """What only Polars has."""
    i = polars.int_range(polars.len())
    if name == "strings":
        few = ["", "a", "ä", "bc"]
        return frame.with_columns(
            cat=polars.col("few").cast(polars.Categorical),
            enum=polars.Series([few[k % 4] for k in range(frame.height)], dtype=polars.Enum(few)),
        )
    if name == "nested":
        return frame.with_columns(
            array=polars.concat_list(i, i + 1, i * 2).list.to_array(3),
            cats=polars.col("words").cast(polars.List(polars.Categorical)),
        )
    return frame


def by_polars(out):
    for name, file, table, how in samples.variants(("numbers", "strings", "times", "nested"), POLARS):
        polars_extra(name, polars.from_arrow(table)).write_parquet(place(out, name, file), **how)


# ---- DuckDB

DUCKDB = {
    "defaults": "",
    "v2": "parquet_version v2, compression zstd",
    "small-v2": "parquet_version v2, compression snappy, row_group_size 2048",
    "none": "compression uncompressed, dictionary_size_limit 0",
    "gzip": "compression gzip, dictionary_size_limit 20",
    "brotli": "compression brotli",
    "lz4": "compression lz4_raw, row_group_size 4096, write_bloom_filter false",
}
DUCKDB_TYPES = {
    "numbers": "*, i64::hugeint as huge, u64::uhugeint as uhuge, (i32 % 1000000)::decimal(9,2) as dec9",
    "strings": "*, (few || 'x')::enum_of_few as enum, {'a': text}::json as json, '101'::bit as bits",
    "times": "* exclude (duration), to_days(coalesce(abs(epoch(ts_s)) % 1000, 5)::int) + to_months(3) as span, time_us::timetz as timetz",
    "nested": "*, [id, id + 1]::bigint[2] as array, map {id: words} as map_of_lists, [pair, null] as pairs",
}


def by_duckdb(out):
    with duckdb.connect() as db:
        db.execute("set timezone = 'UTC'; set threads = 1")
        few = sorted({v + "x" for v in samples.table("strings")["few"].to_pylist()})
        db.execute(f"create type enum_of_few as enum ({', '.join(repr(v) for v in few)})")
        for name, file, table, how in samples.variants(DUCKDB_TYPES, DUCKDB):
            db.register("source", table)
            options = f", {how}" if how else ""
            db.execute(f"copy (select {DUCKDB_TYPES[name]} from source) to '{place(out, name, file)}' (format parquet{options})")


# ---- arrow-rs, by DataFusion

DATAFUSION = {
    "defaults": {},
    "small": dict(data_pagesize_limit=300, write_batch_size=50, data_page_row_count_limit=100, compression="snappy"),
    "v2": dict(writer_version="2.0", compression="gzip(6)", max_row_group_size=3000),
    "small-v2": dict(writer_version="2.0", data_pagesize_limit=500, write_batch_size=64, compression="lz4_raw"),
    "plain": dict(dictionary_enabled=False, compression="uncompressed", skip_arrow_metadata=True),
    "blooms": dict(bloom_filter_on_write=True, dictionary_page_size_limit=200, compression="brotli(4)"),
}


def by_datafusion(out):
    context = datafusion.SessionContext()
    for name, file, table, how in samples.variants(("numbers", "strings", "times", "nested", "wide"), DATAFUSION):
        path = place(out, name, file)
        batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
        frame = context.create_dataframe([batches])
        options = datafusion.ParquetWriterOptions(**how)
        frame.write_parquet_with_options(str(path), options)
