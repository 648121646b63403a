"""Deployments: what the answers that are read become."""

from __future__ import annotations

import pytest

from airflow_provider_platform.client.errors import PlatformProtocolError
from airflow_provider_platform.resources.deployments import (
    create_deployment_token,
    get_build_status,
    get_deployment,
    get_deployment_settings,
    list_environments,
)

CANARY = "canary-token"


def test_deployment_has_the_described_fields() -> None:
    sent = {"id": "7", "name": "Shop", "deploymentUrl": "https://d.example.com", "region": "eu"}
    deployment = get_deployment(deployment_id=7).read(sent)
    assert (deployment.id, deployment.deployment_url) == (7, "https://d.example.com")
    assert deployment.to_json() == {**sent, "id": 7}


def test_settings_name_the_production_branch() -> None:
    settings = get_deployment_settings(deployment_id=7).read({"deployBranchName": "main"})
    assert settings.deploy_branch_name == "main"


def test_a_build_status_is_free_text() -> None:
    call = get_build_status(deployment_id=7, query={"branchName": "feature/x"})
    assert call.query == {"branchName": "feature/x"}
    assert call.read({"status": "thinking", "errorText": "Bad branch"}).status == "thinking"


def test_a_data_token_is_a_secret() -> None:
    call = create_deployment_token(deployment_id=7, body={"expiresIn": 600})
    answer = call.read({"cubeApiToken": CANARY})
    assert answer.cube_api_token.get_secret_value() == CANARY
    assert CANARY not in repr(answer)
    assert CANARY not in str(answer.to_json())


def test_an_answer_without_the_token_breaks_the_contract() -> None:
    with pytest.raises(PlatformProtocolError, match="cubeApiToken"):
        create_deployment_token(deployment_id=7).read({})


def test_environments_keep_the_services_spelling() -> None:
    sent = {
        "id": "production",
        "branch": "main",
        "api_credentials": [{"type": "rest", "url": "https://d.example.com", "port": 5432}],
    }
    page = list_environments(deployment_id=7).read({"items": [sent]})
    credentials = page.rows[0].api_credentials
    assert credentials is not None
    assert credentials[0].url == "https://d.example.com"
    assert page.rows[0].to_json() == sent
