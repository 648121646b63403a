"""User attributes: what rows a user may see depends on them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from airflow_provider_platform.client.operations.models import InputModel, Number

UserAttributeType = Literal["string", "number", "boolean", "string_array", "number_array"]


class UserAttributeInput(InputModel):
    """The value of one attribute of a user."""

    name: str = Field(min_length=1)
    value: bool | Number | str | list[Number | str] | None = None


class UserAttributeDefinition(InputModel):
    """An attribute to define."""

    name: str = Field(min_length=1)
    type: UserAttributeType
    default_value: str | None = None
    description: str | None = None
    display_name: str | None = None
