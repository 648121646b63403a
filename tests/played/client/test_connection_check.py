"""The connection test: what each response of the service means, with values and over HTTP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.config import PlatformConfig, token_warnings
from airflow_provider_platform.client.errors import (
    PlatformAddressError,
    PlatformAuthenticationError,
    PlatformNotFoundError,
    PlatformPermissionError,
    PlatformTransportError,
)
from airflow_provider_platform.client.failed_calls import CHAT_STREAM, chat_error
from airflow_provider_platform.resources.connection_check import (
    LONGEST_WAIT,
    SideReport,
    check_connection,
    summary,
)
from tests.support.fakes.effects import (
    Call,
    CloseStream,
    OpenStream,
    ReadStream,
    SendChat,
    api_with,
)

if TYPE_CHECKING:
    from tests.support.fakes.effects import Effect

NOW = 1_800_000_000.0
SECRET = "canary-secret"
MANAGEMENT = {"host": "https://acme.example.com/api", "management_token": SECRET}
CHAT = {"chat_url": "https://ai.example.com/agents/1/chat", "chat_api_key": SECRET}
SETTINGS = {"session_settings": {"externalId": "nightly"}}


class Service:
    """Answers the effects of a program with plain values, and plays the clock."""

    def __init__(self, answers: dict[str, Any] | None = None, stream: Any = None) -> None:
        self.answers = answers or {}
        self.stream = list(stream) if isinstance(stream, list) else stream
        self.effects: list[Effect] = []
        self.now = NOW

    def check(self, **fields: Any) -> list[SideReport]:
        program = check_connection(api_with(lambda: self.now, PlatformConfig.build(**fields)))
        try:
            effect = program.send(None)
            while True:
                self.effects.append(effect)
                outcome = self.outcome(effect)
                failed = isinstance(outcome, Exception)
                effect = program.throw(outcome) if failed else program.send(outcome)
        except StopIteration as end:
            reports: list[SideReport] = end.value
            return reports

    def outcome(self, effect: Effect) -> Any:
        match effect:
            case Call(operation=operation):
                answer = self.answers[operation.path]
                return answer if isinstance(answer, Exception) else operation.read(answer)
            case OpenStream() | SendChat() if isinstance(self.stream, Exception):
                return self.stream
            case ReadStream(timeout=seconds):
                if callable(self.stream):
                    return self.stream(self, seconds)
                return self.stream.pop(0)
        return None


def record(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def status(code: int, said: str | None, *, html: bool = False) -> Exception:
    """The error that a chat answer with this status and text amounts to."""
    headers = {"content-type": "text/html"} if html else {}
    body = b"<html></html>" if html else json.dumps({"message": said} if said else {}).encode()
    return chat_error(CHAT_STREAM, code, headers, body if said or html else b"", now=NOW)


class TestManagement:
    def test_check_lists_visible_deployments_if_there_is_no_default(self) -> None:
        page = {"items": [{"id": 1, "name": "Sales"}, {"id": 2}], "pageInfo": None}
        [report] = Service({"/v1/deployments": page}).check(**MANAGEMENT)
        assert report.ok
        assert report.address == "https://acme.example.com/api"
        assert "1 (Sales), 2 (without a name)" in report.message

    def test_check_says_that_there_are_more_deployments(self) -> None:
        page = {"items": [{"id": 1}], "pageInfo": {"hasNextPage": True}}
        [report] = Service({"/v1/deployments": page}).check(**MANAGEMENT)
        assert "and more" in report.message

    def test_check_says_that_there_is_no_deployment(self) -> None:
        [report] = Service({"/v1/deployments": {"items": []}}).check(**MANAGEMENT)
        assert (report.ok, "has access to no deployment" in report.message) == (True, True)

    def test_check_names_the_address_if_nothing_is_found_there(self) -> None:
        absent = PlatformNotFoundError("the service's words")
        service = Service({"/v1/deployments": absent, "/v1/app-config": absent})
        [report] = service.check(**MANAGEMENT)
        assert (report.ok, "must end in /api" in report.message) == (False, True)

    def test_check_reads_the_default_deployment(self) -> None:
        service = Service({"/v1/deployments/7": {"id": 7, "name": "Sales"}})
        [report] = service.check(**MANAGEMENT, deployment_id=7)
        assert report.ok
        assert "7 (Sales)" in report.message

    @pytest.mark.parametrize("kind", [PlatformNotFoundError, PlatformPermissionError])
    def test_check_reports_a_deployment_that_the_token_cannot_see(
        self, kind: type[Exception]
    ) -> None:
        service = Service({"/v1/deployments/7": kind("the service's words"), "/v1/app-config": {}})
        [report] = service.check(**MANAGEMENT, deployment_id=7)
        assert not report.ok
        assert "token is accepted" in report.message
        assert "Deployment id (deployment_id) cannot be used" in report.message
        assert "the service's words" in report.message

    @pytest.mark.parametrize(
        "kind", [PlatformNotFoundError, PlatformPermissionError, PlatformAddressError]
    )
    def test_check_reads_the_app_config_if_deployments_cannot_be_listed(
        self, kind: type[Exception]
    ) -> None:
        service = Service({"/v1/deployments": kind("the service's words"), "/v1/app-config": {}})
        [report] = service.check(**MANAGEMENT)
        assert report.ok
        assert "The token cannot list deployments" in report.message

    def test_check_reports_web_pages_as_a_wrong_address(self) -> None:
        page = PlatformAddressError("HTML instead of JSON")
        [report] = Service({"/v1/deployments": page, "/v1/app-config": page}).check(**MANAGEMENT)
        assert not report.ok
        assert "HTML" in report.message

    @pytest.mark.parametrize("kind", [PlatformAuthenticationError, PlatformTransportError])
    def test_other_failures_are_reported_and_nothing_else_is_requested(
        self, kind: type[Exception]
    ) -> None:
        service = Service({"/v1/deployments": kind("what went wrong")})
        [report] = service.check(**MANAGEMENT)
        assert (report.ok, report.message) == (False, "what went wrong")
        assert len(service.effects) == 1


class TestChat:
    def test_check_of_a_chat_sends_no_input_and_a_new_chat_id(self) -> None:
        first, second = Service(stream=status(404, "Thread")), Service(stream=status(404, "Thread"))
        [report] = first.check(**CHAT, **SETTINGS)
        second.check(**CHAT, **SETTINGS)
        assert report.ok
        bodies = [s.effects[0].body for s in (first, second)]  # type: ignore[union-attr]
        assert bodies[0].keys() == {"chatId", "sessionSettings"}
        assert bodies[0]["chatId"] != bodies[1]["chatId"]

    def test_check_passes_if_the_thread_sends_its_state(self) -> None:
        cutoff = record(id="__cutoff__", state={"chatId": "t", "isStreaming": False})
        service = Service(stream=[cutoff, record(id="__state__", state={"messages": []})])
        [report] = service.check(**CHAT, **SETTINGS)
        assert report.ok
        assert isinstance(service.effects[-1], CloseStream)

    def test_check_fails_if_a_json_rpc_error_refuses_the_credential(self) -> None:
        line = record(jsonrpc="2.0", id=None, error={"code": -32001, "message": "Unauthorized"})
        [report] = Service(stream=[line[:9], line[9:]]).check(**CHAT, **SETTINGS)
        assert not report.ok
        assert "Unauthorized" in report.message
        assert "premium or enterprise plan" in report.message

    @pytest.mark.parametrize(
        "said", ["Chat thread 1 not found", "Thread not found", "Agent 1 has no such thread"]
    )
    def test_check_passes_if_the_thread_is_not_found(self, said: str) -> None:
        [report] = Service(stream=status(404, said)).check(**CHAT, **SETTINGS)
        assert (report.ok, report.message) == (True, "The API key is accepted.")

    def test_check_passes_if_a_stream_says_that_the_thread_is_not_found(self) -> None:
        service = Service(stream=[record(error="Thread not found")])
        [report] = service.check(**CHAT, **SETTINGS)
        assert report.ok

    @pytest.mark.parametrize(
        "error",
        [
            status(404, "Agent not found"),
            status(404, "Tenant acme not found"),
            status(404, "Cannot POST /agents/1/chat/stream-chat-state for any thread"),
            status(404, None, html=True),
        ],
    )
    def test_check_fails_if_the_agent_or_path_is_not_found(self, error: Exception) -> None:
        [report] = Service(stream=error).check(**CHAT, **SETTINGS)
        assert not report.ok
        assert "Copy Chat address (chat_url)" in report.message
        assert "premium or enterprise plan" in report.message

    @pytest.mark.parametrize("said", ["Not Found", None])
    def test_check_passes_with_advice_after_an_unspecific_404(self, said: str | None) -> None:
        [report] = Service(stream=status(404, said)).check(**CHAT, **SETTINGS)
        assert report.ok
        assert "If chats fail, check Chat address (chat_url)" in report.message

    @pytest.mark.parametrize(
        ("code", "words"), [(401, "credential"), (403, "is not allowed to use")]
    )
    def test_check_names_the_cause_of_a_refused_chat_request(self, code: int, words: str) -> None:
        [report] = Service(stream=status(code, "no")).check(**CHAT, **SETTINGS)
        assert not report.ok
        assert words in report.message
        assert "premium or enterprise plan" in report.message

    def test_check_explains_refused_session_settings(self) -> None:
        service = Service(stream=status(400, "internalId: no such user"))
        [report] = service.check(**CHAT, session_settings={"internalId": "a@example.com"})
        assert not report.ok
        assert "no such user" in report.message
        assert "Check Session settings (session_settings)" in report.message

    @pytest.mark.parametrize(
        ("stream", "words"),
        [
            ([record(error="Internal error")], "Internal error"),
            ([b"", None], "cut off before it reported the state"),
            ([b"<html>\n"], "returned HTML instead of JSON"),
            ([b"<!doctype html><html>", b""], "returned HTML instead of JSON"),
            ([b"Bad gateway\n"], "is not valid JSON"),
            ([None], "no answer within 20 seconds"),
        ],
    )
    def test_check_fails_for_any_other_answer(self, stream: list[bytes | None], words: str) -> None:
        [report] = Service(stream=stream).check(**CHAT, **SETTINGS)
        assert not report.ok
        assert words in report.message

    def test_check_ends_although_blank_lines_keep_coming(self) -> None:
        def dribble(service: Service, seconds: float) -> bytes:
            service.now += 1.0
            assert service.now < NOW + 10 * LONGEST_WAIT
            return b"\n"

        service = Service(stream=dribble)
        [report] = service.check(**CHAT, **SETTINGS)
        assert not report.ok
        assert service.now == NOW + LONGEST_WAIT

    def test_a_key_without_session_settings_is_tried_with_an_abort(self) -> None:
        service = Service(stream=status(404, "Chat thread not found"))
        [report] = service.check(**CHAT)
        [effect] = service.effects
        assert isinstance(effect, SendChat)
        assert effect.body.keys() == {"chatId"}
        assert report.ok
        assert "Session settings (session_settings) is empty" in report.message

    def test_an_answered_abort_shows_that_the_key_is_accepted(self) -> None:
        [report] = Service().check(**CHAT)
        assert (report.ok, "The API key is accepted." in report.message) == (True, True)

    def test_a_key_for_the_address_of_a_deployment_is_warned_about(self) -> None:
        address = CHAT["chat_url"].replace("/agents/", "/deployments/")
        [report] = Service().check(chat_url=address, chat_api_key=SECRET)
        assert "which accepts a service token only" in report.message

    def test_check_passes_if_the_abort_is_answered_with_403(self) -> None:
        [report] = Service(stream=status(403, "not the owner")).check(**CHAT)
        assert report.ok


class TestSummary:
    def test_report_has_one_line_for_each_api_and_failures_first(self) -> None:
        good = SideReport("management", "https://acme.example.com/api", True, "Fine.")
        bad = SideReport("chat", "https://ai.example.com/chat", False, "Broken.")
        assert summary([good]) == (
            True,
            "Management API at https://acme.example.com/api works: Fine.",
        )
        ok, text = summary([good, bad])
        assert not ok
        assert text.splitlines() == [
            "Chat API at https://ai.example.com/chat does not work: Broken.",
            "Management API at https://acme.example.com/api works: Fine.",
        ]


class TestServiceToken:
    def token(self, **claims: Any) -> str:
        from airflow_provider_platform.sandbox.state.credentials import service_token

        defaults: dict[str, Any] = {"iat": None, "exp": NOW + 7 * 86400}
        return service_token("secret", **{**defaults, **claims})

    def test_valid_service_token_causes_no_warning(self) -> None:
        assert token_warnings(self.token(), NOW) == []
        assert token_warnings(self.token(exp=None), NOW) == []
        assert token_warnings(self.token(externalId=None, sub="user"), NOW) == []

    @pytest.mark.parametrize(
        ("claims", "words"),
        [
            ({"scope": None}, "lacks the scope 'chat'"),
            ({"scope": ["data"]}, "lacks the scope 'chat'"),
            ({"scope": "chat"}, "must be a list"),
            ({"externalId": None}, "neither the claim externalId nor sub"),
            ({"externalId": ""}, "neither the claim externalId nor sub"),
            ({"exp": NOW - 60}, "expired on 2027-01-15 07:59 UTC"),
            ({"exp": NOW + 3600}, "expires soon, on 2027-01-15 09:00 UTC"),
            ({"nbf": NOW + 60}, "not valid before 2027-01-15 08:01 UTC"),
            ({"exp": -1e300}, "an invalid date"),
        ],
    )
    def test_each_fault_of_the_claims_is_reported(self, claims: dict[str, Any], words: str) -> None:
        [warning] = token_warnings(self.token(**claims), NOW)
        assert words in warning

    @pytest.mark.parametrize("token", ["junk", "a.b", "a.!!.c", "a.W10.c"])
    def test_warning_names_a_token_that_is_not_a_jwt(self, token: str) -> None:
        [warning] = token_warnings(token, NOW)
        assert "not a JWT" in warning
        assert token not in warning
