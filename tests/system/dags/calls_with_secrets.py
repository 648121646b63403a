"""A DAG whose calls send and receive secrets that the service quotes back, by a hook in a task."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.management.account.oauth import (
    CreateOAuthIntegrationInput,
    create_oauth_integration,
)
from airflow_provider_platform.client.management.deployments.operations import (
    CreateDeploymentTokenInput,
    create_deployment_token,
)
from airflow_provider_platform.hooks.platform import PlatformHook

# Airflow keeps the source of DAG files.
CLIENT_SECRET = "-".join(("canary", "of", "a", "client", "secret"))  # noqa: FLY002

log = logging.getLogger(__name__)


def _mint() -> Any:
    return create_deployment_token(
        deployment_id=1, body=CreateDeploymentTokenInput.build(expires_in=60)
    )


def _create() -> Any:
    urls = dict.fromkeys(("auth_url", "token_url", "redirect_uri"), "https://o.example.com")
    body = CreateOAuthIntegrationInput.build(
        name="n", type="custom", client_id="c", client_secret=CLIENT_SECRET, **urls
    )
    return create_oauth_integration(body=body)


def _tell(call: Any) -> None:
    try:
        call()
    except PlatformError:
        log.exception("The service quotes what it was sent")
    else:
        raise AssertionError("no fault")


with DAG("secrets", schedule=None):

    @task
    def quoted_back(**context: Any) -> None:
        hook = PlatformHook(context["dag_run"].conf["platform_conn_id"])
        if context["dag_run"].conf["deferrable"]:

            async def rows() -> None:
                await anext(hook.arun_sql("SELECT 1"))

            token = asyncio.run(hook.arun(_mint())).cube_api_token
            _tell(lambda: asyncio.run(rows()))
            _tell(lambda: asyncio.run(hook.arun(_create())))
        else:
            token = hook.run(_mint()).cube_api_token
            _tell(lambda: next(hook.run_sql("SELECT 1")))
            _tell(lambda: hook.run(_create()))
        log.info("A careless line: %s, %s", token.get_secret_value(), CLIENT_SECRET)
        raise ValueError(f"A careless error: {token.get_secret_value()}")

    quoted_back()
