"""`PlatformApiOperator`: call any operation of the management API by method and path."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from airflow_provider_platform.client.choices import Method
from airflow_provider_platform.client.errors import (
    PlatformCredentialAnswerError,
    PlatformInputError,
)
from airflow_provider_platform.client.formats.input_values import read_json_string
from airflow_provider_platform.operators._base import arguments
from airflow_provider_platform.operators._base.failures import ShortTraceback
from airflow_provider_platform.operators._lists import MAX_ITEMS, log_length
from airflow_provider_platform.operators._submission.single_call import SingleCallOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.http.client import PlatformClient
    from airflow_provider_platform.client.operations.operation import Operation
    from airflow_provider_platform.client.operations.rules import Rule
    from airflow_provider_platform.hooks.platform import PlatformHook
    from airflow_provider_platform.operators._base.operator import Checks

_QUOTED = "inside a longer string"


def _method(name: str, value: Any) -> str:
    text = arguments.text(name, value).strip().upper()
    method: str = arguments.choice(name, text, get_args(Method))
    return method


def _path(name: str, value: Any) -> str:
    from airflow_provider_platform.client.operations.paths import check_path

    return check_path(arguments.text(name, value))


def _body(name: str, value: Any) -> Any:
    """Return a JSON value; a string is parsed as JSON. Raises PlatformInputError."""
    try:
        return read_json_string(arguments.optional(value))
    except ValueError:
        raise arguments.refuse(name, "must be plain JSON values, or JSON as a string") from None


def _only_lists_are_paged(paginate: bool, method: str, body: Any) -> None:
    """A rule: `paginate` needs a GET without a body."""
    if paginate and (method != "GET" or body is not None):
        raise ValueError("paginate needs method GET and no body")


class PlatformApiOperator(SingleCallOperator):
    """Call an operation of the management API and return its response as JSON.

    Use it for an operation that has no operator of its own. If several calls belong together, write
    a task of your own with `PlatformHook`: its operations are typed.

    GET, PUT and DELETE are repeated after a failure. POST and PATCH are sent once: if the response
    is lost, the task fails and says so, because a second call could do the same thing twice. A
    response that contains a credential (a field with a name like `token`, `clientSecret` or
    `sessionId`) is not returned: choose with `response_filter` which part of the response may be
    stored.

    :param path: the path below the management address, as `/v1/deployments/{deploymentId}/folders`,
        or the whole path of the build API, as `/build/api/v1/deployments/{deploymentId}/branches`;
        `{deploymentId}` is replaced by the connection's deployment
    :param method: GET (the default), POST, PUT, PATCH or DELETE
    :param query: the query parameters; a list repeats the parameter
    :param body: the request's body, as JSON or as a JSON string; `null` values are sent
    :param paginate: read a list page by page to its end (GET only), and return its items; the pages
        follow a cursor (`first` is the page size), or numbers if `query` has `offset` or `page`
    :param max_items: the largest number of items to return from a list; the log says if there are
        more
    :param response_filter: a function that returns the part of the response to keep (with
        `paginate`: of the list of items)
    """

    returns_object: ClassVar[bool] = False  # it depends on the call
    template_fields_renderers: ClassVar[dict[str, str]] = {"query": "json", "body": "json"}
    checks: ClassVar[Checks] = {
        "method": _method,
        "path": _path,
        "query": arguments.mapping,
        "body": _body,
        "paginate": arguments.boolean,
        "max_items": partial(arguments.whole_number, minimum=1),
    }
    rules: ClassVar[Sequence[Rule]] = ((("paginate", "method", "body"), _only_lists_are_paged),)

    def __init__(
        self,
        *,
        path: str,
        method: str = "GET",
        query: dict[str, Any] | str | None = None,
        body: Any = None,
        paginate: bool | str = False,
        max_items: int | str = MAX_ITEMS,
        response_filter: Callable[[Any], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.path = path
        self.method = method
        self.query: Any = query
        self.body = body
        self.paginate = paginate
        self.max_items: Any = max_items
        self.response_filter = response_filter
        self._answer_had_credentials = False
        self.validate_known_arguments()

    def execute(self, context: Context) -> Any:
        """Make the call. A call that can be repeated needs no record."""
        with ShortTraceback(), self.opened(context) as hook:
            if self._operation().repeatable:
                return self.call(hook)
            return self.execute_once(context, hook)

    def idempotency_key(self, config: PlatformConfig) -> str:
        from airflow_provider_platform.client.config import fingerprint

        place = self._operation().in_deployment(config.resolve_deployment_id)
        call = (self.method, place.api, place.path, self.query, self.body)
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
        from airflow_provider_platform.client.operations.operation import raw_operation

        return raw_operation(self.method, self.path, query=self.query, body=self.body)

    def _items(self, hook: PlatformHook) -> list[Any]:
        from airflow_provider_platform.client.operations.paging import collect, raw_listing

        listing = raw_listing(self.path, query=self.query)
        listed = hook.run(collect(listing, max_items=self.max_items))
        log_length(len(listed.items), more=listed.truncated, log=self.log)
        return listed.items

    def _chosen(self, answer: Any, client: PlatformClient) -> Any:
        """Return the chosen part of the response. Raises PlatformCredentialAnswerError."""
        from airflow_provider_platform.client.operations.secret_names import credentials_in

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
                where=f"{self.method} {self.path}",
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
                where=f"{self.method} {self.path}",
                field="response_filter",
            ) from error
