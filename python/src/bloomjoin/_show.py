"""Filters as text and as a table for notebooks."""

from __future__ import annotations

from html import escape

from bloomjoin._format import Header


def as_text(header: Header) -> str:
    """Return one line about a filter."""
    return f"<bloomjoin.Filter: {', '.join(f'{v}' for v in _facts(header).values())}>"


def as_html(header: Header, path: str | None) -> str:
    """Return a small table about a filter."""
    facts = _facts(header) | {"digest": header.digest.hex()[:16] + "…"}
    if path is not None:
        facts["file"] = path
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table><caption>bloomjoin.Filter</caption>{rows}</table>"


def _facts(header: Header) -> dict[str, str]:
    facts = {"kind": "exact" if header.exact else "bloom"}
    if header.shards is not None:
        facts["part"] = f"{len(header.shards[1])} of {header.shards[0]} shards"
    facts["key"] = "key " + ", ".join(
        f"{c.name or '(no name)'} ({c.key_class})" for c in header.key
    )
    if header.rule:
        facts["rule"] = "normalised by " + ",".join(header.rules)
    facts["keys"] = f"{header.keys:,} keys"
    facts["size"] = _size(header.payload_bytes)
    if not header.exact:
        facts["false positives"] = f"rate {header.fpr_asked:g} asked"
    return facts


def _size(n: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.3g} {unit}"
        n /= 1024
    return f"{n:.3g} GiB"
