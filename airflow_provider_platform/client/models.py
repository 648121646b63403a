"""Base classes of the models: lenient with responses, strict with requests.

Responses change from release to release: unknown fields are kept, names follow the service
(camelCase in JSON, snake_case in Python), numbers may arrive as strings and strings as numbers. An
optional field may also have another type than the documented one: it is then None, and the JSON
keeps what the service sent, because a response that arrived must not count as lost. Requests are
made by this package: an unknown argument is a mistake, and is refused before anything is sent.

`type_name` names the type of a column. The service writes it as a word (`"String"`), or as an
object with one key: `{"Date": false}`, `{"Interval": "MonthDayNano"}`, `{"List": {...}}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    ModelWrapValidatorHandler,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel, to_snake
from pydantic_core import (
    CoreSchema,
    ErrorDetails,
    PydanticSerializationError,
    core_schema,
)

from airflow_provider_platform.client.errors import PlatformInputError, PlatformProtocolError
from airflow_provider_platform.client.redaction import hide_credentials, is_credential_name


class Timestamp(datetime):
    """A time in a response: an aware datetime that keeps the text that the service sent.

    The service sends a `date` or a `date-time`. A date means its midnight, and a time without a
    zone is UTC. In JSON it is the text that the service sent.
    """

    text: str | None = None

    @classmethod
    def parse(cls, value: object) -> Self:
        """Return the time in a text. Raises ValueError if the text is not a time."""
        if not isinstance(value, str):
            raise ValueError("should be a date or a date-time")
        try:
            moment = cls.fromisoformat(value.strip())
        except ValueError:
            raise ValueError("should be a date or a date-time in ISO 8601") from None
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        aware.text = value
        return aware

    def __str__(self) -> str:
        return self.text or self.isoformat()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.parse, serialization=core_schema.to_string_ser_schema()
        )


_NAMES = ConfigDict(
    alias_generator=to_camel,
    populate_by_name=True,
    coerce_numbers_to_str=True,
    hide_input_in_errors=True,
)


class ResponseModel(BaseModel):
    """A resource as the service describes it. Fields that later releases add are kept unchanged.

    A field is required if the resource cannot be identified or used without it (its id, a token),
    or if the service's description requires it. Every other field may be missing, or have a value
    that its type does not allow: the field is then None and not in `model_fields_set`, and
    `to_json` has the value that the service sent. `deciding` names the optional fields for which
    such a value is an error, because a caller would do the wrong thing with None.
    """

    model_config = ConfigDict(**_NAMES, extra="allow")
    deciding: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="wrap")
    @classmethod
    def _keep_odd_fields(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(value)
        except ValidationError as error:
            odd = cls._odd_fields(value, error)
            if not odd:
                raise
        rest = {name: item for name, item in value.items() if name not in odd}
        known = handler(rest)
        if known.__pydantic_extra__ is not None:
            known.__pydantic_extra__.update(odd)
        return known

    @classmethod
    def _odd_fields(cls, value: Any, error: ValidationError) -> dict[str, Any]:
        """Return the fields with errors, as the service sent them; nothing if one of them is
        `deciding`."""
        odd: dict[str, Any] = {}
        for item in error.errors(include_input=False, include_url=False, include_context=False):
            sent = item["loc"][0] if item["loc"] else None
            name = next((n for n, f in cls.model_fields.items() if sent in (n, f.alias)), None)
            if name is None or not isinstance(value, dict) or not isinstance(sent, str):
                return {}
            if cls.model_fields[name].is_required() or name in cls.deciding:
                return {}
            odd[sent] = value[sent]
            if is_credential_name(sent) or "SecretStr" in str(cls.model_fields[name].annotation):
                odd[sent] = SecretStr(json.dumps(value[sent]))
        return odd

    def words(self, name: str) -> str | None:
        """Return the service's text in a field; if it is not a string, its JSON."""
        odd = (self.model_extra or {}).get(type(self).model_fields[name].alias or name)
        return getattr(self, name) if odd is None else json.dumps(odd, default=str)

    def decided(self, name: str) -> Any:
        """Return the value of a field on which the caller's next step depends. Raises
        PlatformProtocolError if it has another type than the documented one."""
        alias = type(self).model_fields[name].alias or name
        if alias in (self.model_extra or {}):
            raise PlatformProtocolError(
                f"{type(self).__name__}: the field {alias} of the response does not have the "
                "documented type. The tenant may run a release that this provider does not know."
            )
        return getattr(self, name)

    @model_validator(mode="after")
    def _hide_unknown_credentials(self) -> Self:
        if self.model_extra:
            self.model_extra.update(hide_credentials(self.model_extra))
        return self

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON with the service's field names: only what the service sent.

        Secrets (`SecretStr` fields) stay masked.
        """
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class EmptiableResponse(ResponseModel):
    """A response that the service may leave empty (no body, `null`): then no field is set."""

    @model_validator(mode="before")
    @classmethod
    def _nothing(cls, value: Any) -> Any:
        return {} if value is None else value


class InputModel(BaseModel):
    """A request body. `of` and `build` create it from its fields, in snake_case.

    An optional field that is left out, or is None, is not sent. An unknown name or an invalid value
    raises PlatformInputError.
    """

    model_config = ConfigDict(**_NAMES, extra="forbid", ser_json_inf_nan="constants")

    @staticmethod
    def is_left_out(value: Any) -> bool:
        """Return whether a value of an optional field counts as absent."""
        return value is None

    @model_validator(mode="before")
    @classmethod
    def _leave_out_absent(cls, value: Any) -> Any:
        """Leave out optional fields without a value. An unknown name stays and is refused, whatever
        its value: it may be the misspelled name of the user who asks."""
        if not isinstance(value, Mapping):
            return value
        optional = {
            spelled
            for name, field in cls.model_fields.items()
            if not field.is_required()
            for spelled in (name, field.alias)
        }
        return {
            name: item
            for name, item in value.items()
            if name not in optional or not cls.is_left_out(item)
        }

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_boolean_as_number(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse a boolean as a number: True would count as 1, and could name another dashboard or
        folder."""
        items = value if isinstance(value, list) else [value]
        if any(isinstance(item, bool) for item in items):
            leaves = _leaves_of(cls.model_fields[str(info.field_name)].annotation)
            if leaves & {int, float} and not leaves & {bool, Any}:
                raise ValueError("must be a number, not true or false")
        return value

    @staticmethod
    def caller_name(name: str) -> str:
        """Return the caller's name of a field: arguments are in snake_case."""
        return to_snake(name)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Create the input from its fields, in snake_case or as the service writes them. Raises
        PlatformInputError, which names the field and the rule, never the value.
        """
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise input_error(error, cls.caller_name) from None

    @classmethod
    def build(cls, **values: Any) -> Self:
        """Create the input from arguments; None counts as absent. Raises as `of`."""
        return cls.of({name: value for name, value in values.items() if value is not None})

    def to_json(self) -> dict[str, Any]:
        """Return the given fields as plain JSON, under the service's names. Raises
        PlatformInputError for a value in a free-form field that JSON cannot represent."""
        try:
            return self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        except PydanticSerializationError as error:
            raise PlatformInputError(
                f"Nothing was sent: a field of {type(self).__name__} cannot be written as JSON "
                f"({error})."
            ) from None


def _leaves_of(annotation: Any) -> frozenset[Any]:
    """Return the types in an annotation, without containers and unions."""
    parts = get_args(annotation)
    return frozenset().union(*map(_leaves_of, parts)) if parts else frozenset({annotation})


JsonObject = Annotated[dict[str, Any], AfterValidator(hide_credentials)]
"""An object in a response without a model of its own, under the service's names. Credentials in it
become SecretStr."""


def input_error(
    error: ValidationError, name: Callable[[str], str] = to_snake
) -> PlatformInputError:
    """Return pydantic's errors about arguments as one error. It names each field as the caller
    writes it; `name` converts the service's name to that."""
    problems = [
        (".".join(name(str(part)) for part in item["loc"]), rule_of(item))
        for item in error.errors(include_input=False, include_url=False)
    ]
    text = "; ".join(f"{field}: {rule}" if field else rule for field, rule in problems)
    return PlatformInputError(f"Nothing was sent: {text}", field=problems[0][0] or None)


_RULES = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "extra_forbidden": "is not a known field",
    "finite_number": "must be a finite number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number",
    "int_type": "must be a whole number",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "list_type": "must be a list",
    "literal_error": "must be {expected}",
    "missing": "must be given",
    "model_attributes_type": "must be an object (a dict) with the fields of the operator's page",
    "model_type": "must be an object (a dict) with the fields of the operator's page",
    "string_too_short": "must have at least {min_length} characters",
    "string_type": "must be text",
}
"""The rule for each type of pydantic's errors."""


def rule_of(error: ErrorDetails) -> str:
    """Return the rule that one of pydantic's errors is about, in words that follow a name. An error
    that is not in the table keeps pydantic's words."""
    words = _RULES.get(error["type"])
    if words is None:
        return error["msg"].removeprefix("Value error, ")
    context = {
        name: f"{value:g}" if isinstance(value, float) else value
        for name, value in error.get("ctx", {}).items()
    }
    return "must not be empty" if context.get("min_length") == 1 else words.format(**context)


def type_name(column_type: Any) -> str:
    """The name of a column's type: the word, or the key of the object. A decimal keeps its
    precision and scale, as in `Decimal(10, 2)`. The empty text where the service names no type."""
    if isinstance(column_type, str):
        return column_type.strip()
    if not isinstance(column_type, dict) or len(column_type) != 1:
        return ""
    ((name, details),) = column_type.items()
    numbers = details if isinstance(details, list) else []
    if name == "Decimal" and numbers and {*map(type, numbers)} == {int}:
        return f"{name}({', '.join(map(str, numbers))})"
    return str(name).strip()
