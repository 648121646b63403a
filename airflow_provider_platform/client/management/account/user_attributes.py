"""User attributes: what rows a user may see depends on them."""

from __future__ import annotations

from pydantic import Field

from airflow_provider_platform.client.operations.models import InputModel, Number


class UserAttributeInput(InputModel):
    """The value of one attribute of a user."""

    name: str = Field(min_length=1)
    value: bool | Number | str | list[Number | str] | None = None
