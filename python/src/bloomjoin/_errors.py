"""Exceptions: one family, by the exit code of the command."""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence

_CODE = re.compile(r" \[(E\d+)\]\s*$")


class Error(Exception):
    """A run failed.

    ``text`` is what the command printed, and ``code`` the code at its end, as
    ``E203``, or None. ``exit_code`` is the command's exit code (None if no command
    ran), and ``command`` its arguments without secrets.
    """

    __module__ = "bloomjoin"  # in tracebacks

    def __init_subclass__(cls) -> None:
        cls.__module__ = Error.__module__

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

    def __str__(self) -> str:
        return self.text

    @property
    def code(self) -> str | None:
        """The code of the error, if its text ends in one."""
        found = _CODE.search(self.text)
        return found[1] if found else None


class DataError(Error):
    """The data or the filter is wrong, and another attempt would fail again."""


class NotFoundError(DataError, FileNotFoundError):
    """A file, a directory or an object does not exist, or nothing matches a pattern."""

    errno = errno.ENOENT


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

    __module__ = "bloomjoin"
