"""Writes the files of this directory with fastavro, which needs cramjam and backports.zstd."""

import io
import pathlib
import sys

import fastavro

HERE = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
HERE = HERE if HERE.is_dir() else HERE.parent

PAIR = {"type": "record", "name": "k117_v118", "fields": [{"name": "key", "type": "int", "field-id": 117}, {"name": "value", "type": "long", "field-id": 118}]}
BOUND = {"type": "record", "name": "k126_v127", "fields": [{"name": "key", "type": "int", "field-id": 126}, {"name": "value", "type": "bytes", "field-id": 127}]}


def maps(of):
    return ["null", {"type": "array", "items": of, "logicalType": "map"}]


PARTITION = {
    "type": "record",
    "name": "r102",
    "fields": [
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "field-id": 1000},
        {"name": "id", "type": ["long", "null"], "field-id": 1001},
        {"name": "uuid", "type": ["null", {"type": "fixed", "name": "u", "size": 16}], "field-id": 1002},
        {"name": "text", "type": ["null", "string", "bytes"], "field-id": 1003},
        {"name": "f", "type": ["float", "null"], "field-id": 1004},
        {"name": "d", "type": ["double", "null"], "field-id": 1005},
        {"name": "b", "type": "boolean", "field-id": 1006},
    ],
}
FILE = {
    "type": "record",
    "name": "r2",
    "fields": [
        {"name": "file_path", "type": "string", "field-id": 100},
        {"name": "partition", "type": PARTITION, "field-id": 102},
        {"name": "record_count", "type": "long", "field-id": 103},
        {"name": "value_counts", "type": maps(PAIR), "field-id": 109},
        {"name": "null_counts", "type": maps("k117_v118"), "field-id": 110},
        {"name": "lower", "type": maps(BOUND), "field-id": 125},
        {"name": "offsets", "type": ["null", {"type": "array", "items": "long", "element-id": 133}], "field-id": 132},
        {"name": "other", "type": {"type": "map", "values": ["int", "string"]}, "field-id": 900},
        {"name": "kind", "type": {"type": "enum", "name": "n.e", "symbols": ["A", "B", "C"]}, "field-id": 901},
    ],
}
SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": "manifest_entry",
        "namespace": "org.example",
        "fields": [
            {"name": "status", "type": "int", "field-id": 0},
            {"name": "note", "type": ["null", "string"]},
            {"name": "snapshot_id", "type": ["null", "long"], "field-id": 1},
            {"name": "data_file", "type": FILE, "field-id": 2},
        ],
    }
)


def pairs(values):
    return [{"key": k, "value": v} for k, v in values.items()]


def entry(i):
    return {
        "status": i % 3,
        "note": None if i % 2 else "n" * i,
        "snapshot_id": None if i == 1 else (-1) ** i * (1 << (i % 63)),
        "data_file": {
            "file_path": f"s3://b/d/{i}.parquet",
            "partition": {
                "day": None if i % 4 == 0 else i - 5,
                "id": None if i % 4 == 1 else i << 33,
                "uuid": None if i % 4 == 2 else bytes([i]) * 16,
                "text": [None, "t" * i, b"\x00" * i][i % 3],
                "f": None if i % 5 == 0 else i / 4,
                "d": None if i % 5 == 1 else i / 8,
                "b": i % 2 == 1,
            },
            "record_count": i * i,
            "value_counts": None if i % 3 == 2 else pairs({c: i + c for c in range(i % 7)}),
            "null_counts": pairs({i: 0}),
            "lower": pairs({c: bytes([c]) * c for c in range(i % 4)}),
            "offsets": None if i % 2 else [4, 1 << i],
            "other": {f"k{c}": c if c % 2 else f"v{c}" for c in range(i % 3)},
            "kind": "ABC"[i % 3],
        },
    }


for codec in ["null", "deflate", "snappy", "zstandard"]:
    with open(HERE / f"{codec}.avro", "wb") as f:
        fastavro.writer(
            f, SCHEMA, map(entry, range(40)), codec=codec, sync_interval=1000, sync_marker=bytes(range(16)), metadata={"format-version": "2"}
        )
