"""Notifications over HTTP: one schedule in every case, and arguments checked before a request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException, Variable
from airflow_provider_platform.client.errors import (
    PlatformInputError,
    PlatformProtocolError,
)
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators._run_record import STORE_KEY
from airflow_provider_platform.operators.notifications import (
    PlatformCreateNotificationOperator,
    PlatformDeleteNotificationOperator,
    PlatformListNotificationsOperator,
    PlatformNotificationRecipientsOperator,
    PlatformUpdateNotificationOperator,
)
from airflow_provider_platform.resources.notifications import Notification
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

DAILY: dict[str, Any] = {
    "schedule_type": "DAILY",
    "hour": 6,
    "minute": 30,
    "timezone": "Europe/Berlin",
    "notification_format": "pdf",
    "dashboard_id": 501,
}


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Airflow's variables."""
    stored: dict[str, str] = {}
    monkeypatch.setattr(Variable, "set", stored.__setitem__)
    monkeypatch.setattr(Variable, "get", lambda name, default=None: stored.get(name, default))
    return stored


def create(**changes: Any) -> PlatformCreateNotificationOperator:
    return PlatformCreateNotificationOperator(task_id="create", **{**DAILY, **changes})


def created(sandbox: Sandbox) -> list[int]:
    return [entry.id for entry in sandbox.control.state().changed("notifications")]


class TestCreate:
    def test_create_returns_the_notification(self, platform_sandbox: Sandbox) -> None:
        found = create(filters=[{"member": "orders.status", "operator": "equals", "value": "paid"}])
        result = found.execute(TaskTries().context())
        assert result["id"] == created(platform_sandbox)[0]
        assert result["cronExpression"] == "30 6 * * *"
        assert result["filters"][0]["member"] == "orders.status"

    def test_create_returns_an_equal_existing_notification(self, platform_sandbox: Sandbox) -> None:
        first = create().execute(TaskTries().context())
        second = create(filters=[]).execute(TaskTries().context())
        assert second == first
        assert created(platform_sandbox) == [first["id"]]

    @pytest.mark.parametrize(
        "settings",
        [
            {"filters": [{"member": "orders.region", "operator": "equals", "value": ["EU"]}]},
            {"member_switchers": [{"member": "orders.measure", "selected": "count"}]},
        ],
        ids=lambda settings: next(iter(settings)),
    )
    def test_other_settings_of_the_dashboard_make_another_schedule(
        self, settings: dict[str, Any], platform_sandbox: Sandbox
    ) -> None:
        europe = create(**settings).execute(TaskTries().context())
        (name, (setting,)) = next(iter(settings.items()))
        asked = {"value": ["US"]} if name == "filters" else {"member": "orders.other"}
        america = create(if_exists="update", **{name: [{**setting, **asked}]})
        plain = create(if_exists="update")
        ids = [task.execute(TaskTries().context())["id"] for task in (america, plain)]
        assert created(platform_sandbox) == [europe["id"], *ids]
        assert platform_sandbox.control.state().changed("notifications", "updated") == []
        found = PlatformHook().call("getNotification", id=europe["id"])
        assert found == europe

    def test_a_tenant_that_drops_a_setting_gets_no_second_schedule(
        self, platform_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
    ) -> None:
        platform_sandbox.control.set(tenant="described")
        switched = {"member_switchers": [{"member": "orders.measure", "selected": "count"}]}
        first = create(**switched).execute(TaskTries().context())
        assert "does not report the member_switchers" in capsys.readouterr().out
        with pytest.raises(AirflowFailException, match=r"Nothing was created.*member_switchers"):
            create(**switched).execute(TaskTries().context())
        assert create().execute(TaskTries().context())["id"] == first["id"]
        assert created(platform_sandbox) == [first["id"]]

    def test_setting_stored_with_another_value_causes_a_warning(
        self, platform_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
    ) -> None:
        task = create(filters=[{"member": "orders.region", "operator": "equals", "value": ["EU"]}])
        first = task.execute(TaskTries().context())
        assert "another one" not in capsys.readouterr().out
        task._warn_of_differences(Notification.model_validate({**first, "filters": []}))
        logged = capsys.readouterr().out
        assert f"does not report the filters of notification {first['id']} as the task" in logged
        assert "creates another one" in logged

    @pytest.mark.parametrize("if_exists", ["skip", "update"])
    def test_log_says_that_the_notification_is_switched_off(
        self, if_exists: str, platform_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
    ) -> None:
        first = create().execute(TaskTries().context())
        platform_sandbox.control.change("notifications", first["id"], isEnabled=False)
        assert create(if_exists=if_exists).execute(TaskTries().context())["id"] == first["id"]
        said = f"Notification {first['id']} is not sent to anybody: isEnabled is false"
        assert said in capsys.readouterr().out

    def test_newest_enabled_notification_of_several_is_returned(
        self, platform_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
    ) -> None:
        first, second = twins(platform_sandbox)
        assert create(if_exists="skip").execute(TaskTries().context())["id"] == second
        platform_sandbox.control.change("notifications", second, isEnabled=False)
        capsys.readouterr()
        assert create(if_exists="skip").execute(TaskTries().context())["id"] == first
        said = capsys.readouterr().out
        assert f"Several notifications match ({second} (isEnabled is false" in said
        assert "is not sent to anybody" not in said

    def test_public_id_does_not_match_if_the_tenant_lists_all_dashboards(
        self, platform_sandbox: Sandbox
    ) -> None:
        create().execute(TaskTries().context())
        other = create(dashboard_id=502).execute(TaskTries().context())
        fault = {"path": "notifications$", "field": "items.1", "value": {**other, "id": 99}}
        platform_sandbox.control.fault("odd_field", method="GET", **fault)
        create().execute(TaskTries().context())
        dashboards = {"dashboard_id": None, "dashboard_public_id": public_id(platform_sandbox)}
        twins(platform_sandbox)
        platform_sandbox.control.fault("odd_field", method="GET", **fault)
        with pytest.raises(AirflowFailException, match="Give dashboard_id instead"):
            create(**dashboards).execute(TaskTries().context())

    def test_times_edited_in_the_dag_change_the_one_schedule(
        self, platform_sandbox: Sandbox
    ) -> None:
        first = create().execute(TaskTries().context())
        edited = {"schedule_type": "WEEKLY", "day_of_week": 1, "timezone": "UTC"}
        changed = create(**edited).execute(TaskTries().context())
        assert (changed["cronExpression"], changed["timezone"]) == ("30 6 * * 1", "UTC")
        assert created(platform_sandbox) == [changed["id"]] == [first["id"]]

    def test_schedule_with_other_times_stays_with_if_exists_skip(
        self, platform_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
    ) -> None:
        first = create().execute(TaskTries().context())
        assert create(hour=7, if_exists="skip").execute(TaskTries().context()) == first
        assert "with other times than this task has" in capsys.readouterr().out

    def test_each_key_has_its_own_schedule_with_the_same_settings(
        self, platform_sandbox: Sandbox, variables: dict[str, str]
    ) -> None:
        """People have a schedule of their own for the dashboard, too, which stays."""
        persons = create(hour=12).execute(TaskTries().context())

        def run(**edited: Any) -> list[dict[str, Any]]:
            tasks = (create(key="morning", hour=7), create(**{"key": "evening", **edited}))
            return [task.execute(TaskTries().context()) for task in tasks]

        first, again, later = run(hour=18), run(hour=18), run(hour=19)
        assert first == again
        assert [found["cronExpression"] for found in later] == ["30 7 * * *", "30 19 * * *"]
        assert created(platform_sandbox) == [persons["id"], *(found["id"] for found in later)]
        assert PlatformHook().call("getNotification", id=persons["id"]) == persons
        # With a key, filters and format can be edited too.
        filters = [{"member": "orders.region", "operator": "equals", "value": ["EU"]}]
        assert run(hour=19, filters=filters, notification_format="png")[1]["filters"]
        assert run(hour=19)[1]["filters"] == []
        assert len(created(platform_sandbox)) == 3

    def test_key_without_its_variable_takes_the_schedule_with_the_same_times(
        self, platform_sandbox: Sandbox, variables: dict[str, str]
    ) -> None:
        first = create(key="morning").execute(TaskTries().context())
        [name] = variables
        host = platform_sandbox.url.removeprefix("http://")
        assert name == f"platform_notification.platform_default.{host}.1.501.morning"
        variables.clear()
        assert create(key="morning").execute(TaskTries().context())["id"] == first["id"]
        assert variables == {name: str(first["id"])}
        with pytest.raises(AirflowFailException, match="or give this one another key"):
            create(key="morning", if_exists="fail").execute(TaskTries().context())
        PlatformHook().call("deleteNotification", id=first["id"])
        assert create(key="morning").execute(TaskTries().context())["id"] != first["id"]

    def test_unusual_cron_expression_is_left_to_the_service(
        self, platform_sandbox: Sandbox
    ) -> None:
        times = {"hour": None, "minute": None, "custom_cron": "30 6 L * *"}
        custom = {"schedule_type": "CUSTOM", **times}
        with pytest.raises(AirflowFailException, match=r"400.*customCron must be a cron"):
            create(**custom).execute(TaskTries().context())
        assert created(platform_sandbox) == []

    def test_existing_notification_is_found_by_the_public_id(
        self, platform_sandbox: Sandbox
    ) -> None:
        first = create().execute(TaskTries().context())
        dashboards = {"dashboard_id": None, "dashboard_public_id": public_id(platform_sandbox)}
        assert create(**dashboards).execute(TaskTries().context()) == first

    def test_if_exists_update_changes_the_existing_notification(
        self, platform_sandbox: Sandbox
    ) -> None:
        grains = [{"member": "orders.created_at", "grain": "week"}]
        first = create(time_grains=grains).execute(TaskTries().context())
        summary = {"time_grains": grains, "notification_ai_summary": True}
        found = create(if_exists="update", **summary).execute(TaskTries().context())
        assert found == {**first, "notificationAiSummary": True}
        assert len(created(platform_sandbox)) == 1

    def test_if_exists_update_fails_if_several_match(self, platform_sandbox: Sandbox) -> None:
        twins(platform_sandbox)
        with pytest.raises(AirflowFailException, match=r"several notifications match \(\d+, \d+\)"):
            create(if_exists="update").execute(TaskTries().context())

    def test_notification_is_found_after_a_lost_response(self, platform_sandbox: Sandbox) -> None:
        platform_sandbox.control.fault("lost_response", method="POST", path="notifications$")
        result = create(if_exists="fail").execute(TaskTries().context())
        assert created(platform_sandbox) == [result["id"]]

    def test_lost_creation_is_unknown_if_the_service_spells_its_times_in_another_way(
        self, platform_sandbox: Sandbox
    ) -> None:
        platform_sandbox.control.fault("lost_response", method="POST", path="notifications$")
        listed = {"method": "GET", "path": "notifications$", "count": None}
        spelled = {"field": "items.0.cronExpression", "value": "30 6 * * 0-6"}
        platform_sandbox.control.fault("odd_field", **listed, **spelled)
        tries = TaskTries()
        with pytest.raises(AirflowFailException, match="reports other times than this task has"):
            create().execute(tries.context())
        assert tries.store[STORE_KEY]["phase"] == "lost"
        assert len(created(platform_sandbox)) == 1

    @pytest.mark.exhaustive
    def test_lost_creation_is_unknown_if_the_list_does_not_report_all_settings(
        self, platform_sandbox: Sandbox
    ) -> None:
        platform_sandbox.control.set(tenant="described")
        platform_sandbox.control.fault("lost_response", method="POST", path="notifications$")
        tries = TaskTries()
        switched = {"member_switchers": [{"member": "orders.measure", "selected": "count"}]}
        with pytest.raises(AirflowFailException, match="does not report all settings"):
            create(**switched).execute(tries.context())
        assert tries.store[STORE_KEY]["phase"] == "lost"
        assert len(created(platform_sandbox)) == 1

    def test_retry_after_a_crash_finds_the_created_notification(
        self, platform_sandbox: Sandbox
    ) -> None:
        # The look-up fails too, so the first try leaves the record at its intent.
        tries = TaskTries()
        platform_sandbox.control.fault("lost_response", method="POST", path="notifications$")
        fault = {"method": "GET", "path": "notifications$", "nth": 2, "count": None}
        platform_sandbox.control.fault("status", status=400, **fault)
        with pytest.raises(AirflowFailException):
            create(if_exists="fail").execute(tries.context())
        platform_sandbox.control.clear_faults()
        result = create(if_exists="fail").execute(tries.context())
        assert created(platform_sandbox) == [result["id"]]

    def test_cleared_task_searches_existing_notifications_again(
        self, platform_sandbox: Sandbox
    ) -> None:
        tries = TaskTries()
        create(if_exists="fail").execute(tries.context())
        tries.clear()
        with pytest.raises(AirflowFailException, match="Nothing was created"):
            create(if_exists="fail").execute(tries.context())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"hour": 24}, "hour"),
        ({"minute": -1}, "minute"),
        ({"schedule_type": "YEARLY"}, "schedule_type"),
        ({"schedule_type": "WEEKLY", "day_of_week": 7}, "day_of_week"),
        ({"schedule_type": "MONTHLY", "day_of_month": 0}, "day_of_month"),
        ({"custom_cron": "99 * *"}, "custom_cron"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"notification_format": "gif"}, "notification_format"),
        ({"dashboard_public_id": "p"}, "dashboard_id"),
        ({"dashboard_id": None}, "dashboard_id"),
        ({"if_exists": "ignore"}, "if_exists"),
        ({"filters": [{"member": "o.s", "operator": "resembles"}]}, "[0].operator"),
        ({"time_grains": "day"}, "time_grains"),
        ({"schedule_type": ""}, "schedule_type"),
    ],
)
def test_invalid_arguments_are_refused_when_the_dag_is_parsed(
    change: dict[str, Any], field: str
) -> None:
    with pytest.raises(PlatformInputError) as caught:
        create(**change)
    assert caught.value.field == field


def test_argument_that_renders_to_an_invalid_value_is_refused_before_a_request(
    platform_sandbox: Sandbox,
) -> None:
    operator = create(hour="{{ 5 * 5 }}")
    operator.render_template_fields({})
    with pytest.raises(AirflowFailException, match="hour must be at most 23"):
        operator.execute(TaskTries().context())
    assert platform_sandbox.control.state().requests == []


def test_rendered_texts_become_typed_values(platform_sandbox: Sandbox) -> None:
    operator = create(
        hour="{{ 6 }}",
        minute="{{ 30 }}",
        dashboard_id="{{ 501 }}",
        day_of_week="{{ '' }}",
        notification_enabled="{{ True }}",
        filters='{{ [{"member": "orders.status", "operator": "is_null"}] | tojson }}',
    )
    operator.render_template_fields({})
    result = operator.execute(TaskTries().context())
    assert result["cronExpression"] == "30 6 * * *"
    assert result["notificationEnabled"] is True
    assert result["filters"][0]["operator"] == "is_null"


class TestUpdateAndDelete:
    def test_update_sends_only_the_given_arguments(self, platform_sandbox: Sandbox) -> None:
        first = create().execute(TaskTries().context())
        update = PlatformUpdateNotificationOperator(
            task_id="update", notification_id=first["id"], is_enabled="false", hour=8
        )
        found = update.execute(TaskTries().context())
        assert found["cronExpression"] == "30 8 * * *"
        assert found["isEnabled"] is False
        assert found["notificationFormat"] == "pdf"

    def test_delete_operator_deletes_once(self, platform_sandbox: Sandbox) -> None:
        first = create().execute(TaskTries().context())
        tries = TaskTries()
        delete = PlatformDeleteNotificationOperator(task_id="d", notification_id=first["id"])
        assert delete.execute(tries.context()) is None
        assert delete.execute(tries.context()) is None


class TestList:
    def test_list_operator_filters_by_dashboard_newest_first(
        self, platform_sandbox: Sandbox
    ) -> None:
        first, second = twins(platform_sandbox)
        create(dashboard_id=502).execute(TaskTries().context())
        operator = PlatformListNotificationsOperator(task_id="list", dashboard_id="501")
        found = operator.execute(TaskTries().context())
        assert [item["id"] for item in found] == [second, first]

    def test_unreadable_notification_is_left_out_of_the_list(
        self, platform_sandbox: Sandbox, caplog: pytest.LogCaptureFixture
    ) -> None:
        first, _ = twins(platform_sandbox)
        fault = {"path": "notifications$", "method": "GET", "field": "items.0", "value": "none"}
        platform_sandbox.control.fault("odd_field", **fault)
        found = PlatformListNotificationsOperator(task_id="list").execute(TaskTries().context())
        assert [item["id"] for item in found] == [first]
        assert "the result leaves out 1 items of the list" in caplog.text

    @pytest.mark.parametrize(
        "filters",
        [
            {"dashboard_id": 1, "dashboard_public_id": "p"},
            {"recipient_user_id": 1, "recipient_email": "a@example.com"},
            {"recipient_embed_tenant_name": "t"},
            {"recipient_external_id": "u"},
            {
                "recipient_user_id": 1,
                "recipient_embed_tenant_name": "t",
                "recipient_external_id": "u",
            },
        ],
    )
    def test_dashboard_filters_exclude_each_other(self, filters: dict[str, Any]) -> None:
        with pytest.raises(PlatformInputError, match=re.escape(next(iter(filters)))):
            PlatformListNotificationsOperator(task_id="list", **filters)


class TestRecipients:
    ANALYST = {"type": "USER", "email": "analyst@acme.example.com"}  # noqa: RUF012
    ADMIN = {"type": "USER", "email": "admin@acme.example.com"}  # noqa: RUF012
    BERLIN = {  # noqa: RUF012
        "type": "EMBED_USER",
        "embed_tenant_name": "acme-retail",
        "external_id": "shop-berlin",
    }

    def change(self, notification_id: int, **arguments: Any) -> list[dict[str, Any]]:
        operator = PlatformNotificationRecipientsOperator(
            task_id="recipients", notification_id=notification_id, **arguments
        )
        return operator.execute(TaskTries().context())

    def test_recipients_are_added_and_removed(self, platform_sandbox: Sandbox) -> None:
        number = create().execute(TaskTries().context())["id"]
        found = self.change(number, add=[self.ANALYST, self.BERLIN])
        assert {recipient["type"] for recipient in found} == {"USER", "EMBED_USER"}
        again = self.change(number, add=[self.ANALYST])
        assert len(again) == 2
        user = next(item for item in found if item["type"] == "USER")
        left = self.change(number, remove=[{"type": "USER", "id": user["userId"]}])
        assert [recipient["type"] for recipient in left] == ["EMBED_USER"]

    def test_recipients_are_removed_as_they_were_added(self, platform_sandbox: Sandbox) -> None:
        number = create().execute(TaskTries().context())["id"]
        self.change(number, add=[self.ANALYST, self.BERLIN, self.ADMIN])
        upper = {"type": "USER", "email": "Analyst@ACME.example.com"}
        nobody = {"type": "USER", "email": "nobody@acme.example.com"}
        left = self.change(number, remove=[upper, self.BERLIN, nobody])
        assert [recipient["email"] for recipient in left] == [self.ADMIN["email"]]

    def test_whole_list_replaces_the_recipients(self, platform_sandbox: Sandbox) -> None:
        number = create().execute(TaskTries().context())["id"]
        self.change(number, recipients=[self.ANALYST, self.BERLIN])
        found = self.change(number, recipients=[self.BERLIN, self.ADMIN])
        assert {recipient["email"] for recipient in found} == {
            "berlin@retail.example.com",
            self.ADMIN["email"],
        }
        assert self.change(number, recipients=[self.BERLIN, self.ADMIN]) == found
        assert self.change(number, recipients=[]) == []

    def test_whole_list_removes_nobody_if_the_service_does_not_say_whom_it_added(
        self, platform_sandbox: Sandbox
    ) -> None:
        number = create().execute(TaskTries().context())["id"]
        self.change(number, add=[self.ANALYST])
        fault = {"path": "recipients$", "field": "createdRecipients", "value": []}
        platform_sandbox.control.fault("odd_field", method="POST", **fault)
        with pytest.raises(PlatformProtocolError, match="Nobody was removed"):
            self.change(number, recipients=[self.ADMIN])
        assert len(self.change(number)) == 2

    def test_error_about_a_refused_recipient_names_the_recipient(
        self, platform_sandbox: Sandbox
    ) -> None:
        number = create().execute(TaskTries().context())["id"]
        left = {"type": "USER", "email": "left@acme.example.com"}
        with pytest.raises(AirflowFailException) as refused:
            self.change(number, add=[self.ANALYST, left])
        assert "recipients[1] is no user of this account" in str(refused.value)
        assert "recipients[1] is USER 'left@acme.example.com'." in str(refused.value)

    def test_whole_list_cannot_be_combined_with_changes(self) -> None:
        with pytest.raises(PlatformInputError, match="cannot be combined with add or remove"):
            PlatformNotificationRecipientsOperator(
                task_id="who", notification_id=1, recipients=[], add=[self.ANALYST]
            )


def public_id(sandbox: Sandbox) -> str:
    """The public id of dashboard 501."""
    return str(sandbox.control.change("dashboards", 501)["publicId"])


def twins(sandbox: Sandbox) -> list[int]:
    """Two equal schedules, as a careless client makes them."""
    for _ in range(2):
        PlatformHook().create_notification(**DAILY)
    return created(sandbox)
