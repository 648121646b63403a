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
from airflow_provider_platform.results.files.storage_errors import StorageFailure, read_failure

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

MAX_KEY_BYTES = 1024
"""Of an object's name in UTF-8: the limit of S3, Google and Azure."""
MAX_STEM_BYTES = 100


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
        try:
            self._target.discard()
        except FileNotFoundError:
            return  # removed already
        except Exception as error:  # noqa: BLE001 - each storage library has classes of its own
            log.warning(
                "The unfinished %s of %s could not be removed and takes up space. Remove it%s. "
                "The error was: %s",
                self._target.unfinished,
                quote_service(self._path),
                self._target.removed_by,
                read_failure(error),
            )

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
    """Check, as far as possible without writing, that a file can be written there.

    `name` is the argument that gives the path. Raises PlatformInputError for a path that no retry
    can make right, ResultWriteError for a storage that cannot be reached or refuses the connection.
    """
    where = quote_service(path)
    try:
        problem = _local_problem(Path(path.path)) if is_local(path) else _remote_problem(path)
    except OSError as error:  # a name that is too long, a folder that nobody may look into
        problem = error.strerror or type(error).__name__
    except _Unreachable as error:
        raise ResultWriteError(
            f"Nothing was sent: {name} cannot be written to: {error.failure}", where=where
        ) from error.__cause__
    if problem:
        raise PlatformInputError(
            f"Nothing was sent: {name} cannot be written to: {problem}.", where=where, field=name
        )


def is_local(path: Any) -> bool:
    """Whether a path object names a local file."""
    return getattr(path, "protocol", "") in LOCAL


@contextmanager
def writing(path: Any) -> Iterator[None]:
    """What a storage raises becomes a ResultWriteError that names the path, what the storage said,
    and what to do."""
    try:
        yield
    except PlatformError:
        raise
    except Exception as error:
        raise ResultWriteError(
            f"The file could not be written: {read_failure(error)}", where=path
        ) from error


class _Unreachable(Exception):
    """A look at a storage failed in a way that a write would fail too."""

    def __init__(self, failure: StorageFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


def _local_problem(path: Path) -> str | None:
    path = _link_target(path)
    if path.is_dir():
        return "this is a folder, not a file"
    if path.exists() and not path.is_file():
        return "this is a device or a pipe, not a file"
    above = next((folder for folder in path.parents if folder.exists()), path.parent)
    if not above.is_dir():
        return f"{above} is a file, not a folder"
    if problem := _name_problem(path, above):
        return problem
    return None if os.access(above, os.W_OK) else f"the worker is not allowed to write in {above}"


def _name_problem(path: Path, above: Path) -> str | None:
    """Whether the file system of the folder `above` takes the names of the path, also of folders
    that are not there yet."""
    if not hasattr(os, "pathconf"):
        return None
    longest = max(path.parts, key=lambda part: len(os.fsencode(part)))
    for subject, name, limit_name in (
        ("a name", longest, "PC_NAME_MAX"),
        ("a path", path, "PC_PATH_MAX"),
    ):
        length, limit = len(os.fsencode(name)), os.pathconf(above, limit_name)
        if 0 <= limit < length:
            return f"File name too long: {subject} has {length} bytes, and the limit is {limit}"
    return None


def _remote_problem(path: Any) -> str | None:
    """What is wrong with a path in a remote storage, None if nothing is known. Raises
    _Unreachable."""
    inside = str(path.path).strip("/")
    if path.protocol not in _OBJECT_STORES:
        with suppress(FileNotFoundError, NotImplementedError), _only_unreachable():
            path.fs.info(str(path.path).rpartition("/")[0] or "/")
        return None
    bucket, _, key = inside.partition("/")
    if not key:
        return "this is a bucket, not a file in a bucket"
    if (length := len(key.encode("utf-8", "replace"))) > MAX_KEY_BYTES:
        return (
            f"the object key has {length} bytes, and the limit of object stores is {MAX_KEY_BYTES}"
        )
    try:
        with _only_unreachable():
            _look_into(path.fs, bucket)
    except FileNotFoundError:
        return f"the bucket {bucket!r} does not exist"
    return None


def _look_into(fs: Any, bucket: str) -> None:
    """Ask the storage for a bucket. Raises what the storage raises."""
    try:
        fs.info(bucket)
    except PermissionError:
        # S3 answers HEAD without a body: only another request says whether it refuses the
        # credentials, with which nothing can be written, or just the look.
        if not hasattr(fs, "call_s3"):
            raise
        fs.call_s3("list_objects_v2", Bucket=bucket, MaxKeys=1)


@contextmanager
def _only_unreachable() -> Iterator[None]:
    """Let a look at a storage fail only where a write would fail too: whoever may not look may
    still be allowed to write. Raises FileNotFoundError, _Unreachable."""
    try:
        yield
    except FileNotFoundError:
        raise
    except Exception as error:
        failure = read_failure(error)
        if failure.prevents_writing:
            raise _Unreachable(failure) from error


class _Target(ABC):
    """Where the bytes of a file go until it is whole. `unfinished` names them for the log, and
    `removed_by` says what else can remove them."""

    file: Any
    unfinished = "file"
    removed_by = ""

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
        stem = _partial_stem(path.name)
        for left in path.parent.glob(f".{_escaped(stem)}.{'[0-9a-f]' * 32}.part"):
            left.unlink(missing_ok=True)
        self._partial = path.with_name(f".{stem}.{uuid.uuid4().hex}.part")
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

    unfinished = "upload"
    removed_by = ", for example with a lifecycle rule of the bucket for unfinished uploads"

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
        self._partial = f"{folder}/.{_partial_stem(name)}.{uuid.uuid4().hex}.part"
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
        raise OSError(errno.ELOOP, "this symbolic link points back to itself")
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
        log.warning(
            "%s keeps its file mode, but not its owner and group, because this worker is "
            "not allowed to set them.",
            path,
        )
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode) & 0o777)
    if hasattr(os, "listxattr"):  # an access list is one of these, on Linux
        with suppress(OSError):
            for name in os.listxattr(path):
                if name.startswith(("user.", "system.posix_acl_access")):
                    os.setxattr(descriptor, name, os.getxattr(path, name))


def _partial_stem(name: str) -> str:
    """What the name of an unfinished file begins with: the file's name, or its digest where the
    name is so long that a file system would refuse a longer one."""
    data = os.fsencode(name)
    return name if len(data) <= MAX_STEM_BYTES else hashlib.sha256(data).hexdigest()[:32]


def _escaped(name: str) -> str:
    """A name as a pattern that matches nothing else."""
    return "".join(f"[{char}]" if char in "[*?" else char for char in name)
