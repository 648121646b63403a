"""The arguments of a declared operation, checked where the call is written.

The error appears at the line of the call, and says what is wrong and what to write instead. A wrong
argument raises PlatformInputError, and nothing was sent.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from operator import index
from typing import Any, NoReturn, TypeVar

from pydantic.alias_generators import to_camel, to_snake

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.operations.models import InputModel
from airflow_provider_platform.client.operations.paths import check_deployment_id
from airflow_provider_platform.client.operations.rules import refuse

M = TypeVar("M", bound=InputModel)

_DEPLOYMENT = "deployment_id"


class Arguments:
    """The arguments of an operation: `models` are the models of its `query` and `body`."""

    def __init__(
        self,
        name: str,
        signature: inspect.Signature,
        models: Mapping[str, type[InputModel] | None],
    ) -> None:
        self._name = name
        self._parameters = signature.parameters
        self._models = {place: model for place, model in models.items() if model is not None}

    @property
    def usage(self) -> str:
        """Return an example of a call: `update_report(report_id=…, body=UpdateReportInput(…))`."""
        return self._call({name for name in self._parameters if name != _DEPLOYMENT})

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by name. Raises PlatformInputError for a missing, unknown or
        positional argument."""
        if args:
            self._refuse("takes its arguments by name")
        for name in kwargs:
            if name not in self._parameters:
                self._refuse_unknown(name)
        for name in self._required():
            if name not in kwargs or (name in self._models and kwargs[name] is None):
                self._refuse(f"needs {name}", field=name)
        return dict(kwargs)

    def id(self, name: str, value: Any) -> int | str | None:
        """Return an id or a name for the path. Raises PlatformInputError if it is neither a string
        nor an integer, or if it cannot name a resource."""
        if name == _DEPLOYMENT:
            return check_deployment_id(value)
        if value is None or (isinstance(value, str) and value.strip() in ("", ".", "..")):
            self._refuse_id(name, "must be given and must be the id of one resource")
        if isinstance(value, str):
            return value
        if not isinstance(value, bool) and hasattr(type(value), "__index__"):
            return index(value)
        type_name = type(value).__name__
        shown = (
            f"{value} ({type_name})" if isinstance(value, bool | float) else f"of type {type_name}"
        )
        advice = "; give the id of the object, not the object" if hasattr(value, "id") else ""
        return self._refuse_id(name, f"must be a whole number or text, not {shown}{advice}")

    def model(
        self,
        place: str,
        model: type[M] | None,
        value: Any,
        known: Mapping[str, Any] | None = None,
    ) -> M | None:
        """Return the query or the body as its model. A dict of fields is converted. `known` are the
        ids of the path, under the service's names: fields of the body with these names get these
        values. Raises PlatformInputError for another model, an invalid field, and a field that
        contradicts the path.
        """
        if model is None:
            return None
        if value is None and any(map(model.is_known_by_call, model.model_fields)):
            value = {}
        if value is None:
            return None
        if isinstance(value, Mapping):
            value = model.of(value)
        if isinstance(value, type) and issubclass(value, InputModel):
            self._refuse_model(place, model, f"the class {value.__name__} itself")
        if not isinstance(value, model):
            self._refuse_model(place, model, type(value).__name__)
        return self._complete(place, value, known or {})

    def _complete(self, place: str, value: M, known: Mapping[str, Any]) -> M:
        """Return the body with the ids that the call already has."""
        taken: dict[str, int] = {}
        for name in type(value).model_fields:
            there, own = known.get(to_camel(name)), getattr(value, name)
            if there is None:
                continue
            if own is None and value.is_known_by_call(name):
                taken[name] = int(there)
            elif own is not None and str(own) != str(there):
                raise PlatformInputError(
                    f"Nothing was sent: {self._name} got two values of {name}, one as an argument "
                    f"and another in {place}. Leave {name} out of {place}.",
                    field=name,
                )
        return value.model_copy(update=taken)

    def _refuse(self, problem: str, *, field: str | None = None) -> NoReturn:
        raise PlatformInputError(
            f"Nothing was sent: {self._name} {problem}. Write {self.usage}.", field=field
        )

    def _refuse_id(self, name: str, problem: str) -> NoReturn:
        raise refuse(name, f"of {self._name} {problem}")

    def _refuse_model(self, place: str, model: type[InputModel], got: str) -> NoReturn:
        raise PlatformInputError(
            f"Nothing was sent: {place} of {self._name} must be {model.__name__}(…) or a dict of "
            f"its fields, not {got}.",
            field=place,
        )

    def _refuse_unknown(self, name: str) -> NoReturn:
        for place, model in self._models.items():
            if to_snake(name) in model.model_fields:
                call = self._call({*self._required(), place}, field=to_snake(name))
                raise PlatformInputError(
                    f"Nothing was sent: {self._name} takes {name} in its {place}. Write {call}.",
                    field=name,
                )
        close = get_close_matches(name, self._parameters, n=1)
        meant = f" (did you mean {close[0]}?)" if close else ""
        self._refuse(f"has no argument {name}{meant}", field=name)

    def _required(self) -> list[str]:
        return [
            name
            for name, parameter in self._parameters.items()
            if parameter.default is inspect.Parameter.empty
        ]

    def _call(self, names: set[str], field: str = "") -> str:
        inside = f"{field}=…" if field else "…"
        written = [
            f"{name}={self._models[name].__name__}({inside})"
            if name in self._models
            else f"{name}=…"
            for name in self._parameters
            if name in names
        ]
        return f"{self._name}({', '.join(written)})"
