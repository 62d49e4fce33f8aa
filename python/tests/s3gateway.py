"""An S3 server for tests: versitygw on loopback, which BLOOMJOIN_S3GW names."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.fs

ACCESS = "examples"
SECRET = "examples-secret"
REGION = "us-east-1"


@dataclass(frozen=True)
class Gateway:
    """A running server without buckets."""

    endpoint: str

    def environment(self) -> Mapping[str, str]:
        """Return what clients need to find the server by themselves."""
        return {
            "AWS_ACCESS_KEY_ID": ACCESS,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def filesystem(self) -> pyarrow.fs.S3FileSystem:
        """Return the server as a file system that can make buckets."""
        return pyarrow.fs.S3FileSystem(
            access_key=ACCESS,
            secret_key=SECRET,
            region=REGION,
            endpoint_override=self.endpoint,
            allow_bucket_creation=True,
        )

    def copy_in(self, directory: Path, prefix: str) -> None:
        """Copy a directory to a prefix (bucket/name), whose bucket is made."""
        files = self.filesystem()
        files.create_dir(prefix.partition("/")[0])
        pyarrow.fs.copy_files(str(directory), prefix, destination_filesystem=files)


@contextlib.contextmanager
def gateway() -> Iterator[Gateway]:
    """Run a server, which ends with the block and takes its data along."""
    data = tempfile.mkdtemp(prefix="bloomjoin-s3-")
    address = f"127.0.0.1:{_free_port()}"
    server = subprocess.Popen(
        [
            os.environ["BLOOMJOIN_S3GW"],
            *("--port", address, "--region", REGION, "--quiet"),
            *("posix", data),
        ],
        env={**os.environ, "ROOT_ACCESS_KEY_ID": ACCESS, "ROOT_SECRET_ACCESS_KEY": SECRET},
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _wait_for(server, address)
        yield Gateway(f"http://{address}")
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(data)


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def _wait_for(server: subprocess.Popen[bytes], address: str) -> None:
    host, _, port = address.partition(":")
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
