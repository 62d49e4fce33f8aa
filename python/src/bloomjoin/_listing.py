"""The files of a log, as ``bloomjoin inputs`` lists them."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bloomjoin import _process, _stores
from bloomjoin._options import flags

_ESCAPE = re.compile(rb"\\(?:\\|x([0-9A-F]{2}))")


@dataclass(frozen=True)
class Listing:
    """Files of a log, in the order of their names.

    ``hive_types`` are the types of the columns of their paths. They follow
    from all files, so a run on one of them must be told.
    """

    names: Sequence[str]
    hive_types: Mapping[str, str]


def list_log(
    logs: Sequence[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    credentials: Callable[..., Mapping[str, str]] | None = None,
    **options: object,
) -> Listing:
    """List the files, and fail if one of them cannot be part of a log."""
    with (
        tempfile.TemporaryDirectory(prefix="bloomjoin-") as directory,
        _stores.access(storage_options, credentials) as access,
    ):
        out = Path(directory) / "inputs.jsonl"
        _process.run(
            ["inputs", "-o", str(out), *flags(options)], inputs=["--", *logs], access=access
        )
        lines = out.read_bytes().splitlines()
    first = json.loads(lines[0])
    return Listing(
        names=[_text(json.loads(line)["name"]) for line in lines[1 : 1 + first["inputs"]]],
        hive_types={_text(c["name"]): c["type"] for c in first.get("hive", ())},
    )


def _text(escaped: str) -> str:
    """Undo the list's escapes: a name may be any bytes."""
    raw = _ESCAPE.sub(lambda m: bytes([int(m[1], 16)]) if m[1] else b"\\", escaped.encode("utf-8"))
    return os.fsdecode(raw)
