"""The declared operations: which request each of them makes, and that each is declared whole."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.management.registry import declared_endpoints
from tests.unit.client.operations.operation_calls import CALLS

if TYPE_CHECKING:
    from airflow_provider_platform.client.operations.operation import Endpoint, Operation

DECLARED = {endpoint.name: endpoint for endpoint in declared_endpoints()}
NOT_IN_TABLE = {
    "get_specification",  # only a DAG author's own task reads it
    "delete_embed_tenant_with_slash",  # `delete_embed_tenant` of the hook's table takes both
    "delete_embed_tenant_without_slash",
}


REPEATABLE = {
    "pauseReportDelivery",
    "resumeReportDelivery",
}
"""Operations by POST that change nothing when they are sent a second time."""


def call(endpoint: Endpoint[..., Any], given: dict[str, Any]) -> Operation[Any]:
    """The operation of these arguments, each put where the declaration has it."""
    parameters = inspect.signature(endpoint.declaration).parameters
    given = {"deployment_id": 7, **given}
    arguments = {name: value for name, value in given.items() if name in parameters}
    for place, model in (("query", endpoint.query), ("body", endpoint.body)):
        if model is not None:
            fields = model.model_fields
            arguments[place] = model(
                **{
                    name: value
                    for name, value in given.items()
                    if name in fields and (name not in arguments or fields[name].is_required())
                }
            )
    return endpoint(**arguments)


@pytest.mark.parametrize(
    ("name", "given", "line", "query", "body"), CALLS, ids=[row[0] for row in CALLS]
)
def test_each_operation_makes_its_request(
    name: str, given: dict[str, Any], line: str, query: dict[str, Any], body: Any
) -> None:
    operation = call(DECLARED[name], given)

    assert f"{operation.method} {operation.path}" == line
    assert operation.query == query
    assert operation.body == body
    reads_or_replaces = operation.method in ("GET", "PUT", "DELETE")
    assert operation.repeatable == (reads_or_replaces or operation.operation_id in REPEATABLE)


def test_every_declared_operation_is_in_the_table() -> None:
    assert set(DECLARED) == {row[0] for row in CALLS} | NOT_IN_TABLE


@pytest.mark.parametrize("endpoint", DECLARED.values(), ids=DECLARED)
def test_every_operation_has_a_description(endpoint: Endpoint[..., Any]) -> None:
    assert inspect.getdoc(endpoint.declaration)


@pytest.mark.parametrize("endpoint", DECLARED.values(), ids=DECLARED)
def test_every_parameter_is_given_by_its_name(endpoint: Endpoint[..., Any]) -> None:
    parameters = inspect.signature(endpoint.declaration).parameters

    assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in parameters.values())
    assert len(parameters) == len(endpoint.path_parameters) + sum(
        model is not None for model in (endpoint.query, endpoint.body)
    )
