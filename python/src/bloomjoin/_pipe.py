"""Probes by ``bloomjoin probe``, for keys that are not looked up in process."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from bloomjoin import _process
from bloomjoin._errors import InternalError


def probe(path: str, rule: str, table: pa.Table) -> pa.ChunkedArray[Any]:
    """Return which rows may be members, by a new process.

    The columns of the table are those of the key, in its order. A process a call
    works in forked children and in threads alike.
    """
    names = [f"k{i}" for i in range(table.num_columns)]
    sink = pa.BufferOutputStream()
    plain = pa.Table.from_arrays([_plain(c) for c in table.columns], names=names)
    with pa.ipc.new_stream(sink, plain.schema) as writer:
        writer.write_table(plain)
    args = ["probe", "--filter", path, "--key", ",".join(names), "--format", "arrow", "--mask"]
    if rule:
        args += ["--normalize", rule]
    run = _process.run(args, stdin=sink.getvalue())
    with pa.ipc.open_stream(run.stdout) as reader:
        masks = reader.read_all()
    if masks.num_rows != table.num_rows:
        raise InternalError(f"probe: want {table.num_rows} answers, got {masks.num_rows}")
    return masks.column("may_match")


def _plain(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """Return a column without an encoding that only costs time on the way."""
    of, chunks = column.type, cast(list[Any], column.chunks)
    if pa.types.is_run_end_encoded(of):
        return pa.chunked_array([cast(Any, pc).run_end_decode(c) for c in chunks], of.value_type)
    if pa.types.is_dictionary(of):
        return pa.chunked_array([c.dictionary_decode() for c in chunks], of.value_type)
    return column
