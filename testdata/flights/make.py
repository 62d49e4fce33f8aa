#!/usr/bin/env python3
"""Make this directory's files from the originals.

    make.py flights-3m.parquet airports.csv

Needs duckdb==1.5.6 and pyarrow==26.0.1; other versions give the same rows in
files of other bytes. The files are written beside this script.
"""

import csv
import pathlib
import shutil
import sys

import duckdb
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).resolve().parent
LOGS = HERE / "logs"
EVERY = 60  # of the original's rows one in so many is kept
STATES = ["CA", "TX", "AK", "WY", "DE", "HI"]  # in expected.txt
SUBSETS = ["CA", "TX", "DE"]  # as files
KINDS = ["semi", "anti", "inner", "left", "right", "full"]


def load(db, flights, airports):
    """Tables logs (every 60th flight, in the order of the file, which is by date) and airports."""
    db.execute(
        f"create table logs as select * exclude file_row_number from read_parquet('{flights}', file_row_number=true)"
        f" where file_row_number % {EVERY} = 0 order by file_row_number"
    )
    db.execute(f"create table airports as select * from read_csv('{airports}', header=true, all_varchar=true)")


def months(db, first, last):
    return db.execute(f"select * from logs where month(date) between {first} and {last}").to_arrow_table()


def write_logs(db):
    """One partition a period, each in another writer's manner."""
    LOGS.mkdir(exist_ok=True)
    pq.write_table(
        months(db, 1, 3),
        LOGS / "2001-q1.parquet",
        compression="snappy",
        row_group_size=8_000,
        data_page_size=16 << 10,
        write_page_index=True,
        write_page_checksum=True,
    )
    db.execute(
        f"copy (select * from logs where month(date) = 4) to '{LOGS / '2001-04.parquet'}'"
        " (format parquet, compression zstd, row_group_size 4096)"
    )
    pq.write_table(
        months(db, 5, 5),
        LOGS / "2001-05.parquet",
        compression="gzip",
        use_dictionary=False,
        data_page_version="2.0",
        store_schema=False,
    )
    june = months(db, 6, 12)
    with pa.ipc.new_file(
        LOGS / "2001-06.arrow", june.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as out:
        out.write_table(june, max_chunksize=4096)


def write_ids(airports):
    """The airports, whole and by state: whole lines, in their order."""
    shutil.copyfile(airports, HERE / "airports.csv")
    head, *lines = (HERE / "airports.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    rows = list(csv.reader(lines))
    for state in SUBSETS:
        mine = [line for line, row in zip(lines, rows, strict=True) if row[3] == state]
        (HERE / f"airports-{state.lower()}.csv").write_text(head + "".join(mine), encoding="utf-8")


def figures(db, ids):
    """name=value of every join type against ids, a table or query."""
    out = [f"ids={db.execute(f'select count(*) from {ids}').fetchone()[0]}"]
    for kind in KINDS:
        rows, distance = db.execute(
            f"select count(*), coalesce(sum(l.distance), 0) from logs l {kind} join {ids} r on l.origin = r.iata"
        ).fetchone()
        out.append(f"{kind}={rows}")
        if kind == "semi":
            out.append(f"distance={distance}")
    return " ".join(out)


def expected(db):
    """DuckDB's figures, one line per ID set."""
    rows, distance = db.execute("select count(*), sum(distance) from logs").fetchone()
    lines = [
        f"# rows by DuckDB {duckdb.__version__}; the logs are the left side, on origin = iata;"
        " distance: sum over the semi-join's rows",
        f"logs rows={rows} distance={distance}",
    ]
    lines += [f"{s} {figures(db, f'(select * from airports where state = {s!r})')}" for s in STATES]
    lines += [f"all {figures(db, 'airports')}"]
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    db = duckdb.connect()
    load(db, sys.argv[1], sys.argv[2])
    write_logs(db)
    write_ids(sys.argv[2])
    (HERE / "expected.txt").write_text(expected(db), encoding="utf-8")


main()
