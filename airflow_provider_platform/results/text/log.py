"""A task's result in its log: an answer, the first rows, the files; folded."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.formats.service_text import log_line
from airflow_provider_platform.results.text.message import section_of
from airflow_provider_platform.results.text.plain import section_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROWS = 10
LINE = 500
"""Characters of a line; a longer one goes on in the next."""
ANSWER_LINES = 1000
"""Lines of an answer that are shown: all of any that a person reads."""


def log_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """Lines of a group that log viewers fold, none of which begins or ends one by itself."""
    yield "::group::Answer, rows and files" if "answer" in result else "::group::Rows"
    if "answer" in result:
        lines = _safe(str(result["answer"] or ""))
        yield from islice(lines, ANSWER_LINES)
        if next(lines, None) is not None:
            yield f"… ({len(result['answer'])} characters; all of them are in the task's result)"
    for query in result.get("queries") or ():
        yield ""
        for line in section_lines(section_of(query), ROWS):
            yield from _safe(line)
    if manifest := result.get("manifest"):
        yield from ("", log_line(f"Manifest: {manifest}"))
    yield "::endgroup::"


def _safe(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        for start in range(0, max(len(line), 1), LINE):
            yield log_line(line[start : start + LINE])
