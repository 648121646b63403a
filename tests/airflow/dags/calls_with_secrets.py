"""A DAG whose calls send and receive secrets that the service quotes back, by a hook in a task."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.hooks.platform import PlatformHook

# Airflow keeps the source of DAG files.
CLIENT_SECRET = "-".join(("canary", "of", "a", "client", "secret"))  # noqa: FLY002
SESSION_ID = "5e55" * 8

log = logging.getLogger(__name__)


INTEGRATION = {
    "name": "n",
    "type": "custom",
    "clientId": "c",
    "clientSecret": CLIENT_SECRET,
    **dict.fromkeys(("authUrl", "tokenUrl", "redirectUri"), "https://o.example.com"),
}


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

        def call(operation: str, body: Any) -> Any:
            if not context["dag_run"].conf["deferrable"]:
                return hook.call(operation, body=body)

            async def on_loop() -> Any:
                async with hook.async_client() as api:
                    return await api.call(operation, body=body)

            return asyncio.run(on_loop())

        token = call("deploymentToken", {"expiresIn": 60})["cubeApiToken"]
        session = call("generateSession", {"externalId": "analyst"})["sessionId"]
        _tell(lambda: next(hook.run_sql("SELECT 1")))
        _tell(lambda: call("createOAuthIntegration", INTEGRATION))
        _tell(lambda: call("postTokenBySessionId", {"sessionId": session}))
        _tell(lambda: call("revokeSession", {"sessionId": SESSION_ID}))
        sent = f"{CLIENT_SECRET}, {SESSION_ID}"
        received = f"{token.get_secret_value()}, {session.get_secret_value()}"
        log.info("A careless line: %s, %s", received, sent)
        raise ValueError(f"A careless error: {received}, {sent}")

    quoted_back()
