"""A run of a verb: its options as flags, its inputs, and its end."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeVar

from bloomjoin._arrow import Stream
from bloomjoin._errors import InternalError
from bloomjoin._filter import Filter
from bloomjoin._options import flags, path
from bloomjoin._process import Child
from bloomjoin._progress import listener
from bloomjoin._reader import Reader
from bloomjoin._reports import BuildReport, Report, ScanReport
from bloomjoin._stores import access
from bloomjoin._temporary import new_file

_R = TypeVar("_R", bound=Report)


class Run:
    """A run that is being put together.

    ``options`` and ``more`` are the options of a verb. As a context manager it
    removes what was staged, unless a reader has taken it over.
    """

    def __init__(self, verb: str, options: Mapping[str, Any], **more: Any) -> None:
        self.stack = ExitStack()
        self._args = [verb]
        rest = {**more, **options}
        self._listener = listener(rest.pop("progress", None))
        self._stores = rest.pop("storage_options", None), rest.pop("credentials", None)
        try:
            for name, value in rest.items():
                self.add(name, value)
        except BaseException:
            self.stack.close()
            raise

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def add(self, name: str, value: Any) -> None:
        """Add an option. Filters become their files."""
        if isinstance(value, Filter):
            value = self.filter_file(value)
        elif name in ("match", "no_match"):
            value = [f"{of}={self.filter_file(one)}" for of, one in (value or {}).items()]
        self._args += flags({name: value})

    def filter_file(self, given: Filter | str | os.PathLike[str]) -> str:
        """Return the path of a filter, whose file is there until the run ends."""
        if isinstance(given, Filter):
            return self.stack.enter_context(given._file())
        return path(given)

    def report(
        self,
        of: type[_R],
        inputs: Sequence[str] = (),
        feed: Stream | None = None,
        *,
        out: str | os.PathLike[str] | None = None,
    ) -> _R:
        """Run to the end, and return the report. ``out`` is where the answer goes, if it stays."""
        more = ["--json"]
        if out is not None:
            self.add("output", out)
            digest = feed.digest() if feed else None
            more += [f"--stdin-digest={digest}"] if digest else []
        with self._start(more, inputs, feed) as child:
            said = child.stdout.read()
            child.finish()
        try:
            report = of.of(json.loads(said))
        except ValueError:
            raise InternalError(f"want a report, got {said[:200]!r}") from None
        if isinstance(report, ScanReport) and report.already_done and "rows_out" not in report.raw:
            return replace(report, rows_out=-1)
        return report

    def filter(
        self,
        out: str | os.PathLike[str] | None,
        inputs: Sequence[str] = (),
        feed: Stream | None = None,
    ) -> Filter:
        """Run, and return the filter that it writes: to a temporary file if out is None."""
        if out is None:
            with new_file() as temporary:
                self.add("output", temporary)
                self.report(BuildReport, inputs, feed)
                return Filter._open(temporary, owned=True)
        self.report(BuildReport, inputs, feed, out=out)
        storage_options, credentials = self._stores
        return Filter.load(out, storage_options=storage_options, credentials=credentials)

    def reader(
        self, of: type[Report], inputs: Sequence[str] = (), feed: Stream | None = None
    ) -> Reader:
        """Start the run, and return its answer. The report comes with its end."""
        return Reader(self._start(["--output=-", "--json"], inputs, feed), of.of)

    def _start(self, more: Sequence[str], inputs: Sequence[str], feed: Stream | None) -> Child:
        stores = self.stack.enter_context(access(*self._stores))
        return Child(
            [*self._args, *more],
            inputs=inputs,
            feed=feed.write if feed else None,
            listener=self._listener,
            access=stores,
            cleanup=self.stack,
        )
