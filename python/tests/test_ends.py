"""However a run ends, nothing of it is left: process, descriptor, thread or file."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from flights import LOGS, ON, TEXAS

import bloomjoin

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

LONG = bool(os.environ.get("BLOOMJOIN_LONG_TESTS"))


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture(autouse=True)
def nothing_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, children: Callable[[], set[int]]
) -> Iterator[None]:
    """Compare what there is before and after a test."""
    staging = tmp_path / "staging"
    staging.mkdir()
    monkeypatch.setenv("TMPDIR", str(staging))
    monkeypatch.setattr("tempfile.tempdir", str(staging))
    gc.collect()
    before = descriptors(), threading.active_count()
    yield
    gc.collect()
    assert not children()
    assert (descriptors(), threading.active_count()) == before
    assert list(staging.iterdir()) == []


def endless() -> pa.RecordBatchReader:
    """Return a stream of keys without an end."""
    batch = pa.record_batch({"k": pa.array(range(10_000))})

    def batches() -> Iterator[pa.RecordBatch]:
        while True:
            yield batch

    return pa.RecordBatchReader.from_batches(batch.schema, batches())


IDS = pa.table({"k": [1, 2, 3]})


def test_early_closes() -> None:
    for n in range(1000 if LONG else 100):
        reader = bloomjoin.join(LOGS, TEXAS, ON, how="left")
        if n % 3:
            reader.read_next_batch()
        if n % 2:
            reader.close()
        del reader


def test_early_closes_of_an_endless_stream() -> None:
    for _ in range(5):
        with bloomjoin.join(endless(), IDS, "k") as reader:
            reader.read_next_batch()


def test_of_two_streams_one_is_staged() -> None:
    with bloomjoin.join(endless(), IDS.to_reader(), "k") as reader:
        assert set(reader.read_next_batch()["k"].to_pylist()) == {1, 2, 3}


def test_exception_of_a_producer_is_raised() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"k": [1, 2]})
        raise LookupError("no more logs")

    logs = pa.RecordBatchReader.from_batches(pa.schema({"k": pa.int64()}), batches())
    with pytest.raises(LookupError, match="no more logs"):
        bloomjoin.join(logs, IDS, "k").read_all()


def test_exception_of_a_consumer_ends_the_run() -> None:
    def consume() -> None:
        with bloomjoin.join(endless(), IDS, "k") as reader:
            reader.read_next_batch()
            raise LookupError

    with pytest.raises(LookupError):
        consume()


def test_killed_run_is_an_error(children: Callable[[], set[int]]) -> None:
    reader = bloomjoin.join(endless(), IDS, "k")
    reader.read_next_batch()
    for pid in children():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(bloomjoin.InterruptedRun, match="signal 9"):
        for _ in reader:
            pass
    reader.close()


def test_forked_process_leaves_the_run_alone() -> None:
    with bloomjoin.join(LOGS, TEXAS, ON) as reader:
        first = reader.read_next_batch().num_rows
        pid = os.fork()
        if pid == 0:
            reader.close()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert first + sum(batch.num_rows for batch in reader) == reader.report.rows_out


def test_forked_process_does_not_hold_up_a_run() -> None:
    """It has a copy of the pipes, which must not keep the run from seeing their end."""

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(20):
            time.sleep(0.02)
            yield pa.record_batch({"k": [1, 2]})

    logs = pa.RecordBatchReader.from_batches(pa.schema({"k": pa.int64()}), batches())
    reader = bloomjoin.join(logs, IDS, "k")
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    try:
        started = time.monotonic()
        assert reader.read_all().num_rows == 40
        assert time.monotonic() - started < 30
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    reader.close()


ENDLESS = """
import os, signal, sys, threading, pyarrow as pa, bloomjoin
batch = pa.record_batch({"k": pa.array(range(10_000))})
def batches():
    while True:
        yield batch
logs = pa.RecordBatchReader.from_batches(batch.schema, batches())
ids = pa.RecordBatchReader.from_batches(batch.schema, iter([batch.slice(1, KEYS)]))
def interrupt():
    import time
    time.sleep(float(sys.argv[1]))
    print("now", flush=True)
    os.kill(os.getpid(), signal.SIGINT)
try:
    threading.Thread(target=interrupt, daemon=True).start()
    for _ in bloomjoin.join(logs, ids, "k"):
        pass
except KeyboardInterrupt:
    print("interrupted", flush=True)
me = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
print("children", open(me).read().split())
"""


@pytest.mark.parametrize("keys", [0, 3])
def test_keyboard_interrupt(keys: int, tmp_path: Path) -> None:
    """At moments from before the run is up, with and without rows in the answer."""
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS.replace("KEYS", str(keys)))
    for n in range(50 if LONG else 5):
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, str(script), str(0.01 + n % 25 * 0.02)],
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.stdout.split("\n")[:3] == ["now", "interrupted", "children []"], done.stderr
        assert time.monotonic() - started < 15
