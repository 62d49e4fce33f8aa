"""Where tasks leave what they have made, and how it goes away."""

from __future__ import annotations

import atexit
import contextlib
import datetime
import re
import shutil
import uuid
from collections.abc import Iterable
from pathlib import PurePosixPath
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bloomjoin._errors import UsageError

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

_STAMP = "%Y%m%dT%H%M%SZ"
_PREFIX = "bloomjoin-run-"
_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "wasbs": "abfss", "wasb": "abfs"}


class Staging:
    """A directory or URL that the driver and all executors share, for copies of rows.

    Each session, that is each `Staging`, has a directory of its own in it. ``close`` removes that;
    so do the end of a ``with`` block and of the Python process. Data frames that were made with
    it cannot be read afterwards. What a killed driver has left is removed by the next `Staging`
    of the same place, once it is older than ``max_age``: choose more than the longest session.

    ``filesystem`` removes files of a store; by default it is pyarrow's, with the credentials of
    the environment. Who may read the copies, and how they are encrypted, is decided by the
    directory or bucket.
    """

    def __init__(
        self,
        url: str,
        *,
        max_age: datetime.timedelta = datetime.timedelta(days=7),
        filesystem: FileSystem | None = None,
    ) -> None:
        self.url = checked("staging", url)
        self._filesystem = filesystem
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime(_STAMP)
        self._session = f"{_PREFIX}{stamp}-{uuid.uuid4().hex[:12]}"
        self._remove_older(max_age)
        atexit.register(self.close)

    def run(self) -> str:
        """Return a new directory or URL, for one run."""
        return f"{self.url}/{self._session}/{uuid.uuid4().hex[:12]}"

    def is_local(self) -> bool:
        """Report whether this is a directory of a file system."""
        return "://" not in self.url

    def keep_only(self, run: str, kept: Iterable[str]) -> None:
        """Remove everything of a run but the files that are named, and what is below them."""
        filesystem, root = self._open(run)
        wanted = {self._open(name)[1] for name in kept}
        for path in files_below(filesystem, root):
            if path not in wanted and not any(path.startswith(w + "/") for w in wanted):
                _remove(filesystem, path)

    def close(self) -> None:
        """Remove all that was staged. A second call does nothing."""
        atexit.unregister(self.close)
        filesystem, root = self._open(f"{self.url}/{self._session}")
        remove_directory(filesystem, root)

    def __enter__(self) -> Staging:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self, url: str) -> tuple[FileSystem, str]:
        return opened(url, self._filesystem)

    def _remove_older(self, max_age: datetime.timedelta) -> None:
        from pyarrow.fs import FileSelector

        filesystem, root = self._open(self.url)
        limit = datetime.datetime.now(datetime.timezone.utc) - max_age
        for info in filesystem.get_file_info(FileSelector(root, allow_not_found=True)):
            made = _made(PurePosixPath(info.path).name)
            if made is not None and made < limit:
                remove_directory(filesystem, info.path)


def opened(url: str, filesystem: FileSystem | None = None) -> tuple[FileSystem, str]:
    """Return the file system of a path or URL, and the path in it."""
    from pyarrow.fs import FileSystem, LocalFileSystem

    if "://" not in url:
        return LocalFileSystem(), url
    scheme, _, rest = url.partition("://")
    if filesystem is not None:
        return filesystem, rest
    filesystem, path = FileSystem.from_uri(f"{_SCHEMES.get(scheme, scheme)}://{rest}")
    return filesystem, path


def checked(what: str, url: str) -> str:
    """Return an absolute path or URL that the command and Spark take, without a final slash."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        url = parts.path
    if parts.scheme in ("hdfs", "dbfs", "viewfs"):
        raise UsageError(
            f"{what}: {url}: {parts.scheme}:// is unsupported: use a shared "
            "directory or an object store"
        )
    if "://" not in url and not url.startswith("/"):
        raise UsageError(f"{what}: {url}: want an absolute path, or a URL such as s3://bucket/dir")
    if re.search(r"[*?{}\[\]\\]", url):
        raise UsageError(f"{what}: {url}: want no characters of patterns, which Spark expands")
    return url.rstrip("/")


def _made(name: str) -> datetime.datetime | None:
    """Return when a session's directory was made, or None for anything else."""
    if not name.startswith(_PREFIX):
        return None
    try:
        found = datetime.datetime.strptime(name[len(_PREFIX) :].split("-")[0], _STAMP)
    except ValueError:
        return None
    return found.replace(tzinfo=datetime.timezone.utc)


def files_below(filesystem: FileSystem, root: str) -> list[str]:
    """Return the paths of all files below a directory, which may not exist."""
    from pyarrow.fs import FileType

    return [i.path for i in _below(filesystem, root) if i.type == FileType.File]


def _remove(filesystem: FileSystem, path: str) -> None:
    # An attempt that has lost may remove its own temporary file at the same time.
    with contextlib.suppress(FileNotFoundError):
        filesystem.delete_file(path)


def remove_directory(filesystem: FileSystem, path: str) -> None:
    """Remove a directory, or what a store has below a name."""
    from pyarrow.fs import LocalFileSystem

    if isinstance(filesystem, LocalFileSystem):
        shutil.rmtree(path, ignore_errors=True)
        return
    with contextlib.suppress(FileNotFoundError):
        try:
            filesystem.delete_dir(path)
        except OSError:
            # Stores over a file system delete the files, but no directory that was not empty yet.
            for directory in sorted(_directories(filesystem, path), key=len, reverse=True):
                filesystem.delete_dir(directory)
            filesystem.delete_dir(path)


def _directories(filesystem: FileSystem, root: str) -> list[str]:
    from pyarrow.fs import FileType

    return [i.path for i in _below(filesystem, root) if i.type == FileType.Directory]


def _below(filesystem: FileSystem, root: str) -> list[FileInfo]:
    from pyarrow.fs import FileSelector

    return filesystem.get_file_info(FileSelector(root, allow_not_found=True, recursive=True))
