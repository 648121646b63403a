"""What the hook's methods for the management API stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_platform.client.operation import Operation
    from airflow_provider_platform.client.paging import Listing
    from airflow_provider_platform.client.program import Program

T = TypeVar("T")


class ManagementMethods:
    """Base of the mixins that give `PlatformHook` its methods, one mixin per resource.

    The mixins import the client's modules only when a method is called.
    """

    if TYPE_CHECKING:

        def run(self, work: Operation[T] | Program[T]) -> T:
            """Run an operation or a program of the client, and return its typed answer."""

        def resolve_deployment_id(self, deployment_id: int | str | None = None) -> int:
            """The given deployment, else the connection's. Raises PlatformInputError."""

    def iterate(self, listing: Listing[T]) -> Iterator[T]:
        """The items of a list, page by page: a page is asked for when its first item is wanted.

        Raises PlatformError; PlatformProtocolError where the list cannot be read to its end.
        """
        walk = listing.walk()
        while (operation := walk.operation) is not None:
            yield from walk.take(self.run(operation))
