"""The result in the log: complete, in one group, and no line of the answer forges a log line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.messages.message import ANSWER_LINES, log_lines

RESULT = {
    "answer": "Up.\nBy 5 %.",
    "queries": [
        {
            "title": "Revenue",
            "columns": [{"name": "amount"}, {"name": "country"}],
            "rows": [[5, "Spain"], [1200, "Italy"]],
            "total_rows": 300,
            "path": "s3://lake/revenue.parquet",
            "chart_paths": ["s3://lake/revenue.png"],
        },
        {"title": "Broken", "error": "Bad branch"},
    ],
    "manifest": "s3://lake/manifest.json",
}


def test_complete_result_is_logged_in_one_group() -> None:
    assert list(log_lines(RESULT)) == [
        "Answer: Up.",
        "By 5 %.",
        "::group::Rows and files",
        "",
        "Revenue (2 of 300 rows)",
        "amount  country",
        "───────────────",
        "     5  Spain",
        "  1200  Italy",
        "Rows: s3://lake/revenue.parquet",
        "Chart: s3://lake/revenue.png",
        "",
        "Broken",
        "failed: Bad branch",
        "",
        "Manifest: s3://lake/manifest.json",
        "::endgroup::",
    ]


@given(st.text() | st.sampled_from(["::endgroup::", "##[endgroup]", "a\x1b[2Jb", "x" * 2000]))
def test_text_cannot_end_a_log_group_or_a_line(text: str) -> None:
    result = {"answer": text, "queries": [{"title": text, "error": text}], "manifest": text}
    lines = list(log_lines(result))
    inner = [line for line in lines[:-1] if line != "::group::Rows and files"]
    assert len(inner) == len(lines) - 2
    assert all(line.isprintable() for line in lines)
    assert not any("::endgroup::" in line or "##[endgroup]" in line for line in inner)


def test_long_answer_is_logged_in_full() -> None:
    text = "".join(f"{number} " for number in range(2000))
    lines = list(log_lines({"answer": text}))
    assert "".join(lines) == f"Answer: {text}"
    assert max(map(len, lines)) <= len("Answer: ") + 500


def test_log_of_a_very_long_answer_is_limited() -> None:
    *lines, last = log_lines({"answer": "x" * 10_000_000})
    assert len(lines) == ANSWER_LINES
    assert last == "… (10000000 characters; all of them are in the task's result)"
