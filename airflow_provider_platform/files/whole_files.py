"""Files that are whole or not there, on a disk and in any storage that fsspec knows.

A local file is written beside its place, as `.name.….part`, and renamed. In a store the file is
opened with `autocommit=False`, and its upload is committed at the end or discarded.
"""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from airflow_provider_platform.client.errors import (
    PlatformError,
    PlatformInputError,
    ResultWriteError,
)
from airflow_provider_platform.client.redaction import quote_service

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCAL = ("", "file", "local")
_OBJECT_STORES = frozenset(
    {"abfs", "abfss", "adl", "az", "gcs", "gs", "oss", "r2", "s3", "s3a", "wasb", "wasbs"}
)
"""Storages with buckets, which have no folders to be made."""
PART_BYTES = 5 << 20
"""What an upload keeps in memory before it sends a part: the least that S3 takes. Ten thousand
parts make 50 GB."""

MAX_NAME_BYTES = 240
"""Of a local file's name: file systems take 255, and the unfinished file has a longer name."""
MAX_KEY_BYTES = 1024
"""Of an object's name in UTF-8: the limit of S3, Google and Azure."""

_USER_INFO = re.compile(r"(?<=://)[^\s/'\"]*@")
_ADDRESS_QUERY = re.compile(r"(?<=://)([^\s?'\"]*)\?[^\s'\"]*")


class OutputFile:
    """A file under way: counts and digests what is written. Errors are ResultWriteError."""

    closed = False

    def __init__(self, path: Any, part: _Part) -> None:
        self._path = path
        self._part: _Part | None = part
        self._sha256 = hashlib.sha256()
        self.bytes = 0

    @property
    def sha256(self) -> str:
        """The digest of what was written, in hexadecimal."""
        return self._sha256.hexdigest()

    def write(self, data: Any) -> int:
        """Write bytes, or what has them as a buffer."""
        size = memoryview(data).nbytes
        if self._part is not None:  # a writer that is thrown away may want to write its last words
            with writing(self._path):
                self._part.file.write(data)
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

    def abandon(self) -> None:
        """Write nothing more."""
        self._part = None


@contextmanager
def whole_file(path: Any) -> Iterator[OutputFile]:
    """A file to write, at a path object (pathlib, or one with `fs`, `path` and `protocol`). It is
    there at the end of the block, unless the block raises. Raises ResultWriteError."""
    with writing(path):
        part = _LocalPart(Path(getattr(path, "path", path))) if is_local(path) else _StorePart(path)
    file = OutputFile(path, part)
    try:
        yield file
        with writing(path):
            part.commit()
    except BaseException:
        file.abandon()
        with suppress(Exception):  # the error that is raised already says what happened
            part.discard()
        raise


def write_whole(path: Any, data: bytes) -> OutputFile:
    """Write a file at once. Raises ResultWriteError."""
    with whole_file(path) as file:
        file.write(data)
    return file


def is_local(path: Any) -> bool:
    """Whether a path object names a local file."""
    return getattr(path, "protocol", "") in LOCAL


def is_there(path: Any) -> bool:
    """Whether there is a file. Raises ResultWriteError if the storage does not answer."""
    _forget_listings(path)
    with writing(path):
        return bool(path.exists())


def files_below(folder: Any) -> list[str]:
    """The files in a folder and below: paths relative to it. Raises ResultWriteError."""
    _forget_listings(folder)
    with writing(folder):
        if is_local(folder):
            root = Path(getattr(folder, "path", folder))
            return [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
        try:
            found = map(str, folder.fs.find(folder.path))
        except FileNotFoundError:
            return []
        start = folder.path.rstrip("/") + "/"
        return [path.removeprefix(start) for path in found if path.startswith(start)]


def remove(path: Any) -> None:
    """Remove a file, if it is there. Raises ResultWriteError."""
    with writing(path), suppress(FileNotFoundError):
        path.unlink()


def check_place(name: str, path: Any) -> None:
    """Check, as far as possible without writing, that a file can be written there.

    `name` is the argument that gives the path. Raises PlatformInputError for a path that no retry
    can make right, ResultWriteError for a store that cannot be reached.
    """
    try:
        problem = _local_problem(Path(path.path)) if is_local(path) else _store_problem(path)
    except Exception as error:
        if is_local(path):  # a name that is too long, links in a circle
            problem = storage_words(error)
        elif isinstance(error, PermissionError):  # who may not look may still be allowed to write
            return
        else:
            raise ResultWriteError(
                f"Nothing was sent: {name} cannot be written to: {storage_words(error)}.",
                where=quote_service(path),
            ) from error
    if problem:
        raise PlatformInputError(
            f"Nothing was sent: {name} cannot be written to: {problem}.",
            where=quote_service(path),
            field=name,
        )


@contextmanager
def writing(path: Any) -> Iterator[None]:
    """What a storage raises becomes a ResultWriteError with the storage's words and the path."""
    try:
        yield
    except PlatformError:
        raise
    except Exception as error:
        raise ResultWriteError(
            f"The file could not be written: {storage_words(error)}.", where=path
        ) from error


def storage_words(error: BaseException) -> str:
    """What a storage said, as one line. What an address may hold of credentials, its user and its
    query, is left out."""
    cause = error.__cause__ or error  # fsspec's own error says less than the store's
    words = getattr(cause, "strerror", None) or str(cause) or repr(cause)
    words = _USER_INFO.sub("***@", str(words))
    return quote_service(_ADDRESS_QUERY.sub(r"\1?***", words)).removesuffix(".")


class _Part(Protocol):
    """What takes the bytes of a file that is not whole."""

    file: Any

    def commit(self) -> None:
        """Put the file in its place; if that fails, `discard` is called."""

    def discard(self) -> None:
        """Leave nothing behind."""


class _LocalPart:
    """A hidden file in the same folder, renamed at the end. A symbolic link is followed."""

    def __init__(self, path: Path) -> None:
        self._path = path = Path(os.path.realpath(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        # What a killed try has left. If that try still lives, it can no longer rename its file.
        left = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.part")
        for other in path.parent.iterdir():
            if left.fullmatch(other.name):
                other.unlink(missing_ok=True)
        self._partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
        self.file = self._partial.open("xb")

    def commit(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())  # some disks say only here that they are full
        self.file.close()
        self._partial.replace(self._path)

    def discard(self) -> None:
        with suppress(OSError):
            self.file.close()
        self._partial.unlink(missing_ok=True)


class _StorePart:
    """An upload, which makes the object when it is committed."""

    def __init__(self, path: Any) -> None:
        if path.protocol not in _OBJECT_STORES:
            path.fs.makedirs(str(path.path).rpartition("/")[0] or "/", exist_ok=True)
        self.file = path.fs.open(path.path, "wb", block_size=PART_BYTES, autocommit=False)

    def commit(self) -> None:
        self.file.close()
        self.file.commit()

    def discard(self) -> None:
        try:
            self.file.discard()
        finally:
            self.file.closed = True  # or it would be completed when it is thrown away


def _local_problem(path: Path) -> str | None:
    path = path.resolve(strict=False)
    if path.is_dir():
        return "this is a folder, not a file"
    if path.exists() and not path.is_file():
        return "this is a device or a pipe, not a file"
    if len(os.fsencode(path.name)) > MAX_NAME_BYTES:
        return f"the name of the file has more than {MAX_NAME_BYTES} bytes"
    above = next((folder for folder in path.parents if folder.exists()), path.parent)
    if not above.is_dir():
        return f"{above} is a file, not a folder"
    return None if os.access(above, os.W_OK) else f"the worker is not allowed to write in {above}"


def _store_problem(path: Any) -> str | None:
    if path.protocol not in _OBJECT_STORES:
        return None
    bucket, _, key = str(path.path).strip("/").partition("/")
    if not key:
        return "this is a bucket, not a file in a bucket"
    if len(key.encode("utf-8", "replace")) > MAX_KEY_BYTES:
        return f"the object key has more than {MAX_KEY_BYTES} bytes"
    try:
        path.fs.info(bucket)
    except FileNotFoundError:
        return f"the bucket {bucket!r} does not exist"
    return None


def _forget_listings(path: Any) -> None:
    """Storages remember what was in a folder; others may have written since."""
    if not is_local(path):
        path.fs.invalidate_cache()
