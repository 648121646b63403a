"""What the hook's methods are made of: one call of a declared operation, and lists to their end.

The annotations of these modules can be evaluated (`typing.get_type_hints`): a name in them is there
at run time, or is an attribute of a lazy module.
"""

# ruff: noqa: TC003 - typing.get_type_hints evaluates the annotations
from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_platform.hooks._lazy import lazy_module

if TYPE_CHECKING:
    from airflow_provider_platform.client.operations import operation as operations
    from airflow_provider_platform.client.operations import paging
    from airflow_provider_platform.client.operations import program as programs
else:
    operations = lazy_module("airflow_provider_platform.client.operations.operation")
    paging = lazy_module("airflow_provider_platform.client.operations.paging")
    programs = lazy_module("airflow_provider_platform.client.operations.program")

T = TypeVar("T")


def call(
    endpoint: operations.Endpoint[..., T], fields: Mapping[str, Any], **ids: Any
) -> operations.Operation[T]:
    """One call, its body (or query, where it has none) made of `fields` by the declared model."""
    return endpoint(**ids, **{"body" if endpoint.body else "query": fields})


class Calls:
    """What `PlatformHook` does for the methods of the resources."""

    if TYPE_CHECKING:

        def run(self, work: operations.Operation[T] | programs.Program[T]) -> T:
            """Run an operation or a program of the client, and return its typed answer."""

        def resolve_deployment_id(self, deployment_id: operations.DeploymentId = None) -> int:
            """The given deployment, else the connection's. Raises PlatformInputError."""

        async def arun(self, work: operations.Operation[T] | programs.Program[T]) -> T:
            """`run` for an event loop."""

    def iterate(self, operation: operations.Operation[paging.Page[T]]) -> Iterator[T]:
        """The items of a list, page by page: a page is asked for when its first item is wanted.

        Raises PlatformInputError at once for what is not a list operation; then PlatformError, and
        PlatformProtocolError for a list that cannot be read to its end.
        """
        return paging.iterate(operation, self.run)

    def aiterate(self, operation: operations.Operation[paging.Page[T]]) -> AsyncIterator[T]:
        """`iterate` for an event loop: `async for report in hook.aiterate(list_reports()): ...`."""
        return paging.aiterate(operation, self.arun)
