#!/usr/bin/env python3
"""Stands for the command in a task, and does damage once: see test_faults.py.

BLOOMJOIN_REAL is the command, BLOOMJOIN_FAULT what happens at the first attempt of shard 1 of a
scan or join, and BLOOMJOIN_NOTES a directory where each attempt leaves a file named SHARD-PID.
"""

import os
import re
import signal
import subprocess
import sys
import time


def parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def first(notes: str, what: str) -> bool:
    try:
        os.mkdir(os.path.join(notes, what))
    except FileExistsError:
        return False
    return True


def main() -> None:
    real = os.environ["BLOOMJOIN_REAL"]
    command = [real, *sys.argv[1:]]
    shard = re.search(r"(?<=--shard )\d+", " ".join(command))
    if sys.argv[1] not in ("scan", "join") or shard is None:
        os.execv(real, command)
    notes = os.environ["BLOOMJOIN_NOTES"]
    open(os.path.join(notes, f"{shard[0]}-{os.getpid()}"), "x").close()
    fault = os.environ["BLOOMJOIN_FAULT"]
    if fault == "vanish":
        if first(notes, "fault"):
            os.remove(os.environ["BLOOMJOIN_VICTIM"])
    elif shard[0] == "1" and first(notes, "fault"):
        worker = os.getppid()
        executor = parent_of(parent_of(worker))
        if fault == "error":
            sys.stderr.write("bloomjoin: the disk is full\n")
            sys.exit(75)
        if fault == "full disk":
            # For this process alone, the directory of the output is a disk of one page.
            folder = os.path.dirname(command[command.index("-o") + 1])
            script = 'mount -t tmpfs -o size=4k none "$0" && exec "$@"'
            os.execvp("unshare", ["unshare", "-m", "sh", "-c", script, folder, *command])
        if fault == "kill before":
            os.kill(worker, signal.SIGKILL)
        if fault == "kill after":
            subprocess.run(command, check=True)
            os.kill(worker, signal.SIGKILL)
        if fault == "kill executor":
            subprocess.run(command, check=True)
            os.kill(executor, signal.SIGKILL)
        if fault == "kill worker":
            os.kill(parent_of(executor), signal.SIGKILL)
            time.sleep(60)
        if fault == "straggle":
            time.sleep(120)
    os.execv(real, command)


main()
