"""Runs of the command."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from bloomjoin._errors import DataError


@dataclass(frozen=True)
class CompletedRun:
    """What a run printed."""

    stdout: bytes


def binary() -> str:
    """Return the path of the command."""
    return os.environ["BLOOMJOIN_BINARY"]


def run(
    args: Sequence[str],
    *,
    stdin: bytes | pa.Buffer | None = None,
    env: Mapping[str, str] | None = None,
) -> CompletedRun:
    """Run the command to its end."""
    done = subprocess.run(
        [binary(), *args],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        env={**os.environ, **(env or {})},
        check=False,
    )
    if done.returncode:
        raise DataError(done.stderr.decode(), exit_code=done.returncode, command=args)
    return CompletedRun(done.stdout)
