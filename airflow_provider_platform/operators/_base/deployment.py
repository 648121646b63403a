"""What is done in one deployment: the argument that names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform.operators._base import arguments
from airflow_provider_platform.operators._base.operator import PlatformOperator

if TYPE_CHECKING:
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.operators._base.operator import Checks


class DeploymentOperator(PlatformOperator):
    """Base of what is scoped to a deployment.

    :param deployment_id: the deployment's id; default: the connection's
    """

    checks: ClassVar[Checks] = {"deployment_id": arguments.optional_id}

    def __init__(self, *, deployment_id: int | str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.deployment_id: Any = deployment_id

    def fingerprint(self, config: PlatformConfig, kind: str, *inputs: Any) -> str:
        """The key of a call of this kind in this deployment."""
        from airflow_provider_platform.client.config import fingerprint

        deployment_id = config.resolve_deployment_id(self.deployment_id)
        return fingerprint(kind, config.management_url, deployment_id, *inputs)
