"""Real data: flights joined to airports, against DuckDB's written-down figures and DuckDB itself."""

import csv
import pathlib
import re
import subprocess
import sys

from common import harness, tables

ON = "origin=iata"
TYPES = ["semi", "anti", "inner", "left", "right", "full"]
STATES = ["CA", "TX", "AK", "WY", "DE", "HI"]
SOME = STATES if harness.FULL else ["CA", "DE"]


def by_state(airports, state, out):
    """Writes the lines of one state to out, header first."""
    head, *lines = pathlib.Path(airports).read_text(encoding="utf-8").splitlines(keepends=True)
    mine = [line for line, row in zip(lines, csv.reader(lines), strict=True) if row[3] == state]
    out.write_text(head + "".join(mine), encoding="utf-8")
    return out


def figures(path):
    """state → {ids, semi, anti, distance} of the written-down figures, and those of the whole set."""
    text = path.read_text(encoding="utf-8")
    states = {}
    for state, ids, semi, anti, distance in re.findall(
        r"state (\w+): ids (\d+), semi rows on origin (\d+), anti rows (\d+), sum\(distance\) of semi (\w+)", text
    ):
        states[state] = dict(
            ids=int(ids), semi=int(semi), anti=int(anti), distance=0 if distance == "None" else int(distance)
        )
    inner = re.search(r"inner join of all airports on origin: (\d+) rows; on destination: (\d+)", text)
    anti = re.search(r"anti join of all airports on origin \(airports unknown\): (\d+) rows", text)
    full = re.search(r"full outer join on origin: (\d+) rows; left from airports: (\d+)", text)
    whole = dict(
        origin=int(inner[1]), destination=int(inner[2]), anti=int(anti[1]), full=int(full[1]), right=int(full[2])
    )
    return states, whole


def count(path, column="distance"):
    """Rows and the column's sum, by DuckDB."""
    return tables.sql(f"select count(*), coalesce(sum({column}), 0)::bigint from read_parquet('{path}')")[0]


def check_join(t, kind, ids, logs, out):
    """Compares whole rows with DuckDB's join, by the shared script."""
    p = subprocess.run(
        [sys.executable, t.shared / "tools" / "check_join.py", "--type", kind, "--on", ON,
         "--ids", ids, "--logs", logs, "--out", out],
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    t.ok(f"check_join {kind}", p.returncode == 0 and p.stdout.startswith("equal: "), p.stdout + p.stderr)


def state(t, data, name, want):
    """One state: filter, candidates, exact join of the candidates; then the join directly."""
    logs = data / "flights-3m.parquet"
    ids = by_state(data / "airports.csv", name, t.path(f"airports-{name.lower()}.csv"))
    flt, cand, out = (t.path(f"{name}.{x}") for x in ("filter", "candidates.parquet", "semi.parquet"))

    built = t.run("build", "--key", "iata", "--json", "-o", flt, ids).json
    t.equal("ids in the filter", built["keys"], want["ids"])
    t.ok("distinct ids, about", abs(built["distinct"] - want["ids"]) <= 0.05 * want["ids"], built["distinct"])
    scanned = t.run("scan", "--filter", flt, "--key", "origin", "--json", "-o", cand, logs).json
    rows = count(cand)[0]
    t.equal("scan's rows_in, rows_out", (scanned["rows_in"], scanned["rows_out"]), (3_000_000, rows))
    t.ok("candidates are a superset by number", rows >= want["semi"], f"{rows} < {want['semi']}")
    answer = tables.sql(
        f"select count(*), coalesce(sum(distance), 0)::bigint from read_parquet('{cand}') l"
        f" semi join {tables.csv_ids(ids, 'r')} on l.origin = r.iata"
    )[0]
    t.equal("candidates hold the whole answer", answer, (want["semi"], want["distance"]))
    t.run("join", "--ids", ids, "--on", ON, "--type", "semi", "-o", out, cand)
    t.equal("semi-join of the candidates", count(out), (want["semi"], want["distance"]))

    direct = t.path(f"{name}.direct.parquet")
    joined = t.run("join", "--ids", ids, "--on", ON, "--json", "-o", direct, logs).json
    t.equal("semi-join directly", count(direct), (want["semi"], want["distance"]))
    t.equal("join's rows_out", joined["rows_out"], want["semi"])
    t.equal(
        "schema of the answer",
        tables.read(direct).schema.remove_metadata(),
        tables.pq.read_schema(logs).remove_metadata(),
    )
    anti = t.path(f"{name}.anti.parquet")
    t.run("join", "--ids", ids, "--on", ON, "--type", "anti", "-o", anti, logs)
    t.equal("anti-join", count(anti)[0], want["anti"])
    inner = t.path(f"{name}.inner.parquet")
    t.run("join", "--ids", ids, "--on", ON, "--type", "inner", "-o", inner, logs)
    t.equal("inner join", count(inner), (want["semi"], want["distance"]))
    for p in (cand, out, direct, anti, inner):
        p.unlink()


def whole(t, data, want):
    """All airports."""
    for name, kind, on in [
        ("origin", "inner", "origin=iata"), ("destination", "inner", "destination=iata"),
        ("anti", "anti", ON), ("full", "full", ON), ("right", "right", ON),
    ][0 if harness.FULL else -2 : 5 if harness.FULL else -1]:  # fmt: skip
        out = t.path(f"all-{name}.parquet")
        t.run(
            "join", "--ids", data / "airports.csv", "--on", on, "--type", kind, "-o", out, data / "flights-3m.parquet"
        )
        t.equal(f"{kind} join of all airports ({on})", count(out)[0], want[name])
        out.unlink()


def whole_rows(t, data):
    """Every row of every join type, the airports of Hawaii."""
    ids = by_state(data / "airports.csv", "HI", t.path("hi.csv"))
    logs = data / "flights-3m.parquet"
    for kind in TYPES:
        out = t.path(f"{kind}.parquet")
        t.run("join", "--ids", ids, "--on", ON, "--type", kind, "-o", out, logs)
        check_join(t, kind, ids, logs, out)
        out.unlink()


def repository_slice(t, directory):
    """The slice in testdata: partitions of four writers, Parquet and Arrow, into one file."""
    for line in (directory / "expected.txt").read_text().splitlines():
        name, *pairs = line.split()
        if name in ("#", "logs") or name != "all" and name not in SOME:
            continue
        want = {k: int(v) for k, v in (p.split("=") for p in pairs)}
        ids = directory / "airports.csv"
        if name != "all":
            ids = by_state(ids, name, t.path(f"slice-{name}.csv"))
        for kind in TYPES:
            out = t.path("out.parquet")
            t.run("join", "--ids", ids, "--on", ON, "--type", kind, "-o", out, directory / "logs")
            rows, distance = count(out)
            got, expect = rows, want[kind]
            if kind == "semi":
                got, expect = (rows, distance), (want[kind], want["distance"])
            t.equal(f"{name} {kind}", got, expect)
            out.unlink()


def run(t, repository):
    data = t.shared / "data" / "flights"
    states, all_airports = figures(data / "expected.txt")
    t.group("flights figures", lambda t: t.equal("of six states", sorted(states), sorted(STATES)))
    t.group("slice", repository_slice, repository / "testdata" / "flights")
    for name in SOME:
        t.group(f"flights {name}", state, data, name, states[name])
    t.group("flights all", whole, data, all_airports)
    if harness.FULL:  # the groups of random joins compare whole rows, too
        t.group("flights rows", whole_rows, data)
