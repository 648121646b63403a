"""The files that tasks wrote, for whoever has a task's link to one.

A link has the file's path and its SHA-256, which the task that wrote the file put there. A file is
shown only while its content has that digest. So a link shows what its task wrote and nothing else,
and no request learns anything of a file that its sender does not know already. The sandbox keeps no
list of files, so links hold when it is started again. Beside a file of an agent's answer is a
manifest, which names the others with their digests: they are shown together.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlencode

SHOWN_ROWS = 100
_MOST_BYTES = 1 << 30
_MOST_TEXT = 1 << 18
"""Characters of a text that a page shows."""
_MOST_LINE = 1 << 20
_MOST_CELL = 200
_MANIFEST = "manifest.json"
_ROWS = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson")
_TYPES = {
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".html": "text/html; charset=utf-8",
    ".pdf": "application/pdf",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".md": "text/plain; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".json": "application/json",
}
_MAGIC = {b"PAR1": ".parquet", b"\x89PNG": ".png", b"%PDF": ".pdf"}
_KINDS = {".png": "picture", ".svg": "picture", ".html": "page", ".md": "text", ".txt": "text"}


class NotShown(Exception):
    """Why a file is not shown, in a sentence for the person who followed the link."""


@dataclass(frozen=True)
class Table:
    """The first rows of a file; ``said`` is what a person has to know of them."""

    columns: list[str]
    rows: list[list[Any]]
    said: str


@dataclass
class FileView:
    """A file as a page shows it. ``kind``: rows, picture, page (of HTML), text or other."""

    path: str
    name: str
    size: int
    kind: str
    link: str
    """The address of its page."""
    content: str
    """The address of the file itself."""
    table: Table | None = None
    text: str = ""


@dataclass
class QueryFiles:
    """A query of an answer with its files. ``missing`` says of each other why it is not shown."""

    title: str
    sql: str
    error: str
    files: list[FileView] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@dataclass
class AnswerFiles:
    """What a task that asked the agent wrote into its folder."""

    question: str
    answer: str
    folder: str
    queries: list[QueryFiles]


def view(path: str, sha256: str) -> FileView:
    """The file with what a page shows of it. Raises NotShown."""
    with _verified(path, sha256) as (file, kind):
        found = _described(Path(path), sha256, os.fstat(file.fileno()).st_size, kind)
        if found.kind == "rows":
            found.table = _table(file, kind, found.name)
        elif found.kind == "text":
            found.text = file.read(_MOST_TEXT).decode("utf-8", "replace")
        return found


def content(path: str, sha256: str) -> tuple[bytes, str]:
    """The file's bytes and their media type. Raises NotShown."""
    with _verified(path, sha256) as (file, kind):
        return file.read(), _TYPES.get(kind, "application/octet-stream")


def answer_of(path: str, sha256: str) -> AnswerFiles | None:
    """The answer that a file is a part of; None for any other file. Raises NotShown."""
    folder = Path(path).parent
    manifest = _manifest(folder / _MANIFEST)
    if Path(path).name == _MANIFEST:
        with _verified(path, sha256):
            pass
    elif not any(one.get("sha256") == sha256 for one in _files(manifest)):
        return None
    if not isinstance(manifest.get("queries"), list):
        return None
    queries = [_query(folder, query) for query in manifest["queries"] if isinstance(query, dict)]
    question = str(manifest.get("question") or "")
    return AnswerFiles(question, str(manifest.get("answer") or ""), str(folder), queries)


def listed(path: str, sha256: str) -> list[FileView]:
    """The files that a manifest of rows in several files names, without their rows. Raises
    NotShown."""
    with _verified(path, sha256) as (file, _):
        try:
            manifest = json.loads(file.read(_MOST_TEXT * 16))
            found = manifest.get("files", [])
            folder = Path(path).parent
            return [
                _described(
                    folder / one["path"], one["sha256"], one["bytes"], Path(one["path"]).suffix
                )
                for one in found
            ]
        except (ValueError, TypeError, KeyError, AttributeError):
            return []


def _query(folder: Path, query: dict[str, Any]) -> QueryFiles:
    title, sql, error = (str(query.get(name) or "") for name in ("title", "sql", "error"))
    found = QueryFiles(title, sql, error)
    for one in [*(query.get("charts") or []), query.get("file")]:
        if not isinstance(one, dict):
            continue
        name = str(one.get("name"))
        try:
            if name != os.path.basename(name):  # noqa: PTH119 - no path, so no other folder
                raise NotShown(f"{name} is not in this folder.")
            found.files.append(view(str(folder / name), str(one.get("sha256"))))
        except NotShown as reason:
            found.missing.append(str(reason))
    return found


def _manifest(path: Path) -> dict[str, Any]:
    try:
        with _opened(path) as file:
            found = json.loads(file.read(_MOST_TEXT * 16))
    except (NotShown, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _files(manifest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every file that a manifest of an answer names."""
    queries = manifest.get("queries")
    found = [manifest.get("answer_file")]
    for query in queries if isinstance(queries, list) else []:
        if isinstance(query, dict):
            found += [query.get("file"), *(query.get("charts") or [])]
    yield from (one for one in found if isinstance(one, dict))


def _described(path: Path, sha256: str, size: int, kind: str) -> FileView:
    address = urlencode({"path": str(path), "sha256": sha256})
    shown = "rows" if kind in _ROWS else _KINDS.get(kind, "other")
    link, raw = f"/app/file?{address}", f"/app/file/content?{address}"
    return FileView(str(path), path.name, size, shown, link, raw)


# What may be read


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file. Raises NotShown."""
    if not path.is_absolute() or "\0" in str(path):
        raise NotShown("The link names no file.")
    try:
        # A pipe without a writer would block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise NotShown(
            f"{path} is not there, or the sandbox may not read it. It was moved or deleted after "
            "the task wrote it, or it is on another machine."
        ) from None
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode):
        os.close(descriptor)
        raise NotShown(f"{path} is not a file.")
    with os.fdopen(descriptor, "rb") as file:
        if about.st_size > _MOST_BYTES:
            raise NotShown(f"{path} is larger than 1 GiB, too large for a page.")
        yield file


@contextmanager
def _verified(path: str, sha256: str) -> Iterator[tuple[BinaryIO, str]]:
    """The file, at its beginning, and its kind, as ``.csv``. Raises NotShown where its content is
    not what the task wrote."""
    with _opened(Path(path)) as file:
        digest = hashlib.sha256()
        while piece := file.read(1 << 20):
            digest.update(piece)
        if digest.hexdigest() != sha256:
            raise NotShown(
                f"{path} does not hold what the task wrote: a later run, or somebody else, has "
                "written it since. Follow the link of the latest run."
            )
        file.seek(0)
        kind = _kind(Path(path).name, file.read(4))
        file.seek(0)
        if kind not in _ROWS and kind not in _TYPES:
            raise NotShown(
                f"{path} is no file of rows, no picture and no text that a page can show."
            )
        yield file, kind


def _kind(name: str, first: bytes) -> str:
    """The ending that says what a file holds; that of its content where it has none."""
    endings = Path(name.lower()).suffixes
    if endings and endings[-1] in (".gz", ".zst"):
        endings = endings[:-1]
    ending = endings[-1] if endings else ""
    return ending if ending in _ROWS or ending in _TYPES else _MAGIC.get(first, ending)


# Rows


def _table(file: BinaryIO, kind: str, name: str) -> Table:
    try:
        columns, rows = _first_rows(file, kind, name)
    except ImportError:
        return Table([], [], "Its rows are not shown: that needs pyarrow (the extra parquet).")
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the file, the page says it
        return Table([], [], f"Its rows are not shown: {error}.")
    more = len(rows) > SHOWN_ROWS
    said = f"The first {SHOWN_ROWS} rows" if more else f"{len(rows)} rows"
    return Table(columns, [[_cell(cell) for cell in row] for row in rows[:SHOWN_ROWS]], said)


def _first_rows(file: BinaryIO, kind: str, name: str) -> tuple[list[str], list[list[Any]]]:
    """Names of the columns, and one row more than a page shows."""
    if kind == ".parquet":
        from pyarrow import parquet

        batches = parquet.ParquetFile(file).iter_batches(batch_size=SHOWN_ROWS + 1)
        first = next(batches, None)
        columns = parquet.ParquetFile(file).schema_arrow.names
        return columns, [] if first is None else list(map(list, zip(*_values(first), strict=True)))
    if name.lower().endswith(".zst"):
        raise ValueError("the file is compressed with zstd")
    plain: Any = gzip.GzipFile(fileobj=file) if name.lower().endswith(".gz") else file
    lines = io.TextIOWrapper(plain, encoding="utf-8-sig", errors="replace", newline="")
    if kind in (".jsonl", ".ndjson"):
        first = islice(iter(lambda: lines.readline(_MOST_LINE), ""), SHOWN_ROWS + 1)
        found = [json.loads(line) for line in first]
        columns = list(dict.fromkeys(key for one in found for key in one))
        return columns, [[one.get(key) for key in columns] for one in found]
    start = lines.read(1 << 16)
    delimiter = "\t" if kind == ".tsv" else _delimiter(start)
    text = io.StringIO(
        start + (lines.read(_MOST_LINE) if len(start) == 1 << 16 else ""), newline=""
    )
    rows = list(islice(csv.reader(text, delimiter=delimiter), SHOWN_ROWS + 2))
    return (rows[0], list(rows[1:])) if rows else ([], [])


def _values(batch: Any) -> list[list[Any]]:
    return [column.to_pylist() for column in batch.columns]


def _delimiter(start: str) -> str:
    heading = start.split("\n", 1)[0]
    return max(",;|\t", key=heading.count)


def _cell(value: Any) -> Any:
    """A value as a page shows it."""
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    text = str(value)
    return text if len(text) <= _MOST_CELL else f"{text[:_MOST_CELL]}…"
