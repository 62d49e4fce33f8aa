"""Types of Spark as Arrow has them, and what the command turns into them without a loss."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.parquet as pq

from ._plain import Unsuitable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

_ARROW = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}

# How a file may store a type, in the command's words. INT96 is a timestamp without a zone.
_INTEGER = r"u?int(8|16|32|64)"
_STORED = {
    "boolean": r"bool",
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), _INTEGER),
    "float": r"float32",
    "double": r"float64",
    "string": r"(large_)?utf8",
    "binary": r"(large_)?binary|fixed_size_binary\[\d+\]",
    "date": r"date32",
    "timestamp": r"timestamp\[[mu]s(, tz=.*)?\]",
    "timestamp_ntz": r"timestamp\[[mu]s\]",
    "decimal": r"decimal\d*\(.*\)|uint64",
}
_LEAF = r"u?int\d+|float\d+|bool|(?:large_)?(?:utf8|binary)|\w+\[[^]]*\]|date32|decimal\d*\([^)]*\)"


# Flat columns of Parquet, by their physical and logical types, as Spark reads them: its JSON names.
_FLAT = {
    "BOOLEAN None": "boolean",
    "INT32 None": "integer",
    "INT32 Int(bitWidth=8, isSigned=true)": "byte",
    "INT32 Int(bitWidth=16, isSigned=true)": "short",
    "INT32 Int(bitWidth=32, isSigned=true)": "integer",
    "INT32 Date": "date",
    "INT64 None": "long",
    "INT64 Int(bitWidth=64, isSigned=true)": "long",
    "INT96 None": "timestamp",
    "FLOAT None": "float",
    "DOUBLE None": "double",
    "BYTE_ARRAY String": "string",
}


_INFER_NTZ = "spark.sql.parquet.inferTimestampNTZ.enabled"


def inferred(spark: SparkSession, files: Sequence[str]) -> StructType | None:
    """Return the schema that Spark finds in the only file that is named, if that is certain."""
    from pyspark.sql.types import StructType

    if len(files) != 1 or "://" in files[0]:
        return None
    above = Path(files[0]).parents
    if any((p / name).exists() for p in above for name in ("_common_metadata", "_metadata")):
        return None  # Spark believes these.
    footer = pq.read_metadata(files[0])
    said = (footer.metadata or {}).get(b"org.apache.spark.sql.parquet.row.metadata", b"").decode()
    if said:
        # Spark takes any column and element of a file for one that may be NULL.
        loose = re.sub(r'("(?:nullable|containsNull|valueContainsNull)":)false', r"\1true", said)
        found: StructType = StructType.fromJson(json.loads(loose))
        return None if "__CHAR_VARCHAR" in said or "udt" in said or "collat" in said else found
    ntz = str(spark.conf.get(_INFER_NTZ, "true")).lower() == "true"
    schema = StructType()
    for i in range(footer.num_columns):
        leaf = footer.schema.column(i)
        logical = re.sub(", is_from_converted.*|, force_set.*", ")", str(leaf.logical_type))
        known = _FLAT.get(f"{leaf.physical_type} {logical}", "")
        if logical.startswith("Timestamp(") and "nanoseconds" not in logical:
            instant = "isAdjustedToUTC=true" in logical or not ntz
            known = "timestamp" if instant else "timestamp_ntz"
        if not known or leaf.max_repetition_level or leaf.path != leaf.name or "." in leaf.path:
            return None
        schema.add(leaf.name, known)
    return schema if len({n.lower() for n in schema.names}) == len(schema.names) else None


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of rows that Spark takes, or gives. Raises Unsuitable."""
    return pa.schema([pa.field(f.name, _arrow(f.dataType)) for f in schema.fields])


def not_carried(field: StructField, stored: Iterable[str]) -> str | None:
    """Return why a column cannot be read from files that store such types, or None."""
    try:
        leaves = list(_leaves(field.dataType))
    except Unsuitable as why:
        return f"{field.name} has {why}"
    for kind in stored:
        found = re.findall(_LEAF, re.sub(r"\b\w+: ", "", kind))
        if len(found) != len(leaves) or not all(map(_is_stored, leaves, found)):
            return (
                f"{field.name} is stored as {kind}, where Spark has {field.dataType.simpleString()}"
            )
    return None


def _is_stored(kind: str, stored: str) -> bool:
    return re.fullmatch(_STORED[re.sub(r"\(.*", "", kind)], stored) is not None


def _arrow(kind: DataType) -> pa.DataType:
    from pyspark.sql import types

    if isinstance(kind, types.StructType):
        return pa.struct([pa.field(f.name, _arrow(f.dataType)) for f in kind.fields])
    if isinstance(kind, types.ArrayType):
        return pa.list_(_arrow(kind.elementType))
    if isinstance(kind, types.MapType):
        return pa.map_(_arrow(kind.keyType), _arrow(kind.valueType))
    if isinstance(kind, types.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    name = kind.simpleString()
    if name not in _ARROW:
        raise Unsuitable(f"values of type {name}")
    return cast("pa.DataType", _ARROW[name])


def _leaves(kind: DataType) -> Iterator[str]:
    """Yield the types of a column's leaves. Raises Unsuitable for others than those above."""
    from pyspark.sql import types

    if isinstance(kind, types.StructType):
        for field in kind.fields:
            yield from _leaves(field.dataType)
    elif isinstance(kind, types.ArrayType):
        yield from _leaves(kind.elementType)
    elif isinstance(kind, types.MapType):
        yield from _leaves(kind.keyType)
        yield from _leaves(kind.valueType)
    else:
        _arrow(kind)
        yield kind.simpleString()
