"""Every verb at a terminal: the examples of its help end as through a pipe, at any width."""

import fcntl
import gzip
import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import termios

import pyarrow as pa
import pyarrow.parquet as pq

from common import harness, tables

VERBS = ["join", "plan", "build", "merge", "update", "scan", "probe", "dedup", "sketch", "sketch query", "commit", "inputs", "find", "inspect", "size", "version"]
WIDTHS = 100, 60
ELSEWHERE = "tail -f", "s3://", "worker-*"  # examples of streams that do not end, of stores, and of many machines
REFUSED = "<rows.arrows"  # the answer is no text


def at_terminal(command, width, **options):
    """The exit code of a shell command at a terminal of so many columns, and what is seen there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    p = subprocess.Popen(["bash", "-c", command], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, **options)
    os.close(theirs)
    seen = b""
    while True:
        try:
            some = os.read(ours, 1 << 20)
        except OSError:  # the other end is closed
            break
        if not some:
            break
        seen += some
    os.close(ours)
    return p.wait(60), seen.decode().replace("\r\n", "\n")


def through_pipe(command, **options):
    p = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, **options)
    return p.returncode, p.stderr.decode()


def examples(t, verb):
    """The commands that a verb's help shows; the verb alone if it shows none."""
    shown = re.findall(r"^  ((?:zcat [^|]*\| )?bloomjoin [^\[\n]*)$", t.run(*verb.split(), "--help").out.decode(), re.MULTILINE)
    return [c for c in shown if not any(w in c for w in ELSEWHERE)] or [f"bloomjoin {verb}"]


def world(t, place):
    """The files that the examples name."""
    place.mkdir()
    for name in ("logs", "flights", "ids", "parts", "clicks"):
        (place / name).mkdir()
    users = [*range(1, 50), 12345, 678]
    log = pa.table({
        "user_id": users * 3, "url": [f"/{u}" for u in users * 3], "origin": ["DFW", "IAH", "SFO"] * len(users),
        "user": [{"id": u} for u in users * 3], "ts": pa.array(range(3 * len(users)), pa.timestamp("s")), "id": range(3 * len(users)),
    })  # fmt: skip
    for name in ("logs/a", "logs/b", "flights/a", "clicks/a"):
        pq.write_table(log, place / f"{name}.parquet")
    for name in ("users", "ids/a", "ids/b", "gone", "rows"):
        tables.write(pa.table({"user_id": [1, 2, 12345]}), place / f"{name}.parquet")
    (place / "airports.csv").write_text("iata,city\nDFW,Dallas\n")
    (place / "ids.csv").write_text("iata,city\nIAH,Houston\n")
    (place / "clicks.csv").write_text("id\n1\n1\n2\n")
    (place / "new.txt").write_text("77\n78\n")
    (place / "gone.txt").write_text("2\n")
    (place / "urls.txt").write_text("/1\n/2\n")
    (place / "ids.txt.gz").write_bytes(gzip.compress(b"1\n2\n"))
    with pa.OSFile(str(place / "rows.arrows"), "wb") as f, pa.ipc.new_stream(f, log.schema) as w:
        w.write_table(log)
    made = ["build --key user_id -o users.bjf ids/", "build -o bad-urls.bjf urls.txt", "inputs --index user_id -o inputs.jsonl logs/"]
    made += [f"build --key user_id --shard {i}/2 -o parts/rack-3-{i}.bjf ids/" for i in (0, 1)]
    made += [f"sketch --key user_id -o {name}.bjs logs/" for name in ("users", "orders")]
    for args in made:
        subprocess.run([t.tool, *args.split()], cwd=place, check=True, capture_output=True)


def prepare(t, verb, command, place):
    """Makes what one verb takes, and removes what the command writes."""
    of = ["--key", "user_id", "ids/"]
    if verb == "update":
        of = ["--kind", "counting", *(of if "--key" in command else ["ids.txt.gz"])]
    made = [["build", "-o", f"{name}.bjf", *of] for name in ("monday", "tuesday", "old", "new")]
    if verb == "commit":
        made.append(["scan", "--filter", "users.bjf", "-o", "out/", "logs/"])
    for args in made:
        subprocess.run([t.tool, *args], cwd=place, check=True, capture_output=True)
    out = re.search(r"-o (\S+\.\w+)", command)
    if out and command.count(out[1]) == 1:
        (place / out[1]).unlink(missing_ok=True)


def verbs(t):
    place, bin = t.path("examples"), t.path("bin")
    world(t, place)
    bin.mkdir()
    (bin / "bloomjoin").symlink_to(pathlib.Path(t.tool).resolve())
    options = {"env": harness.ENVIRONMENT | {"PATH": f"{bin}:{os.environ['PATH']}"}}
    for verb in VERBS:
        failed = []
        for command in examples(t, verb):
            for width in (None, *WIDTHS):  # None: through pipes
                options["cwd"] = shutil.copytree(place, t.path("world"))
                prepare(t, verb, command, options["cwd"])
                code, seen = at_terminal(command, width, **options) if width else through_pipe(command, **options)
                if code != (64 if width and REFUSED in command else 0):
                    failed.append((command, width, code, seen))
        t.equal(verb, failed, [])


def version(t):
    """The version as JSON is what the Go toolchain finds in the command."""
    found = subprocess.run(["go", "version", "-m", t.tool], check=True, capture_output=True, text=True).stdout
    kept = dict(re.findall(r"^\tbuild\t(\S+?)=(.*)$", found, re.MULTILINE))
    said = json.loads(t.run("version", "--json").out)
    want = {
        "version": re.search(r"^\tmod\t\S+\t(\S+)", found, re.MULTILINE)[1], "commit": kept.get("vcs.revision", ""), "date": kept.get("vcs.time", ""),
        "go": re.search(r": (\S+)", found)[1], "platform": f"{kept['GOOS']}/{kept['GOARCH']}",
    }  # fmt: skip
    t.equal("version", {name: said[name] for name in want}, want)
    t.equal("version as text", t.run("version").out.decode(), f"bloomjoin {said['version']} ({said['go']}, {said['platform']})\n")


def run(t, _repository):
    t.group("terminal", verbs)
    t.group("version", version)
