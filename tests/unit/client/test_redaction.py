"""Secrets are taken out of texts, whole, encoded and cut."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.redaction import (
    HIDDEN,
    KnownSecrets,
    Redactor,
    base64_forms,
    forms,
    maskable,
)

SECRET = 'c4/na+ry="of the\ttests"\\é'
SECRETS = st.text(st.characters(codec="utf-8"), min_size=8, max_size=60).filter(
    lambda text: len(text.strip()) >= 8
)
ASIDE = st.text(st.characters(codec="utf-8", exclude_characters="…"), max_size=30)


@pytest.mark.parametrize(
    "quoted",
    [
        SECRET,
        json.dumps({"said": SECRET}),
        json.dumps({"said": SECRET}, ensure_ascii=False),
        json.dumps(json.dumps({"said": SECRET})),
        quote(SECRET),
        quote(SECRET, safe="").lower(),
        quote_plus(SECRET),
        repr({"said": SECRET}),
        quote_service(SECRET),
        base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(f"user:{SECRET}".encode()).decode(),
        base64.urlsafe_b64encode(f"me:{SECRET} and more".encode()).decode(),
    ],
)
def test_in_every_form_in_which_it_may_be_quoted(quoted: str) -> None:
    text = Redactor([SECRET]).text(f"refused: {quoted} (again)")
    assert HIDDEN in text
    assert text.startswith("refused: ")
    assert text.endswith(" (again)")
    for form in (*forms(SECRET), *base64_forms(SECRET)):
        assert form not in text


@given(SECRETS, ASIDE, ASIDE)
def test_base64_hides_it_wherever_it_falls(secret: str, before: str, after: str) -> None:
    coded = base64.b64encode(f"{before}{secret}{after}".encode()).decode()
    text = Redactor([secret]).text(f"({coded})")
    assert "***" in text
    assert not any(form in text for form in base64_forms(secret))


@given(SECRETS, st.integers(min_value=8), ASIDE)
def test_where_a_form_of_it_was_cut(secret: str, length: int, before: str) -> None:
    redactor = Redactor([secret])
    for form in forms(secret):
        beginning = form[: max(8, min(length, len(form)))]
        text = redactor.text(f"{before} {beginning}… and so on")
        assert beginning not in text


def test_a_short_one_is_hidden_where_it_stands_alone() -> None:
    redactor = Redactor(["hunter2", "abc"])
    assert redactor.text("'hunter2' is not hunter22, abc") == "'***' is not hunter22, abc"


def test_no_secret_hides_nothing() -> None:
    assert Redactor([]).text("all is well…") == "all is well…"


def test_json_is_redacted_in_every_depth_and_kept_where_there_is_nothing() -> None:
    secrets = KnownSecrets(["key-of-the-tests"])
    value = {"a": [{"b": "a key-of-the-tests"}, 1, None], "c": "fine"}
    assert secrets.redact(value) == {"a": [{"b": "a ***"}, 1, None], "c": "fine"}
    assert value["a"] == [{"b": "a key-of-the-tests"}, 1, None]
    fine = {"a": ["fine"]}
    assert secrets.redact(fine) is fine
    assert secrets.redact_data("ends with key-of-t") == "ends with key-of-t"


def test_names_in_json_are_redacted_too() -> None:
    secrets = KnownSecrets(["key-of-the-tests"])
    value = {"b": [{"key-of-the-tests": "key-of-the-tests"}], "my key-of-the-tests": 1, "c": 2}
    assert secrets.redact(value) == {"b": [{"***": "***"}], "my ***": 1, "c": 2}


def test_what_an_error_came_of_is_redacted_too() -> None:
    secret = "key-of-the-tests"
    error: PlatformError | None = None
    try:
        try:
            try:
                json.loads(f"no {secret}")
            except ValueError as broken:
                raise RuntimeError(2, f"first {secret}") from broken
        except RuntimeError:
            raise PlatformError(f"second {secret}", said={"why": [secret]})  # noqa: B904
    except PlatformError as raised:
        error = raised
    assert error is not None
    error.add_note(f"third {secret}")
    error.hide([secret])
    shown, one = [], error.__context__
    assert isinstance(one, RuntimeError)
    while one is not None:
        shown += [str(one), repr(one), str(vars(one))]
        one = one.__cause__ or one.__context__
    assert len(shown) >= 6
    assert secret not in " ".join([*shown, str(error), repr(error), str(vars(error))])
    assert error.details == {"said": {"why": ["***"]}}


def test_a_cause_that_cannot_be_redacted_is_no_longer_told() -> None:
    class Stubborn(Exception):
        def __str__(self) -> str:
            return "key-of-the-tests"

    error = PlatformError("failed")
    error.__cause__ = error.__context__ = Stubborn()
    error.hide(["key-of-the-tests"])
    assert error.__cause__ is None
    assert error.__context__ is None


def test_a_circle_of_causes_ends() -> None:
    first, second = PlatformError("a"), PlatformError("key-of-the-tests")
    first.__cause__, second.__context__ = second, first
    first.hide(["key-of-the-tests"])
    assert str(second) == "***"


def test_what_is_learned_is_new_once() -> None:
    secrets = KnownSecrets(["first-secret"])
    assert secrets.learn(["second-secret", "first-secret", "second-secret", ""]) == [
        "second-secret"
    ]
    assert list(secrets) == ["first-secret", "second-secret"]


def test_logs_are_given_every_form() -> None:
    masked = maskable([SECRET, "abc"])
    assert {SECRET, "abc", quote(SECRET), base64.b64encode(SECRET.encode()).decode()[:-4]} <= {
        *masked,
        *(form[:-1] for form in masked),
        *(form[:-2] for form in masked),
    }
    assert not [form for form in masked if len(form) < 8 and form != "abc"]


def test_of_two_forms_the_one_that_covers_more_of_a_cut_text_counts() -> None:
    """`canary%2` is the end of the address's form in either case."""
    text = "refused: " + ("canary%2F" * 9)[:-1]
    for secret in ("canary/" * 20, "canary/" * 21):
        assert Redactor([secret]).text(f"{text}…") == "refused: ***…"
