"""Filters as text and as a table for notebooks."""

from __future__ import annotations

from html import escape

from bloomjoin._format import KINDS, Header


def as_text(header: Header) -> str:
    """Return one line about a filter."""
    facts = ", ".join(f"{name} {value}" for name, value in _facts(header, None).items())
    return f"<bloomjoin.Filter: {facts}>"


def as_html(header: Header, path: str | None, fpr: float | None) -> str:
    """Return a small table about a filter; fpr is None as long as it is not known."""
    facts = _facts(header, fpr) | {"digest": header.digest.hex()[:16] + "…"}
    if path is not None:
        facts["file"] = path
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in facts.items()
    )
    caption = "<caption style='text-align:left'>bloomjoin.Filter</caption>"
    return f"<table>{caption}{rows}</table>"


def _facts(header: Header, fpr: float | None) -> dict[str, str]:
    facts: dict[str, str] = {"kind": KINDS[header.kind]}
    if header.shards is not None:
        facts["shards"] = f"{len(header.shards[1])} of {header.shards[0]}"
    facts["key"] = ", ".join(f"{c.name or '(no name)'} ({c.key_class})" for c in header.key)
    if header.rule:
        facts["normalised by"] = ",".join(header.rules)
    facts["keys"] = f"{header.keys:,}"
    facts["size"] = _size(header.payload_bytes)
    if not header.exact:
        asked = f"{header.fpr_asked:.3g}"
        facts["false positives"] = asked if fpr is None else f"{fpr:.3g} (asked: {asked})"
    return facts


def _size(n: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.3g} {unit}"
        n /= 1024
    return f"{n:.3g} GiB"
