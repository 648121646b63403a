"""Operators for workbooks and their dashboards: duplicate, update, publish, attach an AI thread."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.errors import (
    PlatformOutcomeUnknownError,
)
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.links import DashboardLink, WorkbookLink, all_links
from airflow_provider_platform.operators._arguments import stored
from airflow_provider_platform.operators._base import DeploymentOperator, ShortTraceback
from airflow_provider_platform.operators._single_call import SingleCallOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.client.argument_rules import Rule
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.hooks.platform import PlatformHook
    from airflow_provider_platform.operators._base import Checks
    from airflow_provider_platform.resources.workbooks import Dashboard, Workbook


OnReviewRequired = Literal["fail", "skip"]


class WorkbookOperator(DeploymentOperator):
    """Base of the operators on one workbook.

    :param workbook_id: the workbook's id
    :param workbook: instead of `workbook_id`: the workbook's name, looked up when the task runs
    """

    operator_extra_links = all_links(WorkbookLink)
    named = ("workbook",)

    checks: ClassVar[Checks] = {
        "workbook_id": arguments.optional_id,
        "workbook": arguments.optional_text,
    }
    rules: ClassVar[Sequence[Rule]] = ((("workbook_id", "workbook"), arguments.exactly_one),)

    def __init__(
        self, *, workbook_id: int | str | None = None, workbook: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.workbook_id: Any = workbook_id
        self.workbook = workbook


class PlatformDuplicateWorkbookOperator(WorkbookOperator, SingleCallOperator):
    """Clone a workbook, once.

    Use it to create a workbook from a template, for example for each month, customer or experiment.

    If the response is lost, the API does not show whether the clone exists: the outcome is unknown,
    and the task fails.

    Returns the clone as the service describes it.

    :param workbook_id: the id of the workbook to clone
    :param workbook: instead of `workbook_id`: the name of the workbook to clone
    :param shared: clone from the shared workspace
    """

    operator_extra_links = all_links(WorkbookLink)
    linked_result: ClassVar[dict[str, str]] = {"workbook_id": "id"}

    checks: ClassVar[Checks] = {
        "shared": arguments.optional_boolean,
    }

    def __init__(self, *, shared: bool | str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.shared: Any = shared
        self.validate_known_arguments()

    def idempotency_key(self, config: PlatformConfig) -> str:
        return self.fingerprint(config, type(self).__name__, self.workbook_id, self.shared)

    def call(self, hook: PlatformHook) -> Any:
        from airflow_provider_platform.resources.workbooks import duplicate_workbook

        ids = {"workbook_id": self.workbook_id, "deployment_id": self.deployment_id}
        body = arguments.given(shared=self.shared)
        clone = hook.run(duplicate_workbook(body=body, rendered=True, **ids))
        self.log.info("Duplicated workbook %s as %s", quote_service(self.workbook_id), clone.id)
        return clone.to_json()

    def remember(self, result: Any) -> dict[str, Any]:
        return {"id": result["id"]}

    def reload_result(self, hook: PlatformHook, ids: dict[str, Any]) -> Any:
        there = {"workbook_id": ids["id"], "deployment_id": self.deployment_id}
        return stored(hook.call("getWorkbook", **there))


class PlatformUpdateWorkbookOperator(WorkbookOperator):
    """Change the given parts of a workbook.

    Use it to rename or move a workbook, for example one that you have just cloned.

    Returns the workbook as the service describes it.

    :param name: the new name
    :param folder_id: the folder to move the workbook to
    :param meta: an object that replaces the stored object
    :param slug: the workbook's name in code; a slug that another workbook has fails the task
    :param slug_takeover: take the slug from the workbook that has it
    """

    template_fields_renderers: ClassVar[dict[str, str]] = {"meta": "json"}
    checks: ClassVar[Checks] = {
        "name": arguments.optional_text,
        "folder_id": arguments.optional_id,
        "meta": arguments.mapping,
        "slug": arguments.optional_text,
        "slug_takeover": arguments.optional_boolean,
    }

    def __init__(
        self,
        *,
        name: str | None = None,
        folder_id: int | str | None = None,
        meta: dict[str, Any] | str | None = None,
        slug: str | None = None,
        slug_takeover: bool | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.name = name
        self.folder_id: Any = folder_id
        self.meta: Any = meta
        self.slug = slug
        self.slug_takeover: Any = slug_takeover
        self.validate_known_arguments()

    def execute(self, context: Context) -> dict[str, Any]:
        """Change the workbook and read it."""
        with ShortTraceback(), self.opened(context) as hook:
            hook.update_workbook(
                self.workbook_id,
                deployment_id=self.deployment_id,
                **arguments.given(
                    name=self.name,
                    folder_id=self.folder_id,
                    meta=self.meta,
                    slug=self.slug,
                    slug_takeover=self.slug_takeover,
                ),
            )
            ids = {"workbook_id": self.workbook_id, "deployment_id": self.deployment_id}
            workbook: dict[str, Any] = stored(hook.call("getWorkbook", **ids))
        self.log.info("Updated workbook %s", quote_service(self.workbook_id))
        return workbook


class PlatformPublishWorkbookOperator(WorkbookOperator, SingleCallOperator):
    """Publish a workbook's dashboard, once.

    If the response is lost, the task compares the published dashboard with what it sent. If
    somebody else published in between, or the tenant does not report what is published, the outcome
    is unknown, and the task fails.

    Use it as the last step, after the checks. A workbook without a saved draft fails before
    anything is published, unless `config` is given. If the dashboard requires review, only people
    can publish it, from its approved review: see `on_review_required`.

    Returns the dashboard as the service describes it.

    :param title: the dashboard's title
    :param description: what it is about
    :param allow_embed: whether it may be embedded
    :param config: what to publish (default: the saved draft)
    :param dashboard_id: the id of the dashboard to replace
    :param on_review_required: what the task does if the dashboard requires review: `fail`
        (DashboardReviewRequiredError; Airflow does not retry the task) or `skip` (the task ends as
        skipped, and its log says what a person must do)
    """

    operator_extra_links = all_links(WorkbookLink, DashboardLink)
    linked_result: ClassVar[dict[str, str]] = {"dashboard_id": "id"}

    template_fields_renderers: ClassVar[dict[str, str]] = {"config": "json"}
    checks: ClassVar[Checks] = {
        "title": arguments.optional_text,
        "description": arguments.optional_text,
        "allow_embed": arguments.optional_boolean,
        "config": arguments.mapping,
        "dashboard_id": arguments.optional_id,
        "on_review_required": partial(arguments.choice, choices=get_args(OnReviewRequired)),
    }

    def __init__(
        self,
        *,
        title: str | None = None,
        description: str | None = None,
        allow_embed: bool | str | None = None,
        config: dict[str, Any] | str | None = None,
        dashboard_id: int | str | None = None,
        on_review_required: OnReviewRequired = "fail",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.title = title
        self.description = description
        self.allow_embed: Any = allow_embed
        self.config = config
        self.dashboard_id: Any = dashboard_id
        self.on_review_required = on_review_required
        self.validate_known_arguments()

    def idempotency_key(self, config: PlatformConfig) -> str:
        inputs = (self.title, self.description, self.allow_embed, self.config, self.dashboard_id)
        return self.fingerprint(config, type(self).__name__, self.workbook_id, *inputs)

    def execute_once(self, context: Context, hook: PlatformHook) -> Any:
        """Publish once. Raises DashboardReviewRequiredError or, with `on_review_required="skip"`,
        AirflowSkipException for a dashboard that requires review."""
        from airflow_provider_platform._airflow import AirflowSkipException
        from airflow_provider_platform.client.errors import DashboardReviewRequiredError

        try:
            return super().execute_once(context, hook)
        except DashboardReviewRequiredError as error:
            if self.on_review_required == "fail":
                raise
            if link := self.link_line():
                self.log.info("%s", link)
            raise AirflowSkipException(
                f"{error.message} This task is skipped because of on_review_required='skip'."
            ) from error

    def prepare(self, hook: PlatformHook) -> dict[str, Any]:
        """Return the version that is published before the call, and a digest of what is published.
        Raises PlatformInputError for a workbook that has nothing to publish."""
        workbook = self._workbook(hook)
        api_includes_draft = "dashboard_draft" in workbook.model_fields_set
        if self.config is None and api_includes_draft and workbook.dashboard_draft is None:
            from airflow_provider_platform.resources.workbooks import (
                no_saved_draft,
            )

            raise no_saved_draft(self.workbook_id)
        api_includes_published, published = _published_in(workbook)
        return {
            "api_includes_published": api_includes_published,
            "version": _version(published),
            "content": _digest(self.config or workbook.dashboard_draft),
        }

    def call(self, hook: PlatformHook) -> Any:
        from airflow_provider_platform.resources.workbooks import publish

        body = arguments.given(
            title=self.title,
            description=self.description,
            allow_embed=self.allow_embed,
            config=self.config,
            dashboard_id=self.dashboard_id,
        )
        dashboard = hook.run(
            lambda api: publish(api, self.workbook_id, body, deployment_id=self.deployment_id)
        )
        ids = quote_service(self.workbook_id), quote_service(dashboard.public_id)
        self.log.info("Published workbook %s as dashboard %s", *ids)
        return dashboard.to_json()

    def find(self, hook: PlatformHook, ids: dict[str, Any]) -> Any | None:
        """Return the published dashboard if it has changed since before the lost call, and is what
        the call should publish; None if it has not changed."""
        api_includes_published, published = self._published(hook)
        version = _version(published)
        comparable = api_includes_published and ids["api_includes_published"]
        if not comparable or (published is not None and version is None):
            return super().find(hook, ids)
        if published is None or version == ids["version"]:
            return None
        if not self._is_as_wanted(published, ids["content"]):
            raise PlatformOutcomeUnknownError(
                "The service did not confirm the publication. Meanwhile something else was "
                "published, so the service does not show whether this task published before. Look "
                "at the published dashboard. If it is right, mark this task as successful. If it "
                "is not, clear the task to publish.",
                where=f"workbook {self.workbook_id}",
            )
        return published.to_json()

    def _is_as_wanted(self, published: Dashboard, content: str) -> bool:
        """Return whether the published dashboard is what this task publishes."""
        wanted = arguments.given(
            title=self.title, description=self.description, allow_embed=self.allow_embed
        )
        is_same = all(getattr(published, name) == value for name, value in wanted.items())
        return is_same and _digest(published.config) == content

    def remember(self, result: Any) -> dict[str, Any]:
        return {}

    def reload_result(self, hook: PlatformHook, ids: dict[str, Any]) -> Any:
        _, published = self._published(hook)
        return super().reload_result(hook, ids) if published is None else published.to_json()

    def _published(self, hook: PlatformHook) -> tuple[bool, Dashboard | None]:
        """Return (whether the API includes `published_dashboard`, the dashboard or None)."""
        return _published_in(self._workbook(hook))

    def _workbook(self, hook: PlatformHook) -> Workbook:
        from airflow_provider_platform.resources.workbooks import get_workbook

        ids = {"workbook_id": self.workbook_id, "deployment_id": self.deployment_id}
        return hook.run(get_workbook(**ids))


class PlatformAttachAiWidgetThreadOperator(WorkbookOperator):
    """Attach an AI thread to an AI widget of the published dashboard.

    Use it to show the agent's findings to readers of a dashboard.

    A second call with the same thread changes nothing, so a retry can repeat a failed call. Returns
    the dashboard as the service describes it.

    :param widget_id: the id of the AI widget
    :param thread_id: the thread, such as the `chat_id` of `PlatformChatOperator`
    :param checksum: passed on to the service
    """

    checks: ClassVar[Checks] = {
        "widget_id": arguments.text,
        "thread_id": arguments.text,
        "checksum": arguments.optional_text,
    }

    def __init__(
        self, *, widget_id: str, thread_id: str, checksum: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.widget_id = widget_id
        self.thread_id = thread_id
        self.checksum = checksum
        self.validate_known_arguments()

    def execute(self, context: Context) -> dict[str, Any]:
        """Attach the thread."""
        with ShortTraceback(), self.opened(context) as hook:
            dashboard = hook.attach_ai_widget_thread(
                self.workbook_id,
                widget_id=self.widget_id,
                thread_id=self.thread_id,
                deployment_id=self.deployment_id,
                **arguments.given(checksum=self.checksum),
            )
        self.log.info(
            "Attached thread %s to widget %s of workbook %s",
            quote_service(self.thread_id),
            quote_service(self.widget_id),
            quote_service(self.workbook_id),
        )
        attached: dict[str, Any] = stored(dashboard)
        return attached


def _published_in(workbook: Workbook) -> tuple[bool, Dashboard | None]:
    """Return (whether the API includes `published_dashboard`, the dashboard or None)."""
    return "published_dashboard" in workbook.model_fields_set, workbook.published_dashboard


def _digest(content: dict[str, Any] | str | None) -> str:
    """Return a digest of what a dashboard shows. A missing field is the same as null."""
    from airflow_provider_platform.client.config import fingerprint

    return fingerprint(_without_nulls(content))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _version(dashboard: Dashboard | None) -> int | None:
    """Return a number that changes with each publication; None if nothing is published or the API
    does not report it."""
    if dashboard is None:
        return None
    return dashboard.version_id if dashboard.version_id is not None else dashboard.version_number
