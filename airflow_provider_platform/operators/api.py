"""`PlatformApiOperator`: call any operation of the management API, by its id or by its path."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.argument_rules import read_json_string
from airflow_provider_platform.client.choices import Method
from airflow_provider_platform.client.errors import (
    PlatformCredentialAnswerError,
    PlatformInputError,
)
from airflow_provider_platform.operators._arguments import OPTIONS_INSIDE
from airflow_provider_platform.operators._base import (
    MAX_ITEMS,
    DeploymentOperator,
    ShortTraceback,
    log_length,
)
from airflow_provider_platform.operators._single_call import SingleCallOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.client.argument_rules import Rule
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.operation import Operation
    from airflow_provider_platform.client.platform_client import PlatformClient
    from airflow_provider_platform.hooks.platform import PlatformHook
    from airflow_provider_platform.operators._base import Checks

_QUOTED = "inside a longer string"


def _method(name: str, value: Any) -> str:
    text = arguments.text(name, value).strip().upper()
    method: str = arguments.choice(name, text, get_args(Method))
    return method


def _path(name: str, value: Any) -> str:
    return arguments.check_path(arguments.text(name, value))


def _body(name: str, value: Any) -> Any:
    """Return a JSON value; a string is parsed as JSON. Raises PlatformInputError."""
    try:
        return read_json_string(arguments.optional(value))
    except ValueError:
        raise arguments.refuse(name, "must be plain JSON values, or JSON as a string") from None


@arguments.or_none
def _query(name: str, value: Any) -> dict[str, Any] | None:
    """Return the query parameters. One without a value is refused: it would not be sent, and the
    call would return the objects of everybody. Raises PlatformInputError."""
    query = arguments.mapping(name, value)
    for field, one in (query or {}).items():
        if (arguments.is_absent(one) or one == []) and f"{name}.{field}" not in OPTIONS_INSIDE:
            raise arguments.refuse(f"{name}.{field}", "has no value. Give one, or leave it out")
    return None if query is None else arguments.present(query)


_CALL = (
    "operation",
    "ids",
    "deployment_id",
    "path",
    "method",
    "query",
    "body",
    "headers",
    "paginate",
)
"""The arguments that say what is sent."""
_IDS = frozenset(
    {
        *("embed_tenant_name", "environment_id", "evaluation_id", "external_workbook_id"),
        *(
            "folder_id",
            "id",
            "integration_id",
            "job_id",
            "public_id",
            "report_id",
            "run_id",
            "slug",
            "sync_job_id",
        ),
        "workbook_id",
    }
)
"""The ids in paths of operations that can be arguments of the operator: all but `task_id`, which is
Airflow's name of the task."""


def _prepared(
    *,
    operation: str | None,
    ids: dict[str, Any] | None,
    deployment_id: int | None,
    path: str | None,
    method: str,
    query: dict[str, Any] | None,
    body: Any,
    headers: dict[str, str] | None,
    paginate: bool,
) -> Operation[Any]:
    """Return the call with its answer as plain JSON. Raises PlatformInputError."""
    from airflow_provider_platform.client.operation import prepared, takes_deployment
    from airflow_provider_platform.client.pages import Page, listing

    called = operation or f"{method} {path}"
    given: dict[str, Any] = dict(ids or {})
    if deployment_id is not None and takes_deployment(called):  # it may be of default_args
        given["deployment_id"] = deployment_id
    if paginate:
        listed = listing(called, query=query, rendered=True, **given)
        page = Page[dict[str, Any]] if listed.described else Page[Any]
        return replace(listed, answer=page).with_headers(headers)
    call = prepared(called, query=query, body=body, rendered=True, **given)
    if call.binary:
        rule = (
            f"{called} returns a file, which XCom cannot hold. Use "
            "PlatformExportDashboardOperator, or call it in your own task with PlatformHook.call"
        )
        raise arguments.refuse("operation", rule)
    return replace(call, answer=Any).with_headers(headers)


def _only_lists_are_paged(paginate: bool, method: str, body: Any) -> None:
    """A rule: `paginate` needs a GET without a body."""
    if paginate and (method != "GET" or body is not None):
        raise ValueError("paginate needs method GET and no body")


def _operation_or_path(*, operation: str | None, path: str | None) -> None:
    """A rule: one of them says what to call."""
    if (operation is None) == (path is None):
        raise ValueError("give operation, or path with method")


class PlatformApiOperator(DeploymentOperator, SingleCallOperator):
    """Call an operation of the management API.

    Use it for an operation that has no operator. If several calls belong together, write a task of
    your own with `PlatformHook.call`.

    With `operation`, the names and types of ids, query and body are checked before anything is
    sent.

    GET, PUT and DELETE are repeated after a failure that can pass. A POST or PATCH that the service
    may have carried out is not repeated: if its response is lost, the outcome is unknown, and the
    task fails. (Only `pauseReportDelivery` and `resumeReportDelivery` are repeated too.) A response
    that contains a credential (a field with a name like `token`, `clientSecret` or `sessionId`) is
    not returned: choose with `response_filter` which part of the response may be stored.

    Returns the response as JSON, or with `paginate` the list of items.

    :param operation: the operation's id, such as `createFolder`
    :param ids: the ids in the path of the operation, in snake_case: `{"folder_id": 12}`. Each id
        but `task_id` can also be a separate argument: `folder_id=12` (a mapped task needs `ids`)
    :param path: in place of `operation`, the path below the management address, as
        `/v1/deployments/{deploymentId}/folders`, or the whole path of the build API, as
        `/build/api/v1/deployments/{deploymentId}/branches`; `{deploymentId}` is replaced by the
        deployment
    :param method: with `path`: GET, POST, PUT, PATCH or DELETE
    :param query: the query parameters, under the service's names or, with `operation`, in
        snake_case; with `path` a list repeats the parameter. A parameter without a value is an
        error, except `first`, `after`, `limit`, `offset` and `page`
    :param body: the request's body, as JSON or as a JSON string; `null` values are sent, but in a
        dict, a field that a template or an output makes None is an error
    :param headers: further headers of the request, such as `{"X-Request-Source": "airflow"}`. The
        task's instance in Airflow's UI shows them, so they must not contain a secret
    :param paginate: read all pages of a list (GET only), and return its items. The pages follow a
        cursor (`first` is the page size), or numbers if `query` has `offset` or `page`
    :param max_items: the largest number of items to return with `paginate`, or of a response that
        is a list; the log says if there are more
    :param response_filter: a function that returns the part of the response to keep (with
        `paginate`: of the list of items)
    """

    returns_object: ClassVar[bool] = False  # it depends on the call
    template_fields_renderers: ClassVar[dict[str, str]] = {
        "ids": "json",
        "query": "json",
        "body": "json",
        "headers": "json",
    }
    checks: ClassVar[Checks] = {
        "operation": arguments.optional_text,
        "ids": arguments.mapping,
        "method": _method,
        "path": arguments.or_none(_path),
        "query": _query,
        "body": _body,
        "headers": arguments.mapping,
        "paginate": arguments.boolean,
        "max_items": partial(arguments.whole_number, minimum=1),
    }
    rules: ClassVar[Sequence[Rule]] = (
        (("operation", "path"), _operation_or_path),
        (("paginate", "method", "body"), _only_lists_are_paged),
    )

    def __init__(
        self,
        *,
        operation: str | None = None,
        ids: dict[str, Any] | str | None = None,
        path: str | None = None,
        method: str = "GET",
        query: dict[str, Any] | str | None = None,
        body: Any = None,
        headers: dict[str, str] | str | None = None,
        paginate: bool | str = False,
        max_items: int | str = MAX_ITEMS,
        response_filter: Callable[[Any], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        own = {name: kwargs.pop(name) for name in _IDS & kwargs.keys()}
        super().__init__(**kwargs)
        self.operation = operation
        if own and ids is not None and not isinstance(ids, dict):
            raise arguments.refuse("ids", "must be a dict if ids are also arguments of their own")
        self.ids: Any = {**ids, **own} if isinstance(ids, dict) else ids or own or None
        self.path = path
        self.method = method
        self.query: Any = query
        self.body = body
        self.headers: Any = headers
        self.paginate = paginate
        self.max_items: Any = max_items
        self.response_filter = response_filter
        self._answer_had_credentials = False
        self.validate_known_arguments()

    def validate_known_arguments(self) -> None:
        """Check the arguments, and the call as a whole if none of them has a template."""
        super().validate_known_arguments()
        if self.operation is None or not all(self.is_known(getattr(self, name)) for name in _CALL):
            return
        with self.named_errors():
            _prepared(**{name: getattr(self, name) for name in _CALL})

    def execute(self, context: Context) -> Any:
        """Make the call. A call that can be repeated needs no record."""
        with ShortTraceback(), self.opened(context) as hook:
            if self._operation().repeatable:
                return self.call(hook)
            return self.execute_once(context, hook)

    def idempotency_key(self, config: PlatformConfig) -> str:
        from airflow_provider_platform.client.config import fingerprint

        place = self._operation().in_deployment(config.resolve_deployment_id)
        call = (self.method, place.api, place.path, self.query, self.body, self.headers)
        return fingerprint("api", config.management_url, *call)

    def call(self, hook: PlatformHook) -> Any:
        operation = self._operation()
        self.log.info("%s %s", operation.method, operation.path)
        with hook.client() as client:
            answer = self._items(hook) if self.paginate else hook.run(operation)
            return self._chosen(answer, client)

    def remember(self, result: Any) -> dict[str, Any]:
        """Store nothing of a response that contained a credential."""
        return {} if self._answer_had_credentials else super().remember(result)

    def _operation(self) -> Operation[Any]:
        return _prepared(**{name: getattr(self, name) for name in _CALL})

    def _items(self, hook: PlatformHook) -> list[Any]:
        from airflow_provider_platform.client.pages import collect

        listed = hook.run(
            lambda api: collect(api.call, self._operation(), max_items=self.max_items)
        )
        log_length(len(listed.items), more=listed.truncated, log=self.log)
        return listed.items

    @property
    def _name(self) -> str:
        return self.operation or f"{self.method} {self.path}"

    def _chosen(self, answer: Any, client: PlatformClient) -> Any:
        """Return the chosen part of the response. Raises PlatformCredentialAnswerError."""
        from airflow_provider_platform.client.redaction import credentials_in

        def places_in(answer: Any) -> list[str]:
            quoted = client.secrets.redact_data(answer) is not answer
            return [*credentials_in(answer)] or ([_QUOTED] if quoted else [])

        places = places_in(answer)
        self._answer_had_credentials = bool(places)
        if self.response_filter is not None:
            # A credential that the service gives may be chosen; those of the connection may not.
            answer = self._filtered(answer, self.response_filter)
            places = places_in(answer)
        if places:
            raise PlatformCredentialAnswerError(
                "The call succeeded, but its response contains a credential "
                f"({', '.join(places)}), which must not be stored in XCom. Choose what to return "
                "with response_filter, or make the call in your own task with PlatformHook.",
                where=self._name,
            )
        if isinstance(answer, list) and len(answer) > self.max_items:
            log_length(self.max_items, more=True, log=self.log)
            return answer[: self.max_items]
        return answer

    def _filtered(self, answer: Any, response_filter: Callable[[Any], Any]) -> Any:
        try:
            filtered = response_filter(answer)
            json.dumps(filtered)
            return filtered
        except Exception as error:
            self.log.exception("response_filter failed")
            raise PlatformInputError(
                "The call succeeded, but response_filter failed with "
                f"{type(error).__name__} or did not return plain JSON (the log has the details).",
                where=self._name,
                field="response_filter",
            ) from error
