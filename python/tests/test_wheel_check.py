"""The check of wheels finds what is wrong with changed copies of a good one."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

WHEEL = os.environ.get("BLOOMJOIN_WHEEL", "")
COMMAND = "bloomjoin/_bin/bloomjoin"
EXTENSION = "bloomjoin/_native.abi3.so"

pytestmark = [
    pytest.mark.skipif(not WHEEL, reason="BLOOMJOIN_WHEEL names no wheel"),
    pytest.mark.skipif("manylinux" not in WHEEL, reason="changes a wheel for Linux"),
]

Files = dict[str, tuple[int, bytes]]  # mode and content


Check = Callable[..., list[str]]


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Check:
    pytest.importorskip("lief")
    pytest.importorskip("hatchling")
    monkeypatch.syspath_prepend(Path(__file__).parent.parent)
    import hatch_build
    import wheel_check

    def run(wheel: Path, platform: str = "linux-amd64", secret: Sequence[str] = ()) -> list[str]:
        return wheel_check.check(wheel, hatch_build.TARGETS[platform], secret)

    return run


def changed(directory: Path, change: Callable[[Files], object], name: str = "") -> Path:
    """Return a copy of the wheel whose files a function has changed."""
    files: Files = {}
    with zipfile.ZipFile(WHEEL) as archive:
        for info in archive.infolist():
            files[info.filename] = (info.external_attr >> 16, archive.read(info))
    change(files)
    copy = directory / (name or Path(WHEEL).name)
    with zipfile.ZipFile(copy, "w") as archive:
        for file, (mode, data) in files.items():
            info = zipfile.ZipInfo(file)
            info.external_attr = mode << 16
            archive.writestr(info, data)
    return copy


def edit(name: str, old: bytes, new: bytes) -> Callable[[Files], object]:
    def change(files: Files) -> None:
        mode, data = files[name]
        assert old in data
        files[name] = (mode, data.replace(old, new))

    return change


CHANGES: list[tuple[Callable[[Files], object], str]] = [
    (lambda files: files.pop("bloomjoin/py.typed"), "py.typed is missing"),
    (lambda files: files.pop("bloomjoin/THIRD_PARTY.txt"), "does not name Yann Collet"),
    (lambda files: files.update({"bloomjoin/x.o": (0o100644, b"x")}), "x.o does not belong there"),
    (lambda files: files.update({COMMAND: (0o100644, files[COMMAND][1])}), "has the mode 100644"),
    (lambda files: files.update({COMMAND: files[EXTENSION]}), "imports PyModuleDef_Init"),
    (lambda files: files.update({COMMAND: (0o100755, b"#!/bin/sh")}), "bloomjoin is no program"),
    (edit(EXTENSION, b"GLIBC_2.14", b"GLIBC_2.44"), "needs GLIBC_2.44"),
    (edit(EXTENSION, b"libc.so.6", b"libm.so.6"), "needs the libraries ['libm.so.6']"),
    (edit(EXTENSION, b"\0PyErr_NoMemory\0", b"\0PyRun_AnyFile \0"), "imports PyRun_AnyFile"),
    (edit("bloomjoin/_errors.py", b"family", b"famine"), "RECORD is wrong about"),
]


@pytest.mark.parametrize(("change", "problem"), CHANGES)
def test_finds(
    check: Check, tmp_path: Path, change: Callable[[Files], object], problem: str
) -> None:
    wheel = changed(tmp_path, change)
    found = check(wheel)
    assert any(problem in text for text in found), found


def test_accepts(check: Check, tmp_path: Path) -> None:
    assert check(Path(WHEEL)) == []
    assert check(changed(tmp_path, len)) == []


def test_other_machine(check: Check, tmp_path: Path) -> None:
    name = Path(WHEEL).name.replace("x86_64", "aarch64")
    found = check(changed(tmp_path, len, name), "linux-arm64")
    assert len(found) == 2
    assert all("is for" in text for text in found)


def test_path_of_the_build(check: Check) -> None:
    found = check(Path(WHEEL), secret=["github.com/zeebo"])
    assert any(f"{COMMAND} contains github.com/zeebo" in text for text in found)
