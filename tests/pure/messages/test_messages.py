"""Messages show data as text, within the limits of each target."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from airflow_provider_platform.messages import mail, markdown, slack
from airflow_provider_platform.messages.message import Message, line, message_of, to_plain

NASTY = [
    "<!channel> <@U123> <https://evil.example|click>", "@here @channel", "[a](https://evil.example)",
    "![x](https://evil.example/x.png)", "```\nend", "`code`", "<script>alert(1)</script>",
    "| a | b |\n|---|---|", "# heading", "**bold** __x__ ~~y~~", "a\r\nBcc: x@evil.example",
    "\x1b[31mred\x1b[0m", "</pre><img src=x onerror=y>", "&lt;!channel&gt;", "https://evil.example",
    "\u202egnp.exe", "    indented code", "1. list", "{{ conn.secret }}", "'\" onload=\"x",
]  # fmt: skip
TEXTS = st.one_of(st.sampled_from(NASTY), st.text(max_size=60), st.text("<>&@`*|\n", max_size=4000))
VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
QUERY = st.fixed_dictionaries(
    {
        "title": TEXTS,
        "columns": st.lists(st.fixed_dictionaries({"name": TEXTS, "type": TEXTS}), max_size=4),
        "rows": st.lists(st.lists(VALUES, min_size=4, max_size=4), max_size=4),
        "total_rows": st.integers(0, 10**6),
        "error": st.none() | TEXTS,
        "chart": st.none() | st.just({"mark": "bar"}),
        "path": st.none() | TEXTS,
        "chart_paths": st.lists(TEXTS, max_size=2),
    }
)
RESULTS = st.fixed_dictionaries({"answer": TEXTS, "queries": st.lists(QUERY, max_size=3)})
REVENUE = {
    "title": "Revenue",
    "columns": [{"name": "country", "type": "String"}, {"name": "revenue", "type": "Double"}],
    "rows": [["Spain", 30], ["Italy", 15]],
    "total_rows": 2,
    "chart": {"mark": "bar", "encoding": {"x": {"field": "country"}, "y": {"field": "revenue"}}},
}


def nasty(text: str) -> Message:
    query = {**REVENUE, "title": text, "rows": [[text, text]], "total_rows": 1, "path": text}
    query["columns"] = [{"name": text}, {"name": "b"}]
    failed = {"title": text, "error": text}
    result = {"answer": text, "queries": [query, failed]}
    return message_of(result, title=text, facts=[(text, text)], link=f"https://a.example/{text}")


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for one in inner for text in strings(one)]


def check_slack(text: str, blocks: list[dict[str, Any]]) -> None:
    assert 1 <= len(blocks) <= 50
    assert len(text) <= 3000
    for block in blocks:
        assert block["type"] in {"header", "section", "context"}
        for one in block.get("elements", [block.get("text")]):
            assert 1 <= len(one["text"]) <= {"header": 150}.get(block["type"], 3000)
            marks = re.sub(r"<https://[^<>|]*\|Open in Airflow>", "", one["text"])
            if one["type"] == "plain_text":
                assert one["emoji"] is False
                marks = one["text"]
            assert not set("<>") & set(marks)
            assert "@here" not in marks
            assert re.fullmatch(r"(?:[^&]|&(?:amp|lt|gt);)*", marks)
            if one["text"].startswith("```"):
                assert one["text"].count("```") == 2
                assert one["text"].endswith("\n```")
    assert not set("<>") & set(text)
    json.dumps(blocks)


@given(RESULTS)
def test_slack_message_escapes_markup_and_keeps_to_the_limits(result: dict[str, Any]) -> None:
    check_slack(*slack.to_slack(message_of(result, title="Weekly")))


@pytest.mark.parametrize("text", NASTY)
def test_slack_shows_answers_as_plain_text(text: str) -> None:
    shown, blocks = slack.to_slack(nasty(text))
    check_slack(shown, blocks)


def test_a_long_answer_and_many_queries_stay_within_slacks_limits() -> None:
    result = {"answer": ("line & more " * 50 + "\n") * 200, "queries": [REVENUE] * 40}
    text, blocks = slack.to_slack(message_of(result, title="t" * 500))
    check_slack(text, blocks)
    assert any("more parts" in one for one in strings(blocks))
    assert text.endswith("…")


def test_slack_draws_table_and_bars_as_code() -> None:
    _, blocks = slack.to_slack(message_of({"answer": "A", "queries": [REVENUE]}, title="Weekly"))
    code = [one for one in strings(blocks) if one.startswith("```")]
    assert "country  revenue" in code[0]
    assert re.search(r"Spain +█+ 30\n", code[1])


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(html: str) -> _Elements:
    parser = _Elements()
    parser.feed(html)
    return parser


ALLOWED = {"div", "h2", "h3", "p", "br", "a", "img", "pre", "table", "tr", "th", "td",
           "thead", "tbody", "code"}  # fmt: skip


def check_html(html: str) -> None:
    for tag, attributes in parsed(html).found:
        assert tag in ALLOWED
        assert set(attributes) <= {"style", "href", "src", "alt"}
        assert (attributes.get("href") or "https://").startswith("https://")
        assert (attributes.get("src") or "cid:").startswith("cid:")


@given(RESULTS)
def test_mail_contains_only_known_html_elements(result: dict[str, Any]) -> None:
    check_html(mail.to_html(message_of(result, title="Weekly"), {0: "cid:chart-1.png"}))


@pytest.mark.parametrize("text", NASTY)
def test_mail_shows_any_text_escaped(text: str) -> None:
    message = nasty(text)
    html = mail.to_html(message)
    check_html(html)
    assert "\n" not in mail.subject(message)
    assert "\r" not in mail.subject(message)


def test_a_mail_shows_the_picture_in_the_place_of_bars() -> None:
    message = message_of({"answer": "A", "queries": [REVENUE]}, title="Weekly")
    with_picture = mail.to_html(message, {0: "cid:chart-1.png"})
    assert 'src="cid:chart-1.png"' in with_picture
    assert "█" not in with_picture
    assert "█" in mail.to_html(message)
    assert "Spain" in parsed(with_picture).text


MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
MARKS = st.text("*_~`#+-=|:<>[]()!&;\\@.1a \u00a0", max_size=12)
PLAIN = {"text", "softbreak", "hardbreak"}
BLOCKS = {
    f"{kind}_{end}"
    for kind in ("heading", "paragraph", "table", "thead", "tbody", "tr", "th", "td")
    for end in ("open", "close")
}


def visible(text: str) -> str:
    """What a reader sees of a text, without spaces."""
    return re.sub(rf"\s|{markdown.ZERO_WIDTH}", "", text)


def texts_of(document: str) -> list[str]:
    """What a reader sees of each heading, paragraph and cell, none of which may hold markup."""
    found = []
    for token in MARKDOWN.parse(document):
        assert token.type in {*BLOCKS, "inline"}, document
        children = token.children or []
        assert {one.type for one in children} <= PLAIN, document
        found.append(visible("".join(one.content for one in children)))
    return [text for text in found if text]


@pytest.mark.parametrize("text", NASTY)
def test_page_of_a_message_has_its_pictures_inside(text: str) -> None:
    page = mail.to_page(nasty(text), {0: b"PNG"})
    found = parsed(page).found
    assert [one["src"] for tag, one in found if tag == "img"] == ["data:image/png;base64,UE5H"]
    assert {tag for tag, _ in found} <= {*ALLOWED, "html", "head", "meta", "title", "body"}
    assert page.count("<title>") == page.count("</title>") == 1
    assert "█" not in page


@given(TEXTS | MARKS)
def test_markdown_shows_any_text_as_it_is(text: str) -> None:
    escaped, cell = markdown.escape(text), markdown.escape_cell(text)
    seen = visible(line(text))
    assert texts_of(f"{escaped}\n") == [seen] * bool(seen)
    assert texts_of(f"{escaped}  \n{escaped}  \nafter\n") == [f"{seen}{seen}after"]
    assert texts_of(f"## {escaped}\n") == [seen] * bool(seen)
    table = f"| {cell} | b |\n| --- | --- |\n| {cell} | {cell} |\n"
    assert texts_of(table) == [one for one in (seen, "b", seen, seen) if one]
    assert not re.search(r"\b(https?|ftp):/|\bwww\.|@(here|channel|all)", escaped, re.IGNORECASE)


@pytest.mark.parametrize(
    "text",
    [
        "a_b_c", "/tmp/weekly_report/query-1.parquet", "s3://lake@bucket/1-2/x.csv", "1.5", "-3",
        "manual__2026-07-20T10:00:00+00:00", "analyst@acme.example.com", "C:\\new", "2 * 3",
        "Up by 5 %.", "Spain: 31,800.90 €", "(a) [1, 2] {b}", "#bi", "~/x", "R&D", "a < b > c",
        "x | y", 'it\'s "so"!', "2025-03-01", "+4", "50 $",
    ],
)  # fmt: skip
def test_markdown_leaves_names_paths_and_numbers_as_they_are(text: str) -> None:
    assert markdown.escape(text) == text


@pytest.mark.parametrize(
    ("text", "code"), [("a_b", "`a_b`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("", "")]
)
def test_path_in_markdown_is_code(text: str, code: str) -> None:
    assert markdown.code(text) == code


@pytest.mark.parametrize("text", NASTY)
def test_any_text_keeps_the_structure_of_the_markdown(text: str) -> None:
    found = markdown.to_markdown(nasty(text))
    tokens = MARKDOWN.parse(found)
    assert [token.tag for token in tokens if token.type == "heading_open"] == ["h2", "h3", "h3"]
    assert {token.type for token in tokens} <= {*BLOCKS, "inline", "fence"}
    children = [one for token in tokens for one in token.children or ()]
    assert {one.type for one in children} <= {*PLAIN, "code_inline", "link_open", "link_close"}
    links = [one.attrs["href"] for one in children if one.type == "link_open"]
    assert all(str(one).startswith("https://a.example/") for one in links)
    assert len(links) <= 1
    assert "\x1b" not in found


def test_markdown_shows_the_picture_in_the_place_of_bars() -> None:
    message = message_of({"answer": "A", "queries": [REVENUE]}, title="Weekly")
    found = markdown.to_markdown(message, {0: "chart (1).png"})
    [picture] = [one for token in MARKDOWN.parse(found) for one in token.children or ()
                 if one.type == "image"]  # fmt: skip
    assert (picture.attrs["src"], picture.content) == ("chart%20%281%29.png", "Revenue")
    assert "█" not in found
    assert "█" in markdown.to_markdown(message)


def test_code_in_markdown_is_ended_by_its_own_fence_only() -> None:
    drawn = markdown.fenced(["a ``` b", "````"]).splitlines()
    assert drawn[0] == drawn[-1] == "`````"


def test_markdown_has_title_answer_and_tables() -> None:
    message = message_of(
        {"answer": "Up by 5 %.\nGood.", "queries": [REVENUE]},
        title="Weekly",
        facts=[("DAG", "weekly_report")],
        link="https://airflow.example/run?a=1",
    )
    found = markdown.to_markdown(message)
    assert found.startswith("## Weekly\n\nUp by 5 %.  \nGood.\n\n### Revenue\n\n")
    assert "| country | revenue |\n| --- | ---: |\n| Spain | 30 |\n" in found
    assert found.endswith(
        "DAG: weekly_report  \n[Open in Airflow](<https://airflow.example/run?a=1>)\n"
    )


@given(RESULTS)
def test_plain_text_has_no_control_characters(result: dict[str, Any]) -> None:
    found = to_plain(message_of(result, title="Weekly"))
    assert all(one.isprintable() for one in found.split("\n"))


def test_the_result_of_a_query_task_is_a_section() -> None:
    rows = [["Spain", 3]]
    result = {"columns": REVENUE["columns"], "rows": rows, "row_count": 5000, "path": "s3://b/x"}
    found = to_plain(message_of(result, title="Rows"))
    assert "Query (1 of 5,000 rows)" in found
    assert "Rows: s3://b/x" in found


@pytest.mark.parametrize(
    "result", [None, {}, {"queries": None}, {"queries": ["x"]}, {"answer": None}]
)
def test_empty_result_still_gives_a_message(result: Any) -> None:
    message = message_of(result, title="Failed", text="It failed.")
    assert to_plain(message) == "Failed\nIt failed."
    assert slack.to_slack(message)[0] == "Failed It failed."


def test_any_other_result_is_shown_as_text() -> None:
    assert "done" in to_plain(message_of("done", title="T"))


def test_invalid_link_is_left_out_of_the_message() -> None:
    assert message_of(None, title="T", link="javascript:x").link is None


def test_a_chart_of_some_rows_is_not_drawn() -> None:
    query = {**REVENUE, "total_rows": 100}
    assert "█" not in to_plain(message_of({"answer": "A", "queries": [query]}, title="T"))
