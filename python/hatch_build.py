"""Build what a wheel holds besides Python: the extension, the command, notices.

As the build hook of ``pip install ./python`` this makes a wheel for the machine
it runs on, or for another one that BLOOMJOIN_TARGET names (``wheels.py`` sets
it). As a command it puts the same files next to the sources, for tests from a
checkout:

    python hatch_build.py             # the extension and the command
    python hatch_build.py --native    # the extension alone

Needs Go, a checkout of the whole repository, and for this machine a C compiler
(CC or cc). Without one, and for other machines, the C compiler is Zig's, from
the package ``ziglang``.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

HERE = Path(__file__).resolve().parent
PACKAGE = HERE / "src" / "bloomjoin"
ZIGLANG = "ziglang==0.17.1"
NO_SDIST = (
    "there is no source distribution: the command is built from Go code outside of python/. "
    "Build a wheel from a checkout (pip wheel ./python, or python -m build --wheel python)"
)

# gcc vectorizes hash loops at -O3 only. Zig checks for undefined behaviour by default.
COMPILE = ["-std=c11", "-O3", "-g0", "-DNDEBUG", "-Wall", "-Wextra"]
COMPILE += ["-fvisibility=hidden", "-fno-sanitize=undefined", "-fno-strict-aliasing"]


class Target(NamedTuple):
    """A platform: its names for Go, Zig and pip."""

    goos: str
    goarch: str
    zig: str = ""
    tag: str = ""

    @property
    def extension(self) -> str:
        """The extension's file name."""
        return "_native.pyd" if self.goos == "windows" else "_native.abi3.so"

    @property
    def command(self) -> str:
        """The command's file name."""
        return "bloomjoin.exe" if self.goos == "windows" else "bloomjoin"


# Go needs macOS 12.
TARGETS = {
    "linux-amd64": Target(
        "linux", "amd64", "x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64.manylinux2014_x86_64"
    ),
    "linux-arm64": Target(
        "linux", "arm64", "aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64.manylinux2014_aarch64"
    ),
    "macos-amd64": Target("darwin", "amd64", "x86_64-macos.12.0", "macosx_12_0_x86_64"),
    "macos-arm64": Target("darwin", "arm64", "aarch64-macos.12.0", "macosx_12_0_arm64"),
    "windows-amd64": Target("windows", "amd64", "x86_64-windows-gnu", "win_amd64"),
}


class BuildHook(BuildHookInterface[Any]):
    """Adds the built files to the wheel, and the platform to its name."""

    def dependencies(self) -> list[str]:
        """Return what the build needs besides build-system.requires."""
        return [] if host_compiler(requested()) else [ZIGLANG]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the files, in a temporary directory unless the installation is editable."""
        if self.target_name != "wheel":
            sys.exit(NO_SDIST)
        target = requested()
        if version == "editable":
            build(target, PACKAGE, "")
            return
        self.scratch = tempfile.TemporaryDirectory(prefix="bloomjoin-build.")
        made = Path(self.scratch.name)
        build(target, made, self.metadata.version)
        for file in sorted(made.rglob("*")):
            if file.is_file():
                name = file.relative_to(made).as_posix()
                build_data["force_include"][str(file)] = f"bloomjoin/{name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"cp310-abi3-{target.tag or host_tag()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary directory."""
        if version != "editable":
            self.scratch.cleanup()


def requested() -> Target:
    """Return the platform of BLOOMJOIN_TARGET, or this machine."""
    name = os.environ.get("BLOOMJOIN_TARGET")
    if not name:
        goos, goarch = run(["go", "env", "GOHOSTOS", "GOHOSTARCH"]).split()
        return Target(goos, goarch)
    if name not in TARGETS:
        sys.exit(f"BLOOMJOIN_TARGET: want one of {', '.join(TARGETS)}, got {name!r}")
    return TARGETS[name]


def host_tag() -> str:
    """Return pip's name of this machine. What it compiles may run on no older system."""
    return next(tag for tag in platform_tags() if "linux" not in tag or tag.startswith("linux_"))


def build(target: Target, out: Path, version: str) -> None:
    """Write extension, command and notices to a directory."""
    build_extension(target, out / target.extension)
    build_command(target, out / "_bin" / target.command, version)
    (out / "THIRD_PARTY.txt").write_bytes(notices(target))


def host_compiler(target: Target) -> list[str]:
    """Return the C compiler for this machine, empty if Zig's is to be used."""
    if target.zig or target.goos == "windows":
        return []
    return os.environ.get("CC", "").split() or [cc for cc in ["cc"] if shutil.which(cc)]


def build_extension(target: Target, out: Path) -> None:
    """Compile native/*.c for Python's stable ABI."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bloomjoin-native.") as temp:
        scratch = Path(temp)
        include = headers(scratch / "include")
        compiler = host_compiler(target)
        if not compiler:
            compiler = [*zig("cc"), "-target", target.zig or TARGETS["windows-amd64"].zig]
        link = ["-shared", "-s"]
        if target.goos == "darwin":
            # Python's symbols are looked up when the module is loaded.
            link = ["-bundle", "-Wl,-undefined,dynamic_lookup", "-Wl,-x"]
            if target.zig:
                # Zig has no -bundle; Python loads either.
                link[0:1] = ["-shared", f"-Wl,-install_name,@rpath/{out.name}"]
        made = scratch / out.name
        sources = sorted(p.relative_to(HERE).as_posix() for p in (HERE / "native").glob("*.c"))
        command = [*compiler, *COMPILE, f"-I{include}", *sources, *link, "-o", str(made)]
        if target.goos == "windows":
            command.append(import_library(scratch))
        elif target.goos != "darwin":
            command += ["-fPIC", "-Wl,--build-id=none"]
        run(command, HERE)
        # Not overwritten: a process may have mapped the former file.
        staged = out.with_name(out.name + ".new")
        shutil.copyfile(made, staged)
        staged.chmod(0o755)
        staged.replace(out)


def headers(directory: Path) -> str:
    """Copy the headers that the C code needs, and none of the system's besides."""
    shutil.copytree(sysconfig.get_paths()["include"], directory)
    # The one of this Python describes this machine.
    shutil.copyfile(HERE / "native" / "pyconfig.h", directory / "pyconfig.h")
    shutil.copyfile(xxhash_header(), directory / "xxhash.h")
    return str(directory)


def xxhash_header() -> Path:
    """Return the header of xxHash, which pyarrow's wheels contain."""
    spec = importlib.util.find_spec("pyarrow")
    if spec is None or spec.origin is None:
        sys.exit("the build needs xxhash.h from the package pyarrow: pip install pyarrow")
    return Path(spec.origin).parent / "include" / "arrow" / "vendored" / "xxhash" / "xxhash.h"


def import_library(directory: Path) -> str:
    """Make the file that makes a linker import functions from python3.dll."""
    library = directory / "python3.lib"
    definition = HERE / "native" / "python3.def"
    run([*zig("dlltool"), "-m", "i386:x86-64", "-d", str(definition), "-l", str(library)])
    return str(library)


def zig(tool: str) -> list[str]:
    """Return the command line that begins with a tool of Zig."""
    return [sys.executable, "-m", "ziglang", tool]


def build_command(target: Target, out: Path, version: str) -> None:
    """Compile the Go command: static, stripped, the same bytes wherever it is built."""
    link = "-ldflags=-s -w -buildid="
    if version:
        link += f" -X main.release=v{version}"
    flags = ["-trimpath", "-buildvcs=false", link]
    run(["go", "build", *flags, "-o", str(out), "./cmd/bloomjoin"], HERE.parent, go_env(target))


def go_env(target: Target) -> dict[str, str]:
    """Return the environment of go, without what would change its output."""
    env = {k: v for k, v in os.environ.items() if k not in {"GOFLAGS", "GOEXPERIMENT"}}
    env |= {"GOOS": target.goos, "GOARCH": target.goarch, "GOAMD64": "v1", "GOARM64": "v8.0"}
    return env | {"CGO_ENABLED": "0", "GOWORK": "off"}


def notices(target: Target) -> bytes:
    """Return the licence texts of everything that is compiled into the wheel."""
    form = "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}"
    env = go_env(target)
    listed = run(["go", "list", "-deps", "-f", form, "./cmd/bloomjoin"], HERE.parent, env)
    version = run(["go", "env", "GOVERSION"], HERE.parent, env).strip()
    goroot = Path(run(["go", "env", "GOROOT"], HERE.parent, env).strip())
    header = xxhash_header().read_text(encoding="utf-8")
    users = {header[: header.index("*/") + 3].encode(): ["xxHash"]}
    users.setdefault((goroot / "LICENSE").read_bytes(), []).append(f"Go {version}")
    for line in sorted(set(listed.splitlines())):
        module, directory = line.split("\t")
        text = b"\n".join(file.read_bytes() for file in licences(Path(directory)))
        users.setdefault(text, []).append(module)
    rule = b"=" * 78 + b"\n"
    return b"\n".join(
        rule + "\n".join(names).encode() + b"\n" + rule + b"\n" + text
        for text, names in users.items()
    )


def licences(directory: Path) -> list[Path]:
    """Return the licences and notices of a module, which are a condition of its use."""
    files = sorted(p for p in directory.iterdir() if p.is_file())
    names = ("LICENSE", "LICENCE", "UNLICENSE", "COPYING", "NOTICE", "PATENTS")
    found = [p for p in files if p.name.upper().startswith(names)]
    found = found or [p for p in files if p.name.upper().startswith("README")]
    if not found:
        sys.exit(f"{directory}: no licence found in this module")
    return found


def run(command: Sequence[str], cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Run a command, and return its standard output."""
    try:
        done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE, text=True)
    except FileNotFoundError:
        sys.exit(f"the build needs {command[0]}, which is not installed")
    if done.returncode:
        sys.exit(f"failed: {' '.join(command)}")
    return done.stdout


def main() -> None:
    """Put the built files next to the sources."""
    if sys.argv[1:] not in ([], ["--native"]):
        sys.exit("usage: hatch_build.py [--native]")
    target = requested()
    if sys.argv[1:]:
        build_extension(target, PACKAGE / target.extension)
    else:
        build(target, PACKAGE, "")


if __name__ == "__main__":
    main()
