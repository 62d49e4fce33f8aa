"""The bytes of a filter file, mapped where that is possible."""

from __future__ import annotations

import errno
import mmap
import os
import stat
import sys
from dataclasses import dataclass

from bloomjoin._errors import DataError, NotFoundError


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was when it was opened.

    Its name may mean another file by now, or none. The bytes stay as long as
    ``view`` does, because nobody changes a filter file in place.
    """

    name: str  # absolute path
    view: memoryview
    owned: bool  # it is temporary
    identity: tuple[int, ...] | None  # None: it is in memory only

    @classmethod
    def open(cls, path: str, *, owned: bool) -> File:
        """Map a file. Raises OSError, and DataError for what cannot be a filter."""
        name = os.path.abspath(path)
        if not os.path.exists(name):
            raise NotFoundError(f"{path}: no such file or directory (check the path)")
        with open(name, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise DataError(f"{path}: want a regular file")
            if status.st_size == 0:
                raise DataError(f"{path}: the file is empty")
            if owned and sys.platform == "win32":  # where mapped files cannot be removed
                return cls(name, memoryview(file.read()), owned, _identity(status))
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return cls(name, memoryview(mapped), owned, _identity(status))

    @classmethod
    def of_bytes(cls, content: bytes) -> File:
        """Return a file that is in memory only."""
        return cls("filter", memoryview(content), True, None)

    def is_there(self) -> bool:
        """Report whether the name still means this file."""
        if self.identity is None:
            return False
        try:
            return _identity(os.stat(self.name)) == self.identity
        except OSError as err:
            if err.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ESTALE):
                return False
            raise


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
