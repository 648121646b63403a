"""Management calls as data: a declared function describes an operation, `Operation` is one call.

A declaration is a signature without a body: the path parameters, `query` and `body` where the
operation has them, and the type of its answer. Its docstring is its documentation.

    @endpoint("POST", "/v1/deployments/{deploymentId}/dbt-sync", operation_id="startDbtSync")
    def start_dbt_sync(
        *, deployment_id: DeploymentId = None, body: StartDbtSyncInput
    ) -> DbtSyncResponse:
        \"\"\"Start a dbt sync.\"\"\"

    operation = start_dbt_sync(deployment_id=7, body=StartDbtSyncInput(branch_name="nightly"))

A call of the function checks and encodes the parameters and returns an `Operation`, which a client
runs, synchronously or not. Neither does any I/O. A body and a query may be dicts of their model's
fields. Without a deployment, the deployment of the client's configuration is used. A field of the
body that repeats an id of the path gets its value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import WRAPPER_ASSIGNMENTS, cached_property
from typing import Any, Generic, ParamSpec, TypeVar, cast, get_args, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from airflow_provider_platform.client.choices import Method
from airflow_provider_platform.client.errors import (
    PlatformProtocolError,
    RequestName,
)
from airflow_provider_platform.client.operations.arguments import Arguments
from airflow_provider_platform.client.operations.models import InputModel
from airflow_provider_platform.client.operations.paths import (
    BUILD_API,
    DEPLOYMENT,
    Api,
    api_of,
    check_path,
    fill_path,
    placeholders,
    subject_of,
)
from airflow_provider_platform.client.operations.rules import choice
from airflow_provider_platform.client.operations.secret_names import secrets_in

P = ParamSpec("P")
T = TypeVar("T")

DeploymentId = int | str | None
"""A deployment; None means the deployment of the client's configuration."""
METHODS: tuple[Method, ...] = get_args(Method)
REPEATABLE_METHODS = frozenset({"GET", "PUT", "DELETE"})

ADMINISTRATOR = "administrator of the account"
"""The `permission` of operations that need this role."""

PAGING = frozenset({"first", "after", "offset", "page", "limit"})

_DEPLOYMENT_FIELD = "deployment_id"


def endpoint(
    method: Method,
    path: str,
    *,
    operation_id: str,
    permission: str | None = None,
    repeatable: bool | None = None,
    binary: bool = False,
) -> Callable[[Callable[P, T]], Endpoint[P, T]]:
    """Declares an operation of the management API by a signature (see the module).

    `path` is relative to the management address (which ends in `/api`), or the whole path of the
    API beside it, below `/build/api`; its parameters are named as the service names them, and
    `operation_id` is the service's own name of the operation. `permission` is named in the error
    of a 403. `repeatable` says that sending the same request twice does no harm (default: by
    method).
    """

    api, below = api_of(path)

    def declare(declaration: Callable[P, T]) -> Endpoint[P, T]:
        return Endpoint(
            declaration=declaration,
            operation_id=operation_id,
            method=method,
            path=below,
            permission=permission,
            repeatable=method in REPEATABLE_METHODS if repeatable is None else repeatable,
            binary=binary,
            api=api,
        )

    return declare


@dataclass(frozen=True, kw_only=True, repr=False)
class Endpoint(Generic[P, T]):
    """One declared operation of the management API. A call returns an `Operation`.

    `help`, `inspect.signature` and editors see the declaration.
    """

    declaration: Callable[P, T]
    operation_id: str
    method: Method
    path: str
    permission: str | None
    repeatable: bool
    binary: bool
    api: Api

    def __post_init__(self) -> None:
        for name in (*WRAPPER_ASSIGNMENTS, "__annotations__"):
            object.__setattr__(self, name, getattr(self.declaration, name, None))
        object.__setattr__(self, "__wrapped__", self.declaration)

    def __get__(self, instance: object, owner: type | None = None) -> Endpoint[P, T]:
        """Return this operation. `inspect` and `help` recognize functions by this method."""
        return self

    def __repr__(self) -> str:
        return f"{self.name}{self._signature}"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Operation[T]:
        """Return one call of this operation. Raises PlatformInputError for an argument that is
        missing, unknown or of another type, for an invalid field, and for an id that cannot name a
        resource.
        """
        arguments = self._arguments
        values = arguments.bind(args, kwargs)
        query = arguments.model("query", self.query, values.pop("query", None))
        body = values.pop("body", None)
        subject = {to_camel(name): arguments.id(name, value) for name, value in values.items()}
        parameters = {self._placeholder(name): value for name, value in subject.items()}
        left_open = False
        if DEPLOYMENT in self.path_parameters:
            left_open = parameters.setdefault(DEPLOYMENT, None) is None
        body = arguments.model("body", self.body, body, known=parameters)
        return Operation(
            operation_id=self.operation_id,
            description=self.description,
            method=self.method,
            path=fill_path(self.path, parameters, leave=DEPLOYMENT if left_open else None),
            answer=self.answer,
            query=query.to_json() if query else {},
            body=body.to_json() if body else ({} if self.body else None),
            deployment_in_body=self._leaves_open(body),
            repeatable=self.repeatable,
            permission=self.permission,
            binary=self.binary,
            api=self.api,
            subject=subject_of(subject),
            paging=self._paging(query),
            secrets=(*secrets_in(query), *secrets_in(body)),
        )

    @property
    def name(self) -> str:
        """The name of the declared function."""
        return self.declaration.__name__

    @property
    def description(self) -> str:
        """A few words for logs and errors: the name with spaces."""
        return self.name.replace("_", " ")

    @property
    def usage(self) -> str:
        """An example of a call of this operation."""
        return self._arguments.usage

    @property
    def path_parameters(self) -> list[str]:
        """Names of the path parameters, as the service spells them."""
        return placeholders(self.path)

    @property
    def query(self) -> type[InputModel] | None:
        """The model of the query parameters."""
        return self._model("query")

    @property
    def body(self) -> type[InputModel] | None:
        """The model of the body."""
        return self._model("body")

    @property
    def answer(self) -> type[T]:
        """The type of a successful answer; `type(None)` if the caller does not need it."""
        return cast("type[T]", self._types["return"])

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.declaration)

    @cached_property
    def _arguments(self) -> Arguments:
        return Arguments(self.name, self._signature, {"query": self.query, "body": self.body})

    @cached_property
    def _types(self) -> dict[str, Any]:
        return get_type_hints(self.declaration)

    @staticmethod
    def _leaves_open(body: InputModel | None) -> bool:
        """Return whether the body needs the deployment of the configuration."""
        if body is None or not body.is_known_by_call(_DEPLOYMENT_FIELD):
            return False
        return getattr(body, _DEPLOYMENT_FIELD) is None

    def _placeholder(self, name: str) -> str:
        """Return the placeholder of a path parameter: the service calls some ids just `{id}`."""
        return name if name in self.path_parameters else "id"

    def _paging(self, query: InputModel | None) -> frozenset[str]:
        model = self.query
        paging = PAGING.intersection(model.model_fields) if model is not None else frozenset()
        return paging if query is None or query.cursor_allowed else paging - {"first", "after"}

    def _model(self, name: str) -> type[InputModel] | None:
        declared = self._types.get(name)
        models = [
            candidate
            for candidate in (declared, *get_args(declared))
            if isinstance(candidate, type)
        ]
        return next((candidate for candidate in models if issubclass(candidate, InputModel)), None)


@dataclass(frozen=True, kw_only=True)
class Operation(Generic[T]):
    """One management call, ready to be sent; `subject` names what it is about in errors, `paging`
    are the parameters by which its answer can be paged, `described` is False where a caller gave
    the path, `deployment_in_body` says that the body lacks the configuration's deployment,
    `secrets` are those that are sent with it, `later_page` says that an earlier page of the same
    list could be read."""

    operation_id: str
    description: str
    method: Method
    path: str
    answer: type[T]
    query: Mapping[str, Any] = field(default_factory=dict, repr=False)
    body: Any = field(default=None, repr=False)
    deployment_in_body: bool = False
    repeatable: bool = True
    permission: str | None = None
    binary: bool = False
    api: Api = "management"
    subject: str = ""
    paging: frozenset[str] = frozenset()
    described: bool = True
    secrets: tuple[str, ...] = field(default=(), repr=False)
    later_page: bool = False

    def __str__(self) -> str:
        about = f" ({self.subject})" if self.subject else ""
        return f"{self.description}{about}: {self._request_line}"

    @property
    def request_name(self) -> RequestName:
        """The name of this call in errors."""
        where = ": ".join(filter(None, [self.subject, self._request_line]))
        return RequestName(self.description, where)

    @property
    def _request_line(self) -> str:
        """The method and the path."""
        below = BUILD_API if self.api == "build" and not self.described else ""
        path = self.path.replace(f"{{{DEPLOYMENT}}}", "…")  # no deployment is given or known yet
        return f"{self.method} {below}{path}"

    def url(self, management_url: str) -> str:
        """Return the whole address, for a management address that ends in `/api`."""
        if self.api == "management":
            return f"{management_url}{self.path}"
        return f"{management_url.removesuffix('/api')}{BUILD_API}{self.path}"

    def in_deployment(self, resolve: Callable[[], int]) -> Operation[T]:
        """Return this call, with the deployment of `resolve` if the call has none."""
        if self.deployment_in_body:
            body = {DEPLOYMENT: resolve(), **self.body}
            return replace(self, body=body, deployment_in_body=False).in_deployment(resolve)
        if f"{{{DEPLOYMENT}}}" not in self.path:
            return self
        deployment = resolve()
        return replace(
            self,
            path=fill_path(self.path, {DEPLOYMENT: deployment}),
            subject=", ".join(filter(None, [subject_of({DEPLOYMENT: deployment}), self.subject])),
        )

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self.answer)

    def done_before(self) -> T:
        """Return the answer of a call that was already done before, so that the service returns
        none: a model without set fields, or None if the operation has no answer."""
        try:
            return self.read(None)
        except PlatformProtocolError:
            answer: Any = self.answer
            is_model = isinstance(answer, type) and issubclass(answer, BaseModel)
            return cast("T", answer.model_construct() if is_model else None)

    def read(self, value: object) -> T:
        """Return the answer as its type. Raises PlatformProtocolError, which names the fields, if
        the shape is not the documented one."""
        if self.answer is type(None):
            return cast("T", None)  # type: ignore[redundant-cast]
        try:
            return self._adapter.validate_python(value, context={"later_page": self.later_page})
        except ValidationError as error:
            wrong = "; ".join(
                f"{'.'.join(str(part) for part in item['loc']) or 'answer'}: {item['msg']}"
                for item in error.errors(include_input=False, include_url=False)[:5]
            )
            raise PlatformProtocolError(
                f"{self.description}: the response does not have the documented shape ({wrong}). "
                "The tenant may run a release that this provider does not know.",
                where=self.request_name.where,
            ) from None


def raw_operation(
    method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None
) -> Operation[Any]:
    """Return any operation below the management address, by method and path, such as
    `/v1/app-config`. For the other API, use its whole path, such as `/build/api/v1/...`.

    `{deploymentId}` in the path is the deployment of the client's configuration; a query parameter
    of None counts as not given, the body is sent as it is. The answer is plain JSON. Raises
    PlatformInputError for an unknown method, an absolute URL, a query inside the path, another
    placeholder, and empty or relative steps.
    """
    upper = choice("method", str(method).strip().upper(), METHODS)
    api, below = api_of(check_path(path))
    return Operation(
        operation_id=f"{upper} {path}",
        description="API call",
        method=upper,
        path=below,
        api=api,
        described=False,
        answer=cast("type[Any]", Any),
        query={name: value for name, value in (query or {}).items() if value is not None},
        body=body,
        repeatable=upper in REPEATABLE_METHODS,
        secrets=(*secrets_in(query), *secrets_in(body)),
    )
