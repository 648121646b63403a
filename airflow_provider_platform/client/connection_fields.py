"""The fields of a connection, each declared once in `ConnectionFields`.

An attribute declares a field: its annotation is the type of the checked value, `ConnectionField`
says everything else. The form (`hooks.connection_type`), the checked value (`client.config`), the
errors and the checks of the documentation are made of this table. Airflow's API server reads it to
list the providers, so only the standard library is imported here.

A credential goes to the host that it was given for, over https. Plain http is for loopback, or for
whoever allows it by name.

The service does not say where its web application shows a thread or a report. So whoever sets up
the connection copies such an address from the browser and puts a placeholder in place of the id:
`https://acme.example.com/reports/{report_id}`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar
from urllib.parse import SplitResult, quote, unquote, urlsplit

from airflow_provider_platform.client.argument_rules import (
    check_agent_id,
    has_relative_steps,
    in_seconds,
    read_boolean,
    read_json_string,
)
from airflow_provider_platform.client.errors import PlatformConfigError, PlatformInputError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import overload

    from pydantic import SecretStr, ValidationInfo


T = TypeVar("T")

Kind: TypeAlias = Literal["text", "secret", "integer", "switch", "object"]
"""How a field is entered in the form."""
Rule: TypeAlias = Callable[..., Any]
"""Returns the checked value of what was given, which is not empty. The keyword arguments are the
checked values of the fields in `needs`; None for one that is absent or bad. Raises ValueError with
what must hold, in words that follow the field's name, or PlatformConfigError."""
Place: TypeAlias = Literal["host", "password", "port", "extra"]

MASK = "***"


@dataclass(kw_only=True, eq=False)
class ConnectionField(Generic[T]):
    """One field of the connection; `T` is the type of its checked value.

    A field in `extra` is stored under its own `name`, any other one is the standard field `place`.
    An empty value counts as absent and gives the `default`. `minimum`, `maximum` and `above` limit
    a number, `choices` a text. `aliases` are other names that people give the field in `extra` by
    mistake.

    `template` is what an object's editor shows at first: Airflow's editor formats its text again
    as soon as it is valid JSON, and whoever types a new object is thrown out of it.
    """

    label: str
    description: str = ""
    section: str = ""
    place: Place = "extra"
    form_label: str | None = None
    """The label in the form, if errors and pages use a shorter one."""
    placeholder: str | None = None
    kind: Kind = "text"
    default: str | int | bool | None = None
    template: Mapping[str, str] | None = None
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    above: int | None = None
    rule: Rule | None = None
    needs: tuple[str, ...] = ()
    is_address: bool = False
    """Whether a secret is an address, of which only a user and a password are hidden."""
    aliases: tuple[str, ...] = ()
    name: str = field(default="", init=False)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    if TYPE_CHECKING:
        # A configuration has the checked value under the name of the field.
        @overload
        def __get__(self, instance: None, owner: type) -> ConnectionField[T]: ...
        @overload
        def __get__(self, instance: object, owner: type) -> T: ...
        def __get__(self, instance: object, owner: type) -> ConnectionField[T] | T: ...

    @property
    def stored_name(self) -> str:
        """What the connection, errors and pages call the field."""
        return self.name if self.place == "extra" else self.place

    def read(self, value: Any, info: ValidationInfo) -> Any:
        """The checked value, but for its type and limits. Raises as `Rule`."""
        if self.kind == "secret" and str(value) == MASK:
            raise ValueError(
                f"is the literal {MASK}: a masked value was saved in place of the "
                f"{'address' if self.is_address else 'secret'}. Enter "
                f"{'it' if self.is_address else 'the secret'} again"
            )
        if self.choices:
            return _choice(value, self.choices)
        if self.kind == "object" and isinstance(value, str):
            with suppress(ValueError):  # the rule says what is wrong with another text
                value = read_json_string(value)
            if value is None:
                return None
        if self.rule is not None:
            return self.rule(value, **{name: info.data.get(name) for name in self.needs})
        return _KIND_RULES.get(self.kind, _as_it_is)(value)


# Rules


def clean(value: Any) -> Any:
    """The value without white space around it; None where it is empty."""
    if hasattr(value, "get_secret_value"):
        value = value.get_secret_value()
    if isinstance(value, str):
        value = value.strip()
    return None if value in ("", {}, []) else value


def _as_it_is(value: Any) -> Any:
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return in_seconds(value)


def _bare_secret(value: Any) -> str:
    """A secret that can be sent in a header."""
    text = str(value)
    for scheme in ("bearer ", "api-key "):
        if text.lower().startswith(scheme):
            raise ValueError(f"must be the bare secret, without the word {scheme.strip()!r}")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(
            "contains white space or characters that a header cannot contain: it was probably "
            "pasted with something else"
        )
    return text


_KIND_RULES: dict[Kind, Callable[[Any], Any]] = {
    "integer": _number,
    "secret": _bare_secret,
    "switch": read_boolean,
}


def _choice(value: Any, choices: tuple[str, ...]) -> str:
    for choice in choices:
        if str(value).lower() == choice.lower():
            return choice
    raise ValueError(f"must be {' or '.join(choices)}")


def _port(value: Any) -> int | None:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if not 0 <= number < 65536:
        raise ValueError("must be a number from 0 to 65535")
    return None if number in (0, 443) else number


def _management_address(value: Any, *, port: int | None, allow_http: bool | None) -> str:
    return management_address(str(value), port=port, allow_http=bool(allow_http))


def _chat_address(value: Any, *, allow_http: bool | None) -> str:
    return chat_address(str(value), allow_http=bool(allow_http))


def _data_address(value: Any, *, allow_http: bool | None) -> str:
    return data_address(str(value), field="data_api_url", allow_http=bool(allow_http))


def _proxy(value: Any) -> str:
    text = str(value) if "://" in str(value) else f"http://{value}"
    scheme, rest = text.split("://", 1)
    if scheme not in ("http", "https", "socks5", "socks5h"):
        raise ValueError("must begin with http://, https:// or socks5://")
    split_address(f"http://{rest.rpartition('@')[2]}", field="proxy", port=None, allow_http=True)
    return text


def _existing_path(value: Any) -> Path:
    from pathlib import Path

    path = Path(str(value))
    try:
        exists = path.exists()
    except (OSError, ValueError):  # a name too long, a null byte, a folder that may not be read
        exists = False
    if not exists:
        raise ValueError("is not a file or folder on this machine")
    return path


def _session_settings(value: Any, *, chat_service_token: SecretStr | None) -> dict[str, Any] | None:
    """None with a service token, whose claims name the user, and where every setting is empty."""
    if not isinstance(value, dict):
        raise ValueError('must be a JSON object, for example {"externalId": "nightly"}')
    is_empty = all(item in (None, "", [], {}) for item in value.values())
    return None if is_empty or chat_service_token is not None else value


# Addresses


DEFAULT_PORTS = {"https": 443, "http": 80}
DATA_PATH = "/cubejs-api"
"""Where a deployment's data API is, unless the deployment moved it."""
_AGENT_OR_DEPLOYMENT = re.compile(r"/(agents|deployments)/[^/]+$")
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


# The table


_MANAGEMENT = "Management API"
_CHAT = "Chat API (premium or enterprise plan)"
_DATA = "Data API (SQL)"
_LIMITS = "Time-outs and retries"
_NETWORK = "TLS and proxy"
_LINKS = "Links of tasks"


class ConnectionFields:
    """The fields, in the order of the form."""

    management_url: ConnectionField[str | None] = ConnectionField(
        place="host",
        label="Management API address",
        placeholder="https://acme.example.com/api",
        rule=_management_address,
        needs=("port", "allow_http"),
        aliases=("host", "base_url", "management_url"),
    )
    management_token: ConnectionField[SecretStr | None] = ConnectionField(
        place="password",
        label="Management token",
        kind="secret",
        aliases=("password", "token", "management_token"),
    )
    port: ConnectionField[int | None] = ConnectionField(
        place="port",
        label="Port",
        # Airflow's Test button sends 0 for an empty port and then refuses the difference.
        form_label="Port (optional; the Test button needs 443)",
        placeholder="",  # a number here looks as if it were entered
        rule=_port,
        aliases=("port",),
    )
    deployment_id: ConnectionField[int | None] = ConnectionField(
        label="Deployment id",
        description=(
            "The number of a data model with its branches and reports. Tasks use it if they name "
            "no other. To find the number, leave this field empty and click Test: the test lists "
            "the deployments."
        ),
        section=_MANAGEMENT,
        kind="integer",
        minimum=1,
    )
    chat_url: ConnectionField[str | None] = ConnectionField(
        label="Chat address",
        description=(
            "The address of the agent. Copy it from the agent's settings in the platform's admin "
            "area. Leave this field empty for a connection without chat."
        ),
        section=_CHAT,
        rule=_chat_address,
        needs=("allow_http",),
    )
    agent: ConnectionField[str | None] = ConnectionField(
        label="Agent",
        description=(
            "The name of another agent to ask, as the platform shows it. This needs Management "
            "API address, Management token and Deployment id. Leave this field empty to ask the "
            "agent of the chat address."
        ),
        section=_CHAT,
        rule=str,
    )
    chat_api_key: ConnectionField[SecretStr | None] = ConnectionField(
        label="Chat API key",
        description="The key alone. Enter a key or a service token, not both.",
        section=_CHAT,
        kind="secret",
    )
    chat_service_token: ConnectionField[SecretStr | None] = ConnectionField(
        label="Chat service token",
        description=(
            "A JWT that your organisation signs. It names the user and has the scope 'chat'. Enter "
            "a service token or an API key, not both."
        ),
        section=_CHAT,
        kind="secret",
    )
    chat_service_header: ConnectionField[str] = ConnectionField(
        label="Service token header",
        description="The HTTP header for the service token.",
        section=_CHAT,
        choices=("X-Service-Auth-Token", "X-Cube-Auth-Token"),
        default="X-Service-Auth-Token",
    )
    session_settings: ConnectionField[Any] = ConnectionField(  # config has its model
        label="Session settings",
        description=(
            "The user for whom the agent answers. An API key needs this setting, a service token "
            "does not use it. Type an externalId between the quotes, or paste a JSON object: "
            '{"externalId": "nightly", "groups": ["finance"]}. The page of the connection lists '
            "the settings."
        ),
        section=_CHAT,
        kind="object",
        template={"externalId": ""},
        rule=_session_settings,
        needs=("chat_service_token",),
    )
    data_api_url: ConnectionField[str | None] = ConnectionField(
        label="Data API address",
        description=(
            "Normally leave this field empty: the management API returns the address. Enter an "
            "address if the returned one does not work in your network."
        ),
        section=_DATA,
        rule=_data_address,
        needs=("allow_http",),
    )
    default_row_limit: ConnectionField[int | None] = ConnectionField(
        label="Row limit without LIMIT",
        description=(
            "How many rows the deployment returns at most for a query without a LIMIT. Enter the "
            "deployment's setting CUBEJS_DB_QUERY_DEFAULT_LIMIT. If you do not know it, leave this "
            "field empty. A result with 10,000 rows, or with another round number of rows, then "
            "counts as truncated."
        ),
        section=_DATA,
        kind="integer",
        minimum=1,
    )
    max_row_limit: ConnectionField[int | None] = ConnectionField(
        label="Row limit with LIMIT",
        description=(
            "How many rows the deployment returns at most for a query with a LIMIT. Enter the "
            "deployment's setting CUBEJS_DB_QUERY_LIMIT. If you do not know it, leave this field "
            "empty. A result with 50,000 rows then counts as truncated, and so does one with "
            "another round number of rows that is not the query's own LIMIT."
        ),
        section=_DATA,
        kind="integer",
        minimum=1,
    )
    request_timeout: ConnectionField[float] = ConnectionField(
        label="Request time-out (seconds)",
        description="How many seconds one request to the management API may take.",
        section=_LIMITS,
        kind="integer",
        minimum=1,
        default=60,
        above=0,
    )
    stream_idle_timeout: ConnectionField[float] = ConnectionField(
        label="Chat silence limit (seconds)",
        description="If the agent sends nothing for this many seconds, the task connects again. "
        "After its first row, a query fails after this many seconds without new rows.",
        section=_LIMITS,
        kind="integer",
        minimum=1,
        default=120,
        above=0,
    )
    max_attempts: ConnectionField[int] = ConnectionField(
        label="Tries per request",
        description=(
            "The maximum number of times the package sends one request. The first time counts too. "
            "The package repeats a request only if this can do no harm."
        ),
        section=_LIMITS,
        kind="integer",
        minimum=1,
        maximum=100,
        default=5,
    )
    verify_tls: ConnectionField[bool] = ConnectionField(
        label="Verify TLS certificates",
        description=(
            "Leave this on. If your platform has a private certificate, enter a CA bundle."
        ),
        section=_NETWORK,
        kind="switch",
        default=True,
    )
    ca_bundle: ConnectionField[Path | None] = ConnectionField(
        label="CA bundle",
        description=(
            "A file with further CA certificates (PEM), or a folder that openssl rehash has "
            "prepared. It must exist on every machine that runs tasks or triggers."
        ),
        section=_NETWORK,
        rule=_existing_path,
    )
    proxy: ConnectionField[SecretStr | None] = ConnectionField(
        label="Proxy",
        description=(
            "Example: http://proxy.example.com:3128. If this field is empty, the proxy settings of "
            "the machine apply. The form hides the address, because it may contain a password."
        ),
        section=_NETWORK,
        kind="secret",
        rule=_proxy,
        is_address=True,
    )
    allow_http: ConnectionField[bool] = ConnectionField(
        label="Allow plain http",
        description=(
            "Use this only in a trusted network, because credentials are then sent without "
            "encryption. Addresses of the machine itself (localhost) need no switch for http."
        ),
        section=_NETWORK,
        kind="switch",
        default=False,
    )
    web_links: ConnectionField[dict[str, str] | None] = ConnectionField(
        label="Web addresses",
        description=(
            "The addresses of web pages, for the links that tasks show. Copy an address from the "
            "browser, and replace the id with a placeholder: "
            '{"thread": "https://acme.example.com/chats/{chat_id}"}. You can set agent, thread, '
            "branch, report, workbook, dashboard, notification, export and file."
        ),
        section=_LINKS,
        kind="object",
        template={"thread": ""},
        rule=check_patterns,
    )


AnyField: TypeAlias = ConnectionField[Any]


def fields_of(table: type[ConnectionFields]) -> tuple[AnyField, ...]:
    """The fields that a table declares, its bases' first."""
    fields: dict[str, AnyField] = {}
    for base in reversed(table.__mro__):
        fields |= {name: item for name, item in vars(base).items() if type(item) is ConnectionField}
    return tuple(fields.values())


FIELDS = fields_of(ConnectionFields)
EXTRA_FIELDS = tuple(one for one in FIELDS if one.place == "extra")
EXTRA_NAMES = frozenset(one.name for one in EXTRA_FIELDS)
LABELS = {one.stored_name: one.label for one in FIELDS}
"""What errors and pages call each field, before its name in brackets."""


def with_label(reason: str) -> str:
    """Return the reason of an error with the form's label before the setting that it begins with,
    as in `Chat address (chat_url) must end in ...`."""
    name = reason.partition(" ")[0].rstrip(":")
    label = LABELS.get(name)
    return reason if label is None else f"{label} ({name}){reason[len(name) :]}"
