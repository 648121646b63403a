"""What the hook's methods are made of: one call of a declared operation, and lists to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from airflow_provider_platform.hooks._lazy import lazy_module

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from airflow_provider_platform.client.operations import paging
    from airflow_provider_platform.client.operations.operation import (
        DeploymentId,
        Endpoint,
        Operation,
    )
    from airflow_provider_platform.client.operations.paging import Page
    from airflow_provider_platform.client.operations.program import Program
else:
    paging = lazy_module("airflow_provider_platform.client.operations.paging")

T = TypeVar("T")


def call(endpoint: Endpoint[..., T], fields: Mapping[str, Any], **ids: Any) -> Operation[T]:
    """One call, its body (or query, where it has none) made of `fields` by the declared model."""
    name, model = ("body", endpoint.body) if endpoint.body else ("query", endpoint.query)
    if model is None:
        raise TypeError(f"{endpoint.name} takes no fields")
    return endpoint(**ids, **{name: model.build(**fields)})


class Calls:
    """What `PlatformHook` does for the methods of the resources."""

    if TYPE_CHECKING:

        def run(self, work: Operation[T] | Program[T]) -> T:
            """Run an operation or a program of the client, and return its typed answer."""

        def resolve_deployment_id(self, deployment_id: DeploymentId = None) -> int:
            """The given deployment, else the connection's. Raises PlatformInputError."""

    def iterate(self, operation: Operation[Page[T]]) -> Iterator[T]:
        """The items of a list, page by page: a page is asked for when its first item is wanted.

        Raises PlatformError; PlatformProtocolError where the list cannot be read to its end.
        """
        walk = paging.PageWalk(operation)
        while (page := walk.operation) is not None:
            yield from walk.take(self.run(page))
