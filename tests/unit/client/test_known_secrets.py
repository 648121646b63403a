"""Secrets are removed from texts: whole, encoded and truncated."""

from __future__ import annotations

import base64
import html
import json
from hashlib import sha256
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.known_secrets import (
    FULLY_ENCODED,
    HIDDEN,
    LONG_RUN,
    Form,
    KnownSecrets,
    Redactor,
    all_forms,
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
def test_secret_is_hidden_in_every_quoted_form(quoted: str) -> None:
    text = Redactor([SECRET]).text(f"refused: {quoted} (again)")
    assert HIDDEN in text
    assert text.startswith("refused: ")
    assert text.endswith(" (again)")
    for form in (*forms(SECRET), *base64_forms(SECRET)):
        assert form not in text


@given(SECRETS, ASIDE, ASIDE)
def test_secret_is_hidden_in_base64_at_any_offset(secret: str, before: str, after: str) -> None:
    coded = base64.b64encode(f"{before}{secret}{after}".encode()).decode()
    text = Redactor([secret]).text(f"({coded})")
    assert "***" in text
    assert not any(form in text for form in base64_forms(secret))


@given(SECRETS, st.data())
def test_every_run_of_eight_characters_is_hidden_in_every_form(
    secret: str, data: st.DataObject
) -> None:
    redactor = Redactor([secret])
    for form in all_forms(secret):
        first = data.draw(st.integers(0, len(form.starts) - 9))
        last = data.draw(st.integers(first + 8, len(form.starts) - 1))
        run = form.data[form.starts[first] : form.starts[last]].decode()
        before = data.draw(st.sampled_from(["", "<", "<<", "<<<"]))
        text = redactor.text(f"{before}{run}>")
        assert HIDDEN in text, form
        assert run not in text, form
        assert redactor.value({"said": [f"({run})"]}) != {"said": [f"({run})"]}


LIVE = "sk-live_9f8Akq7/2+Zp3mWv=xyz12345"


@pytest.mark.parametrize(
    ("quoted", "shown"),
    [
        ("sk-live_9f8A…xyz12345", "***…***"),
        ("sk-live_9f8A...xyz12345", "***...***"),
        ("…_9f8Akq7/2+…", "…***…"),
        (LIVE.encode().hex(), "***"),
        (LIVE.encode().hex().upper(), "***"),
        ("sk-live_9f8Akq7&#x2F;2&#43;Zp3mWv&#x3d;xyz12345", "***&#x3d;***"),
        ("".join(f"&#{ord(c)};" for c in LIVE), "***"),
        (LIVE.replace("+", "\\u002B"), "***\\u002B***"),
        ("".join(f"\\u{ord(c):04x}" for c in LIVE), "***"),
        (LIVE.replace("/", "\\/"), "***"),
        (quote(quote(LIVE, safe=""), safe=""), "***"),
        (quote(LIVE, safe="").replace("%2F", "%2f").replace("%2B", "%2b"), "***"),
        ("sk-live_9f8A\nkq7/2+Zp3mWv\n=xyz12345", "***\n***\n***"),
    ],
)
def test_a_secret_is_hidden_as_services_shorten_wrap_and_encode_it(quoted: str, shown: str) -> None:
    found = Redactor([LIVE]).text(f"the key '{quoted}' is refused")
    assert found.endswith("' is refused")
    rest = found.removeprefix("the key '").removesuffix("' is refused")
    assert not [LIVE[at : at + 8] for at in range(len(LIVE) - 7) if LIVE[at : at + 8] in rest]
    assert rest == shown or "&" in shown or "u002B" in shown


HARD = "Tr<0ub&4dor='3/x+y>\"z`w-1_v"
"""A password: its characters are those that encoders treat differently."""


@pytest.mark.parametrize(
    "characters",
    ["<>&", "<>&'=", "<>&'\"+`"],
    ids=["as Go writes JSON", "as Gson does", "as .NET does"],
)
@pytest.mark.parametrize("pattern", ["\\u{:04x}", "\\u{:04X}"])
def test_a_secret_is_hidden_in_json_whatever_its_writer_escapes(
    characters: str, pattern: str
) -> None:
    in_json = json.dumps(HARD)
    for character in characters.replace('"', ""):
        in_json = in_json.replace(character, pattern.format(ord(character)))
    if '"' in characters:
        in_json = in_json.replace('\\"', pattern.format(ord('"')))
    assert Redactor([HARD]).text(f"refused: {in_json}") == 'refused: "***"'


@pytest.mark.parametrize(
    "markup",
    [
        html.escape(HARD),
        html.escape(HARD).replace("&#x27;", "&#39;"),
        html.escape(HARD).replace("&#x27;", "&apos;"),
        html.escape(HARD)
        .replace("&#x27;", "&#39;")
        .replace("/", "&#x2F;")
        .replace("=", "&#x3D;")
        .replace("`", "&#x60;"),
        html.escape("".join(c if c.isalnum() else f"&#{ord(c)};" for c in HARD)),
    ],
    ids=["as Python writes it", "as Jinja does", "as XML", "as Mustache does", "escaped twice"],
)
def test_a_secret_is_hidden_in_markup_whatever_its_writer_escapes(markup: str) -> None:
    assert Redactor([HARD]).text(f"<p>{markup}</p>") == "<p>***</p>"


def test_a_secret_is_hidden_as_a_browser_writes_it_in_an_address() -> None:
    text = "Tr(0ub)4dor'3/x!y*z&w"
    in_address = quote(text, safe="!'()*")
    assert Redactor([text]).text(f"?key={in_address}&a=1") == "?key=***&a=1"


def test_most_secret_forms_are_searched_by_few_words() -> None:
    words = {form: len(list(form.words())) / len(form.data) for form in all_forms(JWT)}
    assert all(share < 0.2 for form, share in words.items() if form.least == LONG_RUN)
    assert any(share > 0.9 for share in words.values())


@pytest.mark.parametrize("pattern", ["%{:02X}", "%{:02x}", "\\x{:02x}"])
def test_a_secret_is_hidden_with_each_character_as_a_number(pattern: str) -> None:
    coded = "".join(pattern.format(ord(character)) for character in LIVE)
    assert Redactor([LIVE]).text(f"({coded})") == "(***)"


@pytest.mark.parametrize(
    "text", ["\\u00e4\\u00f6", "&#xe4;&#xf6;", "&#228;&#246;", "%C3%A4", "\\xc3\\xa4"]
)
def test_escape_codes_that_are_not_secrets_are_skipped(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []
    run = Form.run

    def counted(form: Form, data: bytes, at: int, offset: int) -> tuple[int, int] | None:
        tried.append(at)
        return run(form, data, at, offset)

    monkeypatch.setattr(Form, "run", counted)
    redactor = Redactor([LIVE, JWT])
    assert redactor.text(text * 10_000) == text * 10_000
    assert not tried


def test_wrapped_base64_is_hidden_line_by_line() -> None:
    coded = base64.encodebytes(f"user:{LIVE * 4}".encode()).decode()
    assert set(Redactor([LIVE * 4]).text(coded).split()) == {"***"}


HEADER = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
PAYLOAD = (
    "eyJpYXQiOjE3OTUzNjI2NDUsImV4cCI6MTc5NTM2NjI0NSwic3ViIjoibmlnaHRseSIsInNjb3BlIjpbImNoYXQiXX0"
)
SIGNATURE = "5mhBHqs5_DTLdINd9p5m7ZJ6XD0Xc55kIaCRY5r6HRA"
JWT = f"{HEADER}.{PAYLOAD}.{SIGNATURE}"


@pytest.mark.parametrize(
    "quoted",
    [JWT, SIGNATURE[5:15], f"{PAYLOAD[20:]}.{SIGNATURE[:3]}", f"{HEADER}.{PAYLOAD}…", PAYLOAD[:60]],
)
def test_jwt_is_hidden_completely(quoted: str) -> None:
    text = Redactor([JWT]).text(f"Bearer {quoted} (refused)")
    assert text.startswith("Bearer ***")
    assert "eyJ" not in text
    assert text.endswith(" (refused)")


def test_another_token_with_the_same_beginning_stays_visible() -> None:
    other = f"{HEADER}.{PAYLOAD[:36]}{PAYLOAD[:36:-1]}.{SIGNATURE[::-1]}"
    assert Redactor([JWT]).text(other) == other


def test_share_sets_how_much_of_a_secret_must_appear() -> None:
    redactor = Redactor(["sk-live_9f8Akq7Zp3mWv"], share=0.5)
    assert redactor.text("sk-live_9") == "sk-live_9"
    assert redactor.text("sk-live_9f8Akq") == "***"


def test_fewer_than_eight_characters_of_a_secret_are_not_hidden() -> None:
    text = "sk-live is the prefix of 9f8Akq7 and xyz1234"
    assert Redactor([LIVE]).text(text) == text


@given(st.lists(SECRETS, max_size=5), st.text(max_size=200))
def test_a_text_without_a_secret_is_returned_as_it_is(secrets: list[str], text: str) -> None:
    redactor = Redactor(secrets)
    runs = {
        form.data[form.starts[at] : form.starts[at + 8]]
        for secret in secrets
        for form in all_forms(secret)
        for at in range(len(form.starts) - 8)
    }
    if not any(run in text.encode("utf-8", "surrogatepass") for run in runs):
        assert redactor.text(text) is text


def test_the_first_learned_secrets_are_hidden_in_every_form_and_the_others_as_they_are() -> None:
    learned = [sha256(bytes([number])).hexdigest()[:24] for number in range(FULLY_ENCODED + 1)]
    secrets = KnownSecrets(["key-of-the-tests"])
    secrets.learn(learned)
    for secret in learned:
        assert secrets.redact(f"<{secret}>") == "<***>"
        assert secrets.redact(f"<{quote(secret)}>") == "<***>"
    first, last = (
        base64.b64encode(secret.encode()).decode() for secret in (learned[0], learned[-1])
    )
    assert secrets.redact(first) == "***"
    assert last[-6:] in secrets.redact(last)


def test_short_secret_is_hidden_only_as_a_separate_word() -> None:
    redactor = Redactor(["hunter2", "abc"])
    assert redactor.text("'hunter2' is not hunter22, abc") == "'***' is not hunter22, abc"


def test_empty_list_of_secrets_changes_no_text() -> None:
    assert Redactor([]).text("all is well…") == "all is well…"


def test_json_is_redacted_at_every_depth_and_unchanged_without_secrets() -> None:
    secrets = KnownSecrets(["key-of-the-tests"])
    value = {"a": [{"b": "a key-of-the-tests"}, 1, None], "c": "fine"}
    assert secrets.redact(value) == {"a": [{"b": "a ***"}, 1, None], "c": "fine"}
    assert value["a"] == [{"b": "a key-of-the-tests"}, 1, None]
    fine = {"a": ["fine"]}
    assert secrets.redact(fine) is fine
    assert secrets.redact("ends with key-of") == "ends with key-of"


def test_names_in_json_are_redacted_too() -> None:
    secrets = KnownSecrets(["key-of-the-tests"])
    value = {"b": [{"key-of-the-tests": "key-of-the-tests"}], "my key-of-the-tests": 1, "c": 2}
    assert secrets.redact(value) == {"b": [{"***": "***"}], "my ***": 1, "c": 2}


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
    Redactor([secret]).error(error)
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
    Redactor(["key-of-the-tests"]).error(error)
    assert error.__cause__ is None
    assert error.__context__ is None


def test_circular_causes_are_redacted_once() -> None:
    first, second = PlatformError("a"), PlatformError("key-of-the-tests")
    first.__cause__, second.__context__ = second, first
    Redactor(["key-of-the-tests"]).error(first)
    assert str(second) == "***"


def test_learned_secret_is_returned_as_new_once() -> None:
    secrets = KnownSecrets(["first-secret"])
    assert secrets.learn(["second-secret", "first-secret", "second-secret", ""]) == [
        "second-secret"
    ]
    assert list(secrets) == ["first-secret", "second-secret"]


def test_log_masking_gets_every_form_of_a_secret() -> None:
    masked = maskable([SECRET, "abc"])
    assert {SECRET, "abc", quote(SECRET), base64.b64encode(SECRET.encode()).decode()[:-4]} <= {
        *masked,
        *(form[:-1] for form in masked),
        *(form[:-2] for form in masked),
    }
    assert not [form for form in masked if len(form) < 8 and form != "abc"]
