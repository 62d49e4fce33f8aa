"""Keys in Arrow arrays: which columns they are, and probes of them in process."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from bloomjoin import _native
from bloomjoin._arrow import Mixed, as_array, converting
from bloomjoin._classes import is_text, is_view
from bloomjoin._errors import DataError, UsageError
from bloomjoin._format import URLS
from bloomjoin._payload import Payload

# A dictionary that has more values than so many rows each is decoded instead of
# being probed as a whole.
_LARGE_DICTIONARY = 2


Form = Callable[[Any], Any]


def as_arrow(values: Any, names: tuple[str, ...]) -> tuple[pa.Table, Form]:
    """Return values as a table, and what makes a mask of it one of their library.

    An array becomes a table of one column without a name. A struct array, a record
    batch, a table, or anything that exports one of them keeps its columns. Python
    tuples are keys of several columns, in the order of ``names``.
    """
    try:
        return _as_table(values, names)
    except Mixed as mixed:
        raise UsageError(f"probe: {mixed}want values of one type that Arrow has") from None


def _as_table(values: Any, names: tuple[str, ...]) -> tuple[pa.Table, Form]:
    if isinstance(values, pa.Table):
        return values, _chunked
    if isinstance(values, pa.RecordBatch):
        return pa.Table.from_batches([values]), _array
    if isinstance(values, pa.ChunkedArray):
        return _columns(values), _chunked
    if isinstance(values, pa.Array):
        return _columns(pa.chunked_array([values])), _array
    library = type(values).__module__.partition(".")[0]
    form: Form = {"numpy": _numpy, "pandas": _numpy, "polars": _polars}.get(library, _array)
    if library == "pandas" and hasattr(values, "columns"):
        with converting():
            return pa.Table.from_pandas(values, preserve_index=False), form
    if hasattr(values, "__arrow_c_array__"):
        return _columns(pa.chunked_array([pa.array(values)])), form
    if hasattr(values, "__arrow_c_stream__"):
        return _columns(pa.chunked_array(values)), form
    if hasattr(values, "__array__") or hasattr(values, "__arrow_array__"):
        with converting():
            array = pa.array(values)
        return _columns(
            array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
        ), form
    if isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping)):
        return _of_values(list(values), names), pa.ChunkedArray.to_pylist
    raise TypeError(
        f"cannot probe {type(values).__name__}: want an Arrow array or table, a Series, a NumPy "
        "array, a list of values or one value"
    )


def _of_values(values: list[Any], names: tuple[str, ...]) -> pa.Table:
    """Return Python values as a column, and tuples as several."""
    if len(names) == 1:
        return pa.table({"": as_array(values)})
    if any(not isinstance(one, tuple) or len(one) != len(names) for one in values):
        raise UsageError(f"probe: want tuples of {len(names)} values: {', '.join(names)}")
    parts = zip(*values, strict=True) if values else [()] * len(names)
    return pa.Table.from_arrays([as_array(part) for part in parts], names=list(names))


def _chunked(masks: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    return masks


def _array(masks: pa.ChunkedArray[Any]) -> pa.BooleanArray:
    one = masks.chunk(0) if masks.num_chunks == 1 else masks.combine_chunks()
    return cast(pa.BooleanArray, one)


def _numpy(masks: pa.ChunkedArray[Any]) -> Any:
    return masks.to_numpy()


def _polars(masks: pa.ChunkedArray[Any]) -> Any:
    import polars

    return polars.from_arrow(masks)


def _columns(array: pa.ChunkedArray[Any]) -> pa.Table:
    if not pt.is_struct(array.type):
        return pa.table({"": array})
    # flatten carries a NULL struct over to its fields.
    names = [array.type.field(i).name for i in range(array.type.num_fields)]
    return pa.Table.from_arrays(array.flatten(), names=names)


def select(table: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """Return the columns of a key, in its order.

    A name may be the path of a field in a struct, as ``user.id``; ``"user.id"`` in
    quotes is a column. A single column is the key of one column, whatever it is
    called.
    """
    if len(names) == 1 and table.num_columns == 1:
        return table.rename_columns([names[0]])
    return pa.Table.from_arrays([_find(table, name) for name in names], names=list(names))


def _find(table: pa.Table, name: str) -> pa.ChunkedArray[Any]:
    at = table.schema.get_all_field_indices(name)
    if not at:
        first, *rest = _path(name)
        at = table.schema.get_all_field_indices(first)
    else:
        rest = []
    if len(at) != 1:
        have = ", ".join(repr(n) for n in table.column_names)
        problem = "no column" if not at else "more than one column"
        raise DataError(f"{problem} {name!r}: the columns are {have}")
    column = table.column(at[0])
    for part in rest:
        if not pt.is_struct(column.type) or column.type.get_field_index(part) < 0:
            raise DataError(f"no column {name!r}: {part!r} is not a field of {column.type}")
        column = pc.struct_field(column, part)
    return column


def _path(name: str) -> list[str]:
    """Split a path at its dots, but not within double quotes."""
    parts, quoted = [""], False
    for c in name:
        if c == '"':
            quoted = not quoted
        elif c == "." and not quoted:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def in_process(key_class: str, of: pa.DataType, rule: int) -> bool:
    """Report whether values of a type can be looked up without the command."""
    if isinstance(of, pa.BaseExtensionType):
        return in_process(key_class, of.storage_type, rule)
    if pt.is_dictionary(of) or pt.is_run_end_encoded(of):
        return in_process(key_class, of.value_type, rule)
    if pt.is_null(of) or key_class == "null":
        return True
    if key_class == "integer":
        return bool(pt.is_integer(of))
    if key_class == "bytes":
        return is_text(of) and not rule & URLS
    return bool(pt.is_fixed_size_binary(of)) and key_class == f"fixed[{of.byte_width}]"


def probe(
    payload: Payload, key_class: str, array: pa.Array[Any], *, portable: bool = False
) -> pa.BooleanArray:
    """Return which values of an array may be members; NULLs are not.

    The array's type must be one that ``in_process`` accepts.
    """
    of, it = array.type, cast(Any, array)
    if len(array) == 0 or pt.is_null(of) or key_class == "null":
        return _mask(len(array))[0]
    if isinstance(of, pa.BaseExtensionType):
        return probe(payload, key_class, it.storage, portable=portable)
    if pt.is_run_end_encoded(of):
        decoded = cast(Any, pc).run_end_decode(array)
        return probe(payload, key_class, decoded, portable=portable)
    if pt.is_dictionary(of):
        if len(it.dictionary) > _LARGE_DICTIONARY * len(array):
            return probe(payload, key_class, it.dictionary_decode(), portable=portable)
        hits: Any = probe(payload, key_class, it.dictionary, portable=portable)
        return cast(pa.BooleanArray, hits.take(it.indices).fill_null(False))
    return _probe_plain(payload.native(portable=portable), array)


def _mask(rows: int) -> tuple[pa.BooleanArray, int]:
    """Return an array of False, and the address of its bits."""
    bits = pa.py_buffer(bytearray((rows + 7) // 8))
    mask = pa.Array.from_buffers(pa.bool_(), rows, [None, bits])
    return cast(pa.BooleanArray, mask), bits.address


def _probe_plain(of: _native._Set, array: pa.Array[Any]) -> pa.BooleanArray:
    kind, at, buffers = array.type, array.offset, array.buffers()
    mask, result = _mask(len(array))
    valid = _address(buffers[0]) if array.null_count else 0
    rows = (len(array), valid, at, result)
    if pt.is_integer(kind):
        width = kind.bit_width // 8
        values = _address(buffers[1]) + at * width
        _native.probe_ints(of, rows, values, width, bool(pt.is_signed_integer(kind)))
    elif pt.is_fixed_size_binary(kind):
        width = kind.byte_width
        _native.probe_fixed(of, rows, _address(buffers[1]) + at * width, width)
    elif is_view(kind):
        places = [_address(b) for b in buffers[2:]]
        table = pa.py_buffer(struct.pack(f"<{len(places)}Q", *places) or bytes(8))
        _native.probe_views(of, rows, _address(buffers[1]) + at * 16, table.address)
    else:
        width = 8 if pt.is_large_string(kind) or pt.is_large_binary(kind) else 4
        offsets = _address(buffers[1]) + at * width
        _native.probe_offsets(of, rows, offsets, width, _address(buffers[2]))
    return mask


def _address(buffer: pa.Buffer | None) -> int:
    return 0 if buffer is None else buffer.address
