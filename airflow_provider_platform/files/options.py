"""How a result is written: the format and compression that the path's ending names, and options.

A file's name says what the file is, for people and for the programs that read it. So the ending of
a path decides, `output_format` and `compression` only say what the ending does not, and a
contradiction is an error: both sides of it could be the slip.

The options are one `dict` in a DAG file, because Airflow renders and stores those; one model checks
them.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, field_validator

from airflow_provider_platform.client.argument_rules import read_boolean, read_json_string
from airflow_provider_platform.client.choices import RowFormat
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.models import InputModel

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMATS: tuple[RowFormat, ...] = get_args(RowFormat)
Compression = Literal["none", "gzip", "zstd", "snappy", "brotli", "lz4"]
Encoding = Literal["utf-8", "utf-8-sig"]
OnFile = Literal["overwrite", "fail", "skip"]
OnEmpty = Literal["write", "fail", "skip"]

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
_ENDING = re.compile(r"[a-z][a-z0-9]{0,7}")
"""What counts as the ending of a name: not the rest of `run_2026-07-20T00:00:00.000`."""
_CSV_OPTIONS = ("delimiter", "encoding", "csv_safe")


class OutputOptions(InputModel):
    """The options of a file, `output_options` of an operator.

    Each is None where it is not given. A template renders to text, so numbers and booleans may be
    texts.
    """

    compression: Compression | None = None
    delimiter: str | None = None
    encoding: Encoding | None = None
    csv_safe: Annotated[bool, BeforeValidator(read_boolean)] | None = None
    partition_by: list[Annotated[str, Field(min_length=1)]] | None = None
    max_rows_per_file: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    on_existing: OnFile | None = None
    on_empty: OnEmpty | None = None

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
        if value is not None and (len(value) != 1 or not value.isascii() or value in '"\r\n\0'):
            raise ValueError("must be one ASCII character, but not a quote or a line end")
        return value

    def given(self, *names: str) -> dict[str, Any]:
        """Those of the options that have a value."""
        values = {name: getattr(self, name) for name in names or type(self).model_fields}
        return {name: value for name, value in values.items() if value is not None}


def output_options(values: Mapping[str, Any] | None) -> OutputOptions:
    """Return the checked options. None, "" and "None" count as absent. Raises
    PlatformInputError."""
    present = {
        name: value
        for name, value in (values or {}).items()
        # A delimiter can be a space, so white space is a value here (unlike in `is_absent`).
        if value is not None and not (isinstance(value, str) and value in ("", "None"))
    }
    known = OutputOptions.model_fields
    unknown = [str(name) for name in values or () if name not in known]
    if unknown:
        raise PlatformInputError(
            f"Nothing was sent: output_options has the unknown option {unknown[0]!r}. The options "
            f"are: {', '.join(known)}.",
            field=unknown[0],
        )
    return OutputOptions.of(present)


@dataclass(frozen=True)
class Output:
    """What is written and how. `compression` None is the format's own: Snappy in Parquet, none in
    text. With `partition_by` (names of columns) or `max_rows_per_file` the path is a folder."""

    format: RowFormat
    compression: Compression | None = None
    delimiter: str = ","
    encoding: Encoding = "utf-8"
    csv_safe: bool = False
    partition_by: tuple[str, ...] = ()
    max_rows_per_file: int | None = None
    on_existing: OnFile = "overwrite"
    on_empty: OnEmpty = "write"

    @property
    def is_folder(self) -> bool:
        """Whether several files are written, into a folder."""
        return bool(self.partition_by) or self.max_rows_per_file is not None

    @property
    def ending(self) -> str:
        """What a file of this kind ends in, as `csv.gz`."""
        if self.format == "parquet":
            return "parquet"
        name = "tsv" if self.format == "csv" and self.delimiter == "\t" else self.format
        return name + _ENDINGS[self.compression or "none"]


PARQUET = Output("parquet")


def plan_output(
    path: str | None, format: str | None = None, options: OutputOptions | None = None
) -> Output:
    """Return what is written at a path: what its ending says, and what format and options add.

    `path` None is a folder whose files get names of their own. A path without an ending is Parquet
    where `format` is None. Raises ValueError for an ending that names no format and for
    contradictions, and for options that the format does not have.
    """
    chosen = options or OutputOptions()
    values = chosen.given()
    is_folder = bool(chosen.partition_by or chosen.max_rows_per_file)
    ending: dict[str, Any] = {}
    if path is not None:
        ending = _folder_ending(path) if is_folder else _file_ending(path, format)
    for name, value in ending.items():
        wanted = format if name == "format" else values.get(name)
        if wanted is not None and wanted != value:
            argument = "output_format" if name == "format" else f"{name} in output_options"
            raise ValueError(
                f"output_path ends in {''.join(PurePosixPath(str(path)).suffixes[-2:])}, but "
                f"{argument} is {wanted}. Leave {name} out, or use another file ending"
            )
    file_format = ending.get("format") or format or "parquet"
    compression = ending.get("compression") or chosen.compression
    if file_format == "parquet" and "compression" in ending:
        raise ValueError(
            "a Parquet file contains its own compression: let output_path end in .parquet, and "
            'choose the compression with output_options={"compression": ...}'
        )
    if file_format != "parquet" and compression not in (None, *_ENDINGS):
        raise ValueError(
            f"output_options: compression {compression} exists only for parquet, but the file is "
            f"{file_format}. Use none, gzip or zstd"
        )
    if file_format != "csv" and (unfit := [*chosen.given(*_CSV_OPTIONS)]):
        raise ValueError(
            f"output_options: {unfit[0]} is an option of csv, but the file is {file_format}"
        )
    if chosen.partition_by:
        values["partition_by"] = tuple(chosen.partition_by)
    return Output(**{**values, **ending, "format": file_format})


def check_engine() -> None:
    """Check that pyarrow is installed, which writes the files. Raises PlatformInputError."""
    if find_spec("pyarrow") is None:
        raise PlatformInputError(
            "Nothing was sent: files with rows need pyarrow. Install "
            'it: pip install "airflow-provider-platform[files]".',
            field="output_path",
        )


def _folder_ending(path: str) -> dict[str, Any]:
    if not path.endswith("/") and _FORMATS.keys() & path.rsplit("/", 1)[-1].lower().split(".")[1:]:
        raise ValueError(
            "output_path is a file, but output_options ask for several files. Use a folder, and "
            "set output_format"
        )
    return {}


def _file_ending(path: str, format: str | None) -> dict[str, Any]:
    """The options that the ending of a file's name stands for. Raises ValueError."""
    if path.endswith(("/", "\\")):
        raise ValueError(
            "output_path must be a file, not a folder. To write several files into a folder, use "
            "partition_by or max_rows_per_file in output_options"
        )
    _, *parts = path.rsplit("/", 1)[-1].lower().split(".")
    last = parts[-1] if parts else ""
    ending: dict[str, Any] = {}
    if last in _COMPRESSIONS:
        ending["compression"] = _COMPRESSIONS[parts.pop()]
    word = parts[-1] if parts else ""
    if word in _FORMATS:
        ending["format"] = _FORMATS[word]
        if word == "tsv":
            ending["delimiter"] = "\t"
        if ending["format"] != "parquet":
            ending.setdefault("compression", "none")
    elif format is None and (ending or _ENDING.fullmatch(last)):
        raise ValueError(
            f"output_path ends in .{last}, which is not a known file ending. Use .parquet, .csv, "
            ".tsv, .jsonl or .ndjson (all but .parquet also with .gz or .zst), or set "
            "output_format. A task writes JSON Lines, which is no .json"
        )
    return ending
