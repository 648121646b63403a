"""Does this configuration work? One free question to each side, and what its answer proves.

Nothing is started and nothing is changed.

- Management: the default deployment is read, or the deployments are listed where there is none;
  where that cannot be had, the app configuration tells whether address and token are right.
- Chat: an agent's name is looked up. The state of a thread that cannot exist is asked for, at the
  very address that chats go to, with their credential and session settings. Without `input` the
  service cannot start a run. It refuses a wrong credential with a JSON-RPC error, wrong session
  settings with 400; that it comes to look for the thread, and finds none, proves both right.
  Aborting such a thread would prove the credential only: that is done where an API key has no
  session settings, without which the state cannot be asked for.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from airflow_provider_platform.client.config import PlatformConfig, token_warnings
from airflow_provider_platform.client.errors import (
    ChatStreamError,
    PlatformAddressError,
    PlatformBadRequestError,
    PlatformError,
    PlatformNotFoundError,
    PlatformPermissionError,
    PlatformProtocolError,
    PlatformTransportError,
)
from airflow_provider_platform.client.failed_calls import CHAT_STREAM, PREMIUM_HINT, rpc_error
from airflow_provider_platform.client.operation import operation
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.resources.chat.request import ChatRequest
from airflow_provider_platform.resources.chat.thread import abort, first_record
from airflow_provider_platform.resources.deployments import (
    Deployment,
    get_deployment,
    list_deployments,
)
from airflow_provider_platform.resources.names import find_agent_id

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from airflow_provider_platform.client.api import Api

Side = Literal["management", "chat"]
_Verdict = tuple[bool, str]

LONGEST_WAIT = 20.0
"""Seconds that the chat side may take to answer: a person is waiting."""

_SHOWN_DEPLOYMENTS = 5
_END = "__state__"
_NO_ROUTE = "cannot post"
_PARTS_OF_ADDRESS = (_NO_ROUTE, "html page", "agent", "account", "tenant", "deployment")
_OF_A_DEPLOYMENT = re.compile(r"/deployments/[^/]+/chat$")
_NAMES: dict[Side, str] = {"management": "Management API", "chat": "Chat API"}


@dataclass(frozen=True)
class SideReport:
    """How one side of the connection fared, in sentences for the person who asked."""

    side: Side
    address: str
    ok: bool
    message: str


async def check_connection(api: Api) -> list[SideReport]:
    """Ask each side that is configured; errors become reports."""
    config = api.config
    reports = []
    if config.management_url is not None:
        verdict = await _verdict(_check_management(api, config))
        reports.append(SideReport("management", config.management_url, *verdict))
    if config.chat_url is not None:
        ok, message = await _verdict(_check_chat(api, config))
        message = " ".join([message, *chat_notes(config, api.clock())])
        reports.append(SideReport("chat", config.chat_url, ok, message))
    return reports


def summary(reports: list[SideReport]) -> tuple[bool, str]:
    """Whether all sides work, and what to tell of each: first of those that do not work, because
    Airflow's UI shows the text only for a few seconds."""
    lines = [
        f"{_NAMES[report.side]} at {report.address} "
        f"{'works' if report.ok else 'does not work'}: {report.message}"
        for report in sorted(reports, key=lambda report: report.ok)
    ]
    return all(report.ok for report in reports), "\n".join(lines)


def chat_notes(config: PlatformConfig, now: float) -> list[str]:
    """What can be said of the chat settings without asking the service; `now` is Unix time."""
    if config.chat_service_token is not None:
        return token_warnings(config.chat_service_token.get_secret_value(), now)
    if config.agent is None and _OF_A_DEPLOYMENT.search(config.chat_url or ""):
        return [
            "Chat address (chat_url) is the address of a deployment, which accepts a service "
            "token only. Use Chat service token (chat_service_token), or enter the agent's "
            "address."
        ]
    if config.session_settings is None:
        return [
            "Session settings (session_settings) is empty, so each chat task must name its user "
            "(externalId or internalId) in its own session_settings."
        ]
    return []


async def _verdict(check: Awaitable[_Verdict]) -> _Verdict:
    try:
        return await check
    except PlatformError as error:
        return False, error.message


async def _check_management(api: Api, config: PlatformConfig) -> _Verdict:
    accepted = "The token is accepted"
    try:
        deployment_text = await _deployments(api, config)
    except (PlatformNotFoundError, PlatformPermissionError, PlatformAddressError) as error:
        problem: PlatformError = error
    else:
        return True, f"{accepted}; {deployment_text}."
    try:
        await api.call(operation("getAppConfig"), once=True)
    except PlatformNotFoundError:
        return False, (
            "The management API was not found at this address. Check Management API address "
            "(host), which must end in /api."
        )
    if config.deployment_id is None or isinstance(problem, PlatformAddressError):
        return True, f"{accepted}. The token cannot list deployments: {problem.message}"
    return False, (
        f"{accepted}, but Deployment id (deployment_id) cannot be used: {problem.message}"
    )


async def _deployments(api: Api, config: PlatformConfig) -> str:
    if config.deployment_id is not None:
        default = await api.call(get_deployment(deployment_id=config.deployment_id), once=True)
        return f"the default deployment is {_name(default)}"
    query = {"first": _SHOWN_DEPLOYMENTS}
    page = await api.call(list_deployments(query=query), once=True)
    names = [_name(deployment) for deployment in page.rows[:_SHOWN_DEPLOYMENTS]]
    if not names:
        return "the token has access to no deployment"
    more = " and more" if page.page_info and page.page_info.has_next_page else ""
    return (
        f"the token has access to {', '.join(names)}{more}. To set a default, enter one of "
        "these ids in Deployment id (deployment_id)"
    )


def _name(deployment: Deployment) -> str:
    return f"{deployment.id} ({quote_service(deployment.name or 'without a name')})"


async def _check_chat(api: Api, config: PlatformConfig) -> _Verdict:
    thread = str(uuid4())
    credential = "API key" if config.chat_api_key else "service token"
    agent_id = await find_agent_id(api)
    try:
        if config.chat_api_key and config.session_settings is None:
            await _abort_nothing(api, thread, agent_id)
            said = None
        else:
            said = await _read_nothing(api, config, thread, agent_id)
    except PlatformNotFoundError as error:
        said = error.service_message or ""
    if said is None or _speaks_of_thread(said, thread):
        return True, f"The {credential} is accepted."
    words = f"The service answered 404: {said or 'no text'}."
    if _speaks_of_address(said):
        return False, (
            f"{words} The agent or the account does not exist. Copy Chat address (chat_url) from "
            f"the agent's settings. {PREMIUM_HINT}"
        )
    return True, (
        f"{words} This is normal, because the test asks for a thread that does not exist. But the "
        "service answers the same if the agent does not exist. If chats fail, check Chat address "
        "(chat_url)."
    )


async def _abort_nothing(api: Api, thread: str, agent_id: int | str | None) -> None:
    """Abort a thread that does not exist. 403 speaks of the thread, so the key has passed."""
    with suppress(PlatformPermissionError):
        await abort(api, thread, None, agent_id=agent_id)


async def _read_nothing(
    api: Api, config: PlatformConfig, thread: str, agent_id: int | str | None
) -> str | None:
    """Ask for the state of a thread that does not exist; the text of an error line, or None where
    the service gives a state. Raises PlatformError."""
    request = ChatRequest.build(chat_id=thread, session_settings=config.session_settings)
    wait = min(LONGEST_WAIT, config.request_timeout)
    try:
        record, ended = await first_record(
            api, request.to_json(), _ends_the_look, seconds=wait, agent_id=agent_id
        )
    except PlatformBadRequestError as error:
        raise PlatformBadRequestError(
            f"{error.reason} Check Session settings (session_settings).",
            where=error.where,
            **error.details,
        ) from None
    if record is not None:
        return _error_text(record)
    if ended:
        raise PlatformProtocolError(
            "The chat API's response was cut off before it reported the state of the thread.",
            where=CHAT_STREAM.where,
        )
    raise PlatformTransportError(
        f"The chat API gave no answer within {wait:g} seconds.", where=CHAT_STREAM.where
    )


def _ends_the_look(record: Any) -> bool:
    return isinstance(record, dict) and bool(record.get("error") or record.get("id") == _END)


def _error_text(record: dict[str, Any]) -> str | None:
    """The text of an error line. Raises ChatRpcError for a refused credential, ChatStreamError
    for an error that is not about the thread."""
    error = record.get("error")
    if isinstance(error, dict) or (error and "jsonrpc" in record):
        raise rpc_error(error, CHAT_STREAM.where)
    if error is None:
        return None
    if "not found" not in str(error).lower():
        raise ChatStreamError(
            f"The service could not report on a chat thread: "
            f"{quote_service(error).removesuffix('.')}. Test the connection again.",
            where=CHAT_STREAM.where,
        )
    return quote_service(error)


def _speaks_of_thread(said: str, thread: str) -> bool:
    words = said.lower()
    return thread in words or ("thread" in words and _NO_ROUTE not in words)


def _speaks_of_address(said: str) -> bool:
    words = said.lower()
    return any(part in words for part in _PARTS_OF_ADDRESS)
