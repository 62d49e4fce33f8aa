"""Files by pyarrow, whichever runs this: arrowfiles.py DIR"""

import pathlib
import sys

import pyarrow.parquet as pq

import samples

WAYS = {
    "defaults": {},
    "small-v1": dict(data_page_size=200, write_batch_size=64, row_group_size=3000),
    "v2": dict(data_page_version="2.0", compression="zstd"),
    "small-v2": dict(data_page_version="2.0", data_page_size=500, write_batch_size=100, compression="gzip"),
    "plain": dict(use_dictionary=False, compression="none", store_schema=False),
    "plain-v2": dict(use_dictionary=False, compression="brotli", data_page_version="2.0", row_group_size=700),
    "overflow": dict(dictionary_pagesize_limit=300, data_page_size=2000, compression="lz4"),
    "oldest": dict(version="1.0", compression="none", write_statistics=False),
}  # fmt: skip
NEWER = {
    "indexed": dict(write_page_index=True, write_page_checksum=True, data_page_size=1000, write_batch_size=50),
}
CODED = {"i32": "DELTA_BINARY_PACKED", "i64": "DELTA_BINARY_PACKED", "f64": "BYTE_STREAM_SPLIT"}
if samples.NEW:
    CODED |= {"text": "DELTA_BYTE_ARRAY", "few": "DELTA_LENGTH_BYTE_ARRAY", "fixed16": "BYTE_STREAM_SPLIT"}


def write(out):
    ways = WAYS | (NEWER if samples.NEW else {})
    for name, file, table, how in samples.variants(samples.SETS, ways):
        if how.get("version") == "1.0" and name == "times":
            name, table = "times of old", table.select([c for c in table.column_names if not c.endswith("_ns")])
        how = {"version": "2.6"} | how
        if name == "old":
            how["use_deprecated_int96_timestamps"] = True
        if not how.get("use_dictionary", True):
            how["column_encoding"] = {c: e for c, e in CODED.items() if c in table.column_names} or None
        path = out / name / f"{file}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, **how)


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
