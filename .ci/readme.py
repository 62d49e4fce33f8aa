#!/usr/bin/env python3
"""Print the commands of the README, or of a guide, that are to be run.

    readme.py FILE test|demo|run|python
    readme.py FILE unmarked

A marked block is a fenced code block whose opening fence stands on the line
after a line '<!-- ci: WORD -->'. Blocks of the word are printed in order. There
must be exactly one of test and of demo; of run and python there may be any
number. A block marked skip:REASON is not run. With the word unmarked, it is an
error if a block of shell, Python or Go has no mark.

Blocks that are fenced as Python become commands, too. Those without a shell
block between them run in one process, as in a notebook.
"""

import itertools
import re
import sys

MARKER = re.compile(r"<!-- ci: (\S+) -->")
FENCE = re.compile(r"(`{3,})\s*(\w*)")
WORDS = {"test": (1, 1), "demo": (1, 1), "run": (0, 99), "python": (0, 99)}


def blocks(text):
    """Yields (word, language, text) of each marked block."""
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        marker = MARKER.fullmatch(line.strip())
        if not marker:
            continue
        if marker[1].startswith("skip:"):
            continue
        if marker[1] not in WORDS:
            sys.exit(f"line {number}: unknown marker {marker[1]!r}")
        _, line = next(lines, (0, ""))
        fence = FENCE.fullmatch(line.strip())
        if not fence:
            sys.exit(f"line {number}: no fenced block on the line after the marker")
        block = []
        for _, line in lines:
            if line.strip() == fence[1]:
                break
            block.append(line)
        else:
            sys.exit(f"line {number}: the block is not closed")
        yield marker[1], fence[2], "\n".join(block) + "\n"


def commands(found):
    """Yields the shell commands of blocks, given as (language, text)."""
    for language, group in itertools.groupby(found, key=lambda block: block[0]):
        text = "\n".join(text for _, text in group)
        if language == "python":
            text = f"python3 - <<'END_OF_PYTHON'\n{text}END_OF_PYTHON\n"
        yield text


def check_marks(path):
    """Exits if a block of code has no mark."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for number, (before, line) in enumerate(itertools.pairwise(["", *lines]), 1):
        if line in ("```sh", "```python", "```go") and not MARKER.fullmatch(before):
            sys.exit(f"{path}: line {number}: mark the block as one to run, or as skip:REASON")


def main():
    path, word = sys.argv[1:]
    if word == "unmarked":
        return check_marks(path)
    with open(path, encoding="utf-8") as file:
        found = [(language, text) for w, language, text in blocks(file.read()) if w == word]
    least, most = WORDS[word]
    if not least <= len(found) <= most:
        sys.exit(f"{path}: {len(found)} blocks marked {word!r}, want {least} to {most}")
    print("\n".join(commands(found)), end="")


main()
