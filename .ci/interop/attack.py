"""Kills: a join that is killed at any moment leaves a whole output or none, and the next run makes it whole.

    python .ci/interop/attack.py --tool PATH --kills N
"""

import argparse
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa

import tables


def inputs(work):
    """A log of some files, and IDs of a third of its users."""
    g = np.random.default_rng(3)
    for i in range(4):
        table = pa.table({"user": g.integers(0, 30_000, 300_000), "row": np.arange(300_000), "text": [f"text {v}" for v in g.integers(0, 999, 300_000)]})
        tables.write(table, work / "logs" / f"{i}.parquet", row_group_size=40_000)
    return tables.write(pa.table({"user": np.arange(0, 30_000, 3), "name": [f"n{i}" for i in range(10_000)]}), work / "ids.parquet")


def rows(out):
    """What an output holds, file by file; None where there is none."""
    if out.is_dir():
        return {p.relative_to(out).as_posix(): tables.read(p).num_rows for p in tables.data_files(out)}
    return tables.read(out).num_rows if out.exists() else None


def kill(tool, work, ids, kind, form, signum, after):
    """One run that is killed after some seconds, and the run that follows: what is wrong, or an empty string."""
    out = work / ("out" + ("" if form == "/" else form))
    command = [tool, "join", "--ids", ids, "--on", "user", "--type", kind, "--memory", "64MiB", "-o", f"{out}{'/' if form == '/' else ''}", work / "logs"]
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(after)
    p.send_signal(signum)
    code = p.wait(60)
    if code not in (0, -signal.SIGKILL, 128 + signum):
        return f"exit {code}"
    got = rows(out)
    if isinstance(got, dict) and (out / "_SUCCESS").exists() and len(got) != 4:
        return f"_SUCCESS beside {len(got)} files"
    again = subprocess.run(command, capture_output=True)
    if again.returncode:
        return f"the run after it: exit {again.returncode}: {again.stderr.decode()[-300:]}"
    want = rows(out)
    for where, n in got.items() if isinstance(got, dict) else [(None, got)]:
        if n is not None and n != (want[where] if where else want):
            return f"{where or out.name} had {n} rows, and then another number"
    left = [str(f) for f in work.rglob("*") if "tmp" in f.name]
    return f"left behind: {left}" if left else ""


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--tool", required=True, type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=200)
    options = parser.parse_args()
    rng, bad, cut = random.Random(1), 0, 0
    for n in range(options.kills):
        with tempfile.TemporaryDirectory(prefix="bloomjoin-kill.") as work:
            work = pathlib.Path(work)
            ids = inputs(work)
            kind, form = rng.choice(["semi", "anti", "inner", "full"]), rng.choice([".parquet", ".arrow", "/"])
            signum, after = rng.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP]), rng.random() * 0.6
            if form == "/" and kind == "full":
                kind = "left"
            why = kill(options.tool.resolve(), work, ids, kind, form, signum, after)
            cut += not why
            if why:
                bad += 1
                print(f"FAIL  kill {n}: {kind} into {form}, {signum.name} after {after:.2f} s: {why}")
    print(f"{options.kills} kills, {bad} failed")
    sys.exit(1 if bad else 0)


main()
