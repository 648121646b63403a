"""How a result is written: the format and compression that the path's ending names, and options.

A file's name says what the file is, for people and for the programs that read it. So the ending of
a path decides, `output_format` and `compression` only say what the ending does not, and a
contradiction is an error: both sides of it could be the slip.

The options are one object, checked by one model, and not an argument each: an operator has enough
arguments, an object can be shared by tasks, mapped over and rendered, and what fits together is
checked in one place. It stays a plain `dict` in a DAG file, because Airflow renders and stores
those.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol, get_args

from pydantic import BeforeValidator, Field, field_validator

from airflow_provider_platform.client.choices import RowFormat
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.formats.input_values import read_boolean, read_json_string
from airflow_provider_platform.client.operations.models import InputModel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FORMATS: tuple[RowFormat, ...] = get_args(RowFormat)
Compression = Literal["none", "gzip", "zstd", "snappy", "brotli", "lz4"]
Quoting = Literal["minimal", "all", "nonnumeric"]
OnExisting = Literal["overwrite", "fail", "skip"]
OnEmpty = Literal["write", "fail", "skip"]
ROW_GROUP = 100_000
"""Rows of a Parquet row group; one for each piece that comes would make the metadata larger than
the data."""

SPLIT_ROW_GROUP = 10_000
"""The same where files are split by size: a Parquet file grows by whole row groups."""

_FORMATS: dict[str, RowFormat] = {
    "parquet": "parquet",
    "pq": "parquet",
    "csv": "csv",
    "tsv": "csv",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
}
_COMPRESSIONS: dict[str, Compression] = {"gz": "gzip", "zst": "zstd", "zstd": "zstd"}
_ENDINGS: dict[Compression, str] = {"none": "", "gzip": ".gz", "zstd": ".zst"}
"""What the name of a compressed text file ends in; the other compressions are Parquet's alone."""
_NOT_WRITTEN = frozenset({"7z", "br", "bz2", "lz4", "rar", "snappy", "tar", "tgz", "xz", "zip"})
_OTHER_FORMATS = {
    **dict.fromkeys(
        ("xls", "xlsx", "ods"),
        '; for a spreadsheet write .csv with output_options={"encoding": "utf-8-sig"}',
    ),
    **dict.fromkeys(("arrow", "avro", "feather", "html", "orc", "xml", "yaml", "yml"), ""),
}
_KNOWN_ENDINGS = ".parquet, .csv, .tsv, .jsonl or .ndjson (all but .parquet also with .gz or .zst)"
_ENDING = re.compile(r"[a-z][a-z0-9]{0,7}")
"""What counts as the ending of a name: not the rest of `run_2026-07-20T00:00:00.000`."""


Rows = Annotated[int, Field(ge=1, le=2**31 - 1)]
Flag = Annotated[bool, BeforeValidator(read_boolean)]


class OutputOptions(InputModel):
    """The options of a file, `output_options` of an operator.

    Each is None where it is not given. A template renders to text, so numbers and booleans may be
    texts.
    """

    none_is_absent: ClassVar[bool] = True

    compression: Compression | None = None
    delimiter: str | None = None
    quoting: Quoting | None = None
    header: Flag | None = None
    encoding: Literal["utf-8", "utf-8-sig"] | None = None
    line_end: Literal["lf", "crlf"] | None = None
    csv_safe: Flag | None = None
    row_group_size: Rows | None = None
    on_existing: OnExisting | None = None
    on_empty: OnEmpty | None = None
    manifest: Flag | None = None
    partition_by: list[Annotated[str, Field(min_length=1)]] | None = None
    max_partitions: Rows | None = None
    max_rows_per_file: Rows | None = None
    target_file_bytes: Rows | None = None

    @field_validator("partition_by", mode="before")
    @classmethod
    def _list_may_be_text(cls, value: Any) -> Any:
        with suppress(ValueError):
            value = read_json_string(value)
        if isinstance(value, str):
            return [value]
        return list(value) if isinstance(value, tuple) else value

    @field_validator("partition_by")
    @classmethod
    def _names_columns_once(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and len(set(value)) != len(value):
            raise ValueError("must contain each column once")
        if odd := [name for name in value or () if name[:1] in "_."]:
            raise ValueError(
                f"contains the column {odd[0]!r}, but readers ignore folders that begin with _ or "
                "a dot; rename the column in the SQL with AS"
            )
        return value or None

    @field_validator("delimiter")
    @classmethod
    def _delimits(cls, value: str | None) -> str | None:
        if value == "\\t":  # as a form or a JSON text has a tab
            return "\t"
        if value is not None and (len(value) != 1 or value in '"\r\n\0\ufeff'):
            raise ValueError("must be one character, but not a quote or a line end")
        return value

    def given(self, *names: str) -> list[str]:
        """Those of the options that have a value."""
        return [name for name in names if getattr(self, name) is not None]


_LAYOUT_OPTIONS = ("partition_by", "max_partitions", "max_rows_per_file", "target_file_bytes")
_CSV_OPTIONS = ("delimiter", "quoting", "header", "encoding", "line_end", "csv_safe")


def output_options(values: Mapping[str, Any] | None) -> OutputOptions:
    """Return the checked options. None, "" and "None" count as absent. Raises
    PlatformInputError."""
    present = {name: value for name, value in (values or {}).items() if not _is_absent(value)}
    known = OutputOptions.model_fields
    unknown = [str(name) for name in present if name not in known]
    if unknown:
        raise PlatformInputError(
            f"Nothing was sent: output_options has the unknown option {unknown[0]!r}. The options "
            f"are: {', '.join(known)}.",
            field=unknown[0],
        )
    return OutputOptions.of(present)


def _is_absent(value: Any) -> bool:
    """A delimiter can be a space, so white space is a value here (unlike in `is_absent`)."""
    return value is None or (isinstance(value, str) and value in ("", "None"))


@dataclass(frozen=True)
class FileStyle:
    """How one file is written. `compression` None is the format's own: Snappy in Parquet, none in
    text."""

    compression: Compression | None = None
    delimiter: str = ","
    quoting: Quoting = "minimal"
    header: bool = True
    encoding: Literal["utf-8", "utf-8-sig"] = "utf-8"
    line_end: Literal["lf", "crlf"] = "lf"
    csv_safe: bool = False
    row_group_size: int = ROW_GROUP


PLAIN = FileStyle()


@dataclass(frozen=True)
class Layout:
    """How a result is spread over the files of a folder: a folder below for each value of the
    columns in `partition_by`, and in each as many files as `max_rows_per_file` and
    `target_file_bytes` (bytes, overrun by a row group or some hundred lines) ask for."""

    partition_by: tuple[str, ...] = ()
    max_partitions: int = 1000
    max_rows_per_file: int | None = None
    target_file_bytes: int | None = None


@dataclass(frozen=True)
class Output:
    """What is written: the format of the file, its style, and the layout of a folder, None for one
    file. `manifest` says whether one is written for a single file: None for JSON Lines without
    rows."""

    format: RowFormat
    style: FileStyle = PLAIN
    layout: Layout | None = None
    on_existing: OnExisting = "overwrite"
    on_empty: OnEmpty = "write"
    manifest: bool | None = None

    @property
    def compression(self) -> str:
        """The compression, also where none was chosen."""
        return self.style.compression or ("snappy" if self.format == "parquet" else "none")

    @property
    def ending(self) -> str:
        """What a file of this kind ends in, as `csv.gz`."""
        if self.format == "parquet":
            return "parquet"
        name = "tsv" if self.format == "csv" and self.style.delimiter == "\t" else self.format
        return name + _ENDINGS[self.style.compression or "none"]


PARQUET = Output("parquet")


class RowWriter(Protocol):
    """Writes the rows of one result into a file."""

    def write(self, piece: Sequence[Sequence[str | None]]) -> None:
        """Write a piece of the rows, columns of texts. Raises ResultWriteError."""

    def finish(self) -> None:
        """Write what the format ends with."""


@dataclass(frozen=True)
class _Ending:
    """What the name of a file says of it."""

    text: str = ""
    format: RowFormat | None = None
    compression: Compression | None = None
    tabs: bool = False


def plan_output(
    path: str | None, format: str | None = None, options: OutputOptions | None = None
) -> Output:
    """Return what is written at a path: what its ending says, and what format and options add.

    `path` None is a folder whose files get names of their own. A path without an ending is Parquet
    where `format` is None. Raises ValueError for an ending that names no format and for
    contradictions, and for options that the format does not have.
    """
    chosen = options or OutputOptions()
    layout = _layout(chosen)
    ending = _Ending() if path is None else _ending_of(path, format, layout)
    file_format = ending.format or format or "parquet"
    if format is not None and file_format != format:
        raise ValueError(
            f"output_path ends in {ending.text}, but output_format is {format}. Use the file "
            "ending of the format, or leave output_format out"
        )
    _check_compression(file_format, ending, chosen.compression)
    if file_format != "csv" and (unfit := chosen.given(*_CSV_OPTIONS)):
        raise ValueError(
            f"output_options: {unfit[0]} is an option of csv, but the file is {file_format}"
        )
    if file_format != "parquet" and chosen.row_group_size is not None:
        raise ValueError(
            f"output_options: row_group_size is an option of parquet, but the file is {file_format}"
        )
    if ending.tabs and chosen.delimiter not in (None, "\t"):
        raise ValueError(
            f"output_path ends in {ending.text}, but the delimiter in output_options is not a "
            "tab. Use the file ending .csv"
        )
    names = ("compression", *_CSV_OPTIONS, "row_group_size")
    style: dict[str, Any] = {name: getattr(chosen, name) for name in chosen.given(*names)}
    if ending.compression is not None:
        style["compression"] = ending.compression
    if ending.tabs:
        style["delimiter"] = "\t"
    if layout and layout.target_file_bytes and chosen.row_group_size is None:
        style["row_group_size"] = SPLIT_ROW_GROUP
    return Output(
        file_format,  # type: ignore[arg-type]  # one of FORMATS
        FileStyle(**style),
        layout,
        chosen.on_existing or "overwrite",
        chosen.on_empty or "write",
        # A retry knows by it the file that an earlier try has written.
        True if chosen.on_existing in ("fail", "skip") else chosen.manifest,
    )


def _layout(chosen: OutputOptions) -> Layout | None:
    options: dict[str, Any] = {
        name: getattr(chosen, name) for name in chosen.given(*_LAYOUT_OPTIONS)
    }
    if "max_partitions" in options and "partition_by" not in options:
        raise ValueError("output_options: max_partitions needs partition_by")
    if "partition_by" in options:
        options["partition_by"] = tuple(options["partition_by"])
    return Layout(**options) if options else None


def check_engine(output: Output) -> None:
    """Whether what writes the file is installed. Raises PlatformInputError naming the extra."""
    if find_spec("pyarrow") is not None:
        return
    if output.format == "parquet":
        needing, instead = "output_format parquet", "csv or jsonl"
    elif output.style.compression == "zstd":
        needing, instead = "compression zstd", "gzip"
    else:
        return
    raise PlatformInputError(
        f"Nothing was sent: {needing} needs pyarrow. Install "
        f"airflow-provider-platform[parquet], or use {instead}.",
        field="output_format",
    )


def _check_compression(file_format: str, ending: _Ending, chosen: Compression | None) -> None:
    if file_format == "parquet":
        if ending.compression is not None:
            raise ValueError(
                f"output_path ends in {ending.text}, but a Parquet file contains its own "
                "compression. Let the name end in .parquet, and choose the compression with "
                'output_options={"compression": ...}'
            )
        return
    if chosen is not None and chosen not in _ENDINGS:
        raise ValueError(
            f"output_options: compression {chosen} exists only for parquet, but the file is "
            f"{file_format}. Use none, gzip or zstd"
        )
    # A name without a format's ending says nothing of a compression either.
    of_ending = ending.compression or ("none" if ending.format else None)
    if chosen is not None and of_ending is not None and chosen != of_ending:
        raise ValueError(
            f"output_path ends in {ending.text}, but the compression in output_options is "
            f"{chosen}. Use the file ending .{file_format}{_ENDINGS[chosen]}, or leave "
            "compression out"
        )


def _ending_of(path: str, format: str | None, layout: Layout | None) -> _Ending:
    """What the path of a file, or of a folder for several, says. Raises ValueError."""
    if layout is None:
        if path.endswith(("/", "\\")):
            raise ValueError(
                "output_path must be a file, not a folder. To write several files into a folder, "
                "use partition_by, max_rows_per_file or target_file_bytes in output_options"
            )
        return _read_ending(path, format)
    if not path.endswith("/") and _FORMATS.keys() & path.rsplit("/", 1)[-1].lower().split(".")[1:]:
        raise ValueError(
            "output_path is a file, but output_options ask for several files. Use a folder, and "
            "set output_format"
        )
    return _Ending()


def _read_ending(path: str, format: str | None) -> _Ending:
    """What a path's ending says. Raises ValueError where it names what is not written."""
    _, *parts = path.rsplit("/", 1)[-1].lower().split(".")
    last = parts.pop() if parts else ""
    compression = _COMPRESSIONS.get(last)
    text = f".{last}"
    if compression is not None:
        last = parts.pop() if parts else ""
        text = f".{last}{text}" if last in _FORMATS else text
    file_format = _FORMATS.get(last)
    if file_format is not None:
        return _Ending(text, file_format, compression, tabs=last == "tsv")
    if last in _NOT_WRITTEN:
        raise ValueError(
            f"output_path ends in .{last}, which is not a supported compression. Use .gz or .zst"
        )
    if last in _OTHER_FORMATS:
        raise ValueError(
            f"output_path ends in .{last}, which is not a supported format. Use "
            f"{_KNOWN_ENDINGS}{_OTHER_FORMATS[last]}"
        )
    if last == "json" and format != "jsonl":
        raise ValueError(
            "output_path ends in .json, but the task writes JSON Lines (one object in each line). "
            "Let it end in .jsonl. If another program needs a name that ends in .json, set "
            'output_format="jsonl"'
        )
    if format is None and (compression is not None or _ENDING.fullmatch(last)):
        raise ValueError(
            f"output_path ends in {text}, which is not a known file ending. Use {_KNOWN_ENDINGS}, "
            "or set output_format"
        )
    return _Ending(text if compression else "", None, compression)
