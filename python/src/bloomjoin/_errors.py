"""Exceptions: one family, by the exit code of the command."""

from __future__ import annotations

from collections.abc import Sequence


class Error(Exception):
    """A run failed.

    ``text`` is what the command printed, ``exit_code`` its exit code (None if
    no command ran), and ``command`` its arguments without secrets.
    """

    def __init__(
        self,
        text: str,
        *,
        exit_code: int | None = None,
        command: Sequence[str] = (),
    ) -> None:
        super().__init__(text)
        self.text = text
        self.exit_code = exit_code
        self.command = tuple(command)


class DataError(Error):
    """The data or the filter is wrong, and another attempt would fail again."""


class UsageError(Error, ValueError):
    """Arguments are wrong. Nothing was opened."""


class GateError(Error):
    """A ``require_*`` or ``max_*`` condition is not met. Nothing was published."""


class RetryableError(Error):
    """The disk was full, the network failed or an input changed. Try again."""


class InterruptedRun(Error):
    """A signal ended the command."""


class InternalError(Error):
    """A bug in bloomjoin."""


class BloomjoinWarning(UserWarning):
    """A warning of the command."""
