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
from airflow_provider_platform.client.management.deployments.deployments import (
    CreateDeploymentTokenInput,
    create_deployment_token,
)
from airflow_provider_platform.client.management.embed.sessions import (
    GenerateSession,
    PostTokenBySessionIdInput,
    RevokeEmbedSessionInput,
    create_embed_token,
    generate_embed_session,
    revoke_embed_session,
)
from airflow_provider_platform.hooks.platform import PlatformHook

# Airflow keeps the source of DAG files.
CLIENT_SECRET = "-".join(("canary", "of", "a", "client", "secret"))  # noqa: FLY002
SESSION_ID = "5e55" * 8

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


def _generate() -> Any:
    return generate_embed_session(
        body=GenerateSession.build(deployment_id=1, external_id="analyst")
    )


def _redeem(session_id: Any) -> Any:
    return create_embed_token(body=PostTokenBySessionIdInput.build(session_id=session_id))


def _revoke() -> Any:
    return revoke_embed_session(body=RevokeEmbedSessionInput.build(session_id=SESSION_ID))


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

            def run(operation: Any) -> Any:
                return asyncio.run(hook.arun(operation))

            async def rows() -> None:
                await anext(hook.arun_sql("SELECT 1"))

            def query() -> None:
                asyncio.run(rows())
        else:
            run = hook.run

            def query() -> None:
                next(hook.run_sql("SELECT 1"))

        token = run(_mint()).cube_api_token
        session = run(_generate()).session_id
        _tell(query)
        _tell(lambda: run(_create()))
        _tell(lambda: run(_redeem(session)))
        _tell(lambda: run(_revoke()))
        sent = f"{CLIENT_SECRET}, {SESSION_ID}"
        received = f"{token.get_secret_value()}, {session.get_secret_value()}"
        log.info("A careless line: %s, %s", received, sent)
        raise ValueError(f"A careless error: {received}, {sent}")

    quoted_back()
