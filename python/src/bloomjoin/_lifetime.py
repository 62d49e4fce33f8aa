"""The process of a run and what belongs to it, from before its start to after its end."""

from __future__ import annotations

import _thread
import contextlib
import os
import subprocess
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import IO, Protocol, cast

# Seconds that a process gets to remove its temporary files before it is killed.
_GRACE = 5.0


class _Joined(Protocol):
    def join(self) -> None:
        """Wait for a thread that ends soon after the process."""


class Lifetime:
    """Owns a process, the threads at its pipes, and what is removed after it.

    ``end`` may come at any moment, for KeyboardInterrupt does. Processes forked
    from this one must not end what is not theirs: there, ``end`` does nothing.
    """

    def __init__(self) -> None:
        self.cleanup = contextlib.ExitStack()
        self.process: subprocess.Popen[bytes] | None = None
        self.diagnostics: _Joined | None = None
        self.feeder: _Joined | None = None
        self._owner = os.getpid()
        self._starting = threading.Lock()
        self._over = False
        _RUNNING.add(self)

    def start(
        self, command: Sequence[str], *, fed: bool, env: Mapping[str, str] | None
    ) -> subprocess.Popen[bytes]:
        """Start the process, with pipes at its output and, if it is ``fed``, its input.

        A KeyboardInterrupt inside of Popen would lose a process that has begun. Only
        main threads get one, so another thread calls Popen.
        """
        settled = threading.Event()
        failed: list[BaseException] = []

        def start() -> None:
            with self._starting:
                if not self._over:
                    try:
                        self.process = subprocess.Popen(
                            command,
                            stdin=subprocess.PIPE if fed else subprocess.DEVNULL,
                            stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE,
                            env=env,
                        )
                    except BaseException as reason:
                        failed.append(reason)
            settled.set()

        # Unlike Thread.start, it does not wait, so it cannot be interrupted halfway.
        _thread.start_new_thread(start, ())
        settled.wait()
        if failed:
            raise failed[0]
        return cast("subprocess.Popen[bytes]", self.process)

    def end(self) -> None:
        """End the process, wait for it, and close and remove what belongs to it."""
        if os.getpid() != self._owner:
            return
        with self.cleanup:
            with self._starting:
                self._over = True
            if self.process is not None:
                self._end(self.process)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        try:
            if process.poll() is None:
                process.terminate()
            # A process that waits to write ends at once when nothing can read any more.
            cast("IO[bytes]", process.stdout).close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
        finally:  # also after a second KeyboardInterrupt
            if process.poll() is None:
                process.kill()
                process.wait()
        if self.diagnostics is not None:
            self.diagnostics.join()
            cast("IO[bytes]", process.stderr).close()
        if self.feeder is not None:
            self.feeder.join()

    def let_go(self) -> None:
        """In a forked process, let go of the pipes: while one is open, it has no end.

        They become the null device, and are not closed, as a thread that does not
        exist here may hold the locks of their files.
        """
        if self.process is None:
            return
        null = os.open(os.devnull, os.O_RDWR)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None and not pipe.closed:
                os.dup2(null, pipe.fileno(), inheritable=False)
        os.close(null)


# What a forked process has to let go of. Nothing else can see a fork happen.
_RUNNING: weakref.WeakSet[Lifetime] = weakref.WeakSet()


def _let_go() -> None:
    for lifetime in list(_RUNNING):
        lifetime.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
