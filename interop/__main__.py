"""The tool against DuckDB, pyarrow and other readers and writers: see README.md.

    python interop --tool PATH --shared DIR [--only GROUP | --without GROUP | --case ID] ...

One line per check; at the end 'N passed, N failed'. Exit 1 if any failed, if none ran, or if the checks that ran
are not those of cases.txt.
"""

import argparse
import pathlib
import sys
import tempfile

from common import cases, harness, properties, readers
from files import arrowfiles, catalogs, duplicates, engine, flights, formats, hive, iceberg_tables, identity, lake, look, pages, privacy, sketches, tables, text
from first_hour import tasks
from joins import answers, arrowjoins, conditions, joins, pagejoins, parts, unions, where
from keys import casts, keys, normalize, numberkeys
from runs import builds, commits, counting, find, growing, histories, mistakes, seams, shards, terminal, usage
from writers import writers

MODULES = (
    usage, terminal, mistakes, tasks, seams, keys, numberkeys, casts, joins, answers, arrowjoins, normalize, text, formats, arrowfiles, shards, builds, counting, identity, pages,
    pagejoins, unions, engine, privacy, look, duplicates, flights, hive, sketches, where, conditions, parts, find, growing, histories, commits, lake, tables, iceberg_tables, catalogs, writers, readers,
)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--shared", required=True, type=pathlib.Path)
    parser.add_argument("--only", action="append", default=[], metavar="GROUP", help="groups whose names begin so; repeatable")
    parser.add_argument("--without", action="append", default=[], metavar="GROUP", help="no groups whose names begin so; repeatable")
    parser.add_argument("--case", metavar="ID", help="only this check, of its group: the text after 'FAIL' up to the detail")
    parser.add_argument("--writers", type=pathlib.Path, help="pyarrow11/bin/python, parquet-go and jars/ of parquet-java")
    parser.add_argument("--delta", type=pathlib.Path, metavar="PYTHON", help="of an environment of .ci/requirements-delta.txt")
    parser.add_argument("--update-cases", action="store_true", help="adds checks that are not in cases.txt")
    properties.options(parser)
    options = parser.parse_args()
    properties.use(options)
    if options.writers:
        options.writers = options.writers.resolve()

    def chosen(name):
        if options.case:
            return options.case.startswith((f"{name}: ", f"{name}, "))
        # A group of several begins with the name of all: "writers pyarrow, numbers".
        only = not options.only or any(name.startswith(o) or o.startswith(f"{name}, ") for o in options.only)
        return only and not any(name.startswith(w) for w in options.without)

    def expected(i):
        if options.case:
            return i == options.case
        return (not options.only or i.startswith(tuple(options.only))) and not i.startswith(tuple(options.without) or "\0")

    repository = pathlib.Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory(prefix="bloomjoin-interop.") as work:
        t = harness.Checks(pathlib.Path(options.tool).resolve(), work, chosen, options.case)
        t.shared, t.writers, t.delta = options.shared.resolve(), options.writers, options.delta
        for module in MODULES:
            module.run(t, repository)
    print(f"{t.opened} outputs were opened by pyarrow, DuckDB and Polars")
    if options.update_cases:
        print(f"{cases.add(t.ran, harness.FULL)} checks were added to {cases.FILE.name}")
    for problem in cases.read().problems(t.ran, lambda i: expected(i) and not i.startswith((*t.broken, "\0")), harness.FULL):
        t.failed += 1
        print(f"FAIL  {cases.FILE.name}: {problem}")
    here, tools = harness.cpu()
    print(f"{t.passed} passed, {t.failed} failed; {t.runs} runs; CPU: {here:.0f} s here, {tools:.0f} s in runs")
    sys.exit(1 if t.failed or not t.passed else 0)


main()
