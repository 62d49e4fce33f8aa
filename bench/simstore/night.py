"""Runs the stages of a night with the real command against simstore, and prints what each took.

    python3 night.py BLOOMJOIN SIMSTORE BENCH DIR [-objects N] [STAGE...]

The night: a log of 50 TB in 400,000 objects of 125 MB, of which each of 1,000 workers reads 400.
Here objects have a tenth of the bytes, and the network a tenth of the speed, so requests and waits
are those of the whole; with -objects 40000, there are a hundred workers. Stages: list (all
objects), update, worker (two of them), and commit (20,000 outputs of tiny objects, which ten
workers write one after the other).
"""

import json
import os
import resource
import subprocess
import sys
import time
import urllib.request

BLOOMJOIN, SIMSTORE, BENCH, DIR, *STAGES = sys.argv[1:]
OBJECTS = 400_000
if STAGES[:1] == ["-objects"]:
    OBJECTS, STAGES = int(STAGES[1]), STAGES[2:]
STAGES = STAGES or ["list", "update", "worker", "commit"]
SETTINGS = ["-rate", "9e6", "-nic", "125e6"]
PORT = 7072
ENV = dict(os.environ, AWS_ACCESS_KEY_ID="any", AWS_SECRET_ACCESS_KEY="any", AWS_REGION="us-east-1", AWS_ENDPOINT_URL=f"http://127.0.0.1:{PORT}", AWS_EC2_METADATA_DISABLED="true")


class Server:
    def __init__(self, objects, file, *settings):
        command = [SIMSTORE, "-listen", f"127.0.0.1:{PORT}", "-objects", str(objects), "-file", file, *settings]
        self.process = subprocess.Popen(command)
        for _ in range(300):
            try:
                self.requests()
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit("simstore does not answer")

    def requests(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/-/requests") as answer:
            return {k: v for k, v in json.load(answer).items() if v["requests"]}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def stage(name, server, *args):
    server.requests()
    begin, used = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([BLOOMJOIN, *args, "--json"], env=ENV, capture_output=True, text=True)
    seconds, now = time.time() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode:
        raise SystemExit(f"{name}: exit {run.returncode}: {run.stderr}")
    kinds = server.requests()
    total = sum(k["requests"] for k in kinds.values())
    line = {
        "stage": name, "seconds": round(seconds, 2), "cpu": round(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime, 2), "requests": total,
        "refused": sum(k.get("refused", 0) for k in kinds.values()), "MB_in": round(sum(k["bytes_in"] for k in kinds.values()) / 1e6, 1),
        "MB_out": round(sum(k["bytes_out"] for k in kinds.values()) / 1e6, 1), "kinds": {k: v["requests"] for k, v in kinds.items()},
    }
    print(json.dumps(line), flush=True)
    return json.loads(run.stdout)


def generate(name, **described):
    at = os.path.join(DIR, name)
    if not os.path.exists(at):
        subprocess.run([BENCH, "generate", json.dumps(described), at], check=True)
    return os.path.join(at, described["kind"] + ".parquet")


def main():
    os.makedirs(DIR, exist_ok=True)
    part = generate("part", kind="log", rows=200_000, users=100_000_000, group=25_000, index=True)
    tiny = generate("tiny", kind="log", rows=100, users=100_000_000)
    ids = generate("ids", kind="ids", rows=10_000_000, members=1_000_000, plain=True)
    lake, log = "s3://lake/", ["--key", "user_id", "--filter", "s3://lake/users.bjf", "--files-from", "s3://lake/inputs.jsonl"]
    if {"list", "update", "worker"} & set(STAGES):
        with Server(OBJECTS, part, *SETTINGS) as server:
            stage("list", server, "inputs", "-o", lake + "inputs.jsonl", lake + "logs/")
            if "update" in STAGES:
                stage("update, nothing new", server, "inputs", "--update", lake + "inputs.jsonl", "-o", lake + "inputs.jsonl", lake + "logs/")
            if "worker" in STAGES:
                stage("build", server, "build", "--key", "user_id", "-o", lake + "users.bjf", ids)
                for i in (0, 3):
                    stage(f"worker {i}", server, "scan", *log, "--shard", f"{i}/{OBJECTS // 400}", "--no-commit", "-o", lake + "out/")
    if "commit" in STAGES:
        with Server(20_000, tiny, *SETTINGS) as server:
            stage("list of 20,000", server, "inputs", "-o", lake + "inputs.jsonl", lake + "logs/")
            stage("build", server, "build", "--key", "user_id", "-o", lake + "users.bjf", ids)
            for i in range(10):
                stage(f"worker {i} of 10", server, "scan", *log, "--shard", f"{i}/10", "--no-commit", "-o", lake + "out/")
            stage("commit of 20,000", server, "commit", lake + "out/")


main()
