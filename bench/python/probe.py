"""Filter.probe beside the Go package's probes, on the same filters and keys.

    python bench/python/probe.py [--rows N] [--rounds N] [--only NAME]

Needs the package bloomjoin (or PYTHONPATH and BLOOMJOIN_BINARY), and Go. Both
sides take turns; a figure is the median of the rounds, a quotient the median of the
rounds' quotients. Half of the keys hit, in random order, and both sides must find
the same number. The sizes in the names are those in memory, where an exact set has
an index. It fails if a quotient to Go's batch probe is above its bound.
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
from bloomjoin import _process
from bloomjoin._filter import Filter

HERE = Path(__file__).resolve().parent
INTEGERS, TEXT = 1.5, 2.0  # bounds

# name: members, how they are made, flags of build, bound
CELLS = {
    "bloom 256, 1 MB": (
        500_000,
        "sparse",
        ["--kind", "bloom", "--geometry", "split-256", "--fpr", "0.001"],
        INTEGERS,
    ),
    "bloom 512, 1 MB": (
        500_000,
        "sparse",
        ["--kind", "bloom", "--geometry", "split-512", "--fpr", "0.0001"],
        INTEGERS,
    ),
    "bloom 256, 128 MB": (
        60_000_000,
        "sparse",
        ["--kind", "bloom", "--geometry", "split-256", "--fpr", "0.001"],
        INTEGERS,
    ),
    "bloom 512, 128 MB": (
        50_000_000,
        "sparse",
        ["--kind", "bloom", "--geometry", "split-512", "--fpr", "0.0001"],
        INTEGERS,
    ),
    "exact, dense": (2_000_000, "dense", ["--kind", "exact"], INTEGERS),
    "exact, dense, 128 MB": (64_000_000, "dense", ["--kind", "exact"], INTEGERS),
    "exact, sparse": (500_000, "sparse", ["--kind", "exact"], INTEGERS),
    "exact, sparse, 128 MB": (5_000_000, "sparse", ["--kind", "exact"], INTEGERS),
    "text, 1 MB": (500_000, "text", ["--kind", "bloom", "--fpr", "0.001"], TEXT),
    "text, 128 MB": (30_000_000, "text", ["--kind", "bloom", "--fpr", "0.0000001"], TEXT),
}


def members(r: np.random.Generator, n: int, how: str) -> pa.Array:
    """Return about n keys."""
    if how == "dense":
        return pa.array(np.unique(r.integers(0, 16 * n, n)))
    ids = pa.array(r.integers(0, 2**62, n))
    if how == "sparse":
        return ids
    return pa.array(r.integers(0, 2**40, n)).cast(pa.string())


def probes(r: np.random.Generator, ids: pa.Array, rows: int, how: str) -> pa.Array:
    """Return rows keys, about half of which are members."""
    hits = ids.take(pa.array(r.integers(0, len(ids), rows // 2)))
    others = members(r, rows - rows // 2, how) if how == "text" else None
    if others is None:
        top = 16 * len(ids) if how == "dense" else 2**62
        others = pa.array(r.integers(0, top, rows - rows // 2))
    return pa.concat_arrays([hits, others]).take(pa.array(r.permutation(rows)))


def write(path: Path, column: pa.Array) -> None:
    """Write a column as an Arrow file of one batch."""
    batch = pa.record_batch([column], names=["id"])
    with pa.ipc.new_file(str(path), batch.schema) as writer:
        writer.write_batch(batch)


class Go:
    """The child process with the Go package."""

    def __init__(self, program: Path) -> None:
        self.child = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, *words: str) -> dict[str, float]:
        """Return the answer to a command."""
        self.child.stdin.write(" ".join(words) + "\n")
        self.child.stdin.flush()
        answer = json.loads(self.child.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def close(self) -> None:
        """End the child."""
        self.child.stdin.close()
        self.child.wait()


def race(name: str, rows: int, rounds: int, directory: Path, program: Path) -> tuple[float, float]:
    """Print a row of the table; return the quotient to Go's batch probe, and its bound."""
    n, how, flags, bound = CELLS[name]
    r = np.random.default_rng(1)
    ids = members(r, n, how)
    keys = probes(r, ids, rows, how)
    write(directory / "ids.arrow", ids)
    write(directory / "keys.arrow", keys)
    del ids
    path = directory / "filter.bjf"
    _process.run(
        ["build", "--key", "id", *flags, "--force", "-o", str(path), str(directory / "ids.arrow")]
    )
    filter_ = Filter.load(path)
    go = Go(program)
    try:
        go.ask("load", str(path), str(directory / "keys.arrow"))
        go.ask("probe")
        filter_.probe(keys)
        ours, contains, batch = [], [], []
        for _ in range(rounds):
            theirs = go.ask("probe")
            begin = time.perf_counter()
            mask = filter_.probe(keys)
            ours.append(time.perf_counter() - begin)
            contains.append(theirs["contains"])
            batch.append(theirs["batch"])
            if mask.true_count != theirs["hits"]:
                raise SystemExit(f"{name}: {mask.true_count} hits, and {theirs['hits']} by Go")
    finally:
        go.close()
    over = median(o / b for o, b in zip(ours, batch, strict=True))
    overall = median(o / c for o, c in zip(ours, contains, strict=True))
    ns = [1e9 / rows * median(x) for x in (ours, batch, contains)]
    print(
        f"| {name} | {filter_.nbytes / 1e6:.1f} | {ns[0]:.2f} | {ns[1]:.2f} | {ns[2]:.2f} "
        f"| {over:.2f} | {overall:.2f} | {bound} |",
        flush=True,
    )
    return over, bound


def main() -> None:
    """Run the races that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="cells whose name has this in it")
    args = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        program = directory / "goprobe"
        subprocess.run(
            ["go", "build", "-o", program, "./python/goprobe"], cwd=HERE.parent, check=True
        )
        print(
            "| filter | payload, MB | probe, ns a key | Go ProbeBatch | Go Contains "
            "| over ProbeBatch | over Contains | bound |"
        )
        print("|---|---|---|---|---|---|---|---|")
        for name in CELLS:
            if args.only in name:
                over, bound = race(name, args.rows, args.rounds, directory, program)
                if over > bound:
                    failed.append(name)
    if failed:
        sys.exit(f"above the bound: {', '.join(failed)}")


if __name__ == "__main__":
    main()
