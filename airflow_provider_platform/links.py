"""The link from a task to the platform, shown on the task's details."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow_provider_platform._airflow import BaseOperatorLink

if TYPE_CHECKING:
    from airflow_provider_platform._airflow import BaseOperator

log = logging.getLogger(__name__)

LINK_KEY = "platform_link"


class PlatformLink(BaseOperatorLink):
    """The platform's web address, as the task's own run has stored it."""

    name = "Analytics Platform"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:  # noqa: ARG002
        """The address; "" where the task has stored none, or it cannot be read.

        Airflow 3.0 asks when the task is over and lets an error end it badly.
        """
        from airflow_provider_platform._airflow import get_task_xcom

        try:
            found = get_task_xcom(ti_key, LINK_KEY)
        except Exception:
            log.warning("The task's link to the platform could not be read.", exc_info=True)
            return ""
        return found if isinstance(found, str) else ""
