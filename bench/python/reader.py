"""A scan through bloomjoin.Reader beside the command's own stream of Arrow records.

    python bench/python/reader.py [--rows N] [--rounds N] [--data DIR]

Needs the package bloomjoin (or PYTHONPATH and BLOOMJOIN_BINARY). The log has about a
gigabyte with the default number of rows. Both sides take turns on the same file: a
Python process that iterates over the Reader, timed after its imports, and the
command with `-o -` into a process that discards what it reads, timed from start to
end. The memory is the peak of the Python process, without that of the command.
It fails if a median is above its bound.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bloomjoin import _process

QUOTIENT, MEGABYTES = 1.15, 200  # bounds
USERS = 20_000_000

# name: share of the users that are IDs
CELLS = {"1 % kept": 0.01, "10 % kept": 0.1, "all kept": 1.0}

# Run by a new process: imports first, so that only the scan is timed.
READ = """
import json, re, sys, time
import bloomjoin
began = time.perf_counter()
rows = sum(batch.num_rows for batch in bloomjoin.scan(sys.argv[1], sys.argv[2]))
print(json.dumps({
    "rows": rows,
    "seconds": time.perf_counter() - began,
    "megabytes": int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024,
}))
"""

# Reads a pipe in large pieces, as fast as Python can, and keeps nothing.
DISCARD = """
import sys
room = bytearray(1 << 20)
read = open(0, "rb", buffering=0).readinto
while read(room):
    pass
"""


def log(path: Path, rows: int) -> None:
    """Write a log with numbers, times and text that compresses little."""
    r = np.random.default_rng(1)
    step, writer = 500_000, None
    for first in range(0, rows, step):
        n = min(step, rows - first)
        words = r.integers(0, 2**63, (2, n))
        table = pa.table(
            {
                "user_id": r.integers(0, USERS, n),
                "time": pa.array(np.arange(first, first + n) * 1000, pa.timestamp("us", "UTC")),
                "session": [f"{a:016x}{b:016x}" for a, b in words.T.tolist()],
                "amount": r.normal(100, 20, n),
                "page": [f"/item/{a % 100_000}?from={a % 977}" for a in words[0].tolist()],
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def reader(filter: Path, path: Path) -> dict[str, float]:
    out = subprocess.run(
        [sys.executable, "-c", READ, str(filter), str(path)], check=True, capture_output=True
    )
    said: dict[str, float] = json.loads(out.stdout)
    return said


def command(filter: Path, path: Path) -> float:
    began = time.perf_counter()
    scan = subprocess.Popen(
        [_process.binary(), "scan", "--filter", str(filter), "-o", "-", "--quiet", str(path)],
        stdout=subprocess.PIPE,
    )
    drain = subprocess.Popen([sys.executable, "-S", "-c", DISCARD], stdin=scan.stdout)
    assert scan.stdout is not None
    scan.stdout.close()
    if scan.wait() or drain.wait():
        sys.exit("the command failed")
    return time.perf_counter() - began


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=16_000_000)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--data", type=Path, help="directory for the log, which is kept")
    given = options.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        data = given.data or Path(temporary)
        data.mkdir(parents=True, exist_ok=True)
        path = data / f"log-{given.rows}.parquet"
        if not path.exists():
            log(path, given.rows)
        print(f"{path.stat().st_size / 1e9:.2f} GB, {given.rows:,} rows, medians of {given.rounds}")
        print("| log | rows | command | Reader | quotient | peak of Python |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        for name, share in CELLS.items():
            filter = Path(temporary) / "ids.bjf"
            ids = pa.table({"user_id": np.arange(0, USERS, round(1 / share))})
            pq.write_table(ids, Path(temporary) / "ids.parquet")
            _process.run(
                ["build", "--key", "user_id", "--force", "-o", str(filter)],
                inputs=[str(Path(temporary) / "ids.parquet")],
            )
            reader(filter, path)  # warms the cache
            pairs = [(command(filter, path), reader(filter, path)) for _ in range(given.rounds)]
            quotient = median(r["seconds"] / c for c, r in pairs)
            peak = max(r["megabytes"] for _, r in pairs)
            print(
                f"| {name} | {pairs[0][1]['rows']:,} | {median(c for c, _ in pairs):.2f} s "
                f"| {median(r['seconds'] for _, r in pairs):.2f} s "
                f"| {quotient:.2f} | {peak:.0f} MB |",
                flush=True,
            )
            failed |= quotient > QUOTIENT or peak > MEGABYTES
    sys.exit("above a bound" if failed else 0)


main()
