"""A task's result in its log: the answer, the first rows of each query, and where its files are."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.log_text import log_line
from airflow_provider_platform.messages.message import section_lines, section_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LOG_ROWS = 10
LOG_LINE = 500
"""Characters of a line; a longer one goes on in the next."""
ANSWER_LINES = 1000
"""Lines of an answer that are shown: all of any that a person reads."""


def log_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a result: a group that log viewers fold. No line of the result begins or ends a
    group by itself."""
    yield "::group::Answer, rows and files" if "answer" in result else "::group::Rows"
    if "answer" in result:
        answer = _log_lines(str(result["answer"] or ""))
        yield from islice(answer, ANSWER_LINES)
        if next(answer, None) is not None:
            yield f"… ({len(result['answer'])} characters; all of them are in the task's result)"
    for query in result.get("queries") or ():
        yield ""
        for drawn in section_lines(section_of(query), LOG_ROWS):
            yield from _log_lines(drawn)
    if manifest := result.get("manifest"):
        yield from ("", log_line(f"Manifest: {manifest}"))
    yield "::endgroup::"


def _log_lines(text: str) -> Iterator[str]:
    for whole in text.split("\n"):
        for start in range(0, max(len(whole), 1), LOG_LINE):
            yield log_line(whole[start : start + LOG_LINE])
