"""A value that was given and renders to nothing never means the default of an argument that names
who, where or which."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.decorators.chat import PlatformChatDecoratedOperator
from airflow_provider_platform.decorators.query import PlatformSqlDecoratedOperator
from airflow_provider_platform.notifications.answer import PlatformAnswerNotifier
from airflow_provider_platform.operators._arguments import (
    NEEDED,
    NOTHING_IS_DONE_WITHOUT,
    OPTIONS,
    OPTIONS_INSIDE,
    needed_by,
)
from airflow_provider_platform.operators._base import PlatformOperator
from airflow_provider_platform.operators.api import PlatformApiOperator
from airflow_provider_platform.operators.branches import (
    PlatformCloseBranchOperator,
    PlatformDeleteBranchOperator,
    PlatformMergeBranchOperator,
    PlatformOpenBranchOperator,
)
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.notifications import (
    PlatformNotificationRecipientsOperator,
    PlatformUpdateNotificationOperator,
)
from airflow_provider_platform.operators.pre_aggregations import (
    PlatformBuildPreAggregationsOperator,
)
from airflow_provider_platform.operators.query import PlatformQueryOperator

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_RENDERED = {
    *("multiple_outputs", "response_filter", "python_callable", "op_args", "op_kwargs"),
    *("passed_task_id", "self", "kwargs", "args", "_", "given"),
}
"""Parameters that are no template fields."""


def classes() -> Iterator[type[PlatformOperator]]:
    """Every operator, sensor and decorator of the package."""
    for folder in ("operators", "sensors", "decorators"):
        package = importlib.import_module(f"airflow_provider_platform.{folder}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    found = [PlatformOperator]
    while found:
        cls = found.pop()
        found += cls.__subclasses__()
        if cls.__module__.startswith("airflow_provider_platform"):
            yield cls


CLASSES = sorted(set(classes()), key=lambda cls: cls.__name__)
BASES = ("PlatformOperator", "PlatformSensor")
PUBLIC = [
    cls for cls in CLASSES if cls.__name__.startswith("Platform") and cls.__name__ not in BASES
]


def parameters(cls: type) -> dict[str, inspect.Parameter]:
    found: dict[str, inspect.Parameter] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("airflow_provider_platform"):
            found |= inspect.signature(base.__init__).parameters  # type: ignore[misc]
    return {name: one for name, one in found.items() if name not in NOT_RENDERED}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_table_says_of_every_argument_what_a_vanished_value_means(cls: Any) -> None:
    names = {*parameters(cls), *cls.checks}
    assert names <= NEEDED.keys() | OPTIONS
    assert not NEEDED.keys() & OPTIONS


def test_table_names_only_arguments_that_exist() -> None:
    names = {name for cls in CLASSES for name in (*cls.checks, *parameters(cls))}
    assert {*NEEDED, *OPTIONS} == names
    assert {place.partition(".")[0] for place in OPTIONS_INSIDE} <= NEEDED.keys()
    known = {cls.__name__ for cls in CLASSES}
    assert NOTHING_IS_DONE_WITHOUT.keys() <= known


CASES = [(cls, name) for cls in PUBLIC for name in needed_by(cls)]


@pytest.mark.parametrize(
    ("cls", "name"), CASES, ids=[f"{cls.__name__}-{name}" for cls, name in CASES]
)
def test_vanished_value_is_refused(cls: Any, name: str) -> None:
    required = [
        one
        for one, parameter in parameters(cls).items()
        if parameter.default is inspect.Parameter.empty and one in cls.checks
    ]
    given: dict[str, Any] = {one: f"{{{{ {one} }}}}" for one in {*required, *needed_by(cls)}}
    if cls.__name__.endswith("DecoratedOperator"):
        given |= {"python_callable": lambda: "q"}
    task = cls(task_id="t", **given)
    setattr(task, name, None)
    with pytest.raises(PlatformInputError, match=f"Nothing was sent: {name} has no value"):
        task.coerce_arguments()


@pytest.mark.parametrize("nothing", ["", "None", " ", None])
def test_each_form_of_nothing_is_a_vanished_value(nothing: Any) -> None:
    with pytest.raises(PlatformInputError, match="active_branch_name has no value"):
        rendered(
            PlatformChatOperator, {"gone": nothing}, prompt="q", active_branch_name="{{ gone }}"
        )


def rendered(cls: Any, context: dict[str, Any] | None = None, **given: Any) -> Any:
    task = cls(task_id="t", **given)
    task.render_template_fields(context or {})
    task.coerce_arguments()
    return task


def test_argument_that_is_left_out_or_none_means_its_default() -> None:
    task = rendered(PlatformQueryOperator, sql="s", deployment_id=None, platform_conn_id=None)
    assert (task.platform_conn_id, task.deployment_id) == ("platform_default", None)


@pytest.mark.parametrize("nothing", ["", "None"])
def test_empty_constant_is_refused_when_the_dag_is_parsed(nothing: str) -> None:
    with pytest.raises(PlatformInputError, match="deployment_id must have a value, or be left out"):
        PlatformQueryOperator(task_id="t", sql="s", deployment_id=nothing)


@pytest.mark.parametrize(
    ("cls", "name", "nothing"),
    [
        (PlatformChatOperator, "session_settings", {}),
        (PlatformChatOperator, "session_settings", "null"),
        (PlatformQueryOperator, "page_by", []),
        (PlatformBuildPreAggregationsOperator, "date_range", [None, None]),
    ],
)
def test_constant_that_is_empty_is_refused_when_the_dag_is_parsed(
    cls: Any, name: str, nothing: Any
) -> None:
    others = {PlatformChatOperator: {"prompt": "q"}, PlatformQueryOperator: {"sql": "s"}}
    with pytest.raises(PlatformInputError, match=f"{name} must have a value, or be left out"):
        cls(task_id="t", **others.get(cls, {}), **{name: nothing})


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (PlatformNotificationRecipientsOperator, "recipients"),
        (PlatformUpdateNotificationOperator, "filters"),
    ],
)
def test_empty_list_of_a_task_is_no_value_but_a_constant_is(cls: Any, name: str) -> None:
    with pytest.raises(PlatformInputError, match=f"{name} has no value after rendering"):
        rendered(cls, notification_id=1, **{name: "{{ [] | tojson }}"})
    assert getattr(rendered(cls, notification_id=1, **{name: []}), name) == []


@pytest.mark.parametrize(
    ("given", "deployment_id"),
    [
        ({}, 2),
        ({"deployment_id": 3}, 3),
        ({"branch_name": "b"}, None),
        ({"platform_conn_id": "other"}, None),
    ],
)
def test_branch_is_used_in_the_deployment_of_the_task_that_names_it(
    given: dict[str, Any], deployment_id: int | None
) -> None:
    with DAG("merge"):
        opened = PlatformOpenBranchOperator(task_id="open", branch_name="b", deployment_id=2)
        name: Any = opened.output["branch_name"]
        merge = PlatformMergeBranchOperator(task_id="merge", **{"branch_name": name, **given})
    assert merge.deployment_id == deployment_id


def test_empty_list_of_a_task_adds_and_removes_nobody() -> None:
    task = rendered(
        PlatformNotificationRecipientsOperator, {"gone": "[]"}, notification_id=1, add="{{ gone }}"
    )
    assert task.add == []


@pytest.mark.parametrize(
    ("cls", "given", "place"),
    [
        (
            PlatformChatOperator,
            {"prompt": "q", "session_settings": {"externalId": "a", "groups": "{{ gone }}"}},
            "session_settings.groups",
        ),
        (
            PlatformChatOperator,
            {"prompt": "q", "session_settings": {"internalId": "{{ gone }}"}},
            "session_settings.internalId",
        ),
        (
            PlatformNotificationRecipientsOperator,
            {"notification_id": 1, "add": [{"type": "USER", "email": "{{ gone }}"}]},
            r"add\[0\].email",
        ),
        (PlatformBuildPreAggregationsOperator, {"cubes": ["a", "{{ gone }}"]}, r"cubes\[1\]"),
        (
            PlatformQueryOperator,
            {"sql": "SELECT %(who)s", "parameters": {"who": "{{ gone }}"}},
            "parameters.who",
        ),
        (
            PlatformApiOperator,
            {"operation": "createFolder", "body": {"name": "n", "parentId": "{{ gone }}"}},
            "body.parentId",
        ),
        (
            PlatformBuildPreAggregationsOperator,
            {"date_range": ["{{ gone }}", "{{ gone }}"]},
            r"date_range\[0\]",
        ),
    ],
)
def test_vanished_value_inside_an_argument_is_refused(
    cls: Any, given: dict[str, Any], place: str
) -> None:
    with pytest.raises(
        PlatformInputError, match=f"Nothing was sent: {place} has no value"
    ) as caught:
        rendered(cls, {"gone": None}, **given)
    # The other values of the argument are meant: to leave it out would be wrong advice.
    assert "leave" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "a"])
def test_parameter_of_a_query_may_be_an_empty_string(text: str) -> None:
    parameters = {"who": "{{ who }}", "none": None}
    task = rendered(PlatformQueryOperator, {"who": text}, sql="s", parameters=parameters)
    assert task.parameters == {"who": text, "none": None}


@pytest.mark.parametrize("nothing", [None, "", []])
def test_query_parameter_without_a_value_is_refused(nothing: Any) -> None:
    with pytest.raises(PlatformInputError, match=r"query\.folderId has no value"):
        PlatformApiOperator(task_id="t", operation="getReports", query={"folderId": nothing})
    PlatformApiOperator(task_id="t", operation="getReports", query={"first": None})


@pytest.mark.parametrize("nothing", [None, "", "None"])
def test_page_size_that_vanishes_is_not_sent(nothing: Any) -> None:
    query = {"first": "{{ gone }}", "folderId": 3}
    task = rendered(PlatformApiOperator, {"gone": nothing}, operation="getReports", query=query)
    assert task.query == {"folderId": 3}


@pytest.mark.parametrize("value", [None, "", [], [None], ["a", ""]])
def test_filter_of_a_dashboard_needs_a_value(value: Any) -> None:
    def filters(context: Any, jinja_env: Any) -> Any:
        return [{"member": "orders.status", "operator": "equals", "value": value}]

    with pytest.raises(PlatformInputError, match=r"filters\[0\] has no value, which operator='equ"):
        rendered(PlatformUpdateNotificationOperator, notification_id=1, filters=filters)


@pytest.mark.parametrize("value", ["None", 0, ["None", "a"]])
def test_filter_of_a_dashboard_may_ask_for_any_value(value: Any) -> None:
    filters = [{"member": "orders.discount", "operator": "equals", "value": value}]
    task = rendered(PlatformUpdateNotificationOperator, notification_id=1, filters=filters)
    assert task.filters == filters


@pytest.mark.parametrize("nothing", [None, "", "None"])
@pytest.mark.parametrize("schedule_type", ["DAILY", None])
def test_part_of_a_schedule_that_its_type_takes_must_keep_its_value(
    schedule_type: str | None, nothing: Any
) -> None:
    parts: dict[str, Any] = {"schedule_type": schedule_type, "minute": 5, "hour": "{{ gone }}"}
    with pytest.raises(PlatformInputError, match="hour has no value after rendering"):
        rendered(PlatformUpdateNotificationOperator, {"gone": nothing}, notification_id=1, **parts)


def test_part_of_another_type_of_schedule_may_vanish() -> None:
    parts: dict[str, Any] = {"schedule_type": "HOURLY", "minute": 5, "hour": "{{ gone }}"}
    task = rendered(PlatformUpdateNotificationOperator, {"gone": None}, notification_id=1, **parts)
    assert task.schedule() == {"schedule_type": "HOURLY", "minute": 5}


def test_security_context_without_a_value_is_refused() -> None:
    def contexts(context: Any, jinja_env: Any) -> Any:
        return [{"securityContext": None}]

    with pytest.raises(PlatformInputError, match="must have an object"):
        rendered(PlatformBuildPreAggregationsOperator, contexts=contexts)


def test_option_inside_an_argument_that_renders_to_nothing_counts_as_absent() -> None:
    settings = {"externalId": "a", "email": "{{ gone }}", "isEphemeral": "{{ gone }}"}
    task = rendered(PlatformChatOperator, {"gone": ""}, prompt="q", session_settings=settings)
    assert task.session_settings == {"externalId": "a", "email": "", "isEphemeral": ""}


@pytest.mark.parametrize("nothing", [{}, "{}"])
def test_object_that_renders_empty_is_refused(nothing: Any) -> None:
    task = PlatformChatOperator(task_id="t", prompt="q", session_settings="{{ gone }}")
    task.session_settings = nothing
    with pytest.raises(PlatformInputError, match="session_settings has no value"):
        task.coerce_arguments()


@pytest.mark.parametrize("cls", [PlatformCloseBranchOperator, PlatformDeleteBranchOperator])
def test_task_that_does_nothing_without_a_branch_needs_none(cls: Any) -> None:
    assert rendered(cls, {"gone": None}, branch_name="{{ gone }}").branch_name is None


def test_commit_of_a_branch_to_delete_is_needed() -> None:
    with pytest.raises(PlatformInputError, match=r"hash has no value.*accept any commit"):
        rendered(
            PlatformDeleteBranchOperator, {"gone": None}, branch_name="nightly", hash="{{ gone }}"
        )


def test_function_gives_the_value_of_an_argument() -> None:
    """Airflow takes a function for any template field."""

    def branch(context: Any, jinja_env: Any) -> Any:
        return context["name"]

    task = rendered(PlatformChatOperator, {"name": "b"}, prompt="q", active_branch_name=branch)
    assert task.active_branch_name == "b"
    with pytest.raises(PlatformInputError, match="active_branch_name has no value"):
        rendered(PlatformChatOperator, {"name": None}, prompt="q", active_branch_name=branch)
    with pytest.raises(PlatformInputError, match="must be a non-empty string"):
        rendered(PlatformChatOperator, {"name": ["b"]}, prompt="q", active_branch_name=branch)


@pytest.mark.parametrize("customer", ["../elsewhere/x", "..", "a/../../b", "..\\b", " .. /b"])
@pytest.mark.parametrize(
    "template", ["/out/{{ customer }}/rows.csv", "s3://b/{{ customer }}/r.csv"]
)
def test_rendered_part_of_a_path_leads_to_no_other_folder(template: str, customer: str) -> None:
    with pytest.raises(PlatformInputError, match=r"output_path has a segment \.\. that"):
        rendered(PlatformQueryOperator, {"customer": customer}, sql="s", output_path=template)


def test_path_of_another_task_leads_to_no_other_folder() -> None:
    def path(context: Any, jinja_env: Any) -> str:
        return "/out/../rows.csv"

    with pytest.raises(PlatformInputError, match="output_path has a segment"):
        rendered(PlatformQueryOperator, sql="s", output_path=path)


@pytest.mark.parametrize("customer", [None, ""])
@pytest.mark.parametrize(
    "template",
    [
        *("/out/{{ customer }}/rows.csv", "s3://b/{{ day }}/{{ customer }}.csv"),
        *("{{ customer }}/r.csv", "/out/{{ day }}/{{ customer }}"),
    ],
)
def test_path_without_the_value_of_a_part_is_refused(template: str, customer: str | None) -> None:
    with pytest.raises(PlatformInputError, match=r"output_path has no value for {{ customer }}"):
        rendered(
            PlatformQueryOperator,
            {"customer": customer, "day": "2025-01-01"},
            sql="s",
            output_path=template,
        )


@pytest.mark.parametrize("item", [None, ""])
def test_path_of_an_operation_without_an_id_is_refused(item: str | None) -> None:
    with pytest.raises(PlatformInputError, match=r"path has no value for {{ item }}"):
        rendered(PlatformApiOperator, {"item": item}, path="/v1/reports/{{ item }}")


def test_branch_whose_name_has_a_part_without_a_value_is_refused() -> None:
    with pytest.raises(PlatformInputError, match=r"branch_name has no value for {{ who }}"):
        rendered(PlatformQueryOperator, {"who": None}, sql="s", branch_name="dev-{{ who }}")


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ("{{ base }}/rows{{ suffix }}.csv", "s3://bucket/a//rows.csv"),
        ("{{ base }}rows.csv{{ suffix }}", "s3://bucket/a/rows.csv"),
        ("/out{% if suffix %}/{{ suffix }}{% endif %}/rows.csv", "/out/rows.csv"),
        ("{{ suffix }}", None),
    ],
)
def test_part_that_may_be_empty_is_kept(template: str, path: str | None) -> None:
    values = {"base": "s3://bucket/a/", "suffix": ""}
    task = rendered(PlatformQueryOperator, values, sql="s", output_path=template)
    assert task.output_path == path


@pytest.mark.parametrize("template", ["{{ base }}/{{ folder }}", "/out/{{ folder }}"])
def test_value_of_a_folder_may_end_with_a_slash(template: str) -> None:
    values = {"base": "/out", "folder": "nightly/"}
    task = rendered(PlatformChatOperator, values, prompt="q", output_path=template)
    assert task.output_path == "/out/nightly"


@pytest.mark.parametrize("customer", ["a", "a/b", "..a", "a..b", "..."])
def test_steps_that_the_author_wrote_are_kept(customer: str) -> None:
    path = "/dags/../out/{{ customer }}.csv"
    task = rendered(PlatformQueryOperator, {"customer": customer}, sql="s", output_path=path)
    assert task.output_path == f"/dags/../out/{customer}.csv"


@pytest.mark.parametrize("rendered", ["", "None", None])
def test_notifier_sends_no_result_of_another_task(rendered: Any) -> None:
    sent: list[Any] = []
    notifier = PlatformAnswerNotifier(sent.append, task_id="{{ gone }}")
    notifier.task_id = rendered
    with pytest.raises(PlatformInputError, match="task_id has no value"):
        notifier.notify({})
    assert sent == []


@pytest.mark.parametrize("rendered", ["", "None", None])
def test_notifier_sends_the_message_if_an_option_has_no_value(rendered: Any) -> None:
    class CallbackTask:
        dag_id, run_id, task_id, map_index, log_url = "dag", "run", "ask", -1, None

        def xcom_pull(self, **_: Any) -> dict[str, Any]:
            return {"answer": "a", "queries": []}

    sent: list[Any] = []
    options = ("title", "max_rows", "charts", "chart_fonts")
    notifier = PlatformAnswerNotifier(sent.append)
    for name in options:
        setattr(notifier, name, rendered)
    notifier.notify({"ti": CallbackTask()})
    assert [one["title"] for one in sent] == ["dag.ask: answer"]


@pytest.mark.parametrize("decorated", [PlatformChatDecoratedOperator, PlatformSqlDecoratedOperator])
@pytest.mark.parametrize("returned", [None, "", "None"])
def test_function_must_return_a_text(decorated: Any, returned: Any) -> None:
    task = decorated(task_id="t", python_callable=lambda: returned, op_args=())
    with (
        pytest.raises(PlatformInputError, match="the function must return"),
        task._calling_in({}),
    ):
        task.returned_text()


@pytest.mark.parametrize("how", ["literal", "template", "part"])
@pytest.mark.parametrize("branch", ["2025_11", "12e4567", "0x10", "[1]", "None_", "1.10"])
def test_text_stays_that_text_with_native_rendering(branch: str, how: str) -> None:
    given = {"literal": branch, "template": "{{ name }}", "part": branch[:2] + "{{ name[2:] }}"}
    with DAG("native", render_template_as_native_obj=True):
        task = PlatformQueryOperator(task_id="t", sql="s", branch_name=given[how])
    task.render_template_fields({"name": branch})
    task.coerce_arguments()
    assert task.branch_name == branch
