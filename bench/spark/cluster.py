"""A small Spark cluster on this machine: a master and workers on different loopback addresses.

    with Cluster() as cluster:
        spark = SparkSession.builder.master(cluster.url).getOrCreate()

As a script it prints the master's URL, and stops the cluster when its standard input ends:

    python3 cluster.py --workers 2 --cores 1 --memory 4g
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

_START_SECONDS = 120.0
_PR_SET_PDEATHSIG = 1


class Cluster:
    """A standalone cluster. Processes are started and stopped by their ids.

    Worker ``i``, from 0, has the address 127.0.0.(i+1), so that Spark takes the workers for
    different hosts, as speculation does. ``pids`` are those of the workers.
    """

    def __init__(self, workers: int = 2, cores: int = 1, memory: str = "4g") -> None:
        import pyspark

        self.home = Path(pyspark.__file__).parent
        self.workers = workers
        self.cores = cores
        self.memory = memory
        self.url = ""
        self.pids: list[int] = []
        self.directory = Path(tempfile.mkdtemp(prefix="spark-cluster-"))
        self._status = ""
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> Cluster:
        """Start the master and the workers, and wait until all are alive."""
        port, web = _free_port(), _free_port()
        self.url = f"spark://127.0.0.1:{port}"
        try:
            master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"]
            ports = ["--port", str(port), "--webui-port", str(web)]
            self._spawn("127.0.0.1", "master", [*master, *ports])
            self.pids = [self._start_worker(i) for i in range(self.workers)]
            self._status = f"http://127.0.0.1:{web}/json/"
            self._wait(self.workers)
        except BaseException:
            self.stop()
            raise
        return self

    def _start_worker(self, i: int) -> int:
        host = f"127.0.0.{i + 1}"
        size = ["--cores", str(self.cores), "--memory", self.memory]
        place = ["--host", host, "--webui-port", "0", "--work-dir", str(self.directory / f"w{i}")]
        worker = ["org.apache.spark.deploy.worker.Worker", *place, *size, self.url]
        return self._spawn(host, "worker", worker)

    def revive(self) -> None:
        """Start the workers again that have died, and wait for them."""
        for i, pid in enumerate(self.pids):
            process = next(p for p in self._processes if p.pid == pid)
            if process.poll() is not None:
                self._processes.remove(process)
                self.pids[i] = self._start_worker(i)
        self._wait(self.workers)

    @contextlib.contextmanager
    def connect(self, settings: dict[str, str]) -> Iterator[str]:
        """Run a server of Spark Connect on the cluster, whose URL is yielded."""
        port = _free_port()
        every = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            **settings,
        }
        command = ["org.apache.spark.deploy.SparkSubmit", "--master", self.url]
        for name, value in every.items():
            command += ["--conf", f"{name}={value}"]
        server = "org.apache.spark.sql.connect.service.SparkConnectServer"
        pid = self._spawn("127.0.0.1", "connect", [*command, "--class", server, "spark-internal"])
        try:
            self._wait_for_port(port)
            yield f"sc://127.0.0.1:{port}"
        finally:
            self._end([p for p in self._processes if p.pid == pid])

    def _wait_for_port(self, port: int) -> None:
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.3)
        raise RuntimeError(f"Spark Connect did not start:\n{self._logs()}")

    def stop(self) -> None:
        """Stop all processes, and remove their files."""
        self._end(self._processes[::-1])
        shutil.rmtree(self.directory, ignore_errors=True)

    def _end(self, processes: list[subprocess.Popen[bytes]]) -> None:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            self._processes.remove(process)

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _spawn(self, host: str, name: str, arguments: list[str]) -> int:
        environment = {
            **os.environ,
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": host,
            "SPARK_LOCAL_DIRS": str(self.directory / "local"),
            "SPARK_DAEMON_MEMORY": "512m",
            "PYSPARK_PYTHON": sys.executable,
        }
        with (self.directory / f"{name}-{host}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(self.home / "bin" / "spark-class"), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
        self._processes.append(process)
        return process.pid

    def _wait(self, workers: int) -> None:
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            if any(p.poll() is not None for p in self._processes):
                break
            try:
                with urllib.request.urlopen(self._status, timeout=5) as answer:
                    if json.load(answer)["aliveworkers"] >= workers:
                        return
            except (OSError, ValueError):
                pass  # Not up yet, or its pages are not all there.
            time.sleep(0.3)
        raise RuntimeError(f"the cluster did not start:\n{self._logs()}")

    def _logs(self) -> str:
        return "\n".join(p.read_text()[-2000:] for p in sorted(self.directory.glob("*.log")))


def _end_with_parent() -> None:
    """Have the kernel end this process when the script dies, however it does."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def main() -> None:
    """Run a cluster until standard input ends."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--memory", default="4g")
    options = parser.parse_args()
    with Cluster(options.workers, options.cores, options.memory) as cluster:
        print(cluster.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
