"""Management calls as data: `Endpoint` declares an operation once, `Operation` is one call of it.

An endpoint is what the service's description says of an operation: method, path, parameters, body
and answer. Calling it with the path parameters and, where it has them, a query and a body gives an
`Operation`, which a client runs, synchronously or not. Neither does any I/O.

    START = Endpoint(
        operation_id="startDbtSync",
        method="POST",
        path="/v1/deployments/{deploymentId}/dbt-sync",
        body=StartDbtSyncInput,
        answer=DbtSyncStart,
    )
    operation = START(deployment_id=7, body=StartDbtSyncInput.build(branch_name="nightly"))
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar, cast
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from airflow_provider_platform.client.addresses import has_relative_steps
from airflow_provider_platform.client.answer_credentials import secrets_in
from airflow_provider_platform.client.errors import PlatformInputError, PlatformProtocolError
from airflow_provider_platform.client.models import InputModel

T = TypeVar("T")

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Api = Literal["management", "build"]
"""Which of the two APIs of the management host: the build API holds the data model."""
METHODS: tuple[Method, ...] = ("GET", "POST", "PUT", "PATCH", "DELETE")
REPEATABLE_METHODS = frozenset({"GET", "PUT", "DELETE"})

_PARAMETER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, kw_only=True)
class Endpoint(Generic[T]):
    """One operation of the management API, declared once.

    `path` is relative to the management address (which ends in `/api`), with the parameters named
    as the service names them. `answer` is the type of a successful answer; `type(None)` where the
    caller has no use for it. `permission` is named in the error of a 403. `repeatable` says that
    sending the same request twice does no harm (default: by method); `description` is a few words
    for logs and errors. `api` "build" is the API beside the management API, below `/build/api`.
    """

    operation_id: str
    method: Method
    path: str
    answer: type[T]
    description: str
    query: type[InputModel] | None = None
    body: type[InputModel] | None = None
    body_required: bool = False
    permission: str | None = None
    repeatable: bool | None = None
    binary: bool = False
    api: Api = "management"

    def __call__(
        self,
        *,
        query: InputModel | None = None,
        body: InputModel | None = None,
        **path_parameters: object,
    ) -> Operation[T]:
        """One call of this operation; path parameters are given in snake_case.

        Raises PlatformInputError for a path parameter that is missing, empty or a relative step.
        """
        given = {to_camel(name): value for name, value in path_parameters.items()}
        return Operation(
            operation_id=self.operation_id,
            description=self.description,
            method=self.method,
            path=fill_path(self.path, given),
            answer=self.answer,
            query=query.to_json() if query else {},
            body=body.to_json() if body else ({} if self.body_required else None),
            repeatable=(
                self.method in REPEATABLE_METHODS if self.repeatable is None else self.repeatable
            ),
            permission=self.permission,
            binary=self.binary,
            api=self.api,
            subject=", ".join(f"{_words(name)} {value}" for name, value in given.items()),
            secrets=(*secrets_in(query), *secrets_in(body)),
        )

    @property
    def path_parameters(self) -> list[str]:
        """Names of the path parameters, as the service spells them."""
        return _PARAMETER.findall(self.path)


@dataclass(frozen=True, kw_only=True)
class Operation(Generic[T]):
    """One management call, ready to be sent; `subject` names what it is about in errors,
    `secrets` are those that are sent with it."""

    operation_id: str
    description: str
    method: Method
    path: str
    answer: type[T]
    query: Mapping[str, Any] = field(default_factory=dict, repr=False)
    body: Any = field(default=None, repr=False)
    repeatable: bool = True
    permission: str | None = None
    binary: bool = False
    api: Api = "management"
    subject: str = ""
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        about = f" ({self.subject})" if self.subject else ""
        return f"{self.description}{about}: {self.method} {self.path}"

    def url(self, management_url: str) -> str:
        """The whole address, for a management address ending in `/api`."""
        if self.api == "management":
            return f"{management_url}{self.path}"
        return f"{management_url.removesuffix('/api')}/build/api{self.path}"

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self.answer)

    def read(self, value: object) -> T:
        """The answer as its type. Raises PlatformProtocolError where the shape is not the agreed
        one, naming the fields."""
        if self.answer is type(None):
            return cast("T", None)  # type: ignore[redundant-cast]
        try:
            return self._adapter.validate_python(value)
        except ValidationError as error:
            wrong = "; ".join(
                f"{'.'.join(str(part) for part in item['loc']) or 'answer'}: {item['msg']}"
                for item in error.errors(include_input=False, include_url=False)[:5]
            )
            raise PlatformProtocolError(
                f"{self}: the answer does not have the described shape ({wrong}). The tenant may "
                "run a release that this provider does not know."
            ) from None


def fill_path(template: str, parameters: Mapping[str, object]) -> str:
    """The path with every parameter encoded as one segment.

    Raises PlatformInputError naming a parameter that is missing, unknown, empty or a relative
    step.
    """
    names = _PARAMETER.findall(template)
    unknown = set(parameters) - set(names)
    if unknown:
        raise TypeError(f"{template} has no parameter {', '.join(sorted(unknown))}")

    def segment(match: re.Match[str]) -> str:
        name = match.group(1)
        text = str(parameters.get(name) if parameters.get(name) is not None else "").strip()
        if not text or text in (".", ".."):
            raise PlatformInputError(
                f"Nothing was sent: {name} must be given and name one resource.", field=name
            )
        try:
            return quote(text, safe="")
        except UnicodeEncodeError:
            raise PlatformInputError(
                f"Nothing was sent: {name} holds characters that no address can carry.", field=name
            ) from None

    return _PARAMETER.sub(segment, template)


def raw_operation(
    method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None
) -> Operation[Any]:
    """Any operation below the management address, by method and path, as in `/v1/app-config`.

    The answer is plain JSON. Raises PlatformInputError for an unknown method, an absolute URL, a
    query inside the path, and empty or relative steps.
    """
    upper = method.strip().upper()
    if upper not in METHODS:
        raise PlatformInputError(
            f"Nothing was sent: method must be one of {', '.join(METHODS)}.", field="method"
        )
    return Operation(
        operation_id=f"{upper} {path}",
        description="API call",
        method=upper,
        path=check_path(path),
        answer=cast("type[Any]", Any),
        query=dict(query or {}),
        body=body,
        repeatable=upper in REPEATABLE_METHODS,
        secrets=(*secrets_in(query), *secrets_in(body)),
    )


def check_path(path: str) -> str:
    """A path that a caller supplied, below the management address, with a leading `/`.

    A trailing `/` is kept (one described operation has it). Raises PlatformInputError.
    """
    text = path.strip()
    if "://" in text or text.startswith("//"):
        problem = "is a path below the management address, not a URL"
    elif any(character in text for character in "?#\\") or not text.isprintable() or " " in text:
        problem = "must not contain a query, a fragment, a backslash or white space"
    elif not text.strip("/"):
        problem = "must not be empty"
    else:
        if not has_relative_steps(text.removeprefix("/").removesuffix("/")):
            return "/" + text.removeprefix("/")
        problem = "must not contain empty or relative segments"
    raise PlatformInputError(f"Nothing was sent: path {problem}.", field="path")


def _words(name: str) -> str:
    """`deploymentId` as `deployment`, `publicId` as `public`: a name for error messages."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    return spaced.removesuffix(" id") or spaced
