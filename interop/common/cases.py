"""The committed list of checks: none goes without a successor, and none is added unseen.

A line of cases.txt is the id of a check, `group: name`. Two marks:

    full  id            runs only with all cases (BLOOMJOIN_ALL=1)
    old id -> new id    the old one is gone; the new one, which is listed too, finds what it found
"""

import pathlib

FILE = pathlib.Path(__file__).resolve().parents[1] / "cases.txt"
FULL, BECAME = "full  ", " -> "


class Cases:
    """The list: ids that always run, ids that run only with all cases, and the successors of those that are gone."""

    def __init__(self, lines):
        self.always, self.full, self.became, self.wrong = [], [], {}, []
        for line in lines:
            if BECAME in line:
                old, new = line.split(BECAME, 1)
                self.became[old.removeprefix(FULL)] = new
            elif line.startswith(FULL):
                self.full.append(line.removeprefix(FULL))
            elif line and not line.startswith("#"):
                self.always.append(line)
        self.listed = {*self.always, *self.full}
        if len(self.listed) != len(self.always) + len(self.full):
            self.wrong.append("an id is listed twice")
        for old, new in self.became.items():
            if new not in self.listed:
                self.wrong.append(f"{old}: its successor is not listed: {new}")
            if old in self.listed:
                self.wrong.append(f"{old}: listed although it has a successor")

    def problems(self, ran, chosen, everything):
        """What is unlike between the list and a run: sentences. Chosen says whether an id is of the groups that ran."""
        want = [*self.always, *(self.full if everything else [])]
        missing = [i for i in want if chosen(i) and i not in ran]
        surplus = [i for i in ran if i not in self.listed]
        again = [i for i in ran if i in self.full and not everything]
        yield from self.wrong
        yield from (f"did not run, and has no successor ('{i}{BECAME}…'): {i}" for i in missing)
        yield from (f"ran, and is not listed (--update-cases adds it): {i}" for i in surplus)
        yield from (f"ran, and is marked '{FULL.strip()}': {i}" for i in again)


def read():
    return Cases(FILE.read_text().splitlines() if FILE.exists() else [])


def add(ran, everything):
    """Lists what ran and is not listed. Lines that are there stay: what did not run needs its successor by hand."""
    lines = FILE.read_text().splitlines() if FILE.exists() else []
    have = Cases(lines)
    new = [i for i in ran if i not in have.listed]
    for i in new:  # beside the last one of its group
        group = i.split(": ", 1)[0]
        at = max((n for n, line in enumerate(lines) if line.removeprefix(FULL).startswith(f"{group}: ")), default=len(lines) - 1)
        lines.insert(at + 1, (FULL if everything else "") + i)
    if not everything:  # an id that ran here loses its mark for full runs
        lines = [line.removeprefix(FULL) if line.removeprefix(FULL) in ran and BECAME not in line else line for line in lines]
    FILE.write_text("".join(f"{line}\n" for line in lines))
    return len(new)
