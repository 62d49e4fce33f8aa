"""What travels to the executors: the module of the tasks, and the command."""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote

from bloomjoin import _process
from bloomjoin._errors import Error, UsageError

from . import _task

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Binaries = Mapping[str, "str | os.PathLike[str]"]


@functools.cache
def tasks() -> ModuleType:
    """Return a copy of the module of the tasks that no import finds.

    Functions of a module that cannot be imported are pickled by value, so executors need no
    package, and never run the code of another version.
    """
    spec = importlib.util.spec_from_file_location("bloomjoin_spark_tasks", _task.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def each(step: _task.Step) -> _task.Mapper:
    """Return `_task.each` of a step, to be pickled by value."""
    return cast(_task.Mapper, tasks().each(step))


def listings(wanted: list[_task.Listing]) -> _task.Mapper:
    """Return `_task.listings`, to be pickled by value."""
    return cast(_task.Mapper, tasks().listings(wanted))


def stream(step: _task.Step, schema: pa.Schema, corrected: bool) -> _task.Mapper:
    """Return `_task.stream`, to be pickled by value."""
    return cast(_task.Mapper, tasks().stream(step, schema, corrected))


def packed() -> _task.Mapper:
    """Return `_task.packed`, to be pickled by value."""
    return cast(_task.Mapper, tasks().packed)


def can_run(spark: SparkSession) -> bool:
    """Report whether this process can do what a task does: it is a driver on Linux."""
    return platform.system() == "Linux" and not is_connect(spark)


def fingerprint(names: Iterable[str]) -> str:
    """Return `_task.fingerprint` of the names that Spark has, which are escaped."""
    return _task.fingerprint(map(unquote, names))


def ship(spark: SparkSession, binaries: Binaries | None) -> _task.Binary:
    """Send the command to the executors of a session, once, and say how tasks find it.

    ``binaries`` maps a machine, ``x86_64`` or ``aarch64``, to a Linux binary. By default it is
    the command of this machine, if that runs Linux.
    """
    found = {_machine(m): Path(p) for m, p in (binaries or _local()).items()}
    shipped = {}
    for machine, path in found.items():
        if not path.is_file():
            raise UsageError(f"binaries: {path}: no such file")
        shipped[machine] = _send(spark, path, machine)
    version = "" if binaries else _version()
    if not shipped and not version:
        raise UsageError(
            "no bloomjoin for the executors: install the wheel here, set BLOOMJOIN_BINARY, "
            "or give binaries={'x86_64': PATH}"
        )
    return {"version": version, "shipped": shipped}


def _machine(name: str) -> str:
    known = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
    if name.lower() not in known:
        raise UsageError(f"binaries: want x86_64 or aarch64, got {name}")
    return known[name.lower()]


def _version() -> str:
    try:
        return metadata.version("bloomjoin")
    except metadata.PackageNotFoundError:
        return ""


def _local() -> dict[str, str]:
    """Return the command of this package by its machine, unless it is of another system."""
    if platform.system() != "Linux":
        return {}
    try:
        return {platform.machine(): _process.binary()}
    except Error:
        return {}


def _send(spark: SparkSession, path: Path, machine: str) -> str:
    """Add the command to the session, once, under a name that changes when the file does."""
    found = path.stat()
    identity = f"{path.resolve()} {found.st_size} {found.st_mtime_ns}"
    name = f"bloomjoin-{machine}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    return send(spark, name, lambda copy: _copy(path, copy))


def send(spark: SparkSession, name: str, write: Callable[[Path], object]) -> str:
    """Add a file to the session, unless one of that name is there, and return the name."""
    if is_connect(spark):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / name
            write(copy)
            spark.addArtifacts(str(copy), file=True)
        return name
    from pyspark import SparkFiles

    if not os.path.exists(SparkFiles.get(name)):
        # The driver serves this very file to executors as long as it lives.
        folder = tempfile.mkdtemp(prefix="bloomjoin-shipped-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        copy = Path(folder) / name
        write(copy)
        spark.sparkContext.addFile(str(copy))
    return name


def is_connect(spark: SparkSession) -> bool:
    """Report whether a session is one of Spark Connect."""
    return "connect" in type(spark).__module__.split(".")


def _copy(path: Path, copy: Path) -> None:
    """Copy the command, without its symbols where strip exists: it travels to every executor."""
    strip = shutil.which("strip")
    if strip:
        done = subprocess.run([strip, "-o", str(copy), str(path)], capture_output=True, check=False)
        if done.returncode == 0:
            copy.chmod(0o755)
            return
    shutil.copyfile(path, copy)
    copy.chmod(0o755)
