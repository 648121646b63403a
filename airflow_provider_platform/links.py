"""The links from a task to the platform, shown on the task's details.

Each is one XCom under the link's own key: the task stores it as soon as the address is known, and
Airflow stores it again when the task ends. A link whose address is not known is absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform._airflow import BaseOperatorLink

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_platform._airflow import BaseOperator


LINK_KEY = "platform_link"


class PlatformLink(BaseOperatorLink):
    """The platform's web address."""

    name = "Analytics Platform"
    kind: ClassVar[str] = ""
    xcom_key: str = LINK_KEY
    """The key of the XCom that stores the address."""

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:  # noqa: ARG002
        """The address; "" where the task has found none."""
        known: Mapping[str, str] = getattr(operator, KNOWN, {})
        return known.get(self.xcom_key, "")


KNOWN = "known_links"
"""The attribute of a running task with the addresses it has found, by XCom key."""


class _ResourceLink(PlatformLink):
    """One thing on the platform, by the connection's `web_links`. Its class is named after it."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.name = cls.__name__.removesuffix("Link")
        cls.kind = cls.name.lower()
        cls.xcom_key = f"platform_{cls.kind}_link"


class AgentLink(_ResourceLink):
    """The agent that was asked."""


class ThreadLink(_ResourceLink):
    """The thread of a chat."""


class BranchLink(_ResourceLink):
    """The branch of the data model."""


class ReportLink(_ResourceLink):
    """The report."""


class WorkbookLink(_ResourceLink):
    """The workbook."""


class DashboardLink(_ResourceLink):
    """The dashboard."""


class NotificationLink(_ResourceLink):
    """The notification."""


class ExportLink(_ResourceLink):
    """The export of a dashboard."""


class FileLink(_ResourceLink):
    """The file that was written."""


def all_links(*links: Callable[[], PlatformLink]) -> tuple[PlatformLink, ...]:
    """Return all possible links of an operator, as its class shows them before a task runs."""
    return (PlatformLink(), *(make() for make in links))
