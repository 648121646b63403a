"""Files that are whole or not there: what goes wrong half way leaves nothing under the name.

A local file is written beside its place and renamed; it keeps mode, owner and access list of the
file that it replaces, and a symbolic link is followed. In an object store an upload becomes an
object when it is completed, so that it is completed at the end or aborted. Any other storage gets
the file under another name, and is asked to move it.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import stat
import uuid
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.errors import (
    PlatformError,
    PlatformInputError,
    ResultWriteError,
)
from airflow_provider_platform.client.formats.service_text import quote_service

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger(__name__)

LOCAL = ("", "file", "local")
_OBJECT_STORES = frozenset(
    {"abfs", "abfss", "adl", "az", "gcs", "gs", "oss", "r2", "s3", "s3a", "wasb", "wasbs"}
)
PART_BYTES = 5 << 20
"""What an upload keeps in memory before it sends a part: the least that S3 takes. Ten thousand
parts make 50 GB."""


class OutputFile:
    """A file under way: counts and digests what is written. Errors are ResultWriteError."""

    def __init__(self, path: Any, target: _Target) -> None:
        self._path = path
        self._target = target
        self._sha256 = hashlib.sha256()
        self._given_up = False
        self.bytes = 0
        self.closed = False

    @property
    def sha256(self) -> str:
        """The digest of what was written, in hexadecimal."""
        return self._sha256.hexdigest()

    def write(self, data: Any) -> int:
        """Write bytes, or what has them as a buffer."""
        size = memoryview(data).nbytes
        if not self._given_up:  # a writer that is thrown away may want to write its last words
            with writing(self._path):
                self._target.write(data)
            self._sha256.update(data)
            self.bytes += size
        return size

    def flush(self) -> None:
        """Nothing: the file is there when it is whole."""

    def close(self) -> None:
        """Nothing: the block that opened the file closes it."""

    def tell(self) -> int:
        """How much was written."""
        return self.bytes

    def give_up(self) -> None:
        """Throw away what was written."""
        self._given_up = True
        with suppress(Exception):
            self._target.discard()

    def complete(self) -> None:
        """Put the file in its place."""
        with writing(self._path):
            self._target.complete()


@contextmanager
def whole_file(path: Any) -> Iterator[OutputFile]:
    """A file to write, at a path object (pathlib, or one with `fs`, `path` and `protocol`). It is
    there at the end of the block, unless the block raises. Raises ResultWriteError."""
    with writing(path):
        target = _target_of(path)
    file = OutputFile(path, target)
    try:
        yield file
        file.complete()
    except BaseException:
        file.give_up()
        raise


def write_whole(path: Any, data: bytes) -> OutputFile:
    """Write a file at once. Raises ResultWriteError."""
    with whole_file(path) as file:
        file.write(data)
    return file


def check_place(name: str, path: Any) -> None:
    """Whether a file can be written there, as far as it can be told without writing. Raises
    PlatformInputError naming the argument."""
    try:
        problem = _local_problem(Path(path.path)) if is_local(path) else _remote_problem(path)
    except OSError as error:  # a name that is too long, a folder that nobody may look into
        problem = error.strerror or type(error).__name__
    if problem:
        where = quote_service(path)
        raise PlatformInputError(f"Nothing was sent: {name} {where}: {problem}.", field=name)


def is_local(path: Any) -> bool:
    """Whether a path object names a local file."""
    return getattr(path, "protocol", "") in LOCAL


@contextmanager
def writing(path: Any) -> Iterator[None]:
    """What a storage raises becomes a ResultWriteError that names the path."""
    try:
        yield
    except PlatformError:
        raise
    except Exception as error:
        said = getattr(error, "strerror", None) or str(error) or repr(error)
        raise ResultWriteError(f"{path} could not be written: {quote_service(said)}.") from error


def _local_problem(path: Path) -> str | None:
    path = _link_target(path)
    if path.is_dir():
        return "this is a folder, not a file"
    if path.exists() and not path.is_file():
        return "this is a device or a pipe, not a file"
    above = next((folder for folder in path.parents if folder.exists()), path.parent)
    if not above.is_dir():
        return f"{above} is a file, not a folder"
    return None if os.access(above, os.W_OK) else f"nothing may be written in {above}"


def _remote_problem(path: Any) -> str | None:
    if path.protocol not in _OBJECT_STORES:
        return None
    bucket = str(path.path).strip("/").partition("/")[0]
    try:
        path.fs.info(bucket)
    except FileNotFoundError:
        return f"there is no bucket {bucket!r}"
    except Exception:  # noqa: BLE001 - who may not look may still be allowed to write
        return None
    return None


class _Target(ABC):
    """Where the bytes of a file go until it is whole."""

    file: Any

    def write(self, data: Any) -> None:
        self.file.write(data)

    @abstractmethod
    def complete(self) -> None:
        """Put the file in its place; else `discard` is called."""

    @abstractmethod
    def discard(self) -> None:
        """Leave nothing behind."""


class _LocalTarget(_Target):
    """A hidden file in the same folder, renamed at the end."""

    def __init__(self, path: Path) -> None:
        path = self._path = _link_target(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        # What a try has left that was killed; one that still lives can no longer finish then.
        for left in path.parent.glob(f".{_escaped(path.name)}.{'[0-9a-f]' * 32}.part"):
            left.unlink(missing_ok=True)
        self._partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
        self._before = _status(path)
        # Until it has the mode of the file that it replaces, nobody else may read it.
        mode = 0o666 if self._before is None else 0o600
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self.file = os.fdopen(os.open(self._partial, flags, mode), "wb")

    def complete(self) -> None:
        self.file.flush()
        before = _status(self._path) or self._before
        if before is not None:
            _keep_attributes(self.file.fileno(), self._path, before)
        os.fsync(self.file.fileno())
        self.file.close()
        self._partial.replace(self._path)

    def discard(self) -> None:
        with suppress(OSError):
            self.file.close()
        self._partial.unlink(missing_ok=True)


class _ObjectTarget(_Target):
    """An upload, which makes the object when it is closed."""

    def __init__(self, path: Any) -> None:
        self.file = path.fs.open(path.path, "wb", block_size=PART_BYTES)

    def complete(self) -> None:
        self.file.close()

    def discard(self) -> None:
        try:
            self.file.discard()  # aborts a multipart upload
        finally:
            self.file.closed = True  # or it would be completed when it is thrown away


class _MovedTarget(_Target):
    """A file under another name in the same folder, moved at the end."""

    def __init__(self, path: Any) -> None:
        self._fs, self._path = path.fs, str(path.path)
        folder, _, name = self._path.rpartition("/")
        self._fs.makedirs(folder or "/", exist_ok=True)
        self._partial = f"{folder}/.{name}.{uuid.uuid4().hex}.part"
        self.file = self._fs.open(self._partial, "wb")

    def complete(self) -> None:
        self.file.close()
        self._fs.mv(self._partial, self._path)

    def discard(self) -> None:
        with suppress(Exception):
            self.file.close()
        self._fs.rm(self._partial)


def _target_of(path: Any) -> _Target:
    if is_local(path):
        return _LocalTarget(Path(getattr(path, "path", path)))
    return _ObjectTarget(path) if path.protocol in _OBJECT_STORES else _MovedTarget(path)


def _link_target(path: Path) -> Path:
    """The path itself, or the file that a symbolic link leads to, which need not be there. Raises
    OSError for links that lead in a circle."""
    if not path.is_symlink():
        return path
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, "this symbolic link leads in a circle")
    return target


def _status(path: Path) -> os.stat_result | None:
    """Mode and owner of a file, None where there is none."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _keep_attributes(descriptor: int, path: Path, before: os.stat_result) -> None:
    """Give a new file the owner, group, mode and access list of the file at `path`.

    Only root may give a file to another user: else the new file belongs to the worker, which the
    log says.
    """
    new = os.fstat(descriptor)
    try:
        if new.st_gid != before.st_gid:
            os.fchown(descriptor, -1, before.st_gid)
        if new.st_uid != before.st_uid:
            os.fchown(descriptor, before.st_uid, -1)
    except PermissionError:
        log.warning("%s keeps its mode, but this worker may not keep its owner and group.", path)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode) & 0o777)
    if hasattr(os, "listxattr"):  # an access list is one of these, on Linux
        with suppress(OSError):
            for name in os.listxattr(path):
                if name.startswith(("user.", "system.posix_acl_access")):
                    os.setxattr(descriptor, name, os.getxattr(path, name))


def _escaped(name: str) -> str:
    """A name as a pattern that matches nothing else."""
    return "".join(f"[{char}]" if char in "[*?" else char for char in name)
