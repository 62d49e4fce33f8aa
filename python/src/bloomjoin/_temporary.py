"""Temporary files of filters and sketches, each in a private directory of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def new_file(name: str = "filter.bjf") -> Iterator[str]:
    """Give a path in a new private directory.

    The directory goes if there is no file in it, and with the file if the block fails.
    """
    directory = tempfile.mkdtemp(prefix="bloomjoin-")
    try:
        yield os.path.join(directory, name)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(directory)


def remove(path: str, owner: int) -> None:
    """Remove a temporary file and its directory; not in a forked child."""
    if os.getpid() == owner:
        with contextlib.suppress(OSError):
            os.unlink(path)
            os.rmdir(os.path.dirname(path))
