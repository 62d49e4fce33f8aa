"""Filters in threads and in processes, forked or not: same answers, and no hang."""

from __future__ import annotations

import asyncio
import multiprocessing as mp
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import golden
import pyarrow as pa
import pytest

from bloomjoin._filter import Filter

PROBES = 200
WORKERS = 4
SECONDS = 60  # more than any of it takes
MEMBERS = range(0, 300_000, 3)
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
# The interpreter warns of forks while threads run: that is what is tested.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture(scope="module", params=["exact", "bloom"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Filter:
    directory = tmp_path_factory.mktemp("shared")
    path = golden.build(directory, pa.array(MEMBERS), "--kind", request.param, "--uncompressed")
    return Filter.load(path)


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """End a test that hangs with an exception."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def late(*_: object) -> None:
        raise TimeoutError("a test hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(2 * SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def one(f: Filter, i: int) -> int:
    """Probe 3,000 numbers, of which 1,000 are members; return how many are wrong."""
    array = pa.array(range(i, i + 3000))
    mask = f.probe(array)
    missing = sum(
        not m for v, m in zip(range(i, i + 3000), mask.to_pylist(), strict=True) if v % 3 == 0
    )
    return missing + (mask.true_count > 1500)


def many(f: Filter) -> int:
    return sum(one(f, 997 * i % 290_000) for i in range(PROBES))


@pytest.mark.parametrize(
    "method", [m for m in ("fork", "spawn", "forkserver") if m in mp.get_all_start_methods()]
)
def test_processes(shared: Filter, method: str) -> None:
    with ProcessPoolExecutor(WORKERS, mp_context=mp.get_context(method)) as pool:
        runs = [pool.submit(many, shared) for _ in range(WORKERS)]
        assert [run.result(SECONDS) for run in runs] == [0] * WORKERS


def test_threads(shared: Filter) -> None:
    with ThreadPoolExecutor(2 * WORKERS) as pool:
        runs = [pool.submit(many, shared) for _ in range(2 * WORKERS)]
        assert [run.result(SECONDS) for run in runs] == [0] * 2 * WORKERS


def test_asyncio(shared: Filter) -> None:
    async def run() -> list[int]:
        tasks = [asyncio.to_thread(one, shared, 1409 * i % 290_000) for i in range(PROBES)]
        return await asyncio.wait_for(asyncio.gather(*tasks), SECONDS)

    assert asyncio.run(run()) == [0] * PROBES


def serve(f: Filter, jobs: Any, answers: Any) -> None:
    """Answer jobs until there is None, as a worker of a data loader does."""
    while (job := jobs.get(timeout=SECONDS)) is not None:
        answers.put((job, one(f, job)))


def load_by_workers(f: Filter, ask: Callable[..., None]) -> list[int]:
    """Run forked workers with a queue each, and return how many answers are wrong."""
    context = mp.get_context("fork")
    answers = context.Queue()
    queues = [context.Queue() for _ in range(WORKERS)]
    workers = [context.Process(target=ask, args=(f, jobs, answers), daemon=True) for jobs in queues]
    for worker in workers:
        worker.start()
    try:
        for i in range(WORKERS * PROBES):
            queues[i % WORKERS].put(331 * i % 290_000)
        for jobs in queues:
            jobs.put(None)
        wrong = [answers.get(timeout=SECONDS)[1] for _ in range(WORKERS * PROBES)]
        for worker in workers:
            worker.join(SECONDS)
            assert worker.exitcode == 0
        return wrong
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.kill()


@FORKS
def test_forked_loader_while_threads_probe(shared: Filter) -> None:
    stop = threading.Event()

    def probe_on() -> None:
        while not stop.is_set():
            many_or_fewer(shared, stop)

    threads = [threading.Thread(target=probe_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        assert sum(load_by_workers(shared, serve)) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in threads)


def many_or_fewer(f: Filter, stop: threading.Event) -> None:
    for i in range(PROBES):
        if stop.is_set():
            return
        assert one(f, i) == 0


@FORKS
def test_fork_before_the_payload_is_read(shared: Filter, tmp_path: Path) -> None:
    assert shared.path is not None
    f = Filter._open(shared.path)
    assert f._payload is None
    assert sum(load_by_workers(f, serve)) == 0
    assert f._payload is None  # each child has read its own


@FORKS
def test_forked_child_leaves_the_parents_temporary_file_alone(shared: Filter) -> None:
    merged = shared.merge(shared)
    path = Path(merged._data.name)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            del merged
            code = 0 if path.exists() else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert path.exists()
    assert one(merged, 0) == 0


def test_other_threads_run_during_a_probe(shared: Filter) -> None:
    """The GIL is released: this thread wakes up many times while another one probes.

    If it were not, it would wake up about once a probe.
    """
    numbers = pa.array(range(4_000_000), pa.int32())

    def probe_on() -> None:
        for _ in range(10):
            shared.probe(numbers)

    thread, wakes = threading.Thread(target=probe_on), 0
    thread.start()
    while thread.is_alive():
        time.sleep(0.0005)
        wakes += 1
    assert wakes > 40
