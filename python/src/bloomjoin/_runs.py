"""A run of a verb: its options as flags, its inputs, and its end."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

from bloomjoin._errors import InternalError
from bloomjoin._filter import Filter
from bloomjoin._options import flags
from bloomjoin._process import Child, Feed
from bloomjoin._progress import listener
from bloomjoin._reader import Reader
from bloomjoin._reports import BuildReport, Report
from bloomjoin._stores import access
from bloomjoin._temporary import new_file

_R = TypeVar("_R", bound=Report)


class Run:
    """A run that is being put together.

    ``options`` are the arguments of a verb, of which ``own`` are not flags. As a
    context manager it removes what was staged, unless a reader has taken it over.
    """

    def __init__(self, verb: str, options: Mapping[str, Any], own: Collection[str]) -> None:
        rest = {name: value for name, value in options.items() if name not in own}
        self._listener = listener(rest.pop("progress", None))
        self._stores = rest.pop("storage_options", None), rest.pop("credentials", None)
        self._args = [verb, *flags(rest)]
        self.stack = ExitStack()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def add(self, name: str, value: Any) -> None:
        """Add an option that is not an argument of the verb as it is."""
        self._args += flags({name: value})

    def filter_file(self, given: Filter | str | os.PathLike[str]) -> str:
        """Return the path of a filter, whose file is there until the run ends."""
        if isinstance(given, Filter):
            return self.stack.enter_context(given._file())
        return os.fsdecode(given)

    def report(self, of: type[_R], inputs: Sequence[str] = (), feed: Feed | None = None) -> _R:
        """Run to the end, and return the report."""
        with self._start(["--json"], inputs, feed) as child:
            said = child.stdout.read()
            child.finish()
        try:
            return of.of(json.loads(said))
        except ValueError:
            raise InternalError(f"want a report, got {said[:200]!r}") from None

    def filter(
        self,
        out: str | os.PathLike[str] | None,
        inputs: Sequence[str] = (),
        feed: Feed | None = None,
    ) -> Filter:
        """Run, and return the filter that it writes: to a temporary file if out is None."""
        if out is None:
            with new_file() as path:
                self.add("output", path)
                self.report(BuildReport, inputs, feed)
                return Filter._open(path, owned=True)
        name = os.fsdecode(out)
        self.add("output", name)
        self.report(BuildReport, inputs, feed)
        storage_options, credentials = self._stores
        return Filter.load(name, storage_options=storage_options, credentials=credentials)

    def reader(
        self, of: type[Report], inputs: Sequence[str] = (), feed: Feed | None = None
    ) -> Reader:
        """Start the run, and return its answer. The report comes with its end."""
        return Reader(self._start(["--output=-", "--json"], inputs, feed), of.of)

    def _start(self, more: Sequence[str], inputs: Sequence[str], feed: Feed | None) -> Child:
        stores = self.stack.enter_context(access(*self._stores))
        return Child(
            [*self._args, *more],
            inputs=inputs,
            feed=feed,
            listener=self._listener,
            access=stores,
            cleanup=self.stack,
        )
