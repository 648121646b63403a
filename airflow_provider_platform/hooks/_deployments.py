"""The hook's methods for deployments and their environments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.hooks._base import ManagementMethods

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Literal

    from airflow_provider_platform.client.deployments import (
        BuildStatusResponse,
        CreationStep,
        Deployment,
        DeploymentSettings,
        DeploymentTokenResponse,
    )
    from airflow_provider_platform.client.environments import (
        DeploymentEnvironment,
        DeploymentEnvironmentToken,
        DeploymentEnvironmentTokenResponse,
    )


class DeploymentMethods(ManagementMethods):
    """Deployments: list, get, settings, build status; environments; tokens for data."""

    def list_deployments(
        self, *, creation_step: list[CreationStep] | None = None, first: int | None = None
    ) -> Iterator[Deployment]:
        """The deployments that the credential can see."""
        from airflow_provider_platform.client.deployments import LIST_DEPLOYMENTS, DeploymentsQuery
        from airflow_provider_platform.client.paging import Listing

        return self.iterate(
            Listing.of(
                LIST_DEPLOYMENTS,
                query=DeploymentsQuery.build(creation_step=creation_step, first=first),
            )
        )

    def get_deployment(self, *, deployment_id: int | str | None = None) -> Deployment:
        """One deployment; its data API answers below `deployment_url`."""
        from airflow_provider_platform.client.deployments import GET_DEPLOYMENT

        return self.run(GET_DEPLOYMENT(deployment_id=self.resolve_deployment_id(deployment_id)))

    def get_deployment_settings(
        self, *, deployment_id: int | str | None = None
    ) -> DeploymentSettings:
        """How a deployment is set up; `deploy_branch_name` is its production branch."""
        from airflow_provider_platform.client.deployments import GET_DEPLOYMENT_SETTINGS

        return self.run(
            GET_DEPLOYMENT_SETTINGS(deployment_id=self.resolve_deployment_id(deployment_id))
        )

    def get_build_status(
        self, *, branch_name: str | None = None, deployment_id: int | str | None = None
    ) -> BuildStatusResponse:
        """Whether a branch is built: `status` is `built`, `building`, `failed` ...

        `error_text` can say why it never will be, whatever the status.
        """
        from airflow_provider_platform.client.deployments import GET_BUILD_STATUS, BuildStatusQuery

        return self.run(
            GET_BUILD_STATUS(
                deployment_id=self.resolve_deployment_id(deployment_id),
                query=BuildStatusQuery.build(branch_name=branch_name),
            )
        )

    def create_deployment_token(
        self, *, expires_in: int | None = None, deployment_id: int | str | None = None
    ) -> DeploymentTokenResponse:
        """A token for the deployment's data API, as a SecretStr; lives `expires_in` seconds (60 to
        86400, a day by default)."""
        from airflow_provider_platform.client.deployments import (
            CREATE_DEPLOYMENT_TOKEN,
            CreateDeploymentTokenInput,
        )

        return self.run(
            CREATE_DEPLOYMENT_TOKEN(
                deployment_id=self.resolve_deployment_id(deployment_id),
                body=CreateDeploymentTokenInput.build(expires_in=expires_in),
            )
        )

    def list_environments(
        self,
        *,
        type: Literal["production", "staging", "development"] | None = None,
        first: int | None = None,
        deployment_id: int | str | None = None,
    ) -> Iterator[DeploymentEnvironment]:
        """The environments of a deployment and where they answer."""
        from airflow_provider_platform.client.environments import (
            LIST_ENVIRONMENTS,
            EnvironmentsQuery,
        )
        from airflow_provider_platform.client.paging import Listing

        return self.iterate(
            Listing.of(
                LIST_ENVIRONMENTS,
                deployment_id=self.resolve_deployment_id(deployment_id),
                query=EnvironmentsQuery.build(type=type, first=first),
            )
        )

    def list_environment_tokens(
        self,
        environment_id: int | str,
        *,
        first: int | None = None,
        deployment_id: int | str | None = None,
    ) -> Iterator[DeploymentEnvironmentToken]:
        """The tokens that the caller made for an environment; each token is a SecretStr."""
        from airflow_provider_platform.client.environments import LIST_ENVIRONMENT_TOKENS
        from airflow_provider_platform.client.paging import Listing, OffsetPageQuery

        return self.iterate(
            Listing.of(
                LIST_ENVIRONMENT_TOKENS,
                deployment_id=self.resolve_deployment_id(deployment_id),
                environment_id=environment_id,
                query=OffsetPageQuery.build(first=first),
            )
        )

    def create_environment_token(
        self,
        environment_id: int | str,
        *,
        security_context: dict[str, Any],
        expires_in: int | None = None,
        scopes: list[str] | None = None,
        deployment_id: int | str | None = None,
    ) -> DeploymentEnvironmentTokenResponse:
        """A token for an environment, as a SecretStr in `data.token`; lives `expires_in` seconds.

        At most 3600. `data.scopes` says what was signed.
        """
        from airflow_provider_platform.client.environments import (
            CREATE_ENVIRONMENT_TOKEN,
            CreateDeploymentEnvironmentTokenInput,
        )

        return self.run(
            CREATE_ENVIRONMENT_TOKEN(
                deployment_id=self.resolve_deployment_id(deployment_id),
                environment_id=environment_id,
                body=CreateDeploymentEnvironmentTokenInput.build(
                    security_context=security_context, expires_in=expires_in, scopes=scopes
                ),
            )
        )

    def create_meta_sync_token(
        self,
        environment_id: int | str,
        *,
        security_context: dict[str, Any],
        expires_in: int | None = None,
        scopes: list[str] | None = None,
        deployment_id: int | str | None = None,
    ) -> DeploymentEnvironmentTokenResponse:
        """A token that may read an environment's metadata, as a SecretStr in `data.token`."""
        from airflow_provider_platform.client.environments import (
            CREATE_META_SYNC_TOKEN,
            CreateDeploymentEnvironmentTokenInput,
        )

        return self.run(
            CREATE_META_SYNC_TOKEN(
                deployment_id=self.resolve_deployment_id(deployment_id),
                environment_id=environment_id,
                body=CreateDeploymentEnvironmentTokenInput.build(
                    security_context=security_context, expires_in=expires_in, scopes=scopes
                ),
            )
        )
