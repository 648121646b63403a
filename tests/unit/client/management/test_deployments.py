"""Deployments, their environments and tokens: what is sent, and what the answers become."""

from __future__ import annotations

import pytest

from airflow_provider_platform.client.errors import PlatformInputError, PlatformProtocolError
from airflow_provider_platform.client.management.deployments.deployments import (
    BuildStatusQuery,
    CreateDeploymentTokenInput,
    DeploymentsQuery,
    create_deployment_token,
    get_build_status,
    get_deployment,
    get_deployment_settings,
    list_deployments,
)
from airflow_provider_platform.client.management.deployments.environments import (
    CreateDeploymentEnvironmentTokenInput,
    EnvironmentsQuery,
    create_environment_token,
    create_meta_sync_token,
    list_environments,
)

CANARY = "canary-token"


def test_deployment_has_the_described_fields() -> None:
    deployment = get_deployment(deployment_id=7).read(
        {"id": "7", "name": "Shop", "deploymentUrl": "https://d.example.com", "creationStep": "new"}
    )

    assert (deployment.id, deployment.deployment_url) == (7, "https://d.example.com")
    assert deployment.creation_step == "new"


def test_deployment_query_accepts_several_creation_steps() -> None:
    query = DeploymentsQuery.build(creation_step=["ready", "demo"])

    assert list_deployments(query=query).query == {"creationStep": ["ready", "demo"]}


def test_settings_name_the_production_branch() -> None:
    settings = get_deployment_settings(deployment_id=7).read(
        {"id": 7, "deployBranchName": "main", "cspsConfig": {"enabled": True, "s3Bucket": "b"}}
    )

    assert settings.deploy_branch_name == "main"
    assert settings.csps_config is not None
    assert settings.csps_config["s3Bucket"] == "b"


def test_a_build_status_is_free_text() -> None:
    query = BuildStatusQuery.build(branch_name="feature/x")
    operation = get_build_status(deployment_id=7, query=query)

    assert operation.query == {"branchName": "feature/x"}
    assert operation.read({"status": "thinking", "errorText": "Bad branch"}).status == "thinking"


def test_a_data_token_is_a_secret() -> None:
    operation = create_deployment_token(
        deployment_id=7, body=CreateDeploymentTokenInput.build(expires_in=600)
    )
    answer = operation.read({"cubeApiToken": CANARY})

    assert operation.body == {"expiresIn": 600}
    assert answer.cube_api_token.get_secret_value() == CANARY
    assert CANARY not in repr(answer)
    assert CANARY not in str(answer.to_json())


@pytest.mark.parametrize("seconds", [59, 86401, "soon"])
def test_token_lifetimes_are_bounded(seconds: object) -> None:
    with pytest.raises(PlatformInputError) as raised:
        CreateDeploymentTokenInput.build(expires_in=seconds)

    assert raised.value.field == "expires_in"


def test_an_answer_without_the_token_breaks_the_contract() -> None:
    with pytest.raises(PlatformProtocolError, match="cubeApiToken"):
        create_deployment_token(deployment_id=7).read({})


def test_environments_keep_the_services_spelling() -> None:
    sent = {
        "id": "production",
        "type": "production",
        "api_credentials": [{"type": "sql", "version": 1, "host": "sql.example.com", "port": 5432}],
    }
    operation = list_environments(deployment_id=7, query=EnvironmentsQuery.build(type="production"))

    page = operation.read({"items": [sent]})

    assert operation.query == {"type": "production"}
    assert page.rows[0].api_credentials is not None
    assert page.rows[0].api_credentials[0].port == 5432
    assert page.rows[0].to_json() == sent


@pytest.mark.parametrize(
    ("endpoint", "path"),
    [
        (create_environment_token, "/v1/deployments/7/environments/3/tokens"),
        (create_meta_sync_token, "/v1/deployments/7/environments/3/tokens-for-meta-sync"),
    ],
)
def test_an_environment_token_is_a_secret(endpoint: object, path: str) -> None:
    assert endpoint in (create_environment_token, create_meta_sync_token)
    body = CreateDeploymentEnvironmentTokenInput.build(
        security_context={"tenant_id": 5}, expires_in=60, scopes=["meta"]
    )
    operation = endpoint(deployment_id=7, environment_id=3, body=body)  # type: ignore[operator]

    answer = operation.read({"data": {"token": CANARY, "security_context": {}, "scopes": ["meta"]}})

    assert operation.path == path
    assert operation.body == {
        "security_context": {"tenant_id": 5},
        "expires_in": 60,
        "scopes": ["meta"],
    }
    assert answer.data.token.get_secret_value() == CANARY
    assert CANARY not in repr(answer)


def test_an_environment_token_needs_a_security_context() -> None:
    with pytest.raises(PlatformInputError, match="security_context"):
        CreateDeploymentEnvironmentTokenInput.build(expires_in=60)
