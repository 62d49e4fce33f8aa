"""Check what a wheel holds: for every platform, without running it."""

from __future__ import annotations

import base64
import csv
import hashlib
import re
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import lief

from hatch_build import HERE, Target

MACHINES: dict[tuple[str, str], object] = {
    ("linux", "amd64"): lief.ELF.ARCH.X86_64,
    ("linux", "arm64"): lief.ELF.ARCH.AARCH64,
    ("darwin", "amd64"): lief.MachO.Header.CPU_TYPE.X86_64,
    ("darwin", "arm64"): lief.MachO.Header.CPU_TYPE.ARM64,
    ("windows", "amd64"): lief.PE.Header.MACHINE_TYPES.AMD64,
}
# Part of every supported Windows, or brought by Python.
WINDOWS_DLLS = re.compile(r"python3\.dll|kernel32\.dll|ntdll\.dll|api-ms-win-crt-[a-z0-9-]+\.dll")
MACOS_LIBRARIES = re.compile(
    r"/usr/lib/lib(System\.B|resolv\.9)\.dylib|/System/Library/Frameworks/.*"
)


def check(wheel: Path, target: Target, secret: Sequence[str] = ()) -> list[str]:
    """Return all problems of a wheel. No file in it may contain a text of secret."""
    with zipfile.ZipFile(wheel) as archive:
        content = {info.filename: archive.read(info) for info in archive.infolist()}
        problems = [*names(wheel, content, target), *entries(archive), *record(content)]
    for name, data in sorted(content.items()):
        problems += [f"{name} contains {text}" for text in secret if text.encode() in data]
    extension = content.get(f"bloomjoin/{target.extension}")
    command = content.get(f"bloomjoin/_bin/{target.command}")
    if extension and command:
        problems += binary(target, extension, imports_python=True)
        problems += binary(target, command, imports_python=False)
        version = wheel.name.split("-")[1]
        if f"v{version}".encode() not in command:
            problems.append(f"the command does not contain its version, v{version}")
    return [f"{wheel.name}: {problem}" for problem in problems]


def names(wheel: Path, content: dict[str, bytes], target: Target) -> Iterable[str]:
    """Yield what is wrong with the names of the wheel and its files."""
    project, version, *tag = wheel.stem.split("-")
    info = f"{project}-{version}.dist-info"
    if tag != ["cp310", "abi3", target.tag]:
        yield f"want a wheel for cp310-abi3-{target.tag}"
    source = HERE / "src" / "bloomjoin"
    sources = [p.relative_to(source) for p in source.rglob("*.py*") if p.suffix in {".py", ".pyi"}]
    want = {f"bloomjoin/{path.as_posix()}" for path in sources}
    want |= {f"bloomjoin/{n}" for n in (target.extension, "THIRD_PARTY.txt", "py.typed")}
    want |= {f"bloomjoin/_bin/{target.command}", f"{info}/licenses/LICENSE"}
    want |= {f"{info}/{n}" for n in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
    yield from (f"{n} is missing" for n in sorted(want - set(content)))
    yield from (f"{n} does not belong there" for n in sorted(set(content) - want))
    notices = content.get("bloomjoin/THIRD_PARTY.txt", b"")
    for word in (b"Yann Collet", b"The Go Authors", b"github.com/zeebo/xxh3"):
        if word not in notices:
            yield f"THIRD_PARTY.txt does not name {word.decode()}"


def entries(archive: zipfile.ZipFile) -> Iterable[str]:
    """Yield what would differ between builds: times and modes."""
    if len({info.date_time for info in archive.infolist()}) != 1:
        yield "the times of files differ"
    for info in archive.infolist():
        runs = "/_bin/" in info.filename or "/_native" in info.filename
        if (info.external_attr >> 16) & 0o777 != (
            0o755 if runs and info.filename[-4:] != ".pyi" else 0o644
        ):
            yield f"{info.filename} has the mode {info.external_attr >> 16:o}"


def record(content: dict[str, bytes]) -> Iterable[str]:
    """Yield where RECORD does not describe the files."""
    (name,) = [n for n in content if n.endswith(".dist-info/RECORD")]
    rows = {row[0]: row[1:] for row in csv.reader(content[name].decode().splitlines())}
    if set(rows) != set(content):
        yield f"RECORD and the wheel differ in {sorted(set(rows) ^ set(content))}"
    for file, (digest, size) in rows.items():
        if file == name:
            continue
        data = content.get(file, b"")
        want = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        if (digest, size) != (f"sha256={want}", str(len(data))):
            yield f"RECORD is wrong about {file}"


def binary(target: Target, data: bytes, imports_python: bool) -> Iterable[str]:
    """Yield what is wrong with the extension, which imports from Python, or the command."""
    what = target.extension if imports_python else target.command
    lief.logging.disable()  # it warns about import tables as linkers write them
    parsed = lief.parse(data)
    wrong: Iterable[str]
    if isinstance(parsed, lief.ELF.Binary):
        machine, python, wrong = elf(parsed, imports_python)
    elif isinstance(parsed, lief.MachO.Binary):
        machine, python, wrong = macho(parsed)
    elif isinstance(parsed, lief.PE.Binary):
        machine, python, wrong = pe(parsed)
    else:
        yield f"{what} is no program"
        return
    if machine != MACHINES[target.goos, target.goarch]:
        yield f"{what} is for {machine}"
    unknown = python - stable_names() if imports_python else python
    yield from (f"{what} imports {name}" for name in sorted(unknown))
    if imports_python and not python:
        yield f"{what} imports nothing of Python"
    yield from (f"{what}: {text}" for text in wrong)


def elf(b: lief.ELF.Binary, dynamic: bool) -> tuple[object, set[str], list[str]]:
    """Return machine, names imported from Python, and problems of a program for Linux."""
    python = {s.name for s in b.dynamic_symbols if s.shndx == 0 and python_name(str(s.name))}
    wrong = []
    if list(b.libraries) != (["libc.so.6"] if dynamic else []) or b.has_interpreter:
        wrong.append(f"needs the libraries {list(b.libraries)}")
    for needed in b.symbols_version_requirement:
        for symbol in needed.get_auxiliary_symbols():
            name = str(symbol.name)
            version = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", name)
            if not version or (int(version[1]), int(version[2])) > (2, 17):
                wrong.append(f"needs {name}")
    return b.header.machine_type, {str(n) for n in python}, wrong


def macho(b: lief.MachO.Binary) -> tuple[object, set[str], list[str]]:
    """Return machine, names imported from Python, and problems of a program for macOS."""
    imported = {str(s.name).removeprefix("_") for s in b.imported_symbols}
    wrong = [
        f"needs {library.name}"
        for library in b.libraries
        if library.command != lief.MachO.LoadCommand.TYPE.ID_DYLIB
        and not MACOS_LIBRARIES.fullmatch(str(library.name))
    ]
    least = b.build_version.minos if b.build_version else []
    if list(least[:1]) != [12]:
        wrong.append(f"is for macOS {least}, want 12")
    arm = b.header.cpu_type == lief.MachO.Header.CPU_TYPE.ARM64
    if arm and not b.has_code_signature:
        wrong.append("is not signed")
    return b.header.cpu_type, {n for n in imported if python_name(n)}, wrong


def pe(b: lief.PE.Binary) -> tuple[object, set[str], list[str]]:
    """Return machine, names imported from Python, and problems of a program for Windows."""
    wrong = []
    python: set[str] = set()
    for library in b.imports:
        name = str(library.name).lower()
        if not WINDOWS_DLLS.fullmatch(name):
            wrong.append(f"needs {name}")
        if name == "python3.dll":
            python = {str(entry.name) for entry in library.entries}
    return b.header.machine, python, wrong


def python_name(symbol: str) -> bool:
    """Tell whether a name is one of Python's."""
    return re.match(r"_?Py[A-Z_]", symbol) is not None


def stable_names() -> set[str]:
    """Return the names that python3.def lists."""
    text = (HERE / "native" / "python3.def").read_text(encoding="utf-8")
    return {line.split()[0] for line in text.split("EXPORTS")[1].splitlines() if line.strip()}
