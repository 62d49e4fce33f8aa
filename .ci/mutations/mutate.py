#!/usr/bin/env python3
"""Makes small faults in a copy of the tree and looks for a check that notices.

    .ci/mutations/mutate.py --check              every entry of list.txt is in one place of the tree
    .ci/mutations/mutate.py --draw WORD          twenty entries, drawn by a word of your choice
    .ci/mutations/mutate.py --draw WORD --count 5
    .ci/mutations/mutate.py ID...                these entries
    .ci/mutations/mutate.py --all                all of them: hours
    .ci/mutations/mutate.py --near ...           a first look: only tests of the package that was changed

A fault is caught by a test that fails with it and passes without it. The tests
run as in .ci/run's step "test", first those of the package that was changed,
then those of the packages that import it. The steps of .ci/run that use the
command follow (without them: --no-steps). The script prints a line for each
fault, with the test or step that has caught it, or LIVED, and exits with 1 if
one lives. What has caught a fault is kept in caught.txt, and tried first the
next time.

A fault that lives needs a test. If it changes nothing that a user could notice,
replace its entry. The head of list.txt describes the format.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import namedtuple
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIST, CAUGHT = HERE / "list.txt", HERE / "caught.txt"
STEPS = ["interop", "attack", "stores", "first", "writers", "deploy", "python", "spark"]  # of .ci/run, the cheaper first
SOMETIMES = " (sometimes)"  # marks a test that failed once and then passed
TEST_TIME, STEP_TIME = 60 * 60, 60 * 60  # seconds; the tests of one package end after 10 minutes

Entry = namedtuple("Entry", "id breaks within hunk line")
Found = namedtuple("Found", "file at")  # at: index of the first line


class Fault(Exception):
    """An error to print without a traceback."""


def entries():
    """Reads list.txt."""
    out, seen = [], set()
    blocks = re.split(r"\n(?=\[)", "\n" + LIST.read_text())
    line = blocks[0].count("\n") + 1
    for block in blocks[1:]:
        lines = block.split("\n")
        name = re.fullmatch(r"\[([a-z0-9-]+)\]", lines[0])
        where = f"list.txt:{line}"
        if not name or len(lines) < 3:
            raise Fault(f"{where}: want [id], what it breaks, and lines with - and +")
        hunk, within = [], ""
        for text in lines[2:]:
            if text.startswith("#"):
                break
            if text.startswith("in: "):
                within = text[4:].strip()
            elif text[:1] in ("-", "+", " "):
                hunk.append((text[0], text[1:].strip()))
            elif text:
                raise Fault(f"{where}: {text!r}: want a line that begins with a blank, - or +")
        if name[1] in seen:
            raise Fault(f"{where}: {name[1]} is there twice")
        if all(sign == " " for sign, _ in hunk):
            raise Fault(f"{where}: {name[1]} changes nothing")
        seen.add(name[1])
        out.append(Entry(name[1], lines[1].strip(), within, hunk, line))
        line += block.count("\n") + 1
    return out


def sources(root):
    """Returns the Go files of the main module that are not tests, as stripped lines."""
    names = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.go").split("\0")
    modules = [p for p in git(root, "ls-files", "-z", "*go.mod").split("\0") if "/" in p]
    others = tuple(p.removesuffix("go.mod") for p in modules)
    files = {}
    for name in sorted(set(names)):
        if name and not name.endswith("_test.go") and not name.startswith(others) and (root / name).exists():
            files[name] = [text.strip() for text in (root / name).read_text().split("\n")]
    return files


def find(entry, files):
    """Returns the only place of an entry's old lines."""
    old = [text for sign, text in entry.hunk if sign != "+"]
    places = []
    for name, lines in files.items():
        at = -1
        while old[0] in lines[at + 1 :]:
            at = lines.index(old[0], at + 1)
            if lines[at : at + len(old)] == old and inside(entry.within, lines, at):
                places.append(Found(name, at))
    where = f"list.txt:{entry.line}: {entry.id}"
    if not places:
        raise Fault(f"{where}: its lines are nowhere in the tree: adapt the entry to what the code is now, beginning with\n\t{old[0]}")
    if len(places) > 1:
        text = ", ".join(f"{p.file}:{p.at + 1}" for p in places)
        raise Fault(f"{where}: its lines are in {len(places)} places: add a line that stays, or in: and the function\n\t{text}")
    return places[0]


def inside(within, lines, at):
    """Reports whether the line is in the function of that name."""
    if not within:
        return True
    begin = next((text for text in reversed(lines[: at + 1]) if text.startswith("func ")), "")
    return re.match(r"func (\([^)]*\) )?" + re.escape(within) + r"[\[(]", begin) is not None


def locate(chosen, root):
    """Finds all entries, or reports everything that is wrong."""
    files = sources(root)
    found, faults = {}, []
    for entry in chosen:
        try:
            found[entry.id] = find(entry, files)
        except Fault as fault:
            faults.append(str(fault))
    if faults:
        raise Fault("\n".join(faults))
    return found


def draw(all_entries, word, count):
    """Draws entries by a word, the same ones with every version of Python."""
    return sorted(all_entries, key=lambda e: hashlib.sha256((word + e.id).encode()).hexdigest())[:count]


def git(root, *args):
    """Runs git and returns what it prints."""
    return subprocess.run(["git", *args], cwd=root, check=True, capture_output=True, text=True).stdout


def copy(to):
    """Clones the last commit, and adds what the working tree has besides."""
    git(ROOT, "clone", "-q", str(ROOT), str(to))
    changes = subprocess.run(["git", "diff", "--binary", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    if changes:
        subprocess.run(["git", "apply", "--whitespace=nowarn"], cwd=to, input=changes, check=True)
    for name in git(ROOT, "ls-files", "-z", "--others", "--exclude-standard").split("\0"):
        if name:
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    commit(to, "the tree")


def commit(root, message):
    """Commits everything: some steps clone the last commit."""
    git(root, "add", "--all")
    who = ["-c", "user.name=mutate", "-c", "user.email=mutate@localhost"]
    git(root, *who, "commit", "-q", "--allow-empty", "--no-verify", "-m", message)


def apply(entry, found, root):
    path = root / found.file
    lines = path.read_text().split("\n")
    old = lines[found.at : found.at + sum(sign != "+" for sign, _ in entry.hunk)]
    new, rest = [], list(old)
    indent = re.match(r"\s*", old[0])[0]
    for sign, text in entry.hunk:
        if sign == "+":
            new.append(indent + text)
        elif sign == "-":
            rest.pop(0)
        else:
            new.append(rest.pop(0))
    lines[found.at : found.at + len(old)] = new
    path.write_text("\n".join(lines))


def environment(root):
    """Returns the environment of .ci/run, without the variables that change which cases
    tests run. Files that killed tests leave are beside the copy, and removed with it."""
    temporary = root.parent / "t"
    temporary.mkdir(exist_ok=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith("BLOOMJOIN_") and k not in ("CI_FULL", "CI_STEP", "TMP", "GOFLAGS")}
    return env | {"TMPDIR": str(temporary), "CI": "true", "GOTOOLCHAIN": "auto", "GOFLAGS": "-trimpath -buildvcs=false"}


def descendants(pid):
    """Returns the processes below pid, also those that have left its group."""
    below = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            below.setdefault(int(stat.read_text().rsplit(")", 1)[1].split()[1]), []).append(int(stat.parent.name))
        except (OSError, ValueError, IndexError):
            continue  # it has ended
    out = list(below.get(pid, []))
    for child in out:
        out += below.get(child, [])
    return out


def kill(process):
    """Kills a process and everything that it has started."""
    for pid in [process.pid, *descendants(process.pid)]:
        for end in (os.killpg, os.kill):
            try:
                end(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue


def run(args, root, seconds, each_line):
    """Runs a command until each_line returns something. Returns that, and the exit
    code, None upon a timeout."""
    process = subprocess.Popen(
        args,
        cwd=root,
        env=environment(root),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    late = threading.Event()

    def expire():
        late.set()
        kill(process)

    timer = threading.Timer(seconds, expire)
    timer.start()
    try:
        for text in process.stdout:
            result = each_line(text)
            if result:
                kill(process)
                return result, 1
        code = process.wait()
        return None, None if late.is_set() else code
    finally:
        timer.cancel()
        if process.poll() is None:
            kill(process)
        process.stdout.close()
        process.wait()


def first_failure(root, packages, only="", skip=()):
    """Runs the tests of packages until one fails: returns (package, test), "timeout", or None."""
    args = ["go", "test", "-json", "-failfast"]
    if only:
        args += ["-run", f"^{only}$"]
    if skip:
        args += ["-skip", "^(" + "|".join(sorted(skip)) + ")$"]
    running, tail = {}, []

    def each_line(text):
        tail.append(text)
        del tail[:-20]
        try:
            event = json.loads(text)
        except ValueError:
            return None
        package, name, action = event.get("Package", ""), event.get("Test", ""), event.get("Action")
        test = name.split("/")[0]
        if action == "build-fail":
            raise Fault("does not compile:\n" + "".join(json.loads(t).get("Output", "") for t in tail if t.startswith("{")))
        if name and name == test:
            tests = running.setdefault(package, [])
            if action == "run":
                tests.append(test)
            elif action in ("pass", "skip") and test in tests:
                tests.remove(test)
        if action == "fail":
            return package, test or (running.get(package) or ["TestMain"])[-1]
        return None

    result, code = run([*args, *packages], root, TEST_TIME, each_line)
    if result:
        return result
    if code is None:
        return "timeout"
    if code != 0:
        raise Fault("go test: " + "".join(tail))
    return None


class Tests:
    """The Go tests of a copy."""

    def __init__(self, root):
        self.root = root
        args = ["go", "list", "-json=ImportPath,Imports,TestImports,XTestImports,Dir", "./..."]
        text = subprocess.run(args, cwd=root, env=environment(root), check=True, capture_output=True, text=True).stdout
        decoder, at, self.packages = json.JSONDecoder(), 0, {}
        while at < len(text.rstrip()):
            package, end = decoder.raw_decode(text[at:].lstrip())
            at = len(text) - len(text[at:].lstrip()) + end
            self.packages[package["ImportPath"]] = package

    def package(self, file):
        directory = str((self.root / file).parent)
        return next(name for name, p in self.packages.items() if p["Dir"] == directory)

    def short(self, package):
        """Returns the directory of a package."""
        return os.path.relpath(self.packages[package]["Dir"], self.root)

    def importers(self, package):
        """Returns the packages whose code or tests depend on one, the nearest first."""
        out, near = [], [package]
        while near:
            more = []
            for name, p in sorted(self.packages.items()):
                if name in out or name == package:
                    continue
                if set(near) & set(p.get("Imports") or []):
                    more.append(name)
            out += more
            near = more
        changed = {package, *out}
        for name, p in sorted(self.packages.items()):
            if name not in changed and changed & {*(p.get("TestImports") or []), *(p.get("XTestImports") or [])}:
                out.append(name)
        return out

    def holder(self, test, short):
        """Returns the package that has a test, which may have moved."""
        for name in sorted(self.packages, key=lambda name: self.short(name) != short):
            for file in Path(self.packages[name]["Dir"]).glob("*_test.go"):
                if re.search(rf"^func {re.escape(test)}\(", file.read_text(), re.M):
                    return name
        return None


class Search:
    """Looks for what catches each fault."""

    def __init__(self, directory, steps, near):
        self.clean, self.dirty, self.steps, self.near = directory / "clean", directory / "changed", steps, near
        copy(self.clean)
        git(directory, "clone", "-q", str(self.clean), str(self.dirty))
        if (ROOT.parent / "shared").exists():
            (directory / "shared").symlink_to((ROOT.parent / "shared").resolve())
        self.base = git(self.dirty, "rev-parse", "HEAD").strip()
        self.tests = Tests(self.dirty)
        self.green = {}  # by package and test, or step: it passes without a fault

    def passes(self, key, check):
        if key not in self.green:
            self.green[key] = check()
            if not self.green[key]:
                print(f"  {key} fails without any fault, and does not count", flush=True)
        return self.green[key]

    def test_passes(self, package, test):
        return self.passes(f"{package} {test}", lambda: first_failure(self.clean, [package], only=test) is None)

    def by_tests(self, packages, only=""):
        skip, sometimes = set(), None
        while True:
            failed = first_failure(self.dirty, packages, only, skip)
            if failed == "timeout":
                key = "in time: " + " ".join(packages)
                if self.passes(key, lambda: first_failure(self.clean, packages, only, skip) != "timeout"):
                    return "timeout"
            if not failed or failed == "timeout":
                return sometimes
            package, test = failed
            caught = f"{self.tests.short(package)} {test}"
            if self.test_passes(package, test):
                if first_failure(self.dirty, [package], only=test):
                    return caught
                sometimes = sometimes or caught + SOMETIMES
            if only or test in skip:
                return sometimes
            skip.add(test)

    def by_step(self, step):
        def passes(root):
            _, code = run(["bash", ".ci/run", step], root, STEP_TIME, lambda text: None)
            return code == 0

        if passes(self.dirty) or not self.passes(f"step {step}", lambda: passes(self.clean)):
            return None
        return f"step {step}"

    def catch(self, entry, found, hint):
        """Returns what catches a fault, or None."""
        git(self.dirty, "reset", "-q", "--hard", self.base)
        git(self.dirty, "clean", "-q", "-d", "-f")
        apply(entry, found, self.dirty)
        commit(self.dirty, entry.id)
        package = self.tests.package(found.file)
        sometimes = None
        for check in self.checks(package, hint):
            caught = check()
            if caught and not caught.endswith(SOMETIMES):
                return caught
            sometimes = sometimes or caught
        return sometimes

    def checks(self, package, hint):
        """Yields what looks for a fault in a package, in the order in which to try it."""
        near, _, name = hint.removesuffix(SOMETIMES).partition(" ")
        if near == "step" and name in self.steps:
            yield lambda: self.by_step(name)
        elif name and (holder := self.tests.holder(name, near)):
            yield lambda: self.by_tests([holder], only=name)
        yield lambda: self.by_tests([package])
        if not self.near and (importers := self.tests.importers(package)):
            yield lambda: self.by_tests(importers)
        for step in self.steps:
            yield lambda: self.by_step(step)


def read_caught():
    if not CAUGHT.exists():
        return {}
    return dict(line.split("\t", 1) for line in CAUGHT.read_text().splitlines() if "\t" in line)


def write_caught(all_entries, caught):
    lines = [f"{e.id}\t{caught[e.id]}\n" for e in all_entries if e.id in caught]
    CAUGHT.write_text("".join(lines))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("ids", nargs="*", metavar="ID")
    p.add_argument("--check", action="store_true", help="check that every entry is in one place of the tree, and do nothing else")
    p.add_argument("--draw", metavar="WORD", help="draw entries")
    p.add_argument("--count", type=int, default=20, help="how many to draw (default: 20)")
    p.add_argument("--all", action="store_true", help="all entries")
    p.add_argument("--no-steps", action="store_true", help="Go tests only")
    p.add_argument("--near", action="store_true", help="only the test in caught.txt, and those of the package that was changed")
    o = p.parse_args()
    everything = entries()
    if sum([o.check, o.draw is not None, o.all, bool(o.ids)]) != 1:
        p.error("want one of --check, --draw WORD, --all, ID...")
    if o.check:
        locate(everything, ROOT)
        print(f"{len(everything)} entries, each in one place")
        return 0
    by_id = {e.id: e for e in everything}
    if unknown := [i for i in o.ids if i not in by_id]:
        raise Fault("no entry " + ", ".join(unknown))
    chosen = everything if o.all else [by_id[i] for i in o.ids]
    if o.draw is not None:
        chosen = draw(everything, o.draw, o.count)
        print(f"drawn by {o.draw}: {' '.join(e.id for e in chosen)}", flush=True)
    places = locate(everything, ROOT)
    caught, lived, failed = read_caught(), [], []
    directory = Path(tempfile.mkdtemp(prefix="mutate."))
    try:
        search = Search(directory, [] if o.no_steps or o.near else STEPS, o.near)
        for entry in chosen:
            begin = time.monotonic()
            try:
                by = search.catch(entry, places[entry.id], caught.get(entry.id, ""))
            except Fault as fault:
                failed.append(entry.id)
                print(f"{entry.id}: {fault}", flush=True)
                continue
            if by:
                caught[entry.id] = by
            else:
                lived.append(entry.id)
                caught.pop(entry.id, None)
            print(f"{entry.id}: {'caught by ' + by if by else 'LIVED'}, {time.monotonic() - begin:.0f} s", flush=True)
            write_caught(everything, caught)
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(directory)], check=False)
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{len(chosen) - len(lived) - len(failed)} of {len(chosen)} caught")
    for title, ids in ("lived", lived), ("not tried", failed):
        for i in ids:
            print(f"{title}: {i}: {by_id[i].breaks}")
    return 1 if lived or failed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # what was started ends, too
    try:
        sys.exit(main())
    except Fault as fault:
        sys.exit(str(fault))
