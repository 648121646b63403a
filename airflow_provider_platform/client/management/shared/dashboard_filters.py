"""What a dashboard is set to when it runs unattended: filters, time grains, member switchers.

Members are named with their view, as `orders.status`.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from airflow_provider_platform.client.operations.models import InputModel, ResponseModel

FilterOperator = Literal[
    "equals",
    "not_equals",
    "greater_than",
    "greater_than_or_equal",
    "less_than",
    "less_than_or_equal",
    "contains",
    "not_contains",
    "starts_with",
    "not_starts_with",
    "ends_with",
    "not_ends_with",
    "is_null",
    "is_not_null",
    "is_empty",
    "is_not_empty",
    "between",
    "custom",
]
WITHOUT_VALUE = frozenset({"is_null", "is_not_null", "is_empty", "is_not_empty"})

_MEMBER = r".+\..+"


class DashboardFilter(ResponseModel):
    """A filter that is applied."""

    member: str
    operator: str | None = None
    value: Any = None
    case_sensitive: Any = None
    start_inclusive: Any = None
    end_inclusive: Any = None


class DashboardFilterInput(InputModel):
    """A filter to apply; `value` is `[start, end]` with `between`, and absent with the null and
    empty operators."""

    member: str = Field(pattern=_MEMBER)
    operator: FilterOperator | None = None
    value: Any = None
    case_sensitive: Any = None
    start_inclusive: Any = None
    end_inclusive: Any = None

    @model_validator(mode="after")
    def _value_fits_operator(self) -> Self:
        if self.operator in WITHOUT_VALUE and self.value is not None:
            raise ValueError(f"value cannot be given with operator {self.operator}")
        if self.operator == "between" and not (
            isinstance(self.value, list) and len(self.value) == 2
        ):
            raise ValueError("value must be [start, end] with operator between")
        return self


class DashboardTimeGrain(ResponseModel):
    """A time grain that is applied."""

    member: str
    grain: str


class DashboardTimeGrainInput(InputModel):
    """The grain of a time member: `day`, `week`, `month` ..."""

    member: str = Field(pattern=_MEMBER)
    grain: str = Field(min_length=1)


class DashboardMemberSwitcher(ResponseModel):
    """A member switcher that is set."""

    member: str
    selected: str


class DashboardMemberSwitcherInput(InputModel):
    """What a member switcher is set to: a member's name without its view."""

    member: str = Field(pattern=_MEMBER)
    selected: str = Field(min_length=1)
