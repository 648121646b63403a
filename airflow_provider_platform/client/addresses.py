"""Addresses: of the APIs, as a person or a response supplied them, and of web pages, for people.

A credential goes to the host that it was given for, over https. Plain http is for loopback, or for
whoever allows it by name.

The service does not say where its web application shows a thread or a report. So whoever sets up
the connection copies such an address from the browser and puts a placeholder in place of the id:
`https://acme.example.com/reports/{report_id}`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

from airflow_provider_platform.client.errors import PlatformConfigError, PlatformInputError
from airflow_provider_platform.client.redaction import quote_service

DEFAULT_PORTS = {"https": 443, "http": 80}
DATA_PATH = "/cubejs-api"
"""Where a deployment's data API is, unless the deployment moved it."""
_AGENT_OR_DEPLOYMENT = re.compile(r"/(agents|deployments)/[^/]+$")
_AGENT_ID = re.compile(r"[A-Za-z0-9_-]+")
_ASKED = re.compile(r"/(agents|deployments)/[^/]+/chat$")


def management_address(host: str, *, port: int | None, allow_http: bool) -> str:
    """The management address ending in `/api`, from the connection's host and port; a pasted
    `/v1` is dropped, because operations add it."""
    parts = split_address(host, field="host", port=port, allow_http=allow_http)
    path = parts.path.rstrip("/").removesuffix("/v1")
    return _join(parts, path if path.endswith("/api") else f"{path}/api")


def chat_address(chat_url: str, *, allow_http: bool) -> str:
    """The chat address ending in `/chat`. The admin area shows `…/agents/{id}` or
    `…/deployments/{id}`: `/chat` is added. A pasted `/stream-chat-state` is dropped."""
    parts = split_address(chat_url, field="chat_url", port=None, allow_http=allow_http)
    path = parts.path.rstrip("/").removesuffix("/stream-chat-state")
    if _AGENT_OR_DEPLOYMENT.search(path):
        path = f"{path}/chat"
    if not path.endswith("/chat"):
        raise PlatformConfigError(
            "Chat address (chat_url) must end in /chat, /agents/{id} or /deployments/{id}: copy "
            "the agent's chat address from its settings in the platform's admin area.",
            field="chat_url",
        )
    return _join(parts, path)


def agent_address(chat_url: str, agent_id: int | str) -> str:
    """The chat address of another agent of the account. Raises PlatformInputError for an id that
    cannot be a part of an address, or if the address names neither an agent nor a deployment."""
    address, replaced = _ASKED.subn(f"/agents/{check_agent_id(agent_id)}/chat", chat_url)
    if not replaced:
        raise PlatformInputError(
            "Nothing was sent: agent_id cannot replace the agent in Chat address (chat_url) of the "
            "connection, because this address does not end in /agents/{id}/chat. Use a connection "
            "with the address of the agent, and leave agent_id out.",
            field="agent_id",
        )
    return address


def agent_in(chat_url: str | None) -> str | None:
    """Return the id of the agent in a chat address; None in the address of a deployment."""
    found = re.search(r"/agents/([^/]+)/chat$", chat_url or "")
    return found and found[1]


def check_agent_id(agent_id: int | str, field: str = "agent_id") -> str:
    """Return the id. Raises PlatformInputError if it cannot be one part of an address."""
    if isinstance(agent_id, bool) or _AGENT_ID.fullmatch(str(agent_id)) is None:
        raise PlatformInputError(
            f"Nothing was sent: {field} must be the id of an agent (letters, digits, - and _), as "
            f"in its address …/agents/{{id}}, got {quote_service(agent_id)!r}.",
            field=field,
        )
    return str(agent_id)


def data_address(url: str, *, field: str, allow_http: bool) -> str:
    """A data API address, with or without a path, without a trailing `/`."""
    parts = split_address(url, field=field, port=None, allow_http=allow_http)
    return _join(parts, parts.path.rstrip("/"))


def split_address(text: str, *, field: str, port: int | None, allow_http: bool) -> SplitResult:
    """The checked parts of an address; scheme https where it has none, `port` (0 and 443 mean the
    default) where it names none. Raises PlatformConfigError naming the field and the rule."""

    def refuse(rule: str) -> PlatformConfigError:
        return PlatformConfigError(f"{field} {rule}.", field=field)

    address = text.strip()
    if not address.isprintable() or any(c in address for c in ' \\"<>^`{|}'):
        raise refuse("must not contain white space, quotes, brackets or a backslash")
    if "://" not in address:
        address = f"https://{address.removeprefix('//')}"
    try:
        parts = urlsplit(address)
        named_port = parts.port
    except ValueError:
        raise refuse("is not a web address, for example https://acme.example.com") from None
    scheme = parts.scheme.lower()
    if scheme not in DEFAULT_PORTS:
        raise refuse("must begin with https://")
    if "@" in parts.netloc:
        raise refuse("must not contain a user name or password")
    if "?" in address or "#" in address:
        raise refuse("must not contain a query or a fragment")
    hostname = parts.hostname or ""
    if not _is_host(hostname) or parts.netloc.endswith(":"):
        raise refuse("has no host name, for example https://acme.example.com")
    path = parts.path.removeprefix("/").removesuffix("/")
    if path and has_relative_steps(path):
        raise refuse("must not contain empty or relative path segments")
    if scheme == "http" and not allow_http and not is_loopback(hostname):
        raise refuse(
            "must begin with https://, because plain http sends the credential unprotected (on a "
            "trusted network, switch on Allow plain http (allow_http))"
        )
    chosen = named_port if named_port is not None else (None if port in (0, 443) else port)
    if chosen is not None and not 0 < chosen < 65536:
        raise refuse("must have a port from 1 to 65535")
    netloc = f"[{hostname}]" if ":" in hostname else hostname
    if chosen is not None and chosen != DEFAULT_PORTS[scheme]:
        netloc = f"{netloc}:{chosen}"
    return SplitResult(scheme, netloc, parts.path, "", "")


def has_relative_steps(path: str) -> bool:
    """Whether a path (without its outer slashes) has an empty segment or leads elsewhere by `.`
    or `..`, encoded ones included."""
    return any(
        not segment or any(part in (".", "..") for part in re.split(r"[/\\]", unquote(segment)))
        for segment in path.split("/")
    )


def _is_host(hostname: str) -> bool:
    if ":" in hostname:
        return "%" not in hostname
    try:
        name = hostname.removesuffix(".").encode("idna").decode()
    except UnicodeError:
        return False
    return re.fullmatch(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?", name) is not None


def is_loopback(hostname: str) -> bool:
    """Whether the host name is this machine."""
    if hostname == "localhost" or hostname.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(hostname).is_loopback
    except ValueError:
        return False


def passwords_in(address: str) -> list[str]:
    """The password in an address, as written and decoded; nothing where it has none."""
    user, _, _ = address.rpartition("@")
    password = user.rpartition("://")[2].partition(":")[2]
    return list(dict.fromkeys(filter(None, (password, unquote(password)))))


def _join(parts: SplitResult, path: str) -> str:
    return f"{parts.scheme}://{parts.netloc}{path}"


PLACEHOLDERS: dict[str, tuple[str, ...]] = {
    "agent": ("agent_id",),
    "thread": ("agent_id", "chat_id"),
    "branch": ("deployment_id", "branch_name"),
    "report": ("deployment_id", "report_id"),
    "workbook": ("deployment_id", "workbook_id"),
    "dashboard": ("deployment_id", "dashboard_id"),
    "notification": ("deployment_id", "notification_id"),
    "export": ("deployment_id", "job_id"),
    "file": ("path",),
}
"""What can be linked to, and the placeholders that its address may have."""

_PLACEHOLDER = re.compile(r"\{(\w*)\}")


def check_patterns(value: Any) -> dict[str, str] | None:
    """The patterns by what they lead to, None if there are none; empty ones count as absent. Raises
    ValueError."""
    if not isinstance(value, Mapping):
        raise ValueError(
            f"must be a JSON object whose keys are {', '.join(PLACEHOLDERS)} and "
            "whose values are web addresses"
        )
    patterns = {name: pattern for name, pattern in value.items() if pattern not in (None, "")}
    for name, pattern in patterns.items():
        if name not in PLACEHOLDERS:
            raise ValueError(
                f"has the unknown key {name!r}; its keys are {', '.join(PLACEHOLDERS)}"
            )
        _check(name, pattern)
    return patterns or None


def _check(name: str, pattern: Any) -> None:
    example = f"https://acme.example.com/.../{{{PLACEHOLDERS[name][-1]}}}"
    try:
        parts = urlsplit(pattern) if isinstance(pattern, str) else None
        usable = parts is not None and parts.scheme in ("http", "https") and parts.hostname
    except ValueError:
        usable = False
    if not usable or parts is None or "{" in parts.netloc or not str(pattern).isprintable():
        raise ValueError(f"must have a web address for {name!r}, for example {example}")
    if "@" in parts.netloc:
        raise ValueError(f"must not contain a user name or password in the address for {name!r}")
    unknown = set(_PLACEHOLDER.findall(pattern)) - set(PLACEHOLDERS[name])
    if unknown:
        known = " and ".join(f"{{{placeholder}}}" for placeholder in PLACEHOLDERS[name])
        raise ValueError(
            f"must contain only {known} as placeholder in the address for {name!r}, not "
            f"{{{min(unknown)}}}"
        )


def fill_patterns(patterns: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, str]:
    """Return the addresses by what they link to. One whose pattern needs a missing value is left
    out."""
    addresses = {}
    for name, pattern in patterns.items():
        needed = _PLACEHOLDER.findall(pattern)
        if any(values.get(one) in (None, "") for one in needed):
            continue
        addresses[name] = _PLACEHOLDER.sub(
            lambda match: quote(str(values[match[1]]), safe="/" if match[1] == "path" else ""),
            pattern,
        )
    return addresses
