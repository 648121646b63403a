"""Policies: who may do what. No described operation answers with these models; they read what a
raw operation of the account's administration brings.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.client.operations.models import ResponseModel

ADMINISTRATOR = "administrator of the account"


class ChatThreadPolicyDTO(ResponseModel):
    """Which chat threads may be read: `effect` is `allow` or `deny`."""

    actions: list[str] | None = None
    effect: str | None = None
    resource_type: str | None = None
    resources: list[Any] | None = None


class AIEngineerSettings(ResponseModel):
    """The account's settings of AI work."""

    chat_thread_policies: list[ChatThreadPolicyDTO] | None = None


class ResourceUserPolicyDto(ResponseModel):
    """A user's own policy on a resource; `actions` are names like `DownloadData`."""

    email: str | None = None
    first_name: str | None = None
    picture: str | None = None
    actions: list[str] | None = None


class InheritedUserPolicyDto(ResourceUserPolicyDto):
    """A user's policy on a resource, inherited from what holds it."""
