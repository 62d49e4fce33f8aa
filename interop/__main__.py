"""The tool against DuckDB and pyarrow.

    python interop --tool PATH --shared DIR [--only PREFIX | --without PREFIX] [--writers DIR]

One line per check; at the end 'N passed, N failed'. Exit 1 if any failed, or if none ran.
"""

import argparse
import pathlib
import sys
import tempfile

from common import harness, readers
from files import engine, flights, formats, hive, identity, lake, pages, privacy, text
from joins import joins, pagejoins, where
from keys import casts, keys, normalize, numberkeys
from runs import builds, commits, growing, shards, usage
from writers import writers


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--shared", required=True, type=pathlib.Path)
    parser.add_argument("--only", default="", help="groups whose names begin so")
    parser.add_argument("--without", help="no groups whose names begin so")
    parser.add_argument("--writers", type=pathlib.Path, help="pyarrow11/bin/python, parquet-go and jars/ of parquet-java")
    options = parser.parse_args()
    if options.writers:
        options.writers = options.writers.resolve()
    repository = pathlib.Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory(prefix="bloomjoin-interop.") as work:
        t = harness.Checks(pathlib.Path(options.tool).resolve(), work, options.only, options.without)
        t.shared, t.writers = options.shared.resolve(), options.writers
        for module in (usage, keys, numberkeys, casts, joins, normalize, text, formats, shards, builds, identity, pages, pagejoins, engine, privacy, flights, hive, where, growing, commits, lake, writers, readers):
            module.run(t, repository)
    print(f"{t.opened} outputs were opened by pyarrow, DuckDB and Polars")
    print(f"{t.passed} passed, {t.failed} failed")
    sys.exit(1 if t.failed or not t.passed else 0)


main()
