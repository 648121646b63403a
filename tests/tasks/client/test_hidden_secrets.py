"""A secret that a call sends or receives is hidden from then on, in whatever form the service
quotes it: in errors, in the log, and new secrets are added to the mask in time."""

from __future__ import annotations

import threading
import traceback
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from airflow_provider_platform.client import redaction
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    ChatRpcError,
    PlatformAuthenticationError,
    PlatformError,
    PlatformPermissionError,
    PlatformProtocolError,
)
from airflow_provider_platform.client.failed_calls import service_message
from airflow_provider_platform.client.json_text import parse_line
from airflow_provider_platform.client.operation import Operation, operation, raw_operation
from airflow_provider_platform.client.platform_client import PlatformClient
from airflow_provider_platform.client.redaction import KnownSecrets, credentials_in, forms
from airflow_provider_platform.resources.chat.call import ChatCall, ChatLimits
from airflow_provider_platform.resources.deployments import (
    create_deployment_token,
    get_deployment,
)
from airflow_provider_platform.resources.sensor_conditions import list_user_oauth_tokens
from airflow_provider_platform.resources.sql.query import SqlQuery, run_sql

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox import Sandbox


@pytest.fixture
def config(platform_sandbox: Sandbox) -> PlatformConfig:
    return PlatformConfig.build(
        host=platform_sandbox.management_url,
        management_token=platform_sandbox.management_token,
        chat_url=platform_sandbox.chat_url,
        chat_api_key=platform_sandbox.chat_api_key,
        session_settings={"externalId": "tests"},
    )


def check_hidden(config: PlatformConfig, error: PlatformError) -> None:
    shown = "".join(traceback.format_exception(error)) + repr(error) + str(error.to_payload())
    assert "the token *** is refused" in str(error)
    assert not [secret for secret in config.secrets if secret in shown]


def test_secret_is_hidden_in_the_error_of_a_management_call(
    platform_sandbox: Sandbox, config: PlatformConfig
) -> None:
    said = f"the token {platform_sandbox.management_token} is refused"
    platform_sandbox.control.fault("status", status=401, message=said, api="management", count=None)
    with (
        PlatformClient(config) as client,
        pytest.raises(PlatformAuthenticationError) as caught,
    ):
        client.run(list_user_oauth_tokens())
    check_hidden(config, caught.value)


@pytest.mark.parametrize("length", [12, 20, 200])
def test_secret_is_hidden_if_the_quote_is_cut(length: int) -> None:
    secret = "secret-" + "0123456789abcdef" * 20
    error = PlatformError(f"the service said: {secret[:length]}…", said=f"{secret[:length]}…")
    KnownSecrets([secret]).hide_in(error)
    assert str(error) == "the service said: ***…"
    assert error.details == {"said": "***…"}


def test_error_may_show_the_beginning_of_a_short_secret() -> None:
    error = PlatformError("error of plat-7 in plat-7f, see plat-7")
    KnownSecrets(["plat-7f3a9c"]).hide_in(error)
    assert str(error) == "error of plat-7 in plat-7f, see plat-7"


def test_secret_is_hidden_in_a_quoted_line_that_is_not_json() -> None:
    secret = "secret-" + "0123456789abcdef" * 20
    with pytest.raises(PlatformProtocolError) as caught:
        parse_line(b"refused: " + secret.encode(), 1)
    KnownSecrets([secret]).hide_in(caught.value)
    assert "secret-0" not in str(caught.value)
    assert "'refused: ***…'" in str(caught.value)


def test_secret_is_hidden_in_the_error_of_a_chat_run(
    platform_sandbox: Sandbox, config: PlatformConfig
) -> None:
    said = f"the token {platform_sandbox.chat_api_key} is refused"
    platform_sandbox.control.fault("jsonrpc", message=said, api="chat", count=None)
    with PlatformClient(config) as client:
        call = ChatCall.prepare(config, "revenue by country", ChatLimits(client.clock() + 30))
        with pytest.raises(ChatRpcError) as caught:
            client.run(call.ask)
    check_hidden(config, caught.value)


CANARY = 'canary "of/a+ client secret'
FORMS = pytest.mark.parametrize("form", ["plain", "url"])


def quoting(sandbox: Sandbox, quotes: str, form: str, **match: Any) -> None:
    """Have the next answer be a refusal that quotes the request."""
    sandbox.control.fault(
        "status", status=403, message="refused:", quotes=quotes, quote_form=form, **match
    )


def check_no_trace(error: BaseException, *secrets: str) -> None:
    shown = ["".join(traceback.format_exception(error)), repr(error), str(vars(error))]
    if isinstance(error, PlatformError):
        shown.append(str(error.to_payload()))
        assert "refused: " in error.message
        assert "***" in error.message
    for secret in secrets:
        for form in forms(secret):
            assert not [text for text in shown if form in text]


def oauth(secret: Any = CANARY, **config: Any) -> Operation[Any]:
    body = {
        "name": "n",
        "type": "custom",
        "authUrl": "https://a.example.com",
        "tokenUrl": "https://t.example.com",
        "clientId": "c",
        "redirectUri": "https://r.example.com",
        "clientSecret": secret,
        **({"config": config} if config else {}),
    }
    return operation("createOAuthIntegration", body=body)


def test_data_token_is_hidden_if_the_data_api_quotes_it(
    platform_sandbox: Sandbox, config: PlatformConfig
) -> None:
    quoting(platform_sandbox, "authorization", "plain", api="data")
    with PlatformClient(config) as client:
        query = SqlQuery("SELECT 1", deployment_id=1, deadline=client.clock() + 30)
        with pytest.raises(PlatformPermissionError) as caught:
            client.run(lambda api: run_sql(api, query))
        minted = [secret for secret in client.secrets if secret not in config.secrets]
        assert len(minted) == 1
        check_no_trace(caught.value, *minted)


def test_minted_token_is_hidden_if_a_later_call_quotes_it(
    platform_sandbox: Sandbox, config: PlatformConfig
) -> None:
    body = {"expiresIn": 60}
    with PlatformClient(config) as client:
        token = client.run(create_deployment_token(deployment_id=1, body=body)).cube_api_token
        assert token.get_secret_value() not in repr(token)
        said = f"refused: {token.get_secret_value()}"
        platform_sandbox.control.fault("status", status=403, message=said, api="management")
        with pytest.raises(PlatformPermissionError) as caught:
            client.run(get_deployment(deployment_id=1))
        check_no_trace(caught.value, token.get_secret_value())


@FORMS
@pytest.mark.parametrize("secret", [CANARY, SecretStr(CANARY)], ids=["text", "SecretStr"])
def test_sent_secret_is_hidden_if_the_response_quotes_it(
    platform_sandbox: Sandbox, config: PlatformConfig, form: str, secret: Any
) -> None:
    quoting(platform_sandbox, "body", form, path="/oauth-integrations")
    with PlatformClient(config) as client, pytest.raises(PlatformPermissionError) as caught:
        client.run(oauth(secret))
    check_no_trace(caught.value, CANARY)


def test_credentials_in_free_form_fields_are_hidden(
    platform_sandbox: Sandbox, config: PlatformConfig
) -> None:
    sent = {"apiKey": "canary-of-an-api-key", "nested": [{"privateKeys": ["canary-of-a-key"]}]}
    raw = raw_operation("POST", "/v1/oauth-integrations", body=sent, query={"token": "canary-of-q"})
    assert "canary" not in repr(raw)
    for sending in (oauth(**sent), raw):
        quoting(platform_sandbox, "body", "plain", path="/oauth-integrations")
        with PlatformClient(config) as client, pytest.raises(PlatformPermissionError) as caught:
            client.run(sending)
        check_no_trace(caught.value, "canary-of-an-api-key", "canary-of-a-key", "canary-of-q")


def test_a_name_that_is_added_to_the_list_is_masked_everywhere(
    platform_sandbox: Sandbox, config: PlatformConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In what is sent and received, in errors and in reprs."""
    monkeypatch.setattr(redaction, "SECRET_NAMES", (*redaction.SECRET_NAMES, "vault_pin"))
    pin = "canary-of-a-pin"
    assert redaction.may_hold_secrets(b'{"vaultPin": "canary-of-a-pin"}')  # so it is searched
    with PlatformClient(config) as client:
        made = oauth(vaultPin=pin)
        assert pin not in repr(made)
        client.run(made)
    listing = raw_operation("GET", "/v1/oauth-integrations")
    with PlatformClient(config) as client:
        answer = client.run(listing)
        assert pin in str(answer)
        assert pin in client.secrets
    assert pin in credentials_in(answer).values()
    for sending in (
        made,
        raw_operation("POST", "/v1/oauth-integrations", body={"VAULT_PIN": pin}),
    ):
        quoting(platform_sandbox, "body", "plain", path="/oauth-integrations")
        with PlatformClient(config) as client, pytest.raises(PlatformPermissionError) as caught:
            client.run(sending)
        check_no_trace(caught.value, pin)
    assert service_message(b'{"vaultPin": "canary-of-a-pin"}') == "vaultPin: ***"


def test_embed_session_id_is_hidden_when_received_and_sent(
    platform_sandbox: Sandbox, config: PlatformConfig
) -> None:
    with PlatformClient(config) as client:
        given = {"externalId": "somebody"}
        session = client.call("generateSession", deployment_id=1, body=given)["sessionId"]
        quoting(platform_sandbox, "body", "plain", path="/embed/session/token")
        with pytest.raises(PlatformPermissionError) as caught:
            client.call("postTokenBySessionId", body={"sessionId": session})
    check_no_trace(caught.value, session.get_secret_value())


def test_a_secret_that_was_rotated_stays_hidden(
    platform_sandbox: Sandbox, config: PlatformConfig
) -> None:
    old = config.model_copy(update={"management_token": SecretStr("canary-of-the-old-token")})
    with PlatformClient(old, reload=lambda: config) as client:
        client.run(get_deployment(deployment_id=1))
        said = "refused: canary-of-the-old-token"
        platform_sandbox.control.fault("status", status=403, message=said, api="management")
        with pytest.raises(PlatformPermissionError) as caught:
            client.run(get_deployment(deployment_id=1))
    check_no_trace(caught.value, "canary-of-the-old-token")


def test_of_a_proxy_only_the_password_is_hidden() -> None:
    config = PlatformConfig.build(
        host="http://127.0.0.1:9/api",
        management_token="canary-of-a-token",
        proxy="http://me:canary%2Fpassword@127.0.0.1:9",
    )
    error = PlatformError("407: canary/password or canary%2Fpassword at http://me@127.0.0.1:9")
    KnownSecrets(config.secrets).hide_in(error)
    assert str(error) == "407: *** or *** at http://me@127.0.0.1:9"


def test_data_that_shares_words_with_a_proxys_address_is_not_changed() -> None:
    config = PlatformConfig.build(
        host="https://acme.example.com/api",
        management_token="canary-of-a-token",
        proxy="https://ann:canary%2Fpassword@proxy.acme-corp.com:8443",
    )
    rows = [["ann@acme-corp.com", "https://ann.acme-corp.com:8443", "proxy.acme-corp.com"]]
    assert KnownSecrets(config.secrets).redact_data(rows) is rows


def test_new_token_is_masked_before_the_caller_gets_it(
    platform_sandbox: Sandbox, config: PlatformConfig
) -> None:
    masked: list[str] = []
    threads: set[int] = set()

    def mask(secrets: list[str]) -> None:
        masked.extend(secrets)
        threads.add(threading.get_ident())

    body = {"expiresIn": 60}
    with PlatformClient(config, mask=mask) as client:
        token = client.run(create_deployment_token(deployment_id=1, body=body)).cube_api_token
        assert masked == [token.get_secret_value()]
        quoting(platform_sandbox, "body", "plain", path="/oauth-integrations")
        with pytest.raises(PlatformPermissionError):
            client.run(oauth())
    assert masked == [token.get_secret_value(), CANARY]
    assert threading.get_ident() not in threads
