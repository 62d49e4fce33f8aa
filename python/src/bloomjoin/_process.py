"""The command as a child process.

A Child drains its standard error with a thread, may be fed by another, and is
ended with everything that belongs to it: whether it succeeds, fails, is
abandoned, or the interpreter exits.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn, cast

from bloomjoin._diagnostics import Diagnostics
from bloomjoin._errors import BloomjoinWarning, Error
from bloomjoin._progress import Listener
from bloomjoin._stores import Access

# Seconds that a child gets to remove its temporary files before it is killed.
_GRACE = 5.0

# A larger pipe means fewer switches between the two processes (Linux only).
_PIPE_SIZE = 1 << 20


def binary() -> str:
    """Return the path of the command: ``BLOOMJOIN_BINARY``, else the one in this package."""
    named = os.environ.get("BLOOMJOIN_BINARY")
    if named:
        return named
    name = "bloomjoin.exe" if sys.platform == "win32" else "bloomjoin"
    path = Path(__file__).parent / "_bin" / name
    if not path.exists():
        raise Error(
            f"{path}: the command is missing from the package (install a wheel, or set "
            "BLOOMJOIN_BINARY to the path of the command)"
        )
    return str(path)


def main() -> NoReturn:
    """Be the command, with this program's arguments."""
    command = [binary(), *sys.argv[1:]]
    if sys.platform == "win32":
        sys.exit(subprocess.call(command))
    os.execv(command[0], command)


@dataclass(frozen=True)
class CompletedRun:
    """What a run printed, and the report of ``--json``."""

    stdout: bytes
    report: Mapping[str, Any] | None


def run(
    args: Sequence[str],
    *,
    inputs: Sequence[str] = (),
    stdin: Any = None,
    access: Access | None = None,
) -> CompletedRun:
    """Run the command to its end, and return its output.

    ``inputs`` come last, after all flags. ``stdin`` is bytes or another buffer.
    Raises an Error by the exit code.
    """
    feed = None if stdin is None else lambda to: to.write(stdin)
    with Child(args, inputs=inputs, feed=feed, access=access) as child:
        out = child.stdout.read()
        child.finish()
        return CompletedRun(out, child.report)


class Child:
    """A running command.

    ``feed`` writes to its standard input, on a thread of its own. ``cleanup`` is
    closed when the run has ended. A child that nothing refers to any more is
    ended, and so are all when the interpreter exits. Processes forked from this
    one leave it alone.
    """

    def __init__(
        self,
        args: Sequence[str],
        *,
        inputs: Sequence[str] = (),
        feed: Feed | None = None,
        listener: Listener | None = None,
        access: Access | None = None,
        cleanup: contextlib.ExitStack | None = None,
    ) -> None:
        cleanup = cleanup or contextlib.ExitStack()
        access = access or Access()
        self.args = (*args, *access.flags)
        self.warns = True
        self._lender = access.lender
        progress = ["--progress", "lines", "--progress-interval", "200ms"]
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(cleanup.close)
            self._process = subprocess.Popen(
                [
                    binary(),
                    *self.args,
                    *("--log-format", "json"),
                    *(progress if listener else ("--progress", "none")),
                    *inputs,
                ],
                stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **access.env} if access.env else None,
            )
            on_failure.pop_all()
        self.stdout = cast(IO[bytes], self._process.stdout)
        _enlarge(self.stdout)
        self._diagnostics = Diagnostics(
            cast(IO[bytes], self._process.stderr), listener, self._process.terminate
        )
        self._feeder = _Feeder(self._process, feed) if feed else None
        # Its arguments must not refer to self, or this child would never be collected.
        self._end = weakref.finalize(
            self, _end, os.getpid(), self._process, self._diagnostics, self._feeder, cleanup
        )

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def report(self) -> Mapping[str, Any] | None:
        """The report that ``--json`` prints on standard error; None before the end."""
        return self._diagnostics.report

    def finish(self) -> None:
        """Wait for the end of the run. Raises an Error if it failed.

        An exception of the listener or of what is fed comes first: it is the cause
        of what the command says.
        """
        code = self._process.wait()
        self._diagnostics.join()
        raised = self._diagnostics.raised
        if self._feeder is not None:
            self._feeder.join()
            raised = raised or self._feeder.raised
        for text in self._diagnostics.warnings if self.warns else ():
            warnings.warn(text, BloomjoinWarning, stacklevel=_outside())
        self._diagnostics.warnings.clear()
        error = raised or self._diagnostics.error(code, self.args)
        self.end()
        if error is not None:
            raise error from (self._lender.raised if self._lender else None)

    def end(self) -> None:
        """End the run, if it has not ended, and remove what belonged to it."""
        self._end()

    def stop(self) -> None:
        """Ask the run to end. Another thread may be reading its output."""
        if self._end.alive and self._process.poll() is None:
            self._process.terminate()


Feed = Callable[[IO[bytes]], object]


class _Feeder:
    """Writes to the standard input of a process, on a thread."""

    def __init__(self, process: subprocess.Popen[bytes], feed: Feed) -> None:
        self.raised: BaseException | None = None
        self._process = process
        self._thread = threading.Thread(
            target=self._write, args=(feed,), name="bloomjoin-stdin", daemon=True
        )
        self._thread.start()

    def _write(self, feed: Feed) -> None:
        to = cast(IO[bytes], self._process.stdin)
        try:
            feed(to)
        except BrokenPipeError:
            pass  # the run has ended, and says why
        except BaseException as raised:
            if self._process.poll() is None:
                self.raised = raised
                self._process.terminate()
        finally:
            with contextlib.suppress(OSError):
                to.close()

    def join(self) -> None:
        """Wait a moment: a producer that never returns must not hold up the end."""
        self._thread.join(timeout=_GRACE)


def _end(
    owner: int,
    process: subprocess.Popen[bytes],
    diagnostics: Diagnostics,
    feeder: _Feeder | None,
    cleanup: contextlib.ExitStack,
) -> None:
    """End a process, wait for it, and close and remove what belonged to it."""
    if os.getpid() != owner:
        return
    with cleanup:
        if process.poll() is None:
            process.terminate()
        # A process that waits to write ends at once when nothing can read any more.
        cast(IO[bytes], process.stdout).close()
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        diagnostics.join()
        cast(IO[bytes], process.stderr).close()
        if feeder is not None:
            feeder.join()


def _enlarge(pipe: IO[bytes]) -> None:
    """Give a pipe room for a megabyte, where the system permits it."""
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        fcntl.fcntl(pipe.fileno(), getattr(fcntl, "F_SETPIPE_SZ", 1031), _PIPE_SIZE)


def _outside() -> int:
    """Return the stack level, for the caller, of the first frame outside of this package."""
    level, frame = 1, sys._getframe(1)
    package = str(Path(__file__).parent)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        level, frame = level + 1, frame.f_back
    return level
