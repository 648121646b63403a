"""Secrets are removed from texts: whole, in JSON and in a URL, and in front of a cut."""

from __future__ import annotations

import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.redaction import HIDDEN, MOST_LEARNED, KnownSecrets, forms

SECRET = 'c4/na+ry="of the\ttests"\\é'
SECRETS = st.text(st.characters(codec="utf-8"), min_size=8, max_size=60).filter(
    lambda text: len(text.strip()) >= 8
)
ASIDE = st.text(st.characters(codec="utf-8", exclude_characters="…"), max_size=30)
LIVE = "sk-live_9f8Akq7/2+Zp3mWv=xyz12345"
JWT = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
    "eyJpYXQiOjE3OTUzNjI2NDUsImV4cCI6MTc5NTM2NjI0NSwic3ViIjoibmlnaHRseSIsInNjb3BlIjpbImNoYXQiXX0."
    "5mhBHqs5_DTLdINd9p5m7ZJ6XD0Xc55kIaCRY5r6HRA"
)


@pytest.mark.parametrize(
    "quoted",
    [
        SECRET,
        json.dumps({"said": SECRET}),
        json.dumps({"said": SECRET}, ensure_ascii=False),
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        quote(json.dumps({"said": SECRET})),
    ],
)
def test_whole_secret_is_hidden_as_it_is_in_json_and_in_a_url(quoted: str) -> None:
    secrets = KnownSecrets([SECRET])
    said = f"refused: {quoted} (again)"
    for text in (secrets.redact_text(said), secrets.redact_data([said])[0]):
        assert HIDDEN in text
        assert text.startswith("refused: ")
        assert text.endswith(" (again)")
        assert not [form for form in forms(SECRET) if form in text]


@given(SECRETS, ASIDE, ASIDE, st.data())
def test_beginning_of_a_secret_in_front_of_a_cut_is_hidden(
    secret: str, before: str, after: str, data: st.DataObject
) -> None:
    """Errors cut what they quote of the service."""
    form = data.draw(st.sampled_from(forms(secret)))
    shown = form[: data.draw(st.integers(8, len(form)))]
    text = KnownSecrets([secret]).redact_text(f"{before}{shown}…{after}")
    assert not text.removesuffix(f"…{after}").endswith(shown)


def test_beginning_of_a_secret_is_hidden_as_far_as_it_goes() -> None:
    secrets = KnownSecrets([JWT])
    for cut in range(8, len(JWT) + 1):
        assert secrets.redact_text(f"Bearer {JWT[:cut]}…") == "Bearer ***…", cut


def test_cut_secret_stays_in_data() -> None:
    secrets = KnownSecrets([LIVE])
    rows = [[LIVE[:12], LIVE[-8:], LIVE[:-1]]]
    assert secrets.redact_data(rows) is rows
    assert secrets.redact_data([[LIVE, 1]]) == [["***", 1]]


def test_learned_secret_is_hidden_in_errors_and_log_lines_only() -> None:
    secrets = KnownSecrets()
    secrets.learn([LIVE])
    assert secrets.redact_text(f"no {LIVE}") == "no ***"
    assert secrets.redact_data(f"no {LIVE}") == f"no {LIVE}"


def test_secret_inside_a_longer_secret_does_not_uncover_it() -> None:
    secrets = KnownSecrets([LIVE[10:20], LIVE])
    assert secrets.redact_text(f"no {LIVE}") == "no ***"


def test_only_the_latest_learned_secrets_are_kept() -> None:
    """A page may hold a hundred thousand tokens, and each log line is searched for each secret."""
    secrets = KnownSecrets(["key-of-the-tests"])
    page = [f"token-number-{number:06}" for number in range(90_000)]
    assert secrets.learn(page[:10]) == page[:10]
    assert secrets.learn(page) == page[10:]
    assert len(list(secrets)) == 1 + MOST_LEARNED
    assert secrets.redact_text(f"{page[-1]} of key-of-the-tests") == "*** of ***"


def test_short_secret_is_hidden_only_as_a_separate_word() -> None:
    secrets = KnownSecrets(["hunter2", "abc"])
    assert secrets.redact_text("'hunter2' is not hunter22, abc") == "'***' is not hunter22, abc"
    assert secrets.redact_data("'hunter2'") == "'hunter2'"


def test_json_is_redacted_at_every_depth_and_unchanged_without_secrets() -> None:
    secrets = KnownSecrets(["key-of-the-tests"])
    value = {"a": [{"b": "a key-of-the-tests"}, 1, None], "c": "fine"}
    assert secrets.redact_data(value) == {"a": [{"b": "a ***"}, 1, None], "c": "fine"}
    assert value["a"] == [{"b": "a key-of-the-tests"}, 1, None]
    fine = {"a": ["fine"]}
    assert secrets.redact_data(fine) is fine
    assert secrets.redact_data("ends with key-of") == "ends with key-of"


def test_names_in_json_are_redacted_too() -> None:
    secrets = KnownSecrets(["key-of-the-tests"])
    value = {"b": [{"key-of-the-tests": "key-of-the-tests"}], "my key-of-the-tests": 1, "c": 2}
    assert secrets.redact_data(value) == {"b": [{"***": "***"}], "my ***": 1, "c": 2}


def test_fields_that_are_kept_are_not_redacted() -> None:
    secrets = KnownSecrets(["acme-corp-tenant"])
    value = {"items": [{"url": "https://acme-corp-tenant.example.com", "name": "acme-corp-tenant"}]}
    shown = {"items": [{"url": "https://acme-corp-tenant.example.com", "name": "***"}]}
    assert secrets.redact_data(value, keep={"url"}) == shown


def test_causes_of_an_error_are_redacted() -> None:
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
    KnownSecrets([secret]).hide_in(error)
    shown, one = [], error.__context__
    assert isinstance(one, RuntimeError)
    while one is not None:
        shown += [str(one), repr(one), str(vars(one))]
        one = one.__cause__ or one.__context__
    assert len(shown) >= 6
    assert secret not in " ".join([*shown, str(error), repr(error), str(vars(error))])
    assert error.details == {"said": {"why": ["***"]}}


def test_cause_that_cannot_be_redacted_is_removed() -> None:
    class Stubborn(Exception):
        def __str__(self) -> str:
            return "key-of-the-tests"

    error = PlatformError("failed")
    error.__cause__ = error.__context__ = Stubborn()
    KnownSecrets(["key-of-the-tests"]).hide_in(error)
    assert error.__cause__ is None
    assert error.__context__ is None


def test_circular_causes_are_redacted_once() -> None:
    first, second = PlatformError("a"), PlatformError("key-of-the-tests")
    first.__cause__, second.__context__ = second, first
    KnownSecrets(["key-of-the-tests"]).hide_in(first)
    assert str(second) == "***"


def test_learned_secret_is_returned_as_new_once() -> None:
    secrets = KnownSecrets(["first-secret"])
    assert secrets.learn(["second-secret", "first-secret", "second-secret", ""]) == [
        "second-secret"
    ]
    assert list(secrets) == ["first-secret", "second-secret"]
