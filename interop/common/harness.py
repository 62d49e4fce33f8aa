"""Running the tool and counting what held."""

import hashlib
import json
import os
import pathlib
import resource
import subprocess
import threading
import time
import traceback

from common import readers

FULL = bool(os.environ.get("BLOOMJOIN_ALL"))  # all random cases and files

# A run here takes a few milliseconds, of which collecting garbage would be a half: the runtime's first goal is 4 MiB,
# which the tool's packages fill before its first line.
ENVIRONMENT = os.environ | ({} if FULL or "GOGC" in os.environ else {"GOGC": "400"})


def cpu():
    """Seconds of CPU that this process and the commands it ran have used."""
    return [u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))]


class Result:
    """What one run of the tool came to."""

    def __init__(self, args, code, out, err):
        self.args, self.code, self.out, self.err = args, code, out, err

    @property
    def json(self):
        """The JSON object at the end of standard output, or of standard error when the output goes to the first."""
        out = self.args[self.args.index("-o") + 1 :][:1] if "-o" in self.args else self.args  # not what is read from standard input
        text = (self.err if "-" in out else self.out).decode()
        start = 0 if text.lstrip().startswith("{") else text.rindex("\n{") + 1
        return json.loads(text[start:])

    @property
    def text(self):
        return self.err.decode(errors="replace")

    def __str__(self):
        command = " ".join(map(str, self.args))
        if len(command) > 1000:
            command = f"{command[:700]} … {command[-200:]}"
        return f"exit {self.code}: {self.text.strip()[-600:]}\n      of: bloomjoin {command}"


class Checks:
    """Counts checks and prints a line for each. Work is a directory that is all theirs."""

    def __init__(self, tool, work, chosen=lambda group: True, case=None):
        self.tool, self.work, self.chosen, self.case = tool, pathlib.Path(work), chosen, case
        self.passed, self.failed, self.opened, self.runs = 0, 0, 0, 0
        self.ran, self.broken = {}, []  # ids of checks, in order; prefixes of those of which an error may have kept some from running
        self.open_before = set()  # digests of files
        self.environment = ENVIRONMENT  # of runs
        self.prefix, self.lock = "", threading.Lock()

    def run(self, *args, stdin=b"", want=0, seconds=300, opens=True):
        """Runs the tool. An exit code other than want raises; want=None takes any. Opens: what it wrote is opened by others."""
        args = [str(a) for a in args]
        self.runs += 1
        p = subprocess.run([self.tool, *args], input=stdin, capture_output=True, timeout=seconds, env=self.environment)
        r = Result(args, p.returncode, p.stdout, p.stderr)
        if b"\ngoroutine " in p.stderr:
            raise AssertionError(f"a panic: {r}")
        if want is not None and p.returncode != want:
            raise AssertionError(f"want exit {want}, got {r}")
        if opens and p.returncode == 0:
            self.open(r)
        return r

    def open(self, r):
        """Has what a run wrote opened by other readers. Only what is wrong with it is a failure of its own."""
        for path in readers.written(r.args):
            self.opened += 1
            digest = hashlib.sha256(path.read_bytes()).digest()
            if digest in self.open_before:
                continue  # the same answer, by another strategy, say
            self.open_before.add(digest)
            for problem in readers.problems(path, r.args):
                self.fail("opened", f"{problem}\n      of: bloomjoin {' '.join(r.args)[:1000]}")

    def ok(self, name, holds, detail=""):
        """One check. Its id is the group and the name, so both are the same on every machine."""
        with self.lock:
            self.ran[self.prefix + name] = True
            if self.case and self.case != self.prefix + name:
                return
            if holds:
                self.passed += 1
                print(f"ok    {self.prefix}{name}")
        if not holds:
            self.fail(name, detail)

    def fail(self, name, detail):
        """A failure that is not the failure of a check with an id."""
        with self.lock:
            self.failed += 1
            print(f"FAIL  {self.prefix}{name}: {detail}")

    def equal(self, name, got, want):
        self.ok(name, got == want, f"want {str(want)[:600]}, got {str(got)[:600]}")

    def group(self, name, function, *args, sampled=0):
        """Calls function(self, *args). What it raises is one failure, and the others go on.

        Sampled: the checks are of a random choice, so that another version of a library may choose others. They have
        one id, and at least this many must run.
        """
        if not self.chosen(name):
            return
        began, used, runs, above, self.prefix = time.monotonic(), cpu(), self.runs, self.prefix, name + ": "
        before, case = dict(self.ran), self.case
        if sampled:
            self.case = None  # all are one
        try:
            function(self, *args)
        except (Exception, subprocess.TimeoutExpired) as e:
            where = traceback.extract_tb(e.__traceback__)
            here = next((f for f in reversed(where) if not f.filename.endswith("harness.py")), where[-1])
            self.fail(f"{pathlib.Path(here.filename).name}:{here.lineno}", f"{type(e).__name__}: {e}")
            self.broken.append(self.prefix)
        if sampled:
            enough, self.ran, self.case = len(self.ran) - len(before), before, case
            self.ok("a random choice", enough >= sampled, f"{enough} checks, want {sampled} at least")
        self.prefix = above
        here, tools = (now - then for now, then in zip(cpu(), used, strict=True))
        print(f"      {name}: {time.monotonic() - began:.1f} s; CPU: {here:.1f} s here, {tools:.1f} s in {self.runs - runs} runs", flush=True)

    def path(self, name):
        """A path in the work directory where nothing is yet."""
        p = self.work / name
        n = 0
        while p.exists():
            n += 1
            p = self.work / f"{n}-{name}"
        return p
