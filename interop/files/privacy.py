"""What was removed is gone: no output has bytes of a removed row, in pages, dictionaries, statistics or indexes."""

import random
import re

import pyarrow as pa

from common import rawfile, tables

ROWS = 6000
WRITERS = {
    "dictionaries": dict(),
    "plain, tiny pages": dict(use_dictionary=False, data_page_size=500),
    "dictionaries that overflow": dict(dictionary_pagesize_limit=5000, data_page_size=3000),
    "V2, page index, zstd": dict(
        data_page_version="2.0", write_page_index=True, compression="zstd", data_page_size=2000
    ),
    "no compression, large pages": dict(use_dictionary=False, compression="none", data_page_size=1 << 20),
    "delta": dict(
        use_dictionary=False, column_encoding={"k": "DELTA_LENGTH_BYTE_ARRAY", "number": "DELTA_BINARY_PACKED"}
    ),
}


def secret(kind, i):
    """A text of its own for each row and column, which occurs by no chance."""
    return f"{kind}<{i:05d}>"


def log(rng):
    n = range(ROWS)
    big = [rng.getrandbits(62) | 1 << 61 for _ in n]
    return big, pa.table({
        "k": pa.array([secret("key", i) for i in n]),
        "number": pa.array(big, pa.int64()),
        "payload": pa.array([secret("pay", i) + "z" * rng.randrange(90) for i in n]),
        "fixed": pa.array([secret("fix", i).encode() for i in n], pa.binary(10)),
        "list": pa.array([[secret("lst", i)] * rng.randrange(3) for i in n], pa.list_(pa.string())),
        "user": pa.array([{"name": secret("usr", i)} for i in n], pa.struct([("name", pa.string())])),
    })  # fmt: skip


def found(path, big):
    """The rows whose bytes occur anywhere in a file."""
    rows, index = set(), {}
    for i, v in enumerate(big):
        index.setdefault(v.to_bytes(8, "little"), i)
    for text in rawfile.File(path).texts():
        rows.update(int(m) for m in re.findall(rb"(?:key|pay|fix|lst|usr)<(\d{5})>", text))
        rows.update(index[text[at : at + 8]] for at in range(len(text) - 7) if text[at : at + 8] in index)
    return rows


def one(t, how):
    rng = random.Random(3)
    big, table = log(rng)
    files = []
    for i in range(2):
        part = table.slice(i * ROWS // 2, ROWS // 2)
        files.append(tables.write(part, t.path(f"log{i}.parquet"), row_group_size=1000, **how))
    for share in (0.02, 0.5, 0.98):
        rows = sorted(rng.sample(range(ROWS), int(ROWS * share)))
        for key, ids in (
            ("k", pa.array([secret("key", i) for i in rows])),
            ("number", pa.array([big[i] for i in rows])),
        ):
            idfile = tables.write(pa.table({"id": ids}), t.path("ids.parquet"))
            for kind in ("semi", "anti"):
                kept = set(rows) if kind == "semi" else set(range(ROWS)) - set(rows)
                out = t.path("out.parquet")
                t.run("join", "--ids", idfile, "--on", f"{key}=id", "--type", kind, "-o", out, *files)
                got = found(out, big)
                t.ok(f"{kind} by {key}, {share:.0%}: all that was kept is there", kept <= got, len(kept - got))
                t.ok(
                    f"{kind} by {key}, {share:.0%}: nothing else",
                    got <= kept,
                    f"{len(got - kept)} removed rows: {sorted(got - kept)[:5]}",
                )


def run(t, _repository):
    for name, how in WRITERS.items():
        t.group(f"privacy {name}", one, how)
