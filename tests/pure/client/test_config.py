"""The connection's fields: accepted values and forms, and the messages of refusals."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import SecretStr

from airflow_provider_platform.client.config import (
    PlatformConfig,
    fingerprint,
    session_settings,
    unverified_claims,
)
from airflow_provider_platform.client.connection_fields import FIELDS
from airflow_provider_platform.client.errors import PlatformConfigError, PlatformInputError

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_platform.client.connection_fields import AnyField

SECRET = "canary-5f2b"
HOST = "https://acme.example.com/api"
CHAT = "https://ai.eu.example.com/api/v1/public/acme/agents/7/chat"
MANAGEMENT = {"host": HOST, "management_token": SECRET}
CHATTING: dict[str, Any] = {
    "chat_url": CHAT,
    "chat_api_key": SECRET,
    "session_settings": {"externalId": "nightly"},
}


def refused(field: str, **fields: Any) -> str:
    with pytest.raises(PlatformConfigError) as caught:
        PlatformConfig.build(**fields)
    assert caught.value.field == field
    assert field in caught.value.message
    assert SECRET not in repr(caught.value) + str(caught.value.to_payload())
    assert not caught.value.retryable
    return caught.value.message


def jwt(claims: Any) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()) for part in ({}, claims)]
    return ".".join([part.decode().rstrip("=") for part in parts] + ["c2ln"])


@pytest.mark.parametrize(
    ("host", "port", "expected"),
    [
        (HOST, None, HOST),
        ("https://acme.example.com", None, HOST),
        ("acme.example.com", None, HOST),
        ("acme.example.com/", None, HOST),
        ("//acme.example.com", None, HOST),
        ("https://acme.example.com/api/", None, HOST),
        (" https://ACME.example.com/api \n", None, HOST),
        ("https://acme.example.com/api/v1", None, HOST),
        ("https://acme.example.com/api/v1/", None, HOST),
        ("acme.example.com/v1", None, HOST),
        ("HTTPS://acme.example.com:443/api", None, HOST),
        ("acme.example.com", 0, HOST),
        ("acme.example.com", 443, HOST),
        ("acme.example.com", "443", HOST),
        ("acme.example.com", 8443, "https://acme.example.com:8443/api"),
        ("acme.example.com", "8443", "https://acme.example.com:8443/api"),
        ("acme.example.com:9443", 8443, "https://acme.example.com:9443/api"),
        ("https://acme.example.com/platform", None, "https://acme.example.com/platform/api"),
        ("http://127.0.0.1:8080", None, "http://127.0.0.1:8080/api"),
        ("http://localhost:8080/api", None, "http://localhost:8080/api"),
        ("http://[::1]:8080", None, "http://[::1]:8080/api"),
        ("http://127.0.0.1", 8080, "http://127.0.0.1:8080/api"),
        ("http://127.0.0.1:80", None, "http://127.0.0.1/api"),
        ("https://[2001:db8::1]", None, "https://[2001:db8::1]/api"),
        ("https://bücher.example", None, "https://bücher.example/api"),
    ],
)
def test_management_address_is_normalized(host: str, port: Any, expected: str) -> None:
    config = PlatformConfig.build(host=host, port=port, management_token=SECRET)
    assert config.management_url == expected


BAD_ADDRESSES = [
    ("ftp://acme.example.com", "https://"),
    ("https://user@acme.example.com", "user name or password"),
    (f"https://user:{SECRET}@acme.example.com", "user name or password"),
    (f"https://acme.example.com/api?token={SECRET}", "query or a fragment"),
    (f"https://acme.example.com/api#{SECRET}", "query or a fragment"),
    ("https://acme.example.com/api?", "query or a fragment"),
    ("https://acme.example.com/../api", "relative path segments"),
    ("https://acme.example.com/%2E%2e/api", "relative path segments"),
    ("https://acme.example.com/a%2f..%2fb", "relative path segments"),
    ("https://acme.example.com/./api", "relative path segments"),
    ("https://acme.example.com//api", "empty or relative"),
    ("https://acme.example.com/api//", "empty or relative"),
    ("https://acme .example.com", "white space"),
    ("https://acme\\example.com", "backslash"),
    ("https://acme.example.com/\u2028/api", "white space"),
    ("https://", "has no host name"),
    ("https:/acme.example.com", "has no host name"),
    ("https://acme..example.com", "has no host name"),
    ("https://-acme.example.com", "has no host name"),
    ("https://acme.example.com:", "has no host name"),
    ("https://acme.example.com:port", "is not a web address"),
    ("https://acme.example.com:99999", "is not a web address"),
    ("https://acme.example.com:0", "port from 1 to 65535"),
    ("https://[::1", "is not a web address"),
    ("http://acme.example.com", "must begin with https"),
    ("http://127.0.0.1.example.com", "must begin with https"),
    ("http://localhost.example.com", "must begin with https"),
]


@pytest.mark.parametrize(("address", "rule"), BAD_ADDRESSES)
def test_invalid_addresses_are_refused_in_every_field(address: str, rule: str) -> None:
    assert rule in refused("host", host=address, management_token=SECRET)
    assert rule in refused("data_api_url", **MANAGEMENT, data_api_url=address)
    assert refused("chat_url", **{**CHATTING, "chat_url": address})


@pytest.mark.parametrize(
    "port", ["eighty", -1, 65536, "1.5"], ids=["words", "negative", "large", "fraction"]
)
def test_invalid_ports_are_refused(port: Any) -> None:
    assert "0 to 65535" in refused("port", **MANAGEMENT, port=port)


@pytest.mark.parametrize(
    "address",
    [
        CHAT,
        f"{CHAT}/",
        f"{CHAT}/stream-chat-state",
        f"{CHAT}/stream-chat-state/",
        CHAT.removesuffix("/chat"),
        CHAT.removesuffix("chat"),
    ],
)
@pytest.mark.parametrize("kind", ["agents", "deployments"])
def test_chat_address_is_normalized(address: str, kind: str) -> None:
    given, expected = (text.replace("/agents/", f"/{kind}/") for text in (address, CHAT))
    assert PlatformConfig.build(**{**CHATTING, "chat_url": given}).chat_url == expected


@pytest.mark.parametrize(
    "address",
    [
        f"{CHAT}/abort",
        f"{CHAT}s",
        CHAT.removesuffix("/7/chat"),
        CHAT.removesuffix("/agents/7/chat"),
        "https://acme.example.com",
    ],
)
def test_a_chat_address_ends_in_chat(address: str) -> None:
    assert "must end in /chat" in refused("chat_url", **{**CHATTING, "chat_url": address})


@pytest.mark.parametrize("allow_http", [True, "true", "1", "Yes"])
def test_plain_http_needs_allow_http(allow_http: Any) -> None:
    config = PlatformConfig.build(
        host="http://platform.internal",
        management_token=SECRET,
        data_api_url="http://data.internal/cubejs-api/",
        allow_http=allow_http,
    )
    assert config.management_url == "http://platform.internal/api"
    assert config.data_api_url == "http://data.internal/cubejs-api"


HOSTS = st.from_regex(r"[a-z][a-z0-9]{0,8}(\.[a-z][a-z0-9]{0,8}){0,3}", fullmatch=True)
SEGMENTS = st.lists(st.from_regex(r"[A-Za-z0-9_~-]{1,8}", fullmatch=True), max_size=3)


@given(host=HOSTS, port=st.none() | st.integers(1, 65535), path=SEGMENTS, slash=st.booleans())
def test_normalizing_an_address_twice_changes_nothing(
    host: str, port: int | None, path: list[str], slash: bool
) -> None:
    given_ = host + (f":{port}" if port else "") + "".join(f"/{part}" for part in path)
    config = PlatformConfig.build(host=given_ + "/" * slash, management_token=SECRET)
    url = str(config.management_url)
    assert url.startswith(f"https://{host}")
    assert url.endswith("/api")
    assert PlatformConfig.build(host=url, management_token=SECRET).management_url == url


@given(st.text(st.characters() | st.sampled_from("/:@?#.%[]\\ "), max_size=30))
@example("/@")
@example(":s3cret@x")
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        config = PlatformConfig.build(host=f"h{text}", management_token=SECRET)
    except PlatformConfigError as error:
        refusal = error
        assert refusal.field == "host"
        return
    url = str(config.management_url)
    assert url.startswith("https://")
    assert url.endswith("/api")
    parts = urlsplit(url)
    assert "@" not in parts.netloc  # in a path it is a character like others
    assert not set(url) & set("?#\\ ")
    assert "/../" not in url


def test_configuration_may_have_only_one_api() -> None:
    management = PlatformConfig.build(**MANAGEMENT, chat_url="", chat_api_key=None)
    assert (management.management_url, management.chat_url) == (HOST, None)
    chat = PlatformConfig.build(**CHATTING, host="", management_token=None)
    assert (chat.management_url, chat.chat_url) == (None, CHAT)


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("host", {}),
        ("host", {"management_token": SECRET}),
        ("password", {"host": HOST}),
        ("password", {"host": HOST, "management_token": "  "}),
        ("chat_url", {**MANAGEMENT, "chat_api_key": SECRET}),
        ("chat_url", {"chat_service_token": SECRET}),
        ("chat_api_key", {"chat_url": CHAT}),
        ("chat_service_token", {**CHATTING, "chat_service_token": SECRET}),
    ],
)
def test_missing_and_superfluous_fields_are_refused(field: str, fields: dict[str, Any]) -> None:
    refused(field, **fields)


SECRETS = [
    ("password", "management_token", MANAGEMENT),
    ("chat_api_key", "chat_api_key", CHATTING),
    ("chat_service_token", "chat_service_token", {"chat_url": CHAT}),
]


@pytest.mark.parametrize(("field", "argument", "fields"), SECRETS)
@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("***", "masked"),
        (f"Bearer {SECRET}", "bare secret"),
        (f"Api-Key {SECRET}", "bare secret"),
        (f"{SECRET}\nX-Evil: 1", "white space"),
        (f"{SECRET} {SECRET}", "white space"),
        (f"{SECRET}é", "white space or characters"),
        (f"{SECRET}\x00", "white space or characters"),
    ],
)
def test_invalid_secrets_are_refused(
    field: str, argument: str, fields: dict[str, Any], value: str, rule: str
) -> None:
    assert rule in refused(field, **{**fields, argument: value})


@pytest.mark.parametrize(("field", "argument", "fields"), SECRETS)
def test_secrets_show_nowhere(field: str, argument: str, fields: dict[str, Any]) -> None:
    for value in (SECRET, f"  {SECRET}\n", SecretStr(SECRET)):
        config = PlatformConfig.build(**{**fields, argument: value})
        assert config.secrets == [SECRET]
        shown = [repr(config), str(config), config.model_dump_json(), str(config.model_dump())]
        assert not [text for text in shown if SECRET in text]


def test_of_a_proxys_address_only_the_password_is_a_secret() -> None:
    config = PlatformConfig.build(**MANAGEMENT, proxy=f"http://me:{SECRET}@proxy.example:3128")
    assert config.secrets == [SECRET, SECRET]
    assert SECRET not in repr(config)


@pytest.mark.parametrize("proxy", [f"ftp://{SECRET}@proxy", "http://", "http://pro xy"])
def test_invalid_proxies_are_refused(proxy: str) -> None:
    refused("proxy", **MANAGEMENT, proxy=proxy)


@pytest.mark.parametrize("proxy", ["proxy.example:3128", "http://proxy.example:3128"])
def test_proxy_address_gets_its_scheme(proxy: str) -> None:
    config = PlatformConfig.build(**MANAGEMENT, proxy=proxy)
    assert config.proxy == SecretStr("http://proxy.example:3128")


def test_reloaded_connection_may_change_credentials_but_not_addresses() -> None:
    config = PlatformConfig.build(**MANAGEMENT)
    assert config.same_endpoints(PlatformConfig.build(host=HOST, management_token="new"))
    assert not config.same_endpoints(
        PlatformConfig.build(host="x.example", management_token=SECRET)
    )


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("deployment_id", None, None),
        ("deployment_id", "", None),
        ("deployment_id", " 7 ", 7),
        ("deployment_id", 7, 7),
        ("default_row_limit", None, None),
        ("default_row_limit", " 20000 ", 20_000),
        ("max_row_limit", "", None),
        ("max_row_limit", 20_000, 20_000),
        ("request_timeout", None, 60.0),
        ("request_timeout", "2.5", 2.5),
        ("stream_idle_timeout", "", 120.0),
        ("stream_idle_timeout", 30, 30.0),
        ("max_attempts", None, 5),
        ("max_attempts", "1", 1),
        ("verify_tls", None, True),
        ("verify_tls", "false", False),
        ("allow_http", None, False),
        ("allow_http", "0", False),
        ("chat_service_header", None, "X-Service-Auth-Token"),
        ("chat_service_header", "x-cube-auth-token", "X-Cube-Auth-Token"),
        ("session_settings", "", None),
        ("session_settings", "null", None),
        ("session_settings", {}, None),
        ("data_api_url", None, None),
        ("ca_bundle", None, None),
        ("proxy", "", None),
    ],
)
def test_fields_accept_loose_values_and_have_defaults(
    field: str, value: Any, expected: Any
) -> None:
    fields = {"chat_url": CHAT, "chat_service_token": SECRET, **MANAGEMENT, field: value}
    assert getattr(PlatformConfig.build(**fields), field) == expected


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("deployment_id", "seven"),
        ("deployment_id", 0),
        ("deployment_id", -7),
        ("deployment_id", 1.5),
        ("deployment_id", True),
        ("deployment_id", SECRET),
        ("default_row_limit", 0),
        ("default_row_limit", True),
        ("max_row_limit", -1),
        ("max_row_limit", "many"),
        ("request_timeout", 0),
        ("request_timeout", "nan"),
        ("request_timeout", "inf"),
        ("request_timeout", True),
        ("request_timeout", [1]),
        ("stream_idle_timeout", -1),
        ("max_attempts", 0),
        ("max_attempts", 1000),
        ("max_attempts", "many"),
        ("verify_tls", "perhaps"),
        ("allow_http", "perhaps"),
        ("allow_http", 7),
        ("chat_service_header", "X-Other"),
        ("ca_bundle", "/does/not/exist.pem"),
        ("unknown_field", SECRET),
    ],
)
def test_invalid_values_are_refused(field: str, value: Any) -> None:
    fields = {"chat_url": CHAT, "chat_service_token": SECRET, **MANAGEMENT}
    refused(field, **{**fields, field: value})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda items: st.lists(items, max_size=2) | st.dictionaries(st.text(max_size=5), items),
    max_leaves=4,
)


SIDES = {
    "management_url": ("password",),
    "management_token": ("password", "host"),
    "chat_url": ("chat_url",),
    "chat_api_key": ("chat_service_token",),
    "chat_service_token": ("chat_api_key",),
}
"""The field that an error names if one of these is empty, or if it is one too many."""


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
@given(value=JSON)
@example(value=7)
@example(value="\x00")
@example(value="x" * 5000)
@example(value=10**400)
@example(value=float("inf"))
@example(value={"externalId": {"externalId": []}})
@example(value="[" * 100_000)
def test_any_value_of_a_field_is_accepted_or_refused_by_its_name(
    field: AnyField, value: Any
) -> None:
    fields = {"chat_url": CHAT, "chat_service_token": SECRET, **MANAGEMENT, field.name: value}
    try:
        config = PlatformConfig.build(**fields)
    except PlatformConfigError as error:
        named, reason = error.field, error.reason
    else:
        assert repr(config)
        return
    # Without its address or its credential, a side names what is missing.
    assert named in {field.stored_name, *SIDES.get(field.name, ())}
    assert str(named) in reason
    assert reason.endswith(".")


def test_a_ca_bundle_is_a_file_or_folder(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("")
    for place in (tmp_path, file):
        config = PlatformConfig.build(**MANAGEMENT, ca_bundle=str(place))
        assert config.ca_bundle == place


@pytest.mark.parametrize("value", [True, "true"])
def test_values_of_user_attributes_are_sent_as_text(value: object) -> None:
    settings = session_settings(
        {"externalId": "nightly", "userAttributes": [{"name": "vip", "value": value}]}
    )
    assert settings.to_json()["userAttributes"] == [{"name": "vip", "value": "true"}]


@pytest.mark.parametrize("form", [{"vip": "yes"}, '{"vip": "yes"}'])
def test_error_of_user_attributes_shows_their_form(form: object) -> None:
    with pytest.raises(PlatformInputError, match=r'a list such as \[\{"name": "region"'):
        session_settings({"externalId": "nightly", "userAttributes": form})


@pytest.mark.parametrize(
    "settings",
    [
        {"externalId": "nightly"},
        {"externalId": "nightly", "internalId": None, "groups": [], "email": ""},
        {"internalId": "ann@example.com"},
        {
            "externalId": "nightly",
            "email": "ann@example.com",
            "userAttributes": [{"name": "country", "value": "DE"}],
            "groups": ["finance"],
            "securityContext": {"tenant": {"id": 1}},
            "isEphemeral": False,
            "ephemeralTtlSeconds": 3600,
        },
        {
            "internalId": "ann@example.com",
            "timezone": "Europe/Berlin",
            "settings": {"timezone": "UTC"},
            "allowChatWorkspaceAuthoring": False,
        },
    ],
)
@pytest.mark.parametrize("as_text", [True, False])
def test_session_settings_without_empty_values_are_sent(
    settings: dict[str, Any], as_text: bool
) -> None:
    given_ = json.dumps(settings) if as_text else settings
    config = PlatformConfig.build(**{**CHATTING, "session_settings": given_})
    assert config.session_settings is not None
    present = {name: value for name, value in settings.items() if value not in (None, "")}
    assert config.session_settings.to_json() == present


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ("{", "JSON object"),
        ("[]", "JSON object"),
        ('"nightly"', "JSON object"),
        (7, "JSON object"),
        ({"email": "a@b"}, "exactly one of externalId and internalId"),
        ({"externalId": "a", "internalId": "b"}, "exactly one of externalId and internalId"),
        ({"externalId": "Nightly"}, "lowercase"),
        ({"externalId": "night ly"}, "without spaces"),
        ({"externalId": "night\u00a0ly"}, "without spaces"),
        ({"internalId": "a@b", "groups": ["x"]}, "groups cannot be given"),
        ({"internalId": "a@b", "roles": ["x"]}, "roles cannot be given"),
        ({"internalId": "a@b", "securityContext": {"a": 1}}, "securityContext cannot be given"),
        (
            {"internalId": "a@b", "userAttributes": [{"name": "a", "value": "b"}]},
            "userAttributes cannot be given",
        ),
        ({"externalId": "a", "userAttributes": [{"name": "a"}]}, "userAttributes.0.value"),
        ({"externalId": "a", "ephemeralTtlSeconds": 0}, "ephemeralTtlSeconds"),
        (
            {"externalId": "a", "timezone": "Mars/Olympus"},
            "timezone: must be an IANA time zone, for example Europe/Berlin",
        ),
        (
            {"externalId": "a", "settings": {"timezone": "+02:00"}},
            "settings.timezone: must be an IANA time zone, for example Europe/Berlin",
        ),
        ({"externalId": "a", "settings": {"locale": "de"}}, "settings.locale: "),
        ({"externalId": "a", "extra": SECRET}, "extra"),
        ({"externalId": "a", "extra": None}, "extra"),
        ({"externalId": "a", "settings": {"locale": None}}, "settings.locale: "),
    ],
)
def test_invalid_session_settings_are_refused(settings: Any, rule: str) -> None:
    message = refused("session_settings", **{**CHATTING, "session_settings": settings})
    assert rule in message


def test_service_token_claims_replace_session_settings() -> None:
    token = jwt({"externalId": "Nightly", "sub": "other"})
    config = PlatformConfig.build(
        chat_url=CHAT, chat_service_token=token, session_settings={"externalId": "someone"}
    )
    assert config.session_settings is None
    assert config.resolve_session_settings(None) is None
    assert config.resolve_session_settings({}) is None
    assert config.chat_identity(None) == {"externalId": "nightly"}
    bare = PlatformConfig.build(chat_url=CHAT, chat_service_token=jwt({"sub": "Robot"}))
    assert bare.chat_identity(None) == {"externalId": "robot"}


def test_settings_of_a_call_are_refused_with_a_service_token() -> None:
    token = jwt({"externalId": "nightly"})
    config = PlatformConfig.build(chat_url=CHAT, chat_service_token=token)
    with pytest.raises(PlatformInputError) as caught:
        config.of_connection("nightly").resolve_session_settings({"externalId": "customer-1"})
    assert caught.value.field == "session_settings"
    assert caught.value.message == (
        "Nothing was sent: the service would ignore session_settings. Chat service token "
        "(chat_service_token) of connection 'nightly' already names the user. Leave "
        "session_settings out, or use a connection with Chat API key (chat_api_key)."
    )


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"isEphemeral": "False"}, {"isEphemeral": False}),
        ({"isEphemeral": "true"}, {"isEphemeral": True}),
        ({"allowChatWorkspaceAuthoring": "False"}, {"allowChatWorkspaceAuthoring": False}),
        ({"allow_chat_workspace_authoring": "yes"}, {"allowChatWorkspaceAuthoring": True}),
        ({"allowChatWorkspaceAuthoring": "", "timezone": "None", "settings": {}}, {}),
        ({"settings": '{"timezone": "UTC"}'}, {"settings": {"timezone": "UTC"}}),
        ({"ephemeralTtlSeconds": "3600"}, {"ephemeralTtlSeconds": 3600}),
        ({"groups": '["a", "b"]'}, {"groups": ["a", "b"]}),
        ({"securityContext": '{"tenant": 7}'}, {"securityContext": {"tenant": 7}}),
        (
            {"userAttributes": '[{"name": "country", "value": "true"}]'},
            {"userAttributes": [{"name": "country", "value": "true"}]},
        ),
        ({"isEphemeral": "None", "email": ""}, {}),
        (
            {"groups": [], "roles": [], "userAttributes": []},
            {"groups": [], "roles": [], "userAttributes": []},
        ),
    ],
)
def test_rendered_settings_are_read_as_their_values_and_empty_lists_stay(
    given: dict[str, Any], sent: dict[str, Any]
) -> None:
    config = PlatformConfig.build(**CHATTING)
    found = config.resolve_session_settings({"externalId": "customer-1", **given})
    assert found is not None
    assert found.to_json() == {"externalId": "customer-1", **sent}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"isEphemeral": "perhaps"}, "isEphemeral: must be true or false"),
        ({"isEphemeral": 2}, "isEphemeral: must be true or false"),
        (
            {"allowChatWorkspaceAuthoring": "perhaps"},
            "allowChatWorkspaceAuthoring: must be true or false",
        ),
        ({"timezone": 2}, "timezone: "),
        ({"settings": "UTC"}, "settings: must be a list, an object, or a JSON string"),
        ({"ephemeralTtlSeconds": True}, "ephemeralTtlSeconds: must be a number, not true or false"),
        ({"ephemeralTtlSeconds": "soon"}, "ephemeralTtlSeconds: "),
        ({"groups": [7]}, "groups.0: "),
        ({"externalId": True}, "externalId: "),
        ({"externalId": None, "internalId": "a@b.c", "groups": []}, "groups cannot be given"),
        ({"groups": None}, "groups has no value"),
        ({"groups": "null"}, "groups has no value"),
        ({"roles": "None"}, "roles has no value"),
        ({"user_attributes": ""}, "user_attributes has no value"),
        ({"securityContext": {}}, "securityContext has no value"),
        ({"securityContext": {"tenant": None}}, "securityContext has no value"),
        ({"securityContext": '{"tenants": [{"id": null}]}'}, "securityContext has no value"),
    ],
)
def test_setting_that_rendered_to_nonsense_is_refused(given: dict[str, Any], words: str) -> None:
    config = PlatformConfig.build(**CHATTING)
    with pytest.raises(PlatformInputError) as caught:
        config.resolve_session_settings({"externalId": "customer-1", **given})
    assert words in caught.value.message


def test_empty_settings_and_an_empty_deployment_do_not_mean_those_of_the_connection() -> None:
    fields = {**CHATTING, "session_settings": {"externalId": "nightly"}, "deployment_id": 1}
    config = PlatformConfig.build(**fields)
    with pytest.raises(PlatformInputError, match="exactly one of externalId and internalId"):
        config.resolve_session_settings({})
    with pytest.raises(PlatformInputError, match="deployment_id must be a positive whole number"):
        config.resolve_deployment_id("")


def test_the_callers_settings_replace_the_connections_as_a_whole() -> None:
    fields = {**CHATTING, "session_settings": {"externalId": "nightly", "groups": ["a"]}}
    config = PlatformConfig.build(**fields)
    own = config.resolve_session_settings({"externalId": "ann"})
    assert own is not None
    assert own.to_json() == {"externalId": "ann"}
    assert config.resolve_session_settings(None) == config.session_settings
    with pytest.raises(PlatformInputError, match="lowercase"):
        config.resolve_session_settings({"externalId": "Ann"})


def test_api_key_needs_session_settings() -> None:
    config = PlatformConfig.build(chat_url=CHAT, chat_api_key=SECRET)
    with pytest.raises(PlatformInputError, match="externalId or") as caught:
        config.resolve_session_settings(None)
    assert caught.value.field == "session_settings"


@pytest.mark.parametrize("token", ["", "a.b", "a.b.c", jwt([1]), jwt("x"), "\u00e9.\u00e9.\u00e9"])
def test_text_that_is_not_a_jwt_has_no_claims(token: str) -> None:
    assert unverified_claims(token) is None


def test_fingerprints_do_not_depend_on_the_order_of_keys() -> None:
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    assert fingerprint("a", "b") != fingerprint("ab")
    assert fingerprint("a", None) != fingerprint("a", "None")
