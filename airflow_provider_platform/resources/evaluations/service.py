"""An evaluation by the service's own API (preview): started once, followed, and all results read.

No document describes the operations: the vendor's command-line client shows them. There is no list
of evaluations and no operation that stops one. So a start whose response was lost cannot be found
again, and is not repeated: each start is billed. For the same reason results that are late are read
again, in this try and in the next ones.
"""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NotRequired

from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.errors import (
    OperationMissingError,
    PlatformError,
    PlatformOutcomeUnknownError,
)
from airflow_provider_platform.client.models import ResponseModel
from airflow_provider_platform.client.operation import typed
from airflow_provider_platform.client.pages import Page, PageWalk
from airflow_provider_platform.client.repeats import may_have_been_processed, outcome_unknown
from airflow_provider_platform.resources.deployments import get_deployment_settings
from airflow_provider_platform.resources.missing_operations import may_be_missing
from airflow_provider_platform.resources.run_kind import (
    Intended,
    RunAccepted,
    RunEnvironment,
    RunIds,
    RunKind,
)
from airflow_provider_platform.resources.run_log import Stage, say

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api


class Evaluation(ResponseModel):
    """An evaluation. It runs until its status is `completed` or `failed`."""

    id: int
    status: str | None = None


start_evaluation = typed("startEvaluation", Evaluation)
get_evaluation = typed("getEvaluation", Evaluation)
get_evaluation_results = typed("getEvaluationResults", Page[ResponseModel])


RESULTS_GRACE = 30.0
RESULTS_PAUSE = 2.0
"""Seconds for which results that are late are read again, and between two reads."""


@dataclass(frozen=True)
class EvaluationEnd:
    """The last status of an evaluation: `completed` or `failed`."""

    status: str


class EvaluationIds(RunIds):
    """The ids of an evaluation by the service."""

    deployment_id: int
    evaluation_id: NotRequired[int]


class ServiceEvaluationRunKind(RunKind[EvaluationEnd, EvaluationIds]):
    """An evaluation of a deployment's questions on a branch.

    Its part of the result is `{"status": str, "items": [...], "missing": str | None}`, the items as
    the service sends them. `missing` says why results may be missing.
    """

    id_field = "evaluation_id"
    noun = "evaluation"
    outcome_class = EvaluationEnd
    can_stop = False

    deployment_id: int | str | None = None
    branch_name: str | None = None
    agent: str | None = None
    question_file: str | None = None

    def idempotency_key(self, config: PlatformConfig) -> str:
        deployment_id = config.resolve_deployment_id(self.deployment_id)
        return fingerprint(
            "service_evaluation", config.management_url, deployment_id, self.model_dump()
        )

    def baseline_owner(self, config: PlatformConfig) -> str:
        """Return the fingerprint of whom and what the questions ask."""
        deployment_id = config.resolve_deployment_id(self.deployment_id)
        asked = (self.agent, self.question_file)
        return fingerprint("baseline", config.management_url, deployment_id, *asked)

    async def submit(
        self,
        api: Api,
        env: RunEnvironment,
        earlier: EvaluationIds | None,
        *,
        until_end: bool,
    ) -> EvaluationEnd | None:
        deployment_id = api.config.resolve_deployment_id(self.deployment_id)
        branch_name = self.branch_name
        if branch_name is None:
            settings = await api.call(get_deployment_settings(deployment_id=deployment_id))
            branch_name = settings.deploy_branch_name
        ids: EvaluationIds = {"deployment_id": deployment_id, "submitted_at": api.clock()}
        await api.notify(Intended(ids))
        asked = {"agentName": self.agent, "questionFile": self.question_file}
        given = {name: value for name, value in asked.items() if value is not None}
        body = {"branchName": branch_name, **given}
        try:
            started = await api.call(start_evaluation(deployment_id=deployment_id, body=body))
        except PlatformError as error:
            if may_be_missing(error):
                raise OperationMissingError(
                    f"Nothing was started: {error.reason} If the deployment and the branch exist, "
                    "this tenant has no API for evaluations. It is a preview that the vendor's "
                    "support activates for an account. Without it, give the questions themselves "
                    "(questions): then this task asks the agent and compares the results itself.",
                    where=error.where,
                ) from error
            if may_have_been_processed(error):
                raise outcome_unknown(_lost(), error) from error
            raise
        await api.notify(RunAccepted({**ids, "evaluation_id": started.id}))
        say(api, f"Started evaluation {started.id} of deployment {deployment_id}")
        return None

    async def find(
        self, api: Api, env: RunEnvironment, ids: EvaluationIds
    ) -> tuple[bool, EvaluationIds]:
        raise _lost()

    async def poll(self, api: Api, ids: EvaluationIds) -> EvaluationEnd | None:
        seen = await api.call(get_evaluation(**_path(ids)), once=True)
        status = (seen.words("status") or "unknown").lower()
        api.report(Stage("Evaluation", f"evaluation {seen.id}", status))
        return EvaluationEnd(status) if status in ("completed", "failed") else None

    async def read(self, api: Api, ids: EvaluationIds, outcome: EvaluationEnd) -> dict[str, Any]:
        until = api.clock() + (RESULTS_GRACE if outcome.status == "completed" else 0.0)
        while True:
            items, missing = await _results(api, ids)
            if missing is None or api.clock() >= until:
                break
            await api.sleep(RESULTS_PAUSE)
        result = {"status": outcome.status, "items": items, "missing": missing}
        return api.secrets.redact_data(result)


async def _results(api: Api, ids: EvaluationIds) -> tuple[list[dict[str, Any]], str | None]:
    """Return the results that are there now, and why some may be missing."""
    walk = PageWalk(get_evaluation_results(**_path(ids)))
    items: list[dict[str, Any]] = []
    has_end = True
    while walk.operation is not None:
        page = await api.call(walk.operation)
        has_end = page.page_info is not None or page.total is not None
        items += [item.to_json() for item in walk.add_page(page)]
    late = sum(item.get("verdict") is None for item in items)
    if not items:
        return items, "the service returned no results"
    if late:
        return items, f"{late} of {len(items)} results have no verdict"
    return items, None if has_end else "the list of results has no pageInfo, so it may be cut"


def _path(ids: EvaluationIds) -> dict[str, Any]:
    return {"deployment_id": ids["deployment_id"], "evaluation_id": ids["evaluation_id"]}


def _lost() -> PlatformOutcomeUnknownError:
    return PlatformOutcomeUnknownError(
        "The service did not confirm the start of the evaluation, so it may be running. The "
        "service has no list of evaluations, and a second one would be billed. Look at the "
        "evaluations in the platform, then clear the task to start one."
    )
