"""Who owns a resource and where it lies: parts that resources share."""

from __future__ import annotations

from airflow_provider_platform.client.operations.models import ResponseModel


class ResourceOwner(ResponseModel):
    """The user that a resource belongs to."""

    id: int | None = None
    email: str | None = None
    first_name: str | None = None
    picture: str | None = None


class WorkspaceFolderPathEntry(ResponseModel):
    """A step of the way from the workspace's root to a resource."""

    id: int | None = None
    name: str | None = None
