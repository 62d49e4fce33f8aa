"""Kills runs at random moments and looks at what they leave.

    python interop/attack/kills.py --tool PATH [--count N] [--seed N]

Each round runs a command that writes (scan, join, build or merge; into a file, a directory, a
directory of several shards, with --force over another day), sends SIGKILL, SIGTERM, SIGINT or SIGHUP
after a random part of its usual time, and then demands:

  - every visible file is byte-equal to that of an undisturbed run, or is the old one that stood there,
    and none is new in a directory whose state does not have the run;
  - _SUCCESS is there only if all files are;
  - what is not this run's (another day, foreign files, the target of a link) is untouched;
  - the same command again ends with 0, every file is equal, and nothing stray is left;
  - signals end with 128 + number and leave no temporary file, and nothing staged that no part of a run lists.

Prints a line for each failure, and 'N passed, N failed' at the end.
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MARKS = ("_", ".")
STATE = "out.bloomjoin"


def tree(root):
    """Path below root → digest, of regular files; links as their target."""
    found = {}
    for where, dirs, names in os.walk(root):
        for p in (pathlib.Path(where, name) for name in dirs + names):
            if p.is_dir() and not p.is_symlink():
                continue
            rel = re.sub(r"/(manifest|settled)-\d{8}\.json", r"/\1-#.json", str(p.relative_to(root)))  # each commit has the next number
            found[rel] = os.readlink(p) if p.is_symlink() else hashlib.sha256(p.read_bytes()).hexdigest()
    return found


def data(files):
    """Those that readers of a directory take for data."""
    return {k: v for k, v in files.items() if not any(part.startswith(MARKS) or part == STATE for part in k.split("/"))}


def generation(box):
    """The last state of the directory."""
    return max((p.name for p in (box / STATE).glob("manifest-*.json")), default="")


def staged(box):
    """What parts of runs, and the last state, have staged: paths below box."""
    manifests = [*(box / STATE).glob("shard-*.json"), *(p for p in [box / STATE / generation(box)] if p.is_file())]
    files = [f for p in manifests for f in json.loads(p.read_text())["files"] if "staged" in f]
    return {str(pathlib.PurePath("out", f["name"]).with_name(f["staged"])) for f in files}


def make_logs(root, rng):
    for day in (1, 2):
        for part in range(3):
            n = 60_000
            table = pa.table({
                "user_id": rng.integers(0, 50_000, n),
                "session": [f"{v:032x}" for v in rng.integers(0, 2**62, n)],
                "n": np.arange(n),
            })
            path = root / f"dt=2024-01-0{day}" / f"part-{part}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path, row_group_size=10_000, compression="zstd")


class Attack:
    def __init__(self, tool, seed, work):
        self.tool, self.work = tool, work
        self.random = random.Random(seed)
        self.passed, self.failed, self.hits = 0, 0, 0
        logs = work / "logs"
        make_logs(logs, np.random.default_rng(seed))
        ids = pa.table({"user_id": range(0, 50_000, 7), "name": [f"u{i}" * 20 for i in range(0, 50_000, 7)]})
        pq.write_table(ids, work / "ids.parquet", row_group_size=500)
        self.run("build", "--key", "user_id", "--kind", "bloom", "-o", "f.bjf", "ids.parquet")
        for i in range(4):
            self.run("build", "--key", "user_id", "--kind", "bloom", "--expect", "8000", "--shard", f"{i}/4", "-o", f"p{i}.bjf", "ids.parquet")
        join = ["join", "--ids", "ids.parquet", "--on", "user_id"]
        day = ["logs/dt=2024-01-01"]
        self.commands = {
            "scan file": (["scan", "--filter", "f.bjf", "-o", "OUT.parquet", "logs"], False),
            "scan dir": (["scan", "--filter", "f.bjf", "-o", "OUT/", "logs"], False),
            "scan force": (["scan", "--force", "--filter", "f.bjf", "-o", "OUT/", *day], True),
            "semi dir": ([*join, "-o", "OUT/", "logs"], False),
            "inner file": ([*join, "--type", "inner", "-o", "OUT.parquet", "logs"], False),
            "inner dir": ([*join, "--type", "inner", "-o", "OUT/", "logs"], False),
            "left force": ([*join, "--type", "left", "--force", "-o", "OUT/", *day], True),
            "full dir": ([*join, "--type", "full", "-o", "OUT/", "logs"], False),
            "hold dir": ([*join, "--require-rows", "1", "-o", "OUT/", "logs"], False),
            "shuffle": ([*join, "--type", "inner", "--strategy", "shuffle", "--temp-dir", "TMP", "-o", "OUT/", "logs"], False),
            "anti arrow": ([*join, "--type", "anti", "--memory", "64MiB", "-o", "OUT.arrow", "logs"], False),
            "build": (["build", "--key", "user_id", "--kind", "bloom", "-o", "OUT.bjf", "ids.parquet"], False),
            "merge": (["merge", "-o", "OUT.bjf", *(f"p{i}.bjf" for i in range(4))], False),
            "shards": (["scan", "--filter", "f.bjf", "--shard", "N/3", "-o", "OUT/", "logs"], False),
        }
        self.reference = {}

    def run(self, *args, want=0):
        p = subprocess.run([self.tool, *map(str, args)], cwd=self.work, capture_output=True, timeout=120)
        if p.returncode != want:
            raise AssertionError(f"exit {p.returncode}, want {want}: {' '.join(map(str, args))}: {p.stderr.decode(errors='replace')[-400:]}")
        return p

    def words(self, args, out, tmp, shard=0):
        places = {"OUT": out, "TMP": tmp, "N/3": f"{shard}/3"}
        begins = lambda a: next((k for k in places if a.startswith(k)), "")
        return [places.get(begins(a), "") + a.removeprefix(begins(a)) for a in args]

    def prepare(self, box, over):
        """What stands where the run writes: for a forced one, an older run of both days, a foreign file, a link."""
        box.mkdir()
        (box / "tmp").mkdir()
        if over:
            self.run("scan", "--filter", "f.bjf", "-o", f"{box.name}/out/", "logs/dt=2024-01-01")
            self.run("scan", "--force", "--filter", "f.bjf", "-o", f"{box.name}/out/", "logs/dt=2024-01-02")
            precious = box / "precious"
            precious.mkdir()
            shutil.copy(self.work / "logs/dt=2024-01-01/part-0.parquet", precious / "mine.parquet")
            (box / "out" / "link").symlink_to("../precious")

    def whole(self, name):
        """The undisturbed run's tree."""
        if name not in self.reference:
            args, over = self.commands[name]
            box = self.work / f"ref-{len(self.reference)}"
            self.prepare(box, over)
            before = tree(box)
            began = time.monotonic()
            for shard in range(3 if name == "shards" else 1):
                self.run(*self.words(args, f"{box.name}/out", f"{box.name}/tmp", shard))
            took = time.monotonic() - began
            self.reference[name] = (before, tree(box), took / (3 if name == "shards" else 1))
        return self.reference[name]

    def check(self, name, kind, problems):
        if problems:
            self.failed += 1
            print(f"FAIL {name}, {kind}: {'; '.join(problems)[:700]}", flush=True)
        else:
            self.passed += 1

    def round(self, k, name):
        args, over = self.commands[name]
        before, want, took = self.whole(name)
        box = self.work / f"round-{k}"
        self.prepare(box, over)
        sig = self.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
        shards = 3 if name == "shards" else 1
        victim = self.random.randrange(shards)
        problems = []
        for shard in range(victim):
            self.run(*self.words(args, f"{box.name}/out", f"{box.name}/tmp", shard))
        words, state = self.words(args, f"{box.name}/out", f"{box.name}/tmp", victim), generation(box)
        p = subprocess.Popen([self.tool, *words], cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(self.random.random() * took * 1.1)
        p.send_signal(sig)
        _, err = p.communicate(timeout=60)
        hit = p.returncode != 0
        self.hits += hit
        kind = f"{sig.name} at round {k}"
        left = tree(box)
        if hit and sig != signal.SIGKILL:
            if p.returncode != 128 + sig and p.returncode != -sig:  # the latter: before the handler was set
                problems.append(f"exit {p.returncode}: {err.decode(errors='replace')[-200:]}")
            stray = [f for f in left if f not in want and f not in before and f not in staged(box) and not f.startswith(STATE)]
            if p.returncode == 128 + sig and stray:
                problems.append(f"temporary files after a signal: {stray}")
        for f, digest in data(left).items():
            if digest not in (want.get(f), before.get(f)):
                problems.append(f"{f} is neither the old nor the new one")
        if generation(box) == state and "OUT/" in args and data(left) != data(before):
            problems.append("files have changed before the commit")
        for f, digest in before.items():
            if over and f.startswith(("precious", "out/link", "out/dt=2024-01-02")) and left.get(f) != digest:
                problems.append(f"{f} was touched")
        if "out/_SUCCESS" in left and set(data(want)) - set(data(left)):
            problems.append("_SUCCESS without all files")
        for shard in range(shards):
            q = subprocess.run([self.tool, *self.words(args, f"{box.name}/out", f"{box.name}/tmp", shard)], cwd=self.work, capture_output=True, timeout=120)
            if q.returncode != 0:
                problems.append(f"again: exit {q.returncode}: {q.stderr.decode(errors='replace')[-300:]}")
        again = tree(box)
        if not problems:
            if data(again) != data(want):
                problems.append(f"again: files differ: {sorted(set(data(again).items()) ^ set(data(want).items()))[:4]}")
            if set(again) != set(want):
                problems.append(f"again: stray or missing: {sorted(set(again) ^ set(want))[:4]}")
        self.check(name, kind, problems)
        shutil.rmtree(box)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bloomjoin-kills.") as work:
        a = Attack(os.path.abspath(options.tool), options.seed, pathlib.Path(work))
        names = list(a.commands)
        for k in range(options.count):
            a.round(k, names[k % len(names)])
    print(f"{a.hits} of {options.count} were hit before their end")
    print(f"{a.passed} passed, {a.failed} failed")
    raise SystemExit(1 if a.failed or not a.passed else 0)


main()
