"""Answers of joins read by parquet-java and parquet-go, row by row: in each the log's columns are those of the input's row."""

import random
import subprocess

from common import harness, rawfile, tables
from files import identity
from joins import oddfiles, pagejoins, wholecopies


MISREAD = {
    ("parquet-go", "numbers"),  # it has other booleans than the rest, of a V2 page of RLE
    ("parquet-go", "DuckDB numbers V2"),  # and other values of i32, of V2 pages by DuckDB; of our output it has the right ones
}


def hashes(command, asked):
    """What a program of writers/ has for each path: a hash of the first columns of each row, or a text of what went wrong."""
    lines = "".join(f"{columns}\t{path}\n" for path, columns in asked)
    p = subprocess.run(command, input=lines.encode(), capture_output=True, check=True)
    answers = dict(line.split("\t", 1) for line in p.stdout.decode().splitlines())
    return {path: a if (a := answers[str(path)]).startswith("error: ") else a.split() for path, _ in asked}


def answers(t):
    """Many joins: what each is, its log, the number of the log's row for each row of the answer (or None), and the output."""
    files = [*oddfiles.every(t.work / "odd read by others"), *wholecopies.logs(t)]
    for name, path in files:
        rng, log = random.Random(f"read {name}"), pagejoins.Log(path)
        key = "id" if "id" in log.table.column_names else "user"
        for kind in pagejoins.TYPES if harness.FULL else [rng.choice(["left", "inner", "right", "full"])]:
            ids = pagejoins.made_ids(log.table.column(key), rng)
            idpath = tables.write(ids, identity.fresh(t, "ids.parquet"))
            out, r = pagejoins.join(t, kind, path, idpath, f'{key}="the id"')
            if r.code:
                t.ok(f"{name}: {kind}", False, str(r))
                continue
            at, _ = pagejoins.pairs(pagejoins.plain(log.table.column(key)), pagejoins.plain(ids.column("the id")), kind)
            yield f"{name}: {kind}", log, at, out


def run(t):
    if t.writers:
        t.group("writers open joins", compare, sampled=60)


def compare(t):
    all_answers = list(answers(t))
    programs = {
        "parquet-java": (["java", "-cp", f"{t.writers}/jars/*", f"{pagejoins.HERE.parent}/writers/java/Readers.java"], lambda f: len(list(f.columns()))),
        "parquet-go": ([t.writers / "parquet-go", "-read"], lambda f: len(rawfile.leaves(f.schema))),
    }
    for reader, (command, columns) in programs.items():
        asked = [(log.path, columns(log.raw)) for _, log, _, _ in all_answers] + [(out, columns(log.raw)) for _, log, _, out in all_answers]
        got = hashes(command, dict.fromkeys(asked))
        read = 0
        for label, log, at, out in all_answers:
            before, after = got[log.path], got[out]
            if isinstance(before, str) or (reader, label.split(":")[0]) in MISREAD:
                continue  # it refuses the input, or misreads it
            read += 1
            wrong = after if isinstance(after, str) else unlike(before, after, at)
            t.ok(f"{label}, {reader}", not wrong, wrong)
        t.ok(f"{reader}: files", read > len(all_answers) * 0.8, f"{read} of {len(all_answers)}")


def unlike(before, after, at):
    if len(after) != len(at):
        return f"{len(after)} rows, want {len(at)}"
    empty = {h for h, i in zip(after, at, strict=True) if i is None}
    if len(empty) > 1 or empty & set(before):
        return "rows without a log row differ from one another, or are like one"
    return next((f"row {n}: not row {i} of the log" for n, (h, i) in enumerate(zip(after, at, strict=True)) if i is not None and h != before[i]), "")
