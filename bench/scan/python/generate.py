"""Writes a log and its ID sets: generate.py DIRECTORY SHAPE ROWS.

The log is written twice, log.snappy and log.zstd (level 1): files ending in
.parquet, or directories of them. The ID sets are ids-RATE.parquet, RATE being
a share of the users in per cent. facts.json says how many rows of the log each
of them matches, counted here from the users' numbers, without any join.
"""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROW_GROUP = 1 << 20  # rows; pyarrow's default
RATES = ["0.01", "1", "10", "50"]
CODECS = {"snappy": {"compression": "snappy"}, "zstd": {"compression": "zstd", "compression_level": 1}}
SEED = 20_000_000
KEY = "user_id"


def numbers(shape, rows, rng):
    """How many users there are, and the number of each row's user."""
    if shape == "dictionary":  # few enough for a dictionary page
        return 100_000, rng.integers(0, 100_000, rows, dtype=np.int32)
    if shape == "clustered":  # users come one after the other, their rows close together
        near = max(rows // 500, 1)
        return rows, np.clip(np.arange(rows) + rng.integers(-near, near + 1, rows), 0, rows - 1).astype(np.int32)
    if shape == "sorted":
        return rows, np.sort(rng.integers(0, rows, rows, dtype=np.int32))
    if shape == "zipf":  # exponent 1: the rank's logarithm is uniform
        return rows, np.minimum(np.power(float(rows), rng.random(rows)) - 1, rows - 1).astype(np.int32)
    return rows, rng.integers(0, rows, rows, dtype=np.int32)


def keys(shape, users):
    """Users' numbers as keys: distinct, and scattered over 40 bits unless order matters."""
    x = users.astype(np.uint64)
    if shape in ("clustered", "sorted"):
        return pa.array((x * np.uint64(97) + np.uint64(5)).astype(np.int64))
    mask = np.uint64((1 << 40) - 1)
    for odd in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9):  # steps that are bijections
        x = (x * np.uint64(odd)) & mask
        x ^= x >> np.uint64(20)
    if shape == "string":
        return pc.binary_join_element_wise("u-", hexadecimal(x.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 3:]), "")
    return pa.array(x.astype(np.int64))


def hexadecimal(octets):
    """Rows of bytes as strings of hexadecimal digits."""
    n, width = octets.shape
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    text = np.empty((n, 2 * width), np.uint8)
    text[:, 0::2] = digits[octets >> 4]
    text[:, 1::2] = digits[octets & 15]
    offsets = (np.arange(n + 1) * 2 * width).astype(np.int32)
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(text))


def skewed(rng, n, words):
    """Words, the first ones more often."""
    return pc.take(pa.array(words), pa.array(np.minimum(rng.exponential(len(words) / 5, n), len(words) - 1).astype(np.int32)))


def paths():
    rng = np.random.default_rng(SEED)
    letters = np.frombuffer(b"etaoinshrdlucmwfgypbvk", np.uint8)
    word = lambda: rng.choice(letters, rng.integers(4, 10)).tobytes().decode()
    words = [word() for _ in range(2000)]
    pick = lambda: words[min(int(rng.exponential(300)), 1999)]
    return [f"https://shop.example.com/{pick()}/{pick()}-{pick()}/" for _ in range(10_000)]


PATHS = paths()
COUNTRIES = "US DE FR GB IN BR JP CA IT ES NL PL SE CH AT BE DK NO FI PT".split()
DEVICES = ["phone", "desktop", "tablet", "tv", "watch"]
EVENTS = ["view", "click", "scroll", "search", "add_to_cart", "login", "checkout", "logout"]
STATUS = np.array([200, 200, 200, 200, 200, 200, 304, 301, 404, 500], np.int32)


def columns(start, n, key, rng):
    """The ten columns of n rows from row start on."""
    at = 1_700_000_000_000_000 + (np.arange(start, start + n) * 4000 + rng.integers(0, 30_000, n))
    item = pc.cast(pa.array(rng.integers(0, 100_000, n, dtype=np.int32)), pa.string())
    amount = np.round(rng.lognormal(3, 1, n), 2)
    return {
        "event_time": pa.array(at, pa.timestamp("us")),
        KEY: key,
        "session_id": hexadecimal(rng.integers(0, 256, (n, 12), dtype=np.uint8)),
        "url": pc.binary_join_element_wise(skewed(rng, n, PATHS), item, "?ref=", skewed(rng, n, EVENTS), ""),
        "country": skewed(rng, n, COUNTRIES),
        "device": skewed(rng, n, DEVICES),
        "event": skewed(rng, n, EVENTS),
        "status": pa.array(STATUS[rng.integers(0, len(STATUS), n)]),
        "amount": pa.array(amount, mask=rng.random(n) < 0.5),
        "duration_ms": pa.array(rng.exponential(300, n).astype(np.int32)),
    }


def metrics(n, rng):
    """What makes a log wide: 190 more columns."""
    more = {}
    for i in range(190):
        kind = i % 4
        if kind == 0:
            more[f"count_{i}"] = pa.array(rng.integers(0, 10_000, n, dtype=np.int32))
        elif kind == 1:
            more[f"gauge_{i}"] = pa.array(np.round(rng.random(n), 3))
        elif kind == 2:
            more[f"label_{i}"] = skewed(rng, n, PATHS[: 10 + i])
        else:
            more[f"flag_{i}"] = pa.array(rng.random(n) < 0.1)
    return more


def tables(shape, users, group):
    """The log in tables of one row group each."""
    for start in range(0, len(users), group):
        rng = np.random.default_rng([SEED, start])
        part = users[start : start + group]
        data = columns(start, len(part), keys(shape, part), rng)
        if shape == "wide":
            data |= metrics(len(part), rng)
        yield pa.table(data)


def write_files(directory, shape, users, group):
    """One file per codec, written side by side. The pages of the base are cut
    at 1 MiB; pyarrow's default, which the others have, is 20,000 rows as well."""
    pages = {"max_rows_per_page": group} if shape == "base" else {}
    writers = {}
    with ThreadPoolExecutor(len(CODECS)) as pool:
        for table in tables(shape, users, group):
            for codec, options in CODECS.items():
                if codec not in writers:
                    writers[codec] = pq.ParquetWriter(f"{directory}/log.{codec}.parquet", table.schema, **options, **pages)
            list(pool.map(lambda w: w.write_table(table, row_group_size=group), writers.values()))
        list(pool.map(lambda w: w.close(), writers.values()))


def write_many(directory, shape, users, files):
    """A directory of small files per codec."""
    for codec in CODECS:
        os.makedirs(f"{directory}/log.{codec}")
    for i, table in enumerate(tables(shape, users, -(-len(users) // files))):
        for codec, options in CODECS.items():
            pq.write_table(table, f"{directory}/log.{codec}/part-{i:05}.parquet", **options)


def rewrite(directory):
    """The files as DuckDB writes them: its encodings, row groups of 122,880."""
    import duckdb

    for codec in CODECS:
        name = f"{directory}/log.{codec}.parquet"
        level = ", COMPRESSION_LEVEL 1" if codec == "zstd" else ""
        duckdb.execute(f"COPY (FROM '{name}') TO '{name}.new' (FORMAT parquet, COMPRESSION {codec}{level})")
        os.replace(name + ".new", name)


def write_ids(directory, shape, count, users):
    """The ID sets; returns how many rows each matches."""
    matched = {}
    order = np.random.default_rng([SEED, 1]).permutation(count)
    for rate in RATES:
        n = max(round(count * float(rate) / 100), 1)
        chosen = order[:n]
        if shape == "clustered":  # one range of users
            chosen = np.random.default_rng(SEED).permutation(np.arange(n) + (count - n) // 2)
        member = np.zeros(count, bool)
        member[chosen] = True
        matched[rate] = int(np.count_nonzero(member[users]))
        pq.write_table(pa.table({KEY: keys(shape, chosen)}), f"{directory}/ids-{rate}.parquet")
    return matched


def main(directory, shape, rows):
    count, users = numbers(shape, rows, np.random.default_rng([SEED, 2]))
    matched = write_ids(directory, shape, count, users)
    if shape == "small":
        write_many(directory, shape, users, 2000)
    else:
        write_files(directory, shape, users, 1 << 17 if shape == "wide" else ROW_GROUP)
    if shape == "duckdb":
        rewrite(directory)
    with open(f"{directory}/facts.json", "w") as f:
        json.dump({"rows": rows, "users": count, "matched": matched}, f)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
