"""Patterns of web addresses."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.connection_fields import check_patterns, fill_patterns
from airflow_provider_platform.client.errors import PlatformConfigError


def fill(pattern: str, values: dict[str, object]) -> str | None:
    return fill_patterns({"link": pattern}, values).get("link")


def built(web_links: object) -> PlatformConfig:
    return PlatformConfig.build(
        host="https://acme.example.com/api", management_token="t", web_links=web_links
    )


@given(st.text(min_size=1))
def test_id_in_a_link_is_always_one_path_segment(chat_id: str) -> None:
    pattern = "https://acme.example.com/chats/{chat_id}?tab=1"
    try:
        address = fill(pattern, {"chat_id": chat_id})
    except UnicodeEncodeError:
        return  # half a surrogate pair is no text
    assert address is not None
    parts = urlsplit(address)
    assert (parts.netloc, parts.query) == ("acme.example.com", "tab=1")
    assert parts.path.count("/") == 2
    assert unquote(parts.path.rpartition("/")[2]) == chat_id


def test_a_path_keeps_its_slashes() -> None:
    pattern = "https://files.example.com/{path}"
    assert fill(pattern, {"path": "bucket/a b.pdf"}) == "https://files.example.com/bucket/a%20b.pdf"


@pytest.mark.parametrize("values", [{}, {"chat_id": None}, {"chat_id": ""}])
def test_pattern_without_its_value_gives_no_address(values: dict[str, object]) -> None:
    assert fill("https://acme.example.com/{chat_id}", values) is None


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ([], "must be a JSON object"),
        ({"chat": "https://a.example"}, "unknown key 'chat'"),
        ({"thread": "javascript:alert(1)//{chat_id}"}, "must have a web address"),
        ({"thread": "https://{chat_id}.example.com/"}, "must have a web address"),
        ({"thread": "/chats/{chat_id}"}, "must have a web address"),
        (
            {"thread": "https://ann:pw@acme.example.com/{chat_id}"},
            "must not contain a user name or password",
        ),
        ({"thread": "https://acme.example.com/{report_id}"}, "{agent_id} and {chat_id}"),
        ({"thread": "https://acme.example.com/{}"}, "not {}"),
        ({"file": "https://files.example.com/{sha256}"}, "only {path} as placeholder"),
        ({"thread": 7}, "must have a web address"),
    ],
)
def test_a_pattern_that_cannot_be_filled_is_refused(given: object, rule: str) -> None:
    with pytest.raises(ValueError, match=rule.replace("{", r"\{").replace("}", r"\}")):
        check_patterns(given)


def test_error_about_a_link_pattern_names_the_connection_field() -> None:
    with pytest.raises(PlatformConfigError, match="unknown key 'chat'") as refused:
        built('{"chat": "https://acme.example.com"}')
    assert refused.value.field == "web_links"
    with pytest.raises(PlatformConfigError, match="must be a JSON object"):
        built("not JSON")


@pytest.mark.parametrize("untouched", [None, "", "null", {}, {"thread": ""}, '{"thread": ""}'])
def test_untouched_form_field_sets_no_pattern(untouched: object) -> None:
    assert built(untouched).web_links is None
