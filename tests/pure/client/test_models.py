"""The base models are lenient with responses and strict with requests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, SecretStr

from airflow_provider_platform.client.errors import PlatformInputError, PlatformProtocolError
from airflow_provider_platform.client.models import (
    EmptiableResponse,
    InputModel,
    JsonObject,
    ResponseModel,
    Timestamp,
)
from airflow_provider_platform.client.redaction import secrets_in

CANARY = "canary-secret"


class Thing(ResponseModel):
    id: int
    public_name: str | None = None
    size: int | float | None = None
    created_at: Timestamp | None = None
    settings: JsonObject | None = None


class Ask(InputModel):
    dashboard_id: int | None = Field(default=None, ge=1)
    public_id: str | None = None
    parts: list[int] | None = None


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-07-20", datetime(2026, 7, 20, tzinfo=UTC)),
        ("2026-07-20T10:30:00.250Z", datetime(2026, 7, 20, 10, 30, 0, 250_000, tzinfo=UTC)),
        ("2026-07-20T10:30:00+02:00", datetime(2026, 7, 20, 8, 30, tzinfo=UTC)),
        ("2026-07-20T10:30:00", datetime(2026, 7, 20, 10, 30, tzinfo=UTC)),
    ],
)
def test_date_and_date_time_parse_and_come_out_as_sent(text: str, moment: datetime) -> None:
    thing = Thing.model_validate({"id": 1, "createdAt": text})

    assert thing.created_at == moment
    assert thing.to_json() == {"id": 1, "createdAt": text}


def test_times_of_all_forms_can_be_compared_and_subtracted() -> None:
    day = Timestamp.parse("2026-07-20")
    later = Timestamp.parse("2026-07-20T01:00:00Z")

    assert later > day
    assert later - day == timedelta(hours=1)
    assert str(day + timedelta(days=1)) == "2026-07-21T00:00:00+00:00"


@pytest.mark.parametrize("value", ["", "soon", 1_752_000_000, {"at": "2026"}])
def test_invalid_time_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="date or a date-time"):
        Timestamp.parse(value)


class Stamped(ResponseModel):
    id: int
    made_at: Timestamp
    things: list[Thing] | None = None
    api_key: SecretStr | None = None
    is_last: bool | None = None
    deciding = frozenset({"is_last"})


def test_optional_field_of_an_undocumented_type_is_kept_in_json() -> None:
    sent = {"id": "1", "publicName": {"a": [1]}, "size": "big", "createdAt": 5, "settings": "x"}

    thing = Thing.model_validate(sent)

    assert (thing.id, thing.public_name, thing.size, thing.created_at) == (1, None, None, None)
    assert thing.to_json() == {**sent, "id": 1}
    assert "created_at" not in thing.model_fields_set
    assert thing.words("public_name") == '{"a": [1]}'


@pytest.mark.parametrize(
    "sent",
    [
        {"publicName": "x"},
        {"id": {}},
        {"id": 1, "madeAt": 5},
        {"id": 1, "madeAt": "2026-01-01", "isLast": "perhaps"},
        [],
        "text",
    ],
    ids=str,
)
def test_invalid_required_field_makes_the_response_an_error(sent: Any) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Stamped.model_validate(sent)


def test_invalid_optional_field_does_not_affect_the_other_fields() -> None:
    things = [{"id": 1, "size": "big"}, {"id": 2}]
    base = {"id": 1, "madeAt": "2026-01-01"}

    stamped = Stamped.model_validate({**base, "things": things})
    unreadable = Stamped.model_validate({**base, "things": [{"size": 1}]})

    assert stamped.to_json()["things"] == things
    assert [thing.size for thing in stamped.things or []] == [None, None]
    assert (unreadable.things, unreadable.to_json()["things"]) == (None, [{"size": 1}])


@pytest.mark.parametrize("value", [{"value": CANARY}, [CANARY]], ids=str)
def test_a_secret_of_another_type_stays_hidden(value: Any) -> None:
    stamped = Stamped.model_validate({"id": 1, "madeAt": "2026-01-01", "apiKey": value})

    assert CANARY not in repr(stamped)
    assert CANARY not in str(stamped.to_json())
    assert any(CANARY in secret for secret in secrets_in(stamped))


def test_needed_field_of_an_undocumented_type_is_an_error() -> None:
    assert Thing.model_validate({"id": 1, "size": 2}).decided("size") == 2
    assert Thing.model_validate({"id": 1}).decided("created_at") is None
    with pytest.raises(PlatformProtocolError, match="createdAt"):
        Thing.model_validate({"id": 1, "createdAt": 5}).decided("created_at")


@given(st.datetimes(timezones=st.just(UTC)), st.sampled_from(["seconds", "milliseconds"]))
def test_any_date_time_survives_the_round_trip(moment: datetime, precision: str) -> None:
    text = moment.isoformat(timespec=precision).replace("+00:00", "Z")

    assert Thing.model_validate({"id": 1, "createdAt": text}).to_json()["createdAt"] == text


def test_numbers_may_be_strings_and_strings_numbers() -> None:
    thing = Thing.model_validate({"id": "7", "publicName": 12, "size": "2.5"})

    assert (thing.id, thing.public_name, thing.size) == (7, "12", 2.5)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    st.lists,
    max_leaves=5,
)


@given(st.dictionaries(st.from_regex(r"new[A-Z][a-z]{1,8}", fullmatch=True), json_values))
def test_unknown_fields_are_kept_as_they_came(extra: dict[str, Any]) -> None:
    sent = {"id": 1, **extra}
    hidden = {name for name in extra if name.lower().endswith(("token", "secret", "jwt"))}

    shown = Thing.model_validate(sent).to_json()

    assert {k: v for k, v in shown.items() if k not in hidden} == {
        k: v for k, v in sent.items() if k not in hidden
    }


@pytest.mark.parametrize(
    "extra",
    [
        {"accessToken": CANARY},
        {"apiKey": CANARY},
        {"nested": {"clientSecret": CANARY}},
        {"list": [{"password": CANARY}]},
        {"settings": {"auth": {"privateKey": CANARY}}},
    ],
)
def test_credentials_that_no_model_describes_are_hidden(extra: dict[str, Any]) -> None:
    thing = Thing.model_validate({"id": 1, **extra})

    assert CANARY not in repr(thing)
    assert CANARY not in str(thing.to_json())


def test_model_of_an_empty_response_has_no_fields_set() -> None:
    class Maybe(EmptiableResponse):
        message: str | None = None

    assert Maybe.model_validate(None).to_json() == {}
    assert Maybe.model_validate({}).message is None


def test_input_sends_given_fields_under_the_services_names() -> None:
    assert Ask.build(dashboard_id="3", public_id=None).to_json() == {"dashboardId": 3}
    assert Ask.build(public_id=123).to_json() == {"publicId": "123"}


@pytest.mark.parametrize(
    ("given_", "field"),
    [
        ({"dashboard_id": 0}, "dashboard_id"),
        ({"dashboard_id": "many"}, "dashboard_id"),
        ({"dashbord_id": 1}, "dashbord_id"),
        ({"dashbord_id": None}, "dashbord_id"),
        ({"public_id": ["a"]}, "public_id"),
    ],
)
def test_bad_arguments_are_refused_by_name(given_: dict[str, Any], field: str) -> None:
    with pytest.raises(PlatformInputError, match="Nothing was sent") as raised:
        Ask.of(given_)

    assert raised.value.field == field


def test_error_about_an_argument_does_not_show_its_value() -> None:
    with pytest.raises(PlatformInputError) as raised:
        Ask.build(parts=[CANARY], dashboard_id=CANARY)

    assert CANARY not in str(raised.value)
