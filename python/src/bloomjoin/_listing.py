"""The files of a log, as ``bloomjoin inputs`` lists them."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bloomjoin._errors import UsageError
from bloomjoin._inputs import Files, as_input, listed
from bloomjoin._reports import Report
from bloomjoin._runs import Run

_ESCAPE = re.compile(rb"\\(?:\\|x([0-9A-F]{2}))")


@dataclass(frozen=True)
class Listing:
    """Files of a log, in the order of their names.

    ``hive_types`` are the types of the columns of their paths. They follow
    from all files, so a run on one of them must be told.
    """

    names: Sequence[str]
    hive_types: Mapping[str, str]


def list_log(logs: Any, options: Mapping[str, Any]) -> Listing:
    """List the files of a log, and fail if one of them cannot be part of it.

    ``options`` are options of a scan that ``inputs`` has too.
    """
    given = as_input(logs, "logs")
    if not isinstance(given, Files):
        raise UsageError(
            f"logs: want paths or URLs that every task can open, got a {type(logs).__name__}"
        )
    with (
        tempfile.TemporaryDirectory(prefix="bloomjoin-") as directory,
        Run("inputs", options) as run,
    ):
        out = Path(directory) / "inputs.jsonl"
        run.add("output", out)
        run.report(Report, listed(given.names, run.stack))
        return _read(out.read_bytes().splitlines())


def _read(lines: Sequence[bytes]) -> Listing:
    first = json.loads(lines[0])
    if first.get("tables"):  # without it, a file has deleted rows, and columns of other names
        raise UsageError("logs: want files, got a table (use bloomjoin.join or scan)")
    return Listing(
        names=[unescaped(json.loads(line)["name"]) for line in lines[1 : 1 + first["inputs"]]],
        hive_types={unescaped(c["name"]): c["type"] for c in first.get("hive", ())},
    )


def unescaped(escaped: str) -> str:
    """Undo the escapes of a list: a name may be any bytes."""
    raw = _ESCAPE.sub(lambda m: bytes([int(m[1], 16)]) if m[1] else b"\\", escaped.encode("utf-8"))
    return os.fsdecode(raw)
