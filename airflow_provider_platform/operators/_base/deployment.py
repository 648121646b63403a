"""What is done in one deployment: the argument that names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform.operators._base import arguments
from airflow_provider_platform.operators._base.operator import PlatformOperator

if TYPE_CHECKING:
    from airflow_provider_platform.operators._base.operator import Checks


class DeploymentOperator(PlatformOperator):
    """Base of what is scoped to a deployment.

    :param deployment_id: the deployment's id; default: the connection's
    """

    checks: ClassVar[Checks] = {"deployment_id": arguments.optional_id}

    def __init__(self, *, deployment_id: int | str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.deployment_id = deployment_id
