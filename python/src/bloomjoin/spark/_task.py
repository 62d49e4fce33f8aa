"""What an executor runs: one command a task.

This module travels by value, so the package need not be installed on the executors. It imports
the standard library, pyarrow and pyspark only, and nothing imports it there by its name.

A task writes to a key that no other attempt uses. The row that it returns is the only commit.
"""

import base64
import contextlib
import ctypes
import fcntl
import hashlib
import itertools
import json
import os
import platform
import re
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypedDict, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

# What each attempt fills in, in the arguments of a command. No name of a file or column has NUL.
SHARD, OUT, FILTER = "\0shard\0", "\0out\0", "\0filter\0"
LIST, IDS = "\0list\0", "\0ids\0"

# Marks the text of an exception that Spark carries to the driver.
MARK = "bloomjoin-task "

COLUMNS = (
    "shard int, attempt string, host string, exit_code int, text string, report string, "
    "output string, seconds double, peak_bytes long, detail string"
)

_DONE, _PERMANENT = 0, (1, 2, 64)
_FILTER_AGE = 24 * 3600.0
_MOST_PACKED = 256 << 20
_FEW = 1000
_PR_SET_PDEATHSIG = 1

# 1582-10-16, and 1900-01-03: what older calendars and time zones change was before.
_FIRST_SAFE_DAY = -141_426
_FIRST_SAFE_SECOND = -2_208_816_000
_UNITS = {"milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}


class Binary(TypedDict):
    """How an executor finds the command: installed in ``version``, else shipped."""

    version: str
    shipped: dict[str, str]  # platform.machine() -> name of the shipped file


class Step(TypedDict):
    """One job: a command for each task, or one template for all."""

    binary: Binary
    environment: dict[str, str]
    commands: list[list[str]]
    prefix: str  # of the output's key; empty: no output
    suffix: str
    filter: dict[str, str]  # url and digest; empty: no filter
    list: bytes  # of the log's files, compressed; empty: a command names files itself
    ids: str  # name of the shipped file of the IDs, or nothing
    unchanged: dict[str, str]  # local files of the IDs, and their identities


class Listing(TypedDict):
    """One list of inputs to freeze."""

    binary: Binary
    environment: dict[str, str]
    options: list[str]
    names: list[str]
    prefix: str  # of the list's key; empty: the list is returned, compressed
    directories: list[str]


Batches = Iterator[pa.RecordBatch]
Mapper = Callable[[Batches], Batches]


class Child:
    """A finished child process."""

    def __init__(self, code: int, out: str, err: str, peak_bytes: int) -> None:
        self.code = code
        self.out = out
        self.err = err
        self.peak_bytes = peak_bytes


def each(step: Step) -> Mapper:
    """Return the function that runs the command of every shard in its batches."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for shard in _numbers(batch):
                yield _row(attempt(step, shard))

    return run


def listings(wanted: list[Listing]) -> Mapper:
    """Return the function that freezes the inputs of every list in its batches."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for index in _numbers(batch):
                yield _row(freeze(wanted[index], index))

    return run


def _numbers(batch: pa.RecordBatch) -> list[int]:
    return cast("list[int]", batch.column(0).to_pylist())


def _row(values: dict[str, Any]) -> pa.RecordBatch:
    kinds: dict[str, pa.DataType] = {
        "int": pa.int32(),
        "string": pa.string(),
        "double": pa.float64(),
        "long": pa.int64(),
    }
    fields = [pair.split() for pair in COLUMNS.split(", ")]
    schema = pa.schema([(name, kinds[kind]) for name, kind in fields])
    return pa.RecordBatch.from_pylist([values], schema=schema)


def attempt(step: Step, shard: int) -> dict[str, Any]:
    start = time.monotonic()
    number = uuid.uuid4().hex[:16]
    output = f"{step['prefix']}{shard:05d}-{number}{step['suffix']}" if step["prefix"] else ""
    with _command(step, shard, output) as command:
        child = _run(command, step["environment"])
    if child.code not in (_DONE, *_PERMANENT):
        raise RuntimeError(_complaint(child))
    return {
        "shard": shard,
        "attempt": number,
        "host": socket.gethostname(),
        "exit_code": child.code,
        "text": child.err.strip(),
        "report": child.out.strip(),
        "output": output,
        "seconds": time.monotonic() - start,
        "peak_bytes": child.peak_bytes,
        "detail": json.dumps(_footer(output)) if child.code == _DONE else "",
    }


@contextlib.contextmanager
def _command(step: Step, shard: int, output: str) -> Iterator[list[str]]:
    """Fill in what a command names. What it needs beside is there until the block ends."""
    binary = find(step["binary"])
    tokens = {SHARD: str(shard), OUT: output}
    if step["filter"]:
        tokens[FILTER] = fetched(binary, step["filter"], step["environment"])
    if step["ids"]:
        tokens[IDS] = _shipped(step["ids"])
    with tempfile.TemporaryDirectory(prefix="bloomjoin-task-") as folder:
        if step["list"]:
            tokens[LIST] = os.path.join(folder, "inputs.jsonl")
            with open(tokens[LIST], "wb") as file:
                file.write(zlib.decompress(step["list"]))
        command = step["commands"][shard if len(step["commands"]) > 1 else 0]
        _check_unchanged(step["unchanged"])
        yield [binary, *(re.sub("\0[a-z]+\0", lambda m: tokens[m[0]], a) for a in command)]
        _check_unchanged(step["unchanged"])


def _check_unchanged(wanted: dict[str, str]) -> None:
    """Raise an error if files of the IDs are others than the driver has seen."""
    for name, identity in wanted.items():
        found = os.stat(name)
        if identity != f"{found.st_size:x}-{found.st_mtime_ns:x}":
            raise RuntimeError(f"bloomjoin: {name}: these IDs have changed (run it again)")


def stream(step: Step, schema: pa.Schema, corrected: bool) -> Mapper:
    """Return the function that yields the rows which the command of every shard writes.

    ``corrected``: Spark takes days and instants of files without a mark as they are.
    """

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for shard in _numbers(batch):
                with _command(step, shard, "-") as command:
                    for rows in _streamed(command, step["environment"]):
                        table = pa.Table.from_batches([rows]).rename_columns(schema.names)
                        _check_calendar(table, step, corrected)
                        yield from table.cast(schema).to_batches()

    return run


def packed(batches: Batches) -> Batches:
    """Yield the rows of a task as one value, an Arrow stream. NULL: they are too many."""
    sink, writer = pa.BufferOutputStream(), None
    for batch in batches:
        writer = writer or pa.ipc.new_stream(sink, batch.schema)
        writer.write_batch(batch)
        if sink.tell() > _MOST_PACKED:
            yield pa.RecordBatch.from_pydict({"rows": pa.array([None], pa.binary())})
            return
    if writer is not None:
        writer.close()
        yield pa.RecordBatch.from_pydict({"rows": [sink.getvalue().to_pybytes()]})


def _streamed(command: list[str], environment: dict[str, str]) -> Batches:
    """Yield the record batches that a command writes. Only its exit code says that they are all."""
    with tempfile.TemporaryFile() as err:
        child = _start(command, environment, subprocess.PIPE, err)
        why = ""
        try:
            with pa.ipc.open_stream(child.stdout) as reader:
                yield from reader
            child.stdout.read()
            child.wait()
        except pa.ArrowInvalid as error:
            why = str(error)
        finally:
            child.terminate()  # unless it has ended: Spark may want no more rows
            child.stdout.close()
            child.wait()
        err.seek(0)
        text = err.read().decode("utf-8", "replace").strip()
        if child.returncode != _DONE or why:
            raise RuntimeError(f"{text or why} (exit code {child.returncode})")


def _check_calendar(table: pa.Table, step: Step, corrected: bool) -> None:
    """Raise an error if rows have days or instants that a file may mean by another calendar."""
    if not any(map(has_old, table.itercolumns())):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "inputs.jsonl")
        with open(path, "wb") as file:
            file.write(zlib.decompress(step["list"]))
        names = [*step["unchanged"], *(entry["name"] for entry in _entries(path))]
    marked = next((name for name in names if not corrected or _is_marked(name)), None)
    if marked is not None:
        raise RuntimeError(
            "dates before 1582-10-16, or timestamps before 1900-01-03, which files such as "
            f"{marked} may store in an older calendar: use mode='spark'"
        )


def has_old(values: Any) -> bool:
    """Report whether an array, or what is nested in it, has values before calendars agree."""
    if isinstance(values, pa.ChunkedArray):
        return any(map(has_old, values.chunks))
    kind = values.type
    if pa.types.is_date32(kind):
        least, limit = pc.min(values.cast(pa.int32())).as_py(), _FIRST_SAFE_DAY
    elif pa.types.is_timestamp(kind):
        units = 10 ** {"s": 0, "ms": 3, "us": 6, "ns": 9}[kind.unit]
        least, limit = pc.min(values.cast(pa.int64())).as_py(), _FIRST_SAFE_SECOND * units
    elif pa.types.is_map(kind):
        return has_old(values.keys) or has_old(values.items)
    elif pa.types.is_struct(kind):
        return any(map(has_old, values.flatten()))
    else:
        return pa.types.is_list(kind) and has_old(values.flatten())
    return least is not None and least < limit


def _is_marked(name: str) -> bool:
    """Report whether a file says that it has another calendar, or cannot be asked."""
    if "://" in name:
        return True
    found = pq.read_metadata(name).metadata or {}
    old = int(found.get(b"org.apache.spark.version", b"3").split(b".")[0]) < 3
    return old or any(key.startswith(b"org.apache.spark.legacy") for key in found)


def _footer(output: str) -> dict[str, Any]:
    """Report whether a Parquet file on disk has days or instants that depend on a calendar.

    Files say which calendar they have. The output of a shard has one mark for all its inputs.
    """
    if "://" in output or not output.endswith(".parquet"):
        return {}
    with pq.ParquetFile(output, coerce_int96_timestamp_unit="us") as file:
        columns = range(file.metadata.num_columns)
        return {"old": any(_is_old(file, column) for column in columns)}


def _is_old(file: pq.ParquetFile, column: int) -> bool:
    """Report whether a column has values before the calendars agree, or may have them."""
    leaf = file.metadata.schema.column(column)
    kind = json.loads(leaf.logical_type.to_json())
    if kind["Type"] == "Date":
        limit = _FIRST_SAFE_DAY
    elif kind["Type"] == "Timestamp" or leaf.physical_type == "INT96":
        limit = _FIRST_SAFE_SECOND * _UNITS[kind.get("timeUnit", "microseconds")]
    else:
        return False
    least = []
    for group in range(file.metadata.num_row_groups):
        chunk = file.metadata.row_group(group).column(column)
        known = chunk.statistics
        if known is not None and known.has_min_max:
            least.append(known.min_raw)
        elif "." in leaf.path:
            return True
        else:
            values = file.read_row_group(group, [leaf.path]).column(0).cast(_raw(leaf))
            least.append(pc.min(values).as_py())
    return any(value is not None and value < limit for value in least)


def _raw(leaf: pq.ColumnSchema) -> pa.DataType:
    return pa.int32() if leaf.physical_type == "INT32" else pa.int64()


def _complaint(child: Child) -> str:
    """Return the text of an exception: Spark tries again, and the driver reads it in the end."""
    return MARK + json.dumps({"exit_code": child.code, "text": child.err.strip()}) + "\n"


def _run(command: list[str], environment: dict[str, str]) -> Child:
    """Run a command that ends when this process does."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = _start(command, environment, out, err)
        try:
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:
            child.terminate()
            child.wait()
            raise
        child.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    return Child(child.returncode, texts[0], texts[1], usage.ru_maxrss * 1024)


def _start(command: list[str], environment: dict[str, str], out: Any, err: Any) -> Any:
    """Start a command, which ends when the worker of an executor does: that has one thread."""
    library = ctypes.CDLL(None)
    parent = os.getpid()

    def bind() -> None:
        # SIGTERM, so that the command removes what it has not finished.
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(143)

    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        env={**os.environ, **environment},
        preexec_fn=bind if threading.current_thread() is threading.main_thread() else None,
        bufsize=1 << 20,
    )


def find(binary: Binary) -> str:
    """Return the path of the command: the installed one of this version, else the shipped one."""
    if binary["version"]:
        installed = _installed(binary["version"])
        if installed:
            return installed
    name = binary["shipped"].get(_machine())
    if name is None:
        raise RuntimeError(
            f"no bloomjoin for {platform.machine()} was shipped, and version "
            f"{binary['version'] or '(unknown)'} is not installed here: "
            f"name the binary of this platform in binaries="
        )
    path = _shipped(name)
    if not os.access(path, os.X_OK):
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


def _shipped(name: str) -> str:
    from pyspark import SparkFiles

    return str(SparkFiles.get(name))


def _machine() -> str:
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )


def _installed(version: str) -> str | None:
    from importlib import metadata

    try:
        found = metadata.distribution("bloomjoin")
    except metadata.PackageNotFoundError:
        return None
    path = str(found.locate_file("bloomjoin/_bin/bloomjoin"))
    return path if found.version == version and os.access(path, os.X_OK) else None


def fetched(binary: str, wanted: dict[str, str], environment: dict[str, str]) -> str:
    """Return a local path of the filter. One task of a machine fetches it, the others wait."""
    if "://" not in wanted["url"]:
        return wanted["url"]
    folder = os.path.join(tempfile.gettempdir(), f"bloomjoin-filters-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise RuntimeError(f"{folder}: want a directory of this user alone (remove it)")
    path = os.path.join(folder, wanted["digest"] + ".bjf")
    with open(os.path.join(folder, "lock"), "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _expire(folder)
        if os.path.exists(path):
            os.utime(path)
            return path
        command = ["merge", "--union", "--uncompressed", "--quiet", "--json", "-o", path]
        child = _run([binary, *command, wanted["url"]], environment)
        if child.code == _DONE and json.loads(child.out)["digest"] != wanted["digest"]:
            os.remove(path)
            raise RuntimeError(f"{wanted['url']}: this is not the filter that was built")
    if child.code != _DONE:
        raise RuntimeError(_complaint(child))
    return path


def _expire(folder: str) -> None:
    """Remove filters that no task has asked for in a day."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.endswith(".bjf") and time.time() - os.stat(path).st_mtime > _FILTER_AGE:
            os.remove(path)


def freeze(wanted: Listing, index: int) -> dict[str, Any]:
    """List inputs; columns of their paths are strings. Describe the first file of each schema."""
    start = time.monotonic()
    attempt = uuid.uuid4().hex[:16]
    binary = find(wanted["binary"])
    for directory in wanted["directories"]:
        os.makedirs(directory, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bloomjoin-inputs-") as folder:
        prefix = wanted["prefix"] or folder + "/"
        output = f"{prefix}{attempt}.jsonl"
        child, detail = _listed(binary, wanted, output, folder)
        if child.code == _DONE and not wanted["prefix"]:
            with open(output, "rb") as file:
                detail["list"] = base64.b64encode(zlib.compress(file.read(), 1)).decode()
    if child.code not in (_DONE, *_PERMANENT):
        raise RuntimeError(_complaint(child))
    return {
        "shard": index,
        "attempt": attempt,
        "host": socket.gethostname(),
        "exit_code": child.code,
        "text": child.err.strip(),
        "report": child.out.strip(),
        "output": output,
        "seconds": time.monotonic() - start,
        "peak_bytes": child.peak_bytes,
        "detail": json.dumps(detail),
    }


def _listed(binary: str, wanted: Listing, output: str, folder: str) -> tuple[Child, dict[str, Any]]:
    """Make a list, in a file of this machine first if the output is an object of a store.

    Spark takes only directories below the named ones for columns, and the command all.
    """
    local = os.path.join(folder, "inputs.jsonl") if "://" in output else output
    inputs = [binary, "inputs", *wanted["options"], "--quiet", "--json", "--force", "--repeated"]
    if any(name.startswith(("delta:", "iceberg:")) for name in wanted["names"]):
        inputs.append("--allow-empty")
    names = ["--", *wanted["names"]]
    environment = wanted["environment"]
    off = ["--hive-partitioning", "off"]
    child = _run([*inputs, *off, "-o", local, *names], environment)
    if child.code != _DONE:
        return child, {}
    more, otherwise = off, ""
    if not _header(local).get("tables") and any(map(_partitioned, _entries(local))):
        # The same list again, from what is known.
        again = _run([*inputs, "--update", local, "-o", local, *names], environment)
        if again.code == _DONE:
            child, otherwise = again, _unescaped_otherwise(local)
            kinds = ",".join(f"{c['name']}:string" for c in _header(local).get("hive", []))
            more = ["--hive-types", kinds] if kinds else []
        else:
            otherwise = again.err.strip()
    if local != output or "--hive-types" in more:
        child = _run([*inputs, *more, "--update", local, "-o", output, *names], environment)
        if child.code != _DONE:
            return child, {}
    header = _header(local)
    firsts = {s["first"] for s in header.get("schemas", [])}
    names = [e["name"] for number, e in enumerate(_entries(local)) if number in firsts]
    options = [o for o in wanted["options"] if o.startswith("--store-option=")]
    inspect = [binary, "inspect", "--json", "--quiet", *options, "--", *names]
    described = _run(inspect, environment) if names else None
    if described and described.code != _DONE:
        return described, {}
    return child, {
        "header": header,
        "files": json.loads(described.out)["files"] if described else [],
        "fingerprint": fingerprint(entry["name"] for entry in _entries(local)),
        "otherwise": otherwise,
        "identities": _identities(local),
    }


def _identities(path: str) -> dict[str, str]:
    """Return the identities of a list's local files, if they are few."""
    found = {e["name"]: e["identity"] for e in itertools.islice(_entries(path), _FEW + 1)}
    local = {name: identity for name, identity in found.items() if "://" not in name}
    return local if len(found) <= _FEW else {}


def _partitioned(entry: dict[str, Any]) -> bool:
    """Report whether directories below those that were named have the form name=value."""
    below = entry["rel"].removeprefix(entry.get("root_rel", ""))
    return "=" in os.path.dirname(below)


def _unescaped_otherwise(path: str) -> str:
    """Return why Spark reads values of a list's paths as others than the command, or nothing.

    It takes the bytes of escaped UTF-8 for a character each.
    """
    for entry in _entries(path):
        if re.search("%(?![0-7][0-9a-fA-F])", os.path.dirname(entry["rel"])):
            return f"{entry['name']}: Spark reads the escapes of the path as other characters"
    return ""


def fingerprint(names: Iterable[str]) -> str:
    """Return a digest of the names of files, the same for s3a:// and s3://, file: and a path."""
    plain = [re.sub("^([a-z0-9]+:)?/+", "", name) for name in names]
    return hashlib.sha256("\0".join(sorted(plain)).encode()).hexdigest()


def _header(path: str) -> dict[str, Any]:
    """Return the first line of a list."""
    with open(path, encoding="utf-8") as lines:
        return cast("dict[str, Any]", json.loads(lines.readline()))


def _entries(path: str) -> Iterator[dict[str, Any]]:
    """Return a list's inputs, which its lines about blocks lie behind."""
    with open(path, encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            entry = json.loads(line)
            if "name" in entry:
                yield entry
