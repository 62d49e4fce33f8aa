"""Build the wheels of all platforms on this machine, and check what they hold.

    python wheels.py                              # all five, into dist/
    python wheels.py --platform linux-amd64       # one of them
    python wheels.py --twice                      # they must come out the same, byte for byte

Needs Go, git and the packages hatchling, lief, pyarrow and ziglang. The bytes of a
wheel follow from the sources and from the versions of Go, Python's headers and
these packages. --twice builds from two copies of the checkout, at different
paths; with --cold the second build uses no cache either, which takes two minutes
or more a platform.
"""

from __future__ import annotations

import argparse
import filecmp
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hatch_build import TARGETS, ZIGLANG
from wheel_check import check

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def main() -> None:
    """Build and check the wheels that the arguments name."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--platform", action="append", choices=sorted(TARGETS), metavar="NAME")
    parser.add_argument("--out", type=Path, default=HERE / "dist", metavar="DIR")
    parser.add_argument("--twice", action="store_true")
    parser.add_argument("--cold", action="store_true")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.platform or TARGETS:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="bloomjoin-wheels.") as temp:
            wheel = make(name, Path(temp), args.twice or args.cold, args.cold)
            made = Path(shutil.copy(wheel, args.out))
        size = made.stat().st_size / 1e6
        print(f"{made.name}  {size:.1f} MB, {time.monotonic() - began:.0f} s", flush=True)


def make(name: str, directory: Path, twice: bool, cold: bool) -> Path:
    """Build a platform's wheel, check it, and compare it with another build."""
    first, second = directory / "first", directory / "a-second" / "directory"
    for copy in [first, second][: 1 + twice]:
        copy_checkout(copy)
    when = epoch()
    wheel = build(name, first, when)
    problems = check(wheel, TARGETS[name], build_paths())
    if problems:
        sys.exit("\n".join(problems))
    if twice:
        other = build(name, second, when, cold)
        if other.name != wheel.name or not filecmp.cmp(wheel, other, shallow=False):
            sys.exit(f"{wheel.name} is not reproducible: two builds differ")
    return wheel


def build(name: str, directory: Path, when: str, cold: bool = False) -> Path:
    """Build a platform's wheel from a copy of the checkout."""
    env = dict(os.environ, BLOOMJOIN_TARGET=name, SOURCE_DATE_EPOCH=when)
    if cold:
        env["GOCACHE"] = str(directory / "cache" / "go")
        env["ZIG_GLOBAL_CACHE_DIR"] = env["ZIG_LOCAL_CACHE_DIR"] = str(directory / "cache" / "zig")
    out = directory / "wheel"
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    command += ["--directory", str(out)]
    done = subprocess.run(
        command, cwd=directory / "python", env=env, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\n{name}: the build failed")
    (wheel,) = out.glob("*.whl")
    return wheel


def copy_checkout(directory: Path) -> None:
    """Copy the files that git knows or would add."""
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        source, target = ROOT / name, directory / name
        if name.startswith("testdata/") or not source.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def build_paths() -> list[str]:
    """Return beginnings of paths on this machine that no wheel may name."""
    go = ["go", "env", "GOROOT", "GOMODCACHE", "GOCACHE"]
    found = subprocess.run(go, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        sys.exit(f"wheels for other machines need Zig: pip install {ZIGLANG}")
    found.append(str(Path(spec.origin).parent))
    return [*found, str(ROOT), str(Path(tempfile.gettempdir(), "bloomjoin-"))]


def epoch() -> str:
    """Return the time of all files in a wheel: that of the last commit."""
    return os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct").strip()


def git(*args: str) -> str:
    """Return what a git command prints about the checkout."""
    command = ["git", "-C", str(ROOT), *args]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
