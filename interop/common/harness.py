"""Running the tool and counting what held."""

import json
import os
import pathlib
import resource
import subprocess
import time
import traceback

from common import readers


FULL = bool(os.environ.get("BLOOMJOIN_ALL"))  # all random cases and files


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
        text = (self.err if "-" in self.args else self.out).decode()
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

    def __init__(self, tool, work, only="", without=None):
        self.tool, self.work, self.only, self.without = tool, pathlib.Path(work), only, without
        self.passed, self.failed, self.opened = 0, 0, 0
        self.prefix = ""

    def run(self, *args, stdin=b"", want=0, seconds=300, opens=True):
        """Runs the tool. An exit code other than want raises; want=None takes any. Opens: what it wrote is opened by others."""
        args = [str(a) for a in args]
        p = subprocess.run([self.tool, *args], input=stdin, capture_output=True, timeout=seconds)
        r = Result(args, p.returncode, p.stdout, p.stderr)
        if b"\ngoroutine " in p.stderr:
            raise AssertionError(f"a panic: {r}")
        if want is not None and p.returncode != want:
            raise AssertionError(f"want exit {want}, got {r}")
        if opens and p.returncode == 0:
            self.open(r)
        return r

    def open(self, r):
        """Has what a run wrote opened by other readers. Only what is wrong with it is a check of its own."""
        for path in readers.written(r.args):
            self.opened += 1
            for problem in readers.problems(path, r.args):
                self.ok("opened", False, f"{problem}\n      of: bloomjoin {' '.join(r.args)[:1000]}")

    def ok(self, name, holds, detail=""):
        """One check."""
        if holds:
            self.passed += 1
            print(f"ok    {self.prefix}{name}")
        else:
            self.failed += 1
            print(f"FAIL  {self.prefix}{name}: {detail}")

    def equal(self, name, got, want):
        self.ok(name, got == want, f"want {str(want)[:600]}, got {str(got)[:600]}")

    def group(self, name, function, *args):
        """Calls function(self, *args). What it raises is one failed check, and the others go on."""
        if not name.startswith(self.only) or self.without and name.startswith(self.without):
            return
        began, used, self.prefix = time.monotonic(), cpu(), name + ": "
        try:
            function(self, *args)
        except (Exception, subprocess.TimeoutExpired) as e:
            where = traceback.extract_tb(e.__traceback__)
            here = next((f for f in reversed(where) if not f.filename.endswith("harness.py")), where[-1])
            self.ok(f"{pathlib.Path(here.filename).name}:{here.lineno}", False, f"{type(e).__name__}: {e}")
        self.prefix = ""
        here, tools = (now - then for now, then in zip(cpu(), used, strict=True))
        print(f"      {name}: {time.monotonic() - began:.1f} s; CPU: {here:.1f} s here, {tools:.1f} s in commands", flush=True)

    def path(self, name):
        """A path in the work directory where nothing is yet."""
        p = self.work / name
        n = 0
        while p.exists():
            n += 1
            p = self.work / f"{n}-{name}"
        return p
