#!/usr/bin/env python3
"""Checks the links between tracked Markdown files: each file and each heading named exists."""
import os
import re
import subprocess
import sys


def text(name):
    with open(name, encoding="utf-8") as f:
        return re.sub(r"^```.*?^```", "", f.read(), flags=re.S | re.M)


def anchor(heading):
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return "".join(c if c.isalnum() or c in "-_" else "-" * (c == " ") for c in plain)


bad = 0
for name in subprocess.check_output(["git", "ls-files", "*.md"], text=True).split():
    for link in re.findall(r"\]\(([^)\s]+)\)", text(name)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, place = link.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
        if not os.path.exists(path):
            problem = "no such file"
        elif place and path.endswith(".md") and place not in {anchor(h) for h in re.findall(r"^#+ (.*)$", text(path), re.M)}:
            problem = "no such heading"
        else:
            continue
        bad += 1
        print(f"{name}: {link}: {problem}")
sys.exit(bad > 0)
