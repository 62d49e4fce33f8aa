"""Reports of runs, as the command prints them with --json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from html import escape
from typing import Any, TypeVar

_R = TypeVar("_R", bound="Report")

_DONE = "by an earlier run, with the same options and inputs"


@dataclass(frozen=True)
class Report:
    """What a run did.

    ``raw`` is the whole report of the command, as with --json; the others are its
    most used fields.
    """

    seconds: float = 0.0
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls: type[_R], said: Mapping[str, Any]) -> _R:
        """Return the report for what the command printed."""
        known = {f.name for f in fields(cls)} - {"raw"}
        return cls(**{n: v for n, v in said.items() if n in known}, raw=said)

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self._shown().items())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in self._shown().items()
        )
        title = f"bloomjoin.{type(self).__name__}"
        return f"<table><caption style='text-align:left'>{title}</caption>{rows}</table>"

    def _shown(self) -> dict[str, str]:
        """Return what people read first, as text. Notes and warnings come last."""
        rows = {name: text for name, text in self._facts().items() if text}
        rows["seconds"] = f"{self.seconds:.3g}"
        for name in ("warnings", "notes", "advice"):
            said = [_message(one) for one in self.raw.get(name) or ()]
            if said:
                rows[name] = "; ".join(said)
        return rows

    def _facts(self) -> dict[str, str]:
        """Return the most interesting fields as text. Empty texts are left out."""
        return {}


@dataclass(frozen=True)
class BuildReport(Report):
    """Of ``build`` and ``merge``. Sizes are in bytes, and rates between 0 and 1."""

    keys: int = 0
    distinct: int = 0
    kind: str = ""
    bits_per_key: float = 0.0
    memory_bytes: int = 0
    file_bytes: int = 0
    fpr_asked: float = 0.0
    fpr_predicted: float = 0.0
    digest: str = ""

    def _facts(self) -> dict[str, str]:
        return {
            "kind": self.kind,
            "keys": f"{self.keys:,}",
            "file": _size(self.file_bytes),
            "bits per key": f"{self.bits_per_key:.3g}",
            "false positives": f"{self.fpr_predicted:.3g} (asked: {self.fpr_asked:.3g})",
        }


@dataclass(frozen=True)
class ScanReport(Report):
    """Of a scan. Sizes are in bytes, and rates between 0 and 1.

    ``already_done``: an earlier run with the same options and inputs has written
    the output, and nothing was read. ``rows_out`` are the rows in the output then
    (-1 if it does not say how many), and the other figures 0.
    """

    rows_in: int = 0
    rows_out: int = 0
    keys_null: int = 0
    row_groups: int = 0
    row_groups_skipped: int = 0
    pages: int = 0
    pages_skipped: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    fpr_asked: float = 0.0
    fpr_predicted: float = 0.0
    already_done: bool = False

    def _facts(self) -> dict[str, str]:
        if self.already_done:
            rows = f"{self.rows_out:,}" if self.rows_out >= 0 else ""
            return {"already done": _DONE, "rows out": rows}
        return {
            "rows out": f"{self.rows_out:,}",
            "rows in": f"{self.rows_in:,}",
            "keys NULL": f"{self.keys_null:,}" if self.keys_null else "",
            "row groups skipped": _of(self.row_groups_skipped, self.row_groups),
            "pages skipped": _of(self.pages_skipped, self.pages),
            "read": _size(self.bytes_read),
            "written": _size(self.bytes_written) if self.bytes_written else "",
        }


@dataclass(frozen=True)
class JoinReport(ScanReport):
    """Of a join: what a scan reports, and more.

    ``candidates`` are the log rows that passed the filter, ``rows_matched`` those with an ID.
    ``ids_total`` and ``ids_matched`` count rows of the IDs, ``keys_matched`` distinct keys.
    ``fpr_measured`` is the share of log rows without an ID that passed the filter.
    """

    candidates: int = 0
    rows_matched: int = 0
    ids_total: int = 0
    ids_matched: int = 0
    keys_matched: int = 0
    fpr_measured: float = 0.0
    strategy: str = ""
    spilled_bytes: int = 0

    def _facts(self) -> dict[str, str]:
        if self.already_done:
            return super()._facts()
        share = f" ({self.rows_matched / self.rows_in:.3g} of all)" if self.rows_in else ""
        rows = f"{self.ids_matched:,} of {self.ids_total:,}"
        distinct = f"{self.keys_matched:,} distinct ({rows} rows)"
        return {
            **super()._facts(),
            "rows with an ID": f"{self.rows_matched:,}{share}",
            "IDs matched": rows if self.keys_matched == self.ids_matched else distinct,
            "strategy": self.strategy,
            "spilled": _size(self.spilled_bytes) if self.spilled_bytes else "",
        }


@dataclass(frozen=True)
class DedupReport(Report):
    """Of ``dedup``."""

    rows_in: int = 0
    rows_out: int = 0
    duplicates: int = 0
    late: int = 0
    keys_null: int = 0
    unjudged_dropped: int = 0
    memory_bytes: int = 0
    fpr_asked: float = 0.0
    fpr_predicted: float = 0.0
    already_done: bool = False

    def _facts(self) -> dict[str, str]:
        if self.already_done:
            return {"already done": _DONE}
        return {
            "rows out": f"{self.rows_out:,}",
            "rows in": f"{self.rows_in:,}",
            "duplicates": f"{self.duplicates:,}",
            "late": f"{self.late:,}" if self.late else "",
        }


@dataclass(frozen=True)
class Estimate:
    """An estimated number, and the bounds that it lies within."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Plan(Report):
    """What a join would do, from the files' metadata and a sample of the log.

    ``selectivity`` is the share of log rows that match. ``advice`` names limits,
    and when another tool would do.
    """

    strategy: str = ""
    why: str = ""

    @property
    def selectivity(self) -> Estimate | None:
        """The share of the log's rows that match, between 0 and 1."""
        return self._estimate("selectivity")

    @property
    def join_rows(self) -> Estimate | None:
        """The number of rows of the answer."""
        return self._estimate("join_rows")

    @property
    def advice(self) -> tuple[str, ...]:
        """What to consider, in sentences."""
        return tuple(self.raw.get("advice") or ())

    def _estimate(self, name: str) -> Estimate | None:
        said = self.raw.get(name)
        return Estimate(said["value"], said["low"], said["high"]) if said else None

    def _facts(self) -> dict[str, str]:
        rows, share = self.join_rows, self.selectivity
        return {
            "rows of the answer": f"{rows.value:,.0f}" if rows else "",
            "log rows that match": f"{share.value:.3%}" if share else "",
            "strategy": f"{self.strategy}: {self.why}",
        }


@dataclass(frozen=True)
class Inspection(Report):
    """What files are: filters, tables, lists of inputs, and outputs of runs."""

    @property
    def files(self) -> tuple[Mapping[str, Any], ...]:
        """The facts about each file, as ``bloomjoin inspect --json`` prints them."""
        return tuple(self.raw.get("files") or ())

    @property
    def directories(self) -> tuple[Mapping[str, Any], ...]:
        """The facts about each output directory."""
        return tuple(self.raw.get("directories") or ())

    def _shown(self) -> dict[str, str]:
        rows = {}
        for one in self.files:
            for name in ("filter", "table", "inputs", "index"):
                if name in one:
                    rows[one["file"]] = f"{name}: {_facts(one[name])}"
        for one in self.directories:
            rows[one["directory"]] = _facts(one)
        return rows


def _facts(said: Mapping[str, Any]) -> str:
    return ", ".join(f"{n} {v}" for n, v in said.items() if isinstance(v, (str, int, float)))


def _message(said: Any) -> str:
    return str(said["text"]) if isinstance(said, dict) and "text" in said else str(said)


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}" if part else ""


def _size(n: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024:
            return f"{n:.3g} {unit}"
        n /= 1024
    return f"{n:.3g} TiB"
