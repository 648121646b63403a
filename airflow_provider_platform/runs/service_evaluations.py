"""An evaluation by the service's own API (preview): started once, followed, and all results read.

The service asks the questions that are in the deployment's repository (`agents/eval_questions.yml`
and `agents/eval_questions/*.yml`) and grades them itself. The operations are read off the vendor's
command-line client: no document describes them. There is no list of evaluations and no operation
that stops one. So a start whose response was lost cannot be found again, and is not repeated: each
start is billed.
"""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.api_errors import is_transient, may_have_been_processed
from airflow_provider_platform.client.branches import all_rows
from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.errors import (
    EvaluationRunFailedError,
    FeatureNotActivatedError,
    PlatformError,
    PlatformOutcomeUnknownError,
)
from airflow_provider_platform.client.missing_operations import check_tenant, may_be_missing
from airflow_provider_platform.client.models import ResponseModel
from airflow_provider_platform.client.operation import typed
from airflow_provider_platform.client.pages import Page
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.client.resources import get_deployment_settings
from airflow_provider_platform.runs.run_kind import (
    Ids,
    Intended,
    RunAccepted,
    RunEnvironment,
    RunKind,
    Stage,
    say,
)

if TYPE_CHECKING:
    from airflow_provider_platform.client.redaction import KnownSecrets
    from airflow_provider_platform.client.wire import Api

_ENDS = frozenset({"completed", "failed"})


class Evaluation(ResponseModel):
    """An evaluation; any status but `completed` and `failed` means that it runs."""

    id: int
    status: str | None = None

    @property
    def word(self) -> str:
        """The status in lower case; empty if the service reports none."""
        return (self.words("status") or "").strip().lower()


class EvaluationItem(ResponseModel):
    """The result of one question. `verdict` can be null."""

    verdict: str | None = None
    question_text_snapshot: str | None = None


start_evaluation = typed("startEvaluation", Evaluation)
get_evaluation = typed("getEvaluation", Evaluation)
get_evaluation_results = typed("getEvaluationResults", Page[EvaluationItem])


class ServiceEvaluationRunKind(RunKind[dict[str, Any]]):
    """An evaluation of a deployment's questions on a branch.

    The outcome is `{"status": str, "items": [...]}`, the items as the service sends them.
    """

    name = "service_evaluation"
    followed_with = ("deployment_id",)
    id_field = "evaluation_id"
    noun = "evaluation"
    can_stop = False

    deployment_id: int | str | None = None
    branch_name: str | None = None
    agent: str | None = None
    question_file: str | None = None

    def idempotency_key(self, config: PlatformConfig) -> str:
        return fingerprint(
            "service evaluation",
            config.management_url,
            config.resolve_deployment_id(self.deployment_id),
            self.branch_name,
            self.agent,
            self.question_file,
        )

    async def submit(
        self, api: Api, env: RunEnvironment, earlier: Ids | None, *, until_end: bool
    ) -> dict[str, Any] | None:
        deployment_id = api.config.resolve_deployment_id(self.deployment_id)
        submitted_at = api.clock()
        await api.notify(Intended({"submitted_at": submitted_at}))
        branch_name = self.branch_name
        if branch_name is None:
            settings = await api.call(get_deployment_settings(deployment_id=deployment_id))
            branch_name = settings.deploy_branch_name
        body = {
            "branchName": branch_name,
            "agentName": self.agent,
            "questionFile": self.question_file,
        }
        body = {name: value for name, value in body.items() if value is not None}
        try:
            started = await api.call(start_evaluation(deployment_id=deployment_id, body=body))
        except PlatformError as error:
            if may_be_missing(error) and not is_transient(error):
                raise await self._missing(api, deployment_id, error) from error
            if may_have_been_processed(error):
                raise _lost(self._where(deployment_id)) from error
            raise
        ids = {"evaluation_id": started.id, "submitted_at": submitted_at}
        await api.notify(RunAccepted(ids))
        say(api, f"Started evaluation {started.id} of deployment {deployment_id}")
        return None

    async def find(self, api: Api, env: RunEnvironment, ids: Ids) -> tuple[bool, Ids]:
        raise _lost(self._where(api.config.resolve_deployment_id(self.deployment_id)))

    async def poll(self, api: Api, env: RunEnvironment, ids: Ids) -> dict[str, Any] | None:
        """Poll the evaluation, and read all results if it is over."""
        names: dict[str, Any] = {
            "deployment_id": api.config.resolve_deployment_id(self.deployment_id),
            "evaluation_id": ids["evaluation_id"],
        }
        seen = await api.call(get_evaluation(**names), once=True)
        api.report(Stage("Evaluation", f"evaluation {seen.id}", seen.word or "unknown"))
        if seen.word not in _ENDS:
            return None
        items = await all_rows(api, get_evaluation_results(**names), None)
        outcome = {"status": seen.word, "items": [item.to_json() for item in items]}
        return api.secrets.redact_data(outcome)

    def to_event(self, secrets: KnownSecrets, outcome: dict[str, Any]) -> dict[str, Any]:
        """Return nothing of the outcome: the worker reads the results, which may be many."""
        return {}

    async def read_event(
        self, api: Api, env: RunEnvironment, ids: Ids, event: dict[str, Any]
    ) -> tuple[dict[str, Any] | None, Ids]:
        return await self.follow(api, env, ids), ids

    def where(self, ids: Ids) -> str:
        return f"evaluation {ids['evaluation_id']}"

    async def read(
        self, api: Api, env: RunEnvironment, ids: Ids, outcome: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the outcome. Raises EvaluationRunFailedError if the service has no result."""
        if not outcome["items"]:
            raise EvaluationRunFailedError(
                f"The evaluation ended as {quote_service(outcome['status'])} without a result. "
                "Look at it in the platform.",
                where=self.where(ids),
            )
        return outcome

    def _where(self, deployment_id: int) -> str:
        branch = quote_service(self.branch_name) if self.branch_name else "production"
        return f"branch {branch}, deployment {deployment_id}"

    async def _missing(self, api: Api, deployment_id: int, error: PlatformError) -> PlatformError:
        missing = FeatureNotActivatedError(
            "Nothing was started: this tenant has no API for evaluations. It is a preview that the "
            "vendor's support activates for an account. Without it, give the questions themselves "
            "(questions): then this task asks the agent and compares the results itself.",
            where=self._where(deployment_id),
        )
        await check_tenant(api, deployment_id, error, None)
        return missing


def _lost(where: str) -> PlatformOutcomeUnknownError:
    return PlatformOutcomeUnknownError(
        "The connection broke before the service confirmed the start of the evaluation, so it may "
        "be running. The service has no list of evaluations, and a second one would be billed. "
        "Look at the evaluations in the platform, then clear the task to start one.",
        where=where,
    )
