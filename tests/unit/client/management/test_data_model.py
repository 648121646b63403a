"""The data model: its second API, its branches and their merging."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.management.data_model.branches import (
    CreateBranchRequest,
    MergeIntoParentBranchRequest,
    MergeToDefaultBranchRequest,
    RemoveBranchQuery,
    SetBranchStagingEnvironmentRequest,
    ValidateQuery,
    create_branch,
    merge_to_default,
    remove_branch,
    set_branch_staging_environment,
    validate_data_model,
)
from airflow_provider_platform.client.management.reports.reports import get_report


@pytest.mark.parametrize("root", ["https://acme.example.com", "https://example.com/acme"])
def test_the_build_api_is_beside_the_management_api(root: str) -> None:
    branch = remove_branch(deployment_id=7, query=RemoveBranchQuery.build(branch_name="a/b"))
    report = get_report(deployment_id=7, report_id=1)

    assert branch.url(f"{root}/api") == f"{root}/build/api/v1/deployments/7/branches"
    assert branch.query == {"branchName": "a/b"}
    assert report.url(f"{root}/api") == f"{root}/api/v1/deployments/7/reports/1"


def test_a_branch_is_made_from_another() -> None:
    body = CreateBranchRequest.build(name="b", from_branch="main", activate=True)

    assert create_branch(deployment_id=7, body=body).body == {
        "name": "b",
        "from": "main",
        "activate": True,
    }


def test_validation_of_an_invalid_model_returns_its_errors() -> None:
    operation = validate_data_model(deployment_id=7, query=ValidateQuery.build(dev_mode=True))

    answer = operation.read(
        {"valid": False, "errors": [{"message": "no such column", "fileName": "a.yml"}]}
    )

    assert operation.query == {"devMode": True}
    assert not answer.valid
    assert answer.errors is not None
    assert answer.errors[0].file_name == "a.yml"


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (SetBranchStagingEnvironmentRequest, {"enabled": True}),
        (SetBranchStagingEnvironmentRequest, {"enabled": True, "branch_id": 1, "branch_name": "b"}),
        (ValidateQuery, {"branch_name": "b", "dev_mode": True}),
        (MergeToDefaultBranchRequest, {"branch_name": "b"}),
        (RemoveBranchQuery, {"branch_name": ""}),
    ],
)
def test_bad_requests_are_refused(model: Any, given: dict[str, Any]) -> None:
    with pytest.raises(PlatformInputError):
        model.build(**given)


def test_merging_and_staging_send_the_described_bodies() -> None:
    merge = merge_to_default(
        deployment_id=7, body=MergeToDefaultBranchRequest.build(message="m", branch_name="b")
    )
    staging = set_branch_staging_environment(
        deployment_id=7,
        body=SetBranchStagingEnvironmentRequest.build(enabled=False, branch_name="b"),
    )

    assert merge.body == {"message": "m", "branchName": "b"}
    assert not merge.repeatable
    assert staging.body == {"enabled": False, "branchName": "b"}


@pytest.mark.parametrize(
    "given", ["delete_branch", "remove_branch_after_merge", "removeBranchAfterMerge"]
)
def test_both_merge_operations_send_the_flag_delete_branch(given: str) -> None:
    known: dict[str, Any] = {"message": "m", "branch_name": "b"}
    body = MergeToDefaultBranchRequest.build(**known, **{given: True})
    assert body.delete_branch is True
    assert body.to_json()["removeBranchAfterMerge"] is True
    to_parent = MergeIntoParentBranchRequest.build(**known, delete_branch=True)
    assert to_parent.to_json()["deleteBranch"] is True
    with pytest.raises(PlatformInputError, match="delete_branch") as caught:
        MergeToDefaultBranchRequest.build(**known, **{given: "perhaps"})
    assert caught.value.field == "delete_branch"
