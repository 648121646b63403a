"""One call of the management API, ready to be sent: checked against the table, without I/O.

`operation` makes a call of any operation of the table (`client.operations_table`) by its id.
`typed` makes one whose answer becomes a model:

    folder = operation("createFolder", deployment_id=7, body={"name": "March"})
    report = typed("getReport", Report)(deployment_id=7, report_id=101)

Path parameters are arguments in snake_case. A query and a body have the service's names, or the
same in snake_case. Without a deployment, the one of the client's configuration is used. If a
required field of the body repeats an id of the path, the call fills it in.

Arguments that break a rule raise PlatformInputError before anything is sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache, cached_property, partial
from typing import Annotated, Any, Generic, Literal, NoReturn, TypeVar, cast, get_args
from urllib.parse import quote

from pydantic import AfterValidator, BaseModel, TypeAdapter, ValidationError
from pydantic.alias_generators import to_snake

from airflow_provider_platform.client import operations_table as table
from airflow_provider_platform.client.argument_rules import (
    DEPLOYMENT,
    PARAMETER,
    check_deployment_id,
    check_path,
    choice,
    is_absent,
    refuse,
)
from airflow_provider_platform.client.choices import Method
from airflow_provider_platform.client.errors import (
    PlatformInputError,
    PlatformProtocolError,
    RequestName,
)
from airflow_provider_platform.client.models import InputModel, JsonObject
from airflow_provider_platform.client.redaction import hide_credentials, quote_service, secrets_in

T = TypeVar("T")

ApiSide = Literal["management", "build"]
"""The two APIs of the management host; the build API is about the data model."""
BUILD_API = "/build/api"

DeploymentId = int | str | None
"""A deployment; None means the deployment of the client's configuration."""
METHODS: tuple[Method, ...] = get_args(Method)
REPEATABLE_METHODS = frozenset({"GET", "PUT", "DELETE"})
REPEATABLE_POSTS = frozenset({"pauseReportDelivery", "resumeReportDelivery"})
"""A second call of these leaves what the first one did."""

Json = Annotated[Any, AfterValidator(hide_credentials)]
"""An answer as the service sent it, with credentials as SecretStr."""
_ANSWERS = {
    "object": JsonObject,
    "array": Annotated[list[Any], AfterValidator(hide_credentials)],
}

_SET_HEADERS = frozenset(
    {
        *("accept-encoding", "authorization", "connection", "content-encoding", "content-length"),
        *("content-type", "cookie", "host", "te", "transfer-encoding", "upgrade"),
    }
)
"""The headers that the client itself sets, or that would change how a response is read."""
_HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")

PAGING = frozenset({"first", "after", "offset", "page", "limit"})


def api_of(path: str) -> tuple[ApiSide, str]:
    """Return the API of a path, and the path below that API's address."""
    if path.startswith(f"{BUILD_API}/"):
        return "build", path.removeprefix(BUILD_API)
    return "management", path


def described(name: str) -> table.OperationRow:
    """Return the operation of this id. Raises PlatformInputError, which names one like it."""
    known = table.operations()
    if name in known:
        return known[name]
    close = get_close_matches(str(name), known, n=1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    raise PlatformInputError(
        f"Nothing was sent: the API has no operation {name}{meant}. The page Every operation lists "
        "all ids. Call an operation that is not in it by its method and path.",
        field="operation",
    )


def operation(
    name: str,
    answer: Any = None,
    /,
    *,
    query: Mapping[str, Any] | None = None,
    body: Any = None,
    rendered: bool = False,
    permission: str | None = None,
    **ids: Any,
) -> Operation[Any]:
    """Return one call of an operation of the table. The answer is plain JSON, in which credentials
    are SecretStr, unless a type is given for it.

    A query parameter of None counts as absent; the body is sent as given. With `rendered`, strings
    become the numbers and booleans that the service wants. Raises PlatformInputError for an unknown
    operation, an unknown or missing argument or field, and a value that breaks a rule. The error
    names the field and the rule, never the value.
    """
    known = _known(name)
    row = known.row
    path_ids = known.read_ids(ids, rendered=rendered)
    if isinstance(body, InputModel):
        body = body.to_json()
    secrets = _secrets_of(query, body)
    sent_query = known.read_query(query, rendered=rendered)
    sent_body, left_open = known.read_body(body, path_ids, rendered=rendered)
    deployment = path_ids.get(DEPLOYMENT)
    parameters = {parameter: path_ids.get(parameter) for parameter in row.ids}
    leave = DEPLOYMENT if DEPLOYMENT in row.ids and deployment is None else None
    return Operation(
        operation_id=row.id,
        description=known.words,
        method=cast("Method", row.method),
        path=fill_path(known.path, parameters, leave=leave),
        answer=known.answer if answer is None else answer,
        query=sent_query,
        body=sent_body,
        deployment_in_body=left_open,
        repeatable=row.method in REPEATABLE_METHODS or row.id in REPEATABLE_POSTS,
        permission=permission or row.needs,
        binary=bool(row.media),
        api=known.api,
        subject=subject_of({known.nouns[name]: value for name, value in path_ids.items()}),
        paging=known.paging,
        secrets=secrets,
    )


def typed(
    name: str, answer: type[T], *, permission: str | None = None
) -> Callable[..., Operation[T]]:
    """Return the function that makes calls of this operation, with ids, `query` and `body` as
    `operation` takes them. `permission` is named in the error of a 403, instead of the table's."""
    return partial(operation, name, answer, permission=permission)


def _secrets_of(*parts: Any) -> tuple[str, ...]:
    """Return the secrets in the parts of a call that are given."""
    return tuple(secret for part in parts if part for secret in secrets_in(part))


def _answer_of(row: table.OperationRow) -> Any:
    """Return the type of an answer of which no fields are read."""
    if row.media:
        return bytes
    if row.answer is None:
        return type(None)
    return _ANSWERS.get(str(table.resolved(row.answer).get("type")), Json)


class _KnownOperation:
    """What all calls of an operation have in common, and the checks of their arguments against its
    row of the table."""

    def __init__(self, row: table.OperationRow) -> None:
        self.row = row
        self.words = to_snake(row.id).replace("_", " ")
        """A few words for logs and errors: `getReport` as `get report`."""
        self.api, self.path = api_of(row.path.removeprefix("/api"))
        self.answer = _answer_of(row)
        self._query_schema = row.query_schema
        self.paging = PAGING.intersection(self._query_schema["properties"])
        self._required = table.resolved(row.body or {}).get("required", ())
        self._names = {to_snake(name): name for name in row.ids}
        if DEPLOYMENT in self._required:
            self._names.setdefault(to_snake(DEPLOYMENT), DEPLOYMENT)
        self.nouns = {name: self._noun(name) for name in self._names.values()}
        """What each id is the id of."""

    def _noun(self, name: str) -> str:
        """Return what an id is the id of: for a plain `{id}`, the path says it."""
        if name != "id":
            return name
        words = self.row.path.partition("/{id}")[0].rpartition("/")[2].rpartition("-")[2]
        return re.sub(r"ie?s$|s$", lambda end: "y" if end[0] == "ies" else "", words)

    def read_ids(self, values: Mapping[str, Any], *, rendered: bool) -> dict[str, int | str | None]:
        """Return the ids by the service's names. A template may render nothing as "None"."""
        for name in values:
            if name not in self._names:
                self._refuse_unknown(name)
        missing = [name for name in self._names if name not in values and name != "deployment_id"]
        if missing:
            self._refuse(f"needs {' and '.join(missing)}", field=missing[0])
        if rendered:
            values = {name: None if is_absent(one) else one for name, one in values.items()}
        return {self._names[name]: self._id(name, value) for name, value in values.items()}

    def read_query(self, values: Mapping[str, Any] | None, *, rendered: bool) -> dict[str, Any]:
        """Return the query parameters that are given."""
        if not values and not self.row.query.get("required"):
            return {}
        if values is not None and not isinstance(values, Mapping):
            raise refuse("query", f"of {self.row.id} must be a dict of its parameters")
        fitted = table.fit(self._query_schema, values or {}, rendered=rendered)
        known = self._query_schema["properties"]
        sent = {name: one for name, one in fitted.items() if one is not None or name not in known}
        check_described(f"query of {self.row.id}", self._query_schema, sent)
        return sent

    def read_body(self, value: Any, ids: Mapping[str, Any], *, rendered: bool) -> tuple[Any, bool]:
        """Return (the body, whether it needs the configuration's deployment)."""
        schema = self.row.body
        if schema is None:
            if value is not None:
                self._refuse("takes no body", field="body")
            return None, False
        fitted = table.fit(schema, {} if value is None else value, rendered=rendered)
        known = [name for name in self._required if name in (*self.row.ids, DEPLOYMENT)]
        if not known or not isinstance(fitted, dict):
            check_described(f"body of {self.row.id}", schema, fitted)
            return fitted, False
        for name in known:
            there = ids.get(name)
            own = fitted.get(name)
            if None not in (own, there) and str(own) != str(there):
                self._refuse(
                    f"got two values of {name}, one as an argument and another in body. Leave "
                    f"{name} out of body",
                    field=name,
                )
            if own is None and there is not None:
                fitted[name] = int(there)
        left_open = fitted.get(DEPLOYMENT) is None and DEPLOYMENT in known
        whole = {DEPLOYMENT: 0, **fitted} if left_open else fitted
        check_described(f"body of {self.row.id}", schema, whole)
        return fitted, left_open

    def _id(self, name: str, value: Any) -> int | str | None:
        """Return an id for the path; None only for a deployment that is not given."""
        if name == "deployment_id":
            return None if value is None else check_deployment_id(value)
        if value is None or (isinstance(value, str) and value.strip() in ("", ".", "..")):
            self._refuse_id(name, "must be given and must be the id of one resource")
        if self._names[name] in (*self.row.texts, *self.row.untyped):
            if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
                return value
            return self._refuse_id(name, f"must be a string, not of type {type(value).__name__}")
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
            return value.strip()
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        return self._refuse_id(name, f"must be a whole number, not of type {type(value).__name__}")

    def _refuse(self, problem: str, *, field: str) -> NoReturn:
        names = [name for name in self._names if name != "deployment_id"]
        written = [f'"{self.row.id}"', *(f"{name}=…" for name in names)]
        if self.row.body is not None:
            written.append("body={…}")
        raise PlatformInputError(
            f"Nothing was sent: {self.row.id} {problem}. Write call({', '.join(written)}).",
            field=field,
        )

    def _refuse_id(self, name: str, problem: str) -> NoReturn:
        raise refuse(name, f"of {self.row.id} {problem}")

    def _refuse_unknown(self, name: str) -> NoReturn:
        for place, schema in (("query", self.row.query), ("body", self.row.body or {})):
            fields = table.resolved(schema).get("properties", {})
            spelled = next(iter(table.fit(schema, {name: None})))
            if spelled in fields:
                raise PlatformInputError(
                    f"Nothing was sent: {self.row.id} takes {spelled} in its {place}. Write "
                    f'{place}={{"{spelled}": …}}.',
                    field=name,
                )
        close = get_close_matches(name, self._names, n=1)
        meant = f" (did you mean {close[0]}?)" if close else ""
        self._refuse(f"has no argument {name}{meant}", field=name)


def check_described(name: str, schema: table.Schema, value: Any) -> None:
    """Raise PlatformInputError, which names the field and the rule, for the rules of the schema
    that the value breaks."""
    found = table.broken_rules(schema, value)
    # The service knows forms of cron that no library here knows: it decides.
    problems = [one for one in found if one.format != "cron"]
    if not problems:
        return
    said = [
        f"{one.field} is not a known field" + (f" (did you mean {one.close}?)" if one.close else "")
        if one.is_unknown
        else one.rule
        for one in problems
    ]
    raise PlatformInputError(
        f"Nothing was sent: {name}: {'; '.join(said)}", field=problems[0].field or name
    )


def fill_path(template: str, parameters: Mapping[str, object], *, leave: str | None = None) -> str:
    """Return the path with each parameter encoded as one segment. The parameter `leave` is not
    filled in.

    Raises PlatformInputError naming a parameter that is missing, unknown, empty or a relative
    step.
    """
    names = PARAMETER.findall(template)
    unknown = set(parameters) - set(names)
    if unknown:
        raise TypeError(f"{template} has no parameter {', '.join(sorted(unknown))}")

    def segment(match: re.Match[str]) -> str:
        name = match.group(1)
        if name == leave:
            return match.group(0)
        text = str(parameters.get(name) if parameters.get(name) is not None else "").strip()
        if not text or text in (".", ".."):
            raise refuse(name, "must be given and must be the id of one resource")
        try:
            return quote(text, safe="")
        except UnicodeEncodeError:
            raise refuse(name, "contains characters that cannot be part of a URL") from None

    return PARAMETER.sub(segment, template)


def subject_of(parameters: Mapping[str, object]) -> str:
    """Return the resources that the parameters name, for error messages."""
    known = {name: value for name, value in parameters.items() if value is not None}
    return ", ".join(f"{_spaced(name)} {value}" for name, value in known.items())


def _spaced(name: str) -> str:
    """`deploymentId` as `deployment`, `publicId` as `public`: a name for error messages."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    return spaced.removesuffix(" id") or spaced


@cache
def _known(name: str) -> _KnownOperation:
    return _KnownOperation(described(name))


@cache
def _adapter_of(answer: Hashable) -> TypeAdapter[Any]:
    adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", answer))
    return adapter


@dataclass(frozen=True, kw_only=True)
class Operation(Generic[T]):
    """One management call, ready to be sent; `subject` names what it is about in errors, `paging`
    are the parameters by which its answer can be paged, `described` is False where a caller gave
    the path, `deployment_in_body` says that the body lacks the configuration's deployment,
    `secrets` are those that are sent with it, `headers` are a caller's own, `later_page` says that
    an earlier page of the same list could be read."""

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
    api: ApiSide = "management"
    subject: str = ""
    paging: frozenset[str] = frozenset()
    described: bool = True
    secrets: tuple[str, ...] = field(default=(), repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    later_page: bool = False

    def __str__(self) -> str:
        about = f" ({self.subject})" if self.subject else ""
        return f"{self.description}{about}: {self._request_line}"

    def with_headers(self, headers: Mapping[str, Any] | None) -> Operation[T]:
        """Return this call with these request headers, their names in lower case. Raises
        PlatformInputError for a header that the client itself sets, and for what is not the name
        and text of a header."""
        given = dict(headers or {})
        for name, value in given.items():
            if not _HEADER_NAME.fullmatch(str(name)):
                raise refuse("headers", "must have the names of headers, such as X-Request-Source")
            if str(name).lower() in _SET_HEADERS:
                raise refuse("headers", f"must not have {name}, which the client itself sets")
            if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
                raise refuse("headers", f"must have plain text, in one line, for {name}")
        lower = {str(name).lower(): value for name, value in given.items()}
        return replace(self, headers=lower, secrets=(*self.secrets, *secrets_in(given)))

    @cached_property
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
            answer: T = _adapter_of(cast("Hashable", self.answer)).validate_python(
                value, context={"later_page": self.later_page}
            )
            return answer
        except ValidationError as error:
            wrong = "; ".join(
                f"{'.'.join(str(part) for part in item['loc']) or 'answer'}: {item['msg']}"
                for item in error.errors(include_input=False, include_url=False)[:5]
            )
            if isinstance(value, dict):
                wrong += f"; it has {', '.join(map(quote_service, value)) or 'no field'}"
            raise PlatformProtocolError(
                f"{self.description}: the response does not have the documented shape ({wrong}). "
                "The tenant may run a release that this provider does not know.",
                where=self.request_name.where,
            ) from None


def prepared(
    name: str,
    /,
    *,
    query: Mapping[str, Any] | None = None,
    body: Any = None,
    rendered: bool = False,
    **ids: Any,
) -> Operation[Any]:
    """Return one call of an operation by its id, or by a method and a path, such as
    `GET /v1/deployments/{deploymentId}/x`, whose placeholders are the ids. Raises
    PlatformInputError as `operation` and `raw_operation`."""
    method, _, path = str(name).strip().partition(" ")
    if method.upper() not in METHODS or not path:
        return operation(name, query=query, body=body, rendered=rendered, **ids)
    call = raw_operation(method, _with_ids(path.strip(), ids), query=query, body=body)
    return replace(call, answer=Json)


def takes_deployment(name: str) -> bool:
    """Return whether a call of this operation, or of this method and path, is about a deployment.
    Raises PlatformInputError for an unknown operation."""
    method, _, path = str(name).strip().partition(" ")
    if method.upper() in METHODS and path:
        return DEPLOYMENT in PARAMETER.findall(path)
    row = described(name)
    return DEPLOYMENT in (*row.ids, *table.resolved(row.body or {}).get("required", ()))


def _with_ids(path: str, ids: Mapping[str, Any]) -> str:
    """Return the path with the ids in its placeholders; the deployment may stay open."""
    names = {to_snake(name): name for name in PARAMETER.findall(path)}
    for name, value in ids.items():
        if name not in names:
            raise refuse(name, f"is not in the path. Write {{{name}}} where it stands in the path")
        if not (name == "deployment_id" and check_deployment_id(value) is None):
            one = f"{{{names[name]}}}"
            path = path.replace(one, fill_path(one, {names[name]: value}))
    return path


def raw_operation(
    method: str,
    path: str,
    *,
    query: Mapping[str, Any] | None = None,
    body: Any = None,
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
        query={n: value for n, value in table.fit({}, query or {}).items() if value is not None},
        body=table.fit({}, body),
        repeatable=upper in REPEATABLE_METHODS,
        secrets=_secrets_of(query, body),
    )
