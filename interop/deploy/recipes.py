#!/usr/bin/env python3
"""Run the recipes of deploy/ on this machine.

    recipes.py --tool BLOOMJOIN --render RENDER [RECIPE...]

Batch systems are replaced by stand-ins (standin.py); Airflow and Dagster are real (requirements-orchestrators.txt).
Each recipe runs over the same small log, with one attempt that fails and is retried.
Its answer is compared with rows that are chosen here, and it runs a second time, which
must do nothing. Then it runs over input that makes it fail for good.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
DEPLOY = HERE.parents[1] / "deploy"
DAYS = ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"]

# The first run of each verb in FLAKY fails with exit code 75.
FLAKY = """#!/bin/sh
case " $FLAKY " in *" $1 "*)
  if mkdir "$STATE/failed-$1" 2>/dev/null; then
    echo 'an injected failure' >&2
    exit 75
  fi
esac
exec "$TOOL" "$@"
"""


class Lake:
    """A directory with ids/ and logs/, and an environment in which recipes run."""

    def __init__(self, root, tool, render, days):
        self.path, self.days = Path(root) / "lake", days
        state, self.bin = Path(root) / "state", Path(root) / "bin"
        state.mkdir()
        self.bin.mkdir()
        for name in ("kubectl", "sbatch", "aws"):
            (self.bin / name).symlink_to(HERE / "standin.py")
        (self.bin / "bloomjoin").write_text(FLAKY)
        (self.bin / "bloomjoin").chmod(0o755)
        self.env = os.environ | {
            "PATH": f"{self.bin}:{Path(sys.executable).parent}:{os.environ['PATH']}", "TOOL": tool, "RENDER": render,
            "STATE": str(state), "LOCAL": str(self.path), "LAKE": str(self.path), "POLL_SECONDS": "0", "RETRY_SECONDS": "0",
        }  # fmt: skip
        self.make()

    def make(self):
        r = random.Random(18)
        ids = [r.sample(range(5000), 100) for _ in range(3)]
        (self.path / "ids").mkdir(parents=True)
        for i, part in enumerate(ids):
            pq.write_table(pa.table({"user_id": part}), self.path / f"ids/{i}.parquet")
        keep, self.want = {i for part in ids for i in part}, set()
        for day in self.days:
            (self.path / f"logs/dt={day}").mkdir(parents=True)
            for f in range(3):
                users = [r.randrange(5000) for _ in range(1000)]
                table = pa.table({"user_id": users, "line": range(1000), "file": [f] * 1000})
                pq.write_table(table, self.path / f"logs/dt={day}/{f}.parquet", row_group_size=250)
                self.want |= {(day, f, n, u) for n, u in enumerate(users) if u in keep}

    def run(self, *command, ok=True, **env):
        done = subprocess.run(command, env=self.env | env, cwd=self.path, capture_output=True, text=True)
        if (done.returncode == 0) != ok:
            logs = "".join(f.read_text() for f in sorted(Path(self.env["STATE"]).glob("log-*")))
            sys.exit(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}{logs[-4000:]}")
        return done.stdout

    def check(self, out):
        """Compares the rows of an output with those that were chosen, reading it as others would."""
        got = ds.dataset(self.path / out, format="parquet", partitioning=ds.partitioning(pa.schema([("dt", pa.string())]), flavor="hive"))
        rows = [tuple(r.values()) for r in got.to_table(columns=["dt", "file", "line", "user_id"]).to_pylist()]
        assert len(rows) == len(self.want) and set(rows) == self.want, f"{out}: {len(rows)} rows, want {len(self.want)}"
        for d in (self.path / out, *(self.path / out).glob("dt=*")):
            assert (d / "_SUCCESS").exists(), f"{d}: no _SUCCESS"

    def state(self):
        """Returns the files with the times of their last change."""
        written = [p for name in ("parts", "candidates", "answers") for p in (self.path / name).rglob("*")]
        return {str(p): p.stat().st_mtime_ns for p in written if p.is_file()}

    def failed_once(self, *verbs):
        for v in verbs:
            d = Path(self.env["STATE"]) / f"failed-{v}"
            assert d.exists(), f"no attempt of {v} failed"
            d.rmdir()


def array(lake, command):
    """Runs a recipe that divides everything among the tasks of an array job."""
    lake.run(*command, FLAKY="build scan")
    lake.failed_once("build", "scan")
    lake.check("candidates")
    before = lake.state()
    lake.run(*command)
    assert lake.state() == before, "the second run has written again"


def states(lake, pattern):
    """Returns what the stand-in knows of its jobs, in order, and forgets it."""
    files = sorted(Path(lake.env["STATE"]).glob(pattern))
    words = [f.read_text() for f in files]
    for f in files:
        f.unlink()
    return words


def spoil(lake):
    """Makes the next scan fail for good: a file of the log is cut."""
    victim = lake.path / f"logs/dt={lake.days[1]}/1.parquet"
    victim.write_bytes(victim.read_bytes()[:-7])


def kubernetes(lake):
    array(lake, [DEPLOY / "kubernetes/run.sh", "s3"])
    for name in ("parts", "users.bjf", "candidates", "candidates.bloomjoin"):
        (lake.path / name).rename(lake.path.parent / name)
    lake.run(DEPLOY / "kubernetes/run.sh", "volume")
    lake.check("candidates")
    spoil(lake)
    lake.run(DEPLOY / "kubernetes/run.sh", "s3", ok=False)
    assert states(lake, "job-*") == ["SuccessCriteriaMet Complete"] * 2 + ["Failed"]


def slurm(lake):
    array(lake, [DEPLOY / "slurm/run.sh"])
    states(lake, "slurm-*")
    # Some tasks again, of a new day: the number of workers must be given.
    lake.run("sbatch", "--parsable", "--array", "3,7", DEPLOY / "retry.sh", "bloomjoin", "build", "--key", "user_id",
             "--shard", "auto/16", "-o", f"{lake.path}/parts/", f"{lake.path}/ids/")  # fmt: skip
    lake.run("sbatch", "--parsable", "--array", "3,7", DEPLOY / "retry.sh", "bloomjoin", "build", "--key", "user_id",
             "--shard", "auto", "-o", f"{lake.path}/parts/", f"{lake.path}/ids/")  # fmt: skip
    assert states(lake, "slurm-*") == ["COMPLETED", "FAILED"]
    spoil(lake)
    lake.run(DEPLOY / "slurm/run.sh")
    assert states(lake, "slurm-*") == ["COMPLETED", "COMPLETED", "FAILED", "CANCELLED"]


def aws_batch(lake):
    array(lake, [DEPLOY / "aws-batch/run.sh"])
    states(lake, "batch-*")
    spoil(lake)
    lake.run(DEPLOY / "aws-batch/run.sh")
    assert states(lake, "batch-*") == ["SUCCEEDED", "SUCCEEDED", "FAILED", "FAILED"]


def cron(lake):
    """Runs the line of the crontab as cron does: with its variables alone, in sh."""
    variables, command = {}, None
    for line in (DEPLOY / "cron/bloomjoin.cron").read_text().splitlines():
        if line.startswith("#"):
            continue
        if "=" in line.split()[0]:
            name, value = line.split("=", 1)
            variables[name] = value
            continue
        fields = line.split(None, 6)
        assert command is None and len(fields) == 7 and fields[5] == "bloomjoin" and "%" not in line, line
        command = fields[6].replace("/opt/bloomjoin", str(DEPLOY.parent))
    variables["PATH"] = f"{lake.bin}:{variables['PATH']}"
    variables["LAKE"] = str(lake.path)
    variables |= {k: lake.env[k] for k in ("STATE", "TOOL", "RETRY_SECONDS")}  # of the stand-ins

    def line(ok=True, **more):
        done = subprocess.run(["sh", "-c", command], env=variables | more, cwd="/", capture_output=True, text=True)
        assert (done.returncode == 0) == ok, done
        return done.stderr

    said = line(FLAKY="join")
    lake.failed_once("join")
    assert "next in 0 s" in said, said
    yesterday = lake.days[-1]
    assert {p.name for p in (lake.path / "answers").glob("dt=*")} == {f"dt={yesterday}"}
    for day in lake.days[:-1]:
        lake.run(DEPLOY / "cron/daily.sh", day)
    lake.check("answers")
    before = lake.state()
    assert line() == "" and lake.state() == before, "the second run has written again"
    shutil.rmtree(lake.path / f"logs/dt={yesterday}")
    error = json.loads(line(ok=False).splitlines()[-1])
    assert error["level"] == "ERROR" and error["class"] == "data", error


def airflow(lake):
    """Imports the DAG as the scheduler does, and runs each day."""
    home = lake.path.parent / "airflow"
    env = {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__DAGS_FOLDER": str(DEPLOY / "airflow"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
           "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}  # fmt: skip
    lake.run("airflow", "db", "migrate", **env)
    # The first day again in the same process, as Airflow takes seconds to start: its files must stay older than the last day's.
    lake.run(sys.executable, HERE / "rundag.py", *lake.days, lake.days[0], FLAKY="join", **env)
    lake.failed_once("join")
    lake.check("answers")
    written = lake.state()
    first, last = ([t for p, t in written.items() if f"dt={day}/" in p and p.endswith(".parquet")] for day in (lake.days[0], lake.days[-1]))
    assert first and last and max(first) < min(last), "the second run has written again"
    spoil(lake)
    said = lake.run(sys.executable, HERE / "rundag.py", DAYS[1], ok=False, **env)
    assert "exit code 1" in said, said


def dagster(lake):
    """Imports the definitions, and materializes each partition."""
    lake.run(sys.executable, HERE / "runasset.py", *DAYS, FLAKY="join")
    lake.failed_once("join")
    lake.check("answers")
    before = lake.state()
    lake.run(sys.executable, HERE / "runasset.py", *DAYS)
    assert lake.state() == before, "the second run has written again"
    spoil(lake)
    said = lake.run(sys.executable, HERE / "runasset.py", DAYS[1], ok=False)
    assert "1 attempt" in said, said


RECIPES = {"kubernetes": kubernetes, "slurm": slurm, "aws-batch": aws_batch, "cron": cron, "airflow": airflow, "dagster": dagster}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", required=True, type=lambda p: str(Path(p).resolve()))
    parser.add_argument("--render", required=True, type=lambda p: str(Path(p).resolve()))
    parser.add_argument("recipes", nargs="*", default=list(RECIPES))
    args = parser.parse_args()
    # Most runs take milliseconds: see ENVIRONMENT of common/harness.py.
    os.environ.setdefault("GOGC", "400")
    for name in args.recipes:
        with tempfile.TemporaryDirectory(prefix="bloomjoin-") as root:
            yesterday = (date.today() - timedelta(days=1)).isoformat()
            days = {"cron": [*DAYS, yesterday], "airflow": DAYS[:2]}.get(name, DAYS)  # a run of the DAG takes a while
            RECIPES[name](Lake(root, args.tool, args.render, days))
        print(f"{name}: ok", flush=True)


main()
