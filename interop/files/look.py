"""Rows that --head and inspect show, in a terminal of any width: those that DuckDB and pyarrow find first."""

import datetime
import decimal
import fcntl
import os
import pty
import struct
import subprocess
import termios
import unicodedata

import pyarrow as pa

from common import tables

SEPARATOR = " │ "


def shown(t, width, *args):
    """What the tool prints on a terminal of so many columns, as lines."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    p = subprocess.Popen([t.tool, *map(str, args)], stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    out = b""
    while True:
        try:
            some = os.read(ours, 1 << 20)
        except OSError:  # the other end is closed
            break
        if not some:
            break
        out += some
    os.close(ours)
    assert p.wait() == 0, (args, out)
    return out.decode().replace("\r\n", "\n").split("\n")


def cells(lines):
    """The names, the types and the values of the table that ends the lines."""
    rule = max(i for i, line in enumerate(lines) if line.startswith("─"))
    rows = [[cell.strip() for cell in line.split(SEPARATOR)] for line in lines]
    return rows[rule - 2], rows[rule - 1], rows[rule + 1 : -2]


def text(value):
    """A value of SAMPLE as it is shown."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case decimal.Decimal():
            return format(value, "f")
        case datetime.datetime():
            utc = value.astimezone(datetime.UTC) if value.tzinfo else value
            return utc.isoformat(" ").replace("+00:00", "Z")
        case "" | "NULL":
            return f'"{value}"'
    return str(value)


SAMPLE = {
    "int8": pa.array([-128, None, 127], pa.int8()),
    "uint64": pa.array([0, 2**64 - 1, None], pa.uint64()),
    "float64": pa.array([0.1, -1e300, None]),
    "bool": pa.array([True, None, False]),
    "string": pa.array(["", "NULL", None]),
    "dictionary": pa.array(["日本", None, "Zoë"]).dictionary_encode(),
    "decimal": pa.array([decimal.Decimal("-1.50"), None, decimal.Decimal("99999.00")], pa.decimal128(9, 2)),
    "date32": pa.array([datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)]),
    "timestamp[us]": pa.array([datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), None, datetime.datetime(2026, 1, 2)]),
    "timestamp[ms, tz=Europe/Berlin]": pa.array([datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), None, None], pa.timestamp("ms", "Europe/Berlin")),
}  # fmt: skip


def types(t):
    table = pa.table(SAMPLE)
    for suffix in ("parquet", "arrow"):
        path = tables.write(table, t.path(f"types.{suffix}"))
        lines = shown(t, 1000, "inspect", path)
        for i, (name, column) in enumerate(SAMPLE.items()):
            got = [row[i] for row in cells(lines)[2]]
            if name == "float64":  # written in another way
                got = [text(float(v)) if v != "NULL" else v for v in got]
            t.equal(f"{suffix}, {name}", got, [text(v) for v in column.to_pylist()])


def joined(t):
    log = tables.write(pa.table({"id": [i % 7 for i in range(5000)], "n": range(5000)}), t.path("log.parquet"))
    ids = tables.write(pa.table({"id": [3, 5, 99], "name": ["three", "five", None]}), t.path("ids.parquet"))
    for how in ("inner", "left", "right", "full"):
        want = tables.sql(
            f"select coalesce(l.id, i.id), n, name from '{log}' l {how} join '{ids}' i on l.id = i.id order by n nulls last limit 9"
        )
        got = cells(shown(t, 100, "join", "--ids", ids, "--on", "id", "--type", how, "--head", 9, log))[2]
        t.equal(f"{how} join", got, [[text(v) for v in row] for row in want])


def columns(line):
    """How many columns of a terminal a line takes."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in line)


def widths(t):
    words = ["日本語の文", "plain", "Zoe\u0308", "\u001b[2J", "😀 smile", "x" * 500]
    table = pa.table({f"column {i}": [words[(i + k) % len(words)] for k in range(4)] for i in range(30)})
    path = tables.write(table, t.path("wide.parquet"))
    for width in (20, 60, 80, 133, 500):
        lines = [line for line in shown(t, width, "inspect", "--head", 4, path)[-10:] if SEPARATOR in line or "─┼─" in line]
        t.equal(f"{width} columns: lines", len(lines), 7)
        t.ok(f"{width} columns: none is longer", max(map(columns, lines)) <= width, lines)
        t.ok(f"{width} columns: they are aligned", len({columns(line.split("│")[0].split("┼")[0]) for line in lines}) == 1, lines)
        t.ok(f"{width} columns: nothing to obey", all(c.isprintable() for line in lines for c in line), lines)


def run(t, _repository):
    t.group("look", types)
    t.group("look at joins", joined)
    t.group("look at widths", widths)
