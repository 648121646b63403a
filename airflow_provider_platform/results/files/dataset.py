"""A result as several files in a folder: hive partitions, and files of a bounded size.

A result is known to its end before anything is written, so its rows are sorted by partition first:
small results in memory, larger ones in a temporary file without a name. Then one file after the
other is written. So one file is open at a time, and memory holds some thousand rows, however many
partitions a result has.

A partition is replaced as a whole, like `INSERT OVERWRITE` of Hive does it: the files that this
package wrote there before, in whatever run, are removed when the new ones are in place. Partitions
that the result lacks stay, except those that an earlier try of the same task run has written: names
of files carry a digest of it. Files with other names are never touched.

On a local disk all files are written into a hidden folder and renamed when the last one is whole.
An object store has no such step: there the files appear one after the other. If one of them fails,
those that replaced nothing are removed again.
"""

from __future__ import annotations

import marshal
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_platform.client.errors import ResultValueError
from airflow_provider_platform.client.formats.service_text import shortened
from airflow_provider_platform.results.files.atomic import is_local, whole_file, writing
from airflow_provider_platform.results.files.manifest import (
    folder_manifest,
    forget_listings,
    take_manifest_away,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from airflow_provider_platform.results.columns import Column
    from airflow_provider_platform.results.files.atomic import OutputFile
    from airflow_provider_platform.results.files.format_and_options import Layout, RowWriter

    NewWriter = Callable[[OutputFile, list[Column]], RowWriter]

MISSING = "__HIVE_DEFAULT_PARTITION__"
"""What readers of hive partitions take for a missing value."""
LONGEST_NAME = 255
"""Bytes of a folder's name that file systems take."""
MEMORY_BYTES = 32 << 20
"""Bytes of sorted rows that are kept in memory; more of them go to a temporary file."""
_PIECES = 8
"""Pieces that are sorted together: their rows are in memory."""
_SLICE = 500
"""Rows after which the size of a file is looked at."""
_PIECE_ROWS = 2000
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^<>|~`]")
"""What Hive escapes in a partition's name, and what a file system or a URL takes for more."""
_NAME = re.compile(r"part-(?P<writer>[0-9a-f]{8})-\d{5,}\.[a-z.]+")

Texts = list[str | None]
Partition = tuple[str | None, ...]


@dataclass(frozen=True)
class DatasetFile:
    """A file of a dataset: its path in the folder, its rows, bytes and SHA-256, and the values of
    its partition by column."""

    path: str
    rows: int
    bytes: int
    sha256: str
    partition: dict[str, str | None] = field(default_factory=dict)


def partition_columns(columns: Sequence[Column], layout: Layout) -> list[int]:
    """Return where the columns of the partitions are. Raises ResultValueError for one that the
    result lacks, and if no other column is left."""
    names = [column.name for column in columns]
    for name in layout.partition_by:
        if name not in names:
            raise ResultValueError(
                f"partition_by contains the column {name!r}, which the result does not have. The "
                f"result's columns are {', '.join(map(repr, names))}.",
                column=name,
            )
    if len(layout.partition_by) == len(names):
        raise ResultValueError(
            "partition_by contains all columns of the result, so no column is left for the files."
        )
    return [names.index(name) for name in layout.partition_by]


def data_files(folder: Any) -> list[str]:
    """The files in a folder and below: paths relative to it, without those that readers of datasets
    pass over, because a part of their path begins with `_` or `.`. Raises what a storage raises."""
    if is_local(folder):
        root = Path(getattr(folder, "path", folder))
        names = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    else:
        forget_listings([folder])
        root = folder.path.rstrip("/") + "/"
        try:
            listed = map(str, folder.fs.find(folder.path))
        except FileNotFoundError:
            return []
        names = [path.removeprefix(root) for path in listed if path.startswith(root)]
    return [path for path in names if not any(part[:1] in "_." for part in path.split("/"))]


def writer_of(path: str) -> str | None:
    """The digest of the task run that has written a file of a dataset, None for another file."""
    match = _NAME.fullmatch(path.rpartition("/")[2])
    return match and match["writer"]


def write_dataset(
    folder: Any,
    columns: Sequence[Column],
    pieces: Iterable[Sequence[Texts]],
    *,
    layout: Layout,
    ending: str,
    writer: str,
    new_writer: NewWriter,
) -> list[DatasetFile]:
    """Write a result into a folder, a path object; returns its files in the order of their names.

    `pieces` are columns of texts. `writer` are eight hexadecimal digits that stand for the task
    run. All manifests of files that go away are removed first. A partitioned result without rows
    has no files. Raises ResultValueError, ResultWriteError.
    """
    at = partition_columns(columns, layout)
    kept = [column for number, column in enumerate(columns) if number not in at]
    with _Partitions(columns, at, layout) as partitions:
        for piece in pieces:
            partitions.add(piece)
        partitions.flush()
        folders = partitions.folders() or ([] if at else [("", ())])
        stage = _LocalStage(folder, writer) if is_local(folder) else _StoreStage(folder, writer)
        with stage.open():
            files: list[DatasetFile] = []
            for name, key in folders:
                values = dict(zip(layout.partition_by, key, strict=True))
                parts = _Parts(stage, name, f"part-{writer}", ending, layout)
                rows = partitions.pieces(key)
                files += parts.write(kept, rows, values, new_writer)
            stage.replace({file.path for file in files}, {name for name, _ in folders})
    return sorted(files, key=lambda file: file.path)


class _Partitions:
    """Rows by partition: `add` all pieces, `flush`, then read each partition with `pieces`."""

    def __init__(self, columns: Sequence[Column], at: list[int], layout: Layout) -> None:
        self._by = [(number, columns[number]) for number in at]
        self._kept = [number for number in range(len(columns)) if number not in at]
        self._limit = layout.max_partitions
        self._stored: dict[Partition, list[tuple[int, int]]] = {}
        self._waiting: dict[Partition, list[Texts]] = {}
        self._pieces = 0
        self._end = 0
        self._file: Any = tempfile.SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, piece: Sequence[Texts]) -> None:
        """Take rows. Raises ResultValueError for too many partitions, ResultWriteError."""
        data = [piece[number] for number in self._kept]
        if not self._by:
            self._take((), data)
        else:
            rows: dict[Partition, list[int]] = {}
            values = [column.texts(piece[number]) for number, column in self._by]
            for row, key in enumerate(zip(*values, strict=True)):
                rows.setdefault(key, []).append(row)
            for key, wanted in rows.items():
                self._take(key, [[texts[row] for row in wanted] for texts in data])
        self._pieces += 1
        if self._pieces % _PIECES == 0:
            self.flush()

    def flush(self) -> None:
        """Store what waits."""
        with writing(f"the temporary folder {tempfile.gettempdir()}"):
            self._file.seek(self._end)
            for key, columns in self._waiting.items():
                chunk = marshal.dumps(columns)
                self._file.write(chunk)
                self._stored[key].append((self._end, len(chunk)))
                self._end += len(chunk)
        self._waiting.clear()

    def folders(self) -> list[tuple[str, Partition]]:
        """The partitions with the names of their folders, in the order of these. Raises
        ResultValueError for a value that no folder can be named after."""
        names = [column.name for _, column in self._by]
        return sorted((_folder(names, key), key) for key in self._stored)

    def pieces(self, key: Partition) -> Iterator[list[Texts]]:
        """The rows of a partition, some thousand at a time."""
        waiting: list[Texts] = []
        for start, length in self._stored.get(key, ()):
            self._file.seek(start)
            chunk: list[Texts] = marshal.loads(self._file.read(length))  # noqa: S302 - our own
            if not waiting:
                waiting = chunk
            else:
                for texts, more in zip(waiting, chunk, strict=True):
                    texts.extend(more)
            if len(waiting[0]) >= _PIECE_ROWS:
                yield waiting
                waiting = []
        if waiting:
            yield waiting

    def _take(self, key: Partition, columns: list[Texts]) -> None:
        if key not in self._stored:
            if len(self._stored) == self._limit:
                raise ResultValueError(
                    f"The result has more than {self._limit} partitions: a column of partition_by "
                    "has too many values. Choose another column, or raise max_partitions."
                )
            self._stored[key] = []
        waiting = self._waiting.get(key)
        if waiting is None:
            self._waiting[key] = [list(texts) for texts in columns]
        else:
            for texts, more in zip(waiting, columns, strict=True):
                texts.extend(more)


class _Parts:
    """The files of one partition, each as large as the layout allows."""

    def __init__(self, stage: _Stage, folder: str, name: str, ending: str, layout: Layout) -> None:
        self._stage = stage
        self._layout = layout
        self._path = f"{folder}/{name}" if folder else name
        self._ending = ending

    def write(
        self,
        columns: list[Column],
        pieces: Iterator[list[Texts]],
        partition: dict[str, str | None],
        new_writer: NewWriter,
    ) -> list[DatasetFile]:
        """Write rows; without any, one file of none."""
        files: list[DatasetFile] = []
        rest = next(pieces, None)
        while rest is not None or not files:
            path = f"{self._path}-{len(files) + 1:05d}.{self._ending}"
            rows = 0
            with self._stage.file(path) as file:
                writer = new_writer(file, columns)
                while rest is not None and not self._is_full(rows, file.bytes):
                    size = self._slice(rows, len(rest[0]))
                    writer.write([texts[:size] for texts in rest])
                    rows += size
                    rest = [texts[size:] for texts in rest]
                    if not rest[0]:
                        rest = next(pieces, None)
                writer.finish()
            files.append(DatasetFile(path, rows, file.bytes, file.sha256, partition))
        return files

    def _slice(self, rows: int, waiting: int) -> int:
        """So many rows are written before the size is looked at."""
        left = waiting if self._layout.target_file_bytes is None else min(waiting, _SLICE)
        most = self._layout.max_rows_per_file
        return left if most is None else min(left, most - rows)

    def _is_full(self, rows: int, size: int) -> bool:
        most, target = self._layout.max_rows_per_file, self._layout.target_file_bytes
        return rows > 0 and (
            (most is not None and rows >= most) or (target is not None and size >= target)
        )


def _folder(names: Sequence[str], key: Partition) -> str:
    """The folder of a partition, as `country=DE/city=K%C3%B6ln`."""
    parts = []
    for name, value in zip(names, key, strict=True):
        if value == MISSING:
            raise ResultValueError(
                f"Column {name!r} has the value {MISSING!r}, which stands for a missing value in "
                "partition folders. Partition by another column.",
                column=name,
            )
        part = f"{_escaped(name)}={MISSING if value is None else _escaped(value)}"
        if len(part.encode()) > LONGEST_NAME:
            raise ResultValueError(
                f"Column {name!r} has the value {shortened(value or '', 60)!r}, which is too long "
                "for a folder name. Partition by another column.",
                column=name,
            )
        parts.append(part)
    return "/".join(parts)


def _escaped(text: str) -> str:
    """A text as a part of a folder's name, as Hive escapes it: `%` and two digits for each ASCII
    character that could be misunderstood; letters of all scripts stay."""
    whole = text.encode("utf-8", "replace").decode()
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", whole)


class _Stage(ABC):
    """Where files are until all of them are whole, and how they replace others."""

    def __init__(self, folder: Any, writer: str) -> None:
        self.folder = folder
        self.writer = writer

    @contextmanager
    def open(self) -> Iterator[None]:
        """Throw away what was written if the block raises."""
        with writing(self.folder):
            self.before = self.names()
            self.prepare()
        try:
            yield
        except BaseException:
            with suppress(Exception):
                self.discard()
            raise

    def replace(self, written: set[str], folders: set[str]) -> None:
        """Put the written files in place of what was in these folders, and of what an earlier try
        has written anywhere. The paths are relative."""
        stale = {
            name: writer
            for name, writer in self.before.items()
            if name not in written and (name.rpartition("/")[0] in folders or writer == self.writer)
        }
        for writer in sorted({self.writer, *stale.values()}):
            take_manifest_away(folder_manifest(self.folder, writer))
        with writing(self.folder):
            self.commit()  # what goes wrong from here on must not take the new files away
            for name in sorted(stale):
                self.remove(name)

    def names(self) -> dict[str, str]:
        """The files in the folder that this package has written: their paths and writers."""
        writers = {path: writer_of(path) for path in data_files(self.folder)}
        return {path: writer for path, writer in writers.items() if writer is not None}

    @abstractmethod
    def prepare(self) -> None:
        """Make room."""

    @abstractmethod
    def file(self, path: str) -> Any:
        """A context manager with an OutputFile."""

    @abstractmethod
    def commit(self) -> None:
        """Put the files in their places."""

    @abstractmethod
    def discard(self) -> None:
        """Leave nothing behind."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file."""


class _LocalStage(_Stage):
    """A hidden folder in the same folder; its files are renamed at the end."""

    def __init__(self, folder: Any, writer: str) -> None:
        super().__init__(folder, writer)
        self._root = Path(getattr(folder, "path", folder))
        self._hidden = self._root / f".part-{writer}"
        self._files: list[str] = []

    def prepare(self) -> None:
        # What a try has left that was killed; one that still lives can no longer finish then.
        shutil.rmtree(self._hidden, ignore_errors=True)
        self._hidden.mkdir(parents=True)

    def file(self, path: str) -> Any:
        self._files.append(path)
        # Without the ending of a format, so that no pattern of a reader finds it.
        return whole_file(self._hidden / f"{path}.part")

    def commit(self) -> None:
        for path in self._files:
            (self._root / path).parent.mkdir(parents=True, exist_ok=True)
            (self._hidden / f"{path}.part").replace(self._root / path)
        shutil.rmtree(self._hidden)

    def discard(self) -> None:
        shutil.rmtree(self._hidden, ignore_errors=True)
        with suppress(OSError):
            self._root.rmdir()  # if it is empty

    def remove(self, path: str) -> None:
        (self._root / path).unlink(missing_ok=True)
        for folder in Path(path).parents[:-1]:
            with suppress(OSError):
                (self._root / folder).rmdir()  # if it is empty


class _StoreStage(_Stage):
    """The folder itself: each file is whole or not there."""

    def __init__(self, folder: Any, writer: str) -> None:
        super().__init__(folder, writer)
        self._new: list[str] = []
        self._began = False

    def prepare(self) -> None:
        """A store needs no room."""

    @contextmanager
    def file(self, path: str) -> Iterator[OutputFile]:
        if not self._began:
            self._began = True
            take_manifest_away(folder_manifest(self.folder, self.writer))
        with whole_file(self.folder / path) as file:
            yield file
        if path not in self.before:
            self._new.append(path)

    def discard(self) -> None:
        for path in self._new:
            with suppress(Exception):
                self.remove(path)

    def commit(self) -> None:
        self._new = []

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            (self.folder / path).unlink()
