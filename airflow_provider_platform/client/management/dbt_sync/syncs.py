"""dbt syncs: start one, follow it, read its result, log and files, cancel it.

A tenant of the first release with dbt syncs has only the start. `syncJobId` names a sync in every
other operation; `workflowId` is only echoed by the service.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from airflow_provider_platform.client.choices import SyncOutput, SyncSource
from airflow_provider_platform.client.operations.models import (
    EmptiableResponse,
    InputModel,
    JsonObject,
    ResponseModel,
)
from airflow_provider_platform.client.operations.operation import DeploymentId, endpoint
from airflow_provider_platform.client.operations.paging import Page, PageQuery

RUNNING = "RUNNING"
"""The history's status of a running sync."""
SUCCEEDED = "COMPLETED"
FAILED = "FAILED"
CANCELLED = "CANCELLED"
UNKNOWN = "UNKNOWN"
"""The service has lost the outcome."""
TERMINAL_STATUSES = frozenset({SUCCEEDED, FAILED, CANCELLED})
"""The statuses of a sync that has ended. Any other status, known or not, means that it is running.
Only the history shows CANCELLED."""

SyncStatus = Literal["RUNNING", "COMPLETED", "FAILED", "CANCELLED", "UNKNOWN"]
SyncTrigger = Literal["manual", "api", "webhook", "agent", "unknown"]

MAX_START_BYTES = 50 * 1024 * 1024
"""The most bytes in the body of a start; this limits an uploaded manifest."""


class StartDbtSyncInput(InputModel):
    """What to sync: the platform's branch to write, the dbt repository's ref or a manifest."""

    branch_name: str | None = Field(default=None, min_length=1)
    ref: str | None = Field(default=None, min_length=1)
    source: SyncSource | None = None
    manifest: dict[str, Any] | None = None
    output: SyncOutput | None = None

    @model_validator(mode="after")
    def _manifest_belongs_to_its_source(self) -> Self:
        if self.source == "manifest" and self.manifest is None:
            raise ValueError("source='manifest' needs the argument manifest")
        if self.manifest is not None and self.source != "manifest":
            raise ValueError("the argument manifest needs source='manifest'")
        if self.ref is not None and self.source == "manifest":
            raise ValueError(
                "ref cannot be given with source='manifest', because no repository is cloned"
            )
        if self.manifest is not None and len(json.dumps(self.manifest)) > MAX_START_BYTES:
            raise ValueError(
                f"manifest makes the request larger than the limit of {MAX_START_BYTES} bytes"
            )
        return self


def _as_text(value: Any) -> str | None:
    return None if value is None else str(value)


StatusText = Annotated[str | None, BeforeValidator(_as_text)]
"""Any status of the service: an unknown status means that the sync is running."""


class DbtSyncResponse(ResponseModel):
    """A sync that has been started, and the platform's branch that it writes to."""

    sync_job_id: str = Field(min_length=1)
    workflow_id: str | None = None
    branch_name: str | None = None


class DbtSyncProgress(ResponseModel):
    """How far a sync is; the percentage is rough."""

    stage: str | None = None
    percent_complete: int | None = None
    message: str | None = None


class DbtSyncStatusResponse(ResponseModel):
    """The status of a sync; only a failed sync has an `error`."""

    sync_job_id: str | None = None
    status: StatusText = None
    progress: DbtSyncProgress | None = None
    updated_at: str | None = None
    error: str | None = None


class DbtSyncGeneratedFile(ResponseModel):
    """A file that a sync wrote."""

    path: str


class DbtGeneratedFileContent(ResponseModel):
    """A file that a sync generated without committing it, with its text."""

    path: str
    content: str | None = None


class DbtSyncManifestStats(ResponseModel):
    """The contents of a dbt manifest, in numbers."""

    models: int | None = None
    sources: int | None = None
    macros: int | None = None


class DbtSyncResultResponse(EmptiableResponse):
    """What a completed sync wrote; every field is None if the service has no result yet."""

    sync_job_id: str | None = None
    generated_files: list[DbtSyncGeneratedFile] | None = None
    manifest_stats: DbtSyncManifestStats | None = None
    cube_count: int | None = None
    completed_at: str | None = None
    duration_ms: int | None = None

    @property
    def is_ready(self) -> bool:
        """Whether there is a result: it can be empty for a moment after the end."""
        return bool(self.model_fields_set or self.model_extra)


class DbtSyncLogEntry(ResponseModel):
    """One line of a sync's log."""

    timestamp: str | None = None
    level: str | None = None
    stream: str | None = None
    message: str | None = None
    phase: str | None = None
    duration_ms: int | None = None


class DbtSyncCancelResponse(EmptiableResponse):
    """The service's answer to a cancellation."""

    message: str | None = None


class DbtSyncRunPhase(ResponseModel):
    """One phase of a past sync."""

    phase: str | None = None
    started_offset_ms: int | None = None
    duration_ms: int | None = None
    outcome: str | None = None


class DbtSyncRun(ResponseModel):
    """A sync in the history; UNKNOWN means that its outcome was lost, not that it failed."""

    sync_job_id: str
    deployment_id: int | None = None
    status: StatusText = None
    trigger: str | None = None
    source: str | None = None
    branch_name: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    duration_ms: int | None = None
    error_message: str | None = None
    failed_phase: str | None = None
    git_ref: str | None = None
    last_stage: str | None = None
    phases: list[DbtSyncRunPhase] | None = None
    stats: JsonObject | None = None
    trigger_context: JsonObject | None = None
    user_id: int | None = None


class DbtSyncQuery(PageQuery):
    """The filter of the history."""

    status: SyncStatus | None = None
    trigger: SyncTrigger | None = None


_SYNCS = "/v1/deployments/{deploymentId}/dbt-sync"
_SYNC = _SYNCS + "/{syncJobId}"
_READ = "SchemaRead on the deployment"
_WRITE = "SchemaUpdate on the deployment"


@endpoint("POST", _SYNCS, operation_id="startDbtSync", permission=_WRITE)
def start_dbt_sync(
    *, deployment_id: DeploymentId = None, body: StartDbtSyncInput | None = None
) -> DbtSyncResponse:
    """Start a dbt sync; returns its id and the platform's branch that it writes to.

    Every call starts a sync and, with `output` `branch` (the default), creates a branch: it is
    never repeated if its outcome is unknown. `ref` is a branch or tag of the dbt repository;
    `manifest` goes with `source` `manifest`, without `ref`. Raises PlatformInputError,
    PlatformApiError, PlatformTransportError."""


@endpoint("GET", _SYNCS, operation_id="listDbtSyncs", permission=_READ)
def list_dbt_syncs(
    *, deployment_id: DeploymentId = None, query: DbtSyncQuery | None = None
) -> Page[DbtSyncRun]:
    """The history of syncs; `first` is the page size. Tenants of the first release with dbt
    syncs answer PlatformNotFoundError or PlatformAddressError."""


@endpoint("GET", _SYNC, operation_id="getDbtSyncStatus", permission=_READ)
def get_dbt_sync_status(
    *, sync_job_id: str, deployment_id: DeploymentId = None
) -> DbtSyncStatusResponse:
    """The status of a sync: `status`, `progress`, and `error` if it failed. Raises
    PlatformNotFoundError for an unknown sync, and for a moment right after the start."""


@endpoint("GET", f"{_SYNC}/result", operation_id="getDbtSyncResult", permission=_READ)
def get_dbt_sync_result(
    *, sync_job_id: str, deployment_id: DeploymentId = None
) -> DbtSyncResultResponse:
    """What a completed sync wrote; not `is_ready` for a moment after its end.

    Raises PlatformNotFoundError if there is no result yet."""


@endpoint("GET", f"{_SYNC}/logs", operation_id="getDbtSyncLogs", permission=_READ)
def list_dbt_sync_logs(
    *, sync_job_id: str, deployment_id: DeploymentId = None
) -> Page[DbtSyncLogEntry]:
    """The log of a sync. The operation has no pages: if the service has more lines than it returns,
    a warning says so."""


@endpoint(
    "GET",
    f"{_SYNC}/generated-files",
    operation_id="getDbtSyncGeneratedFiles",
    permission="DeploymentRead on the deployment",
)
def list_dbt_sync_files(
    *, sync_job_id: str, deployment_id: DeploymentId = None, query: PageQuery | None = None
) -> Page[DbtGeneratedFileContent]:
    """The files of a sync started with `output` `files`, with their text. The service keeps them
    for an hour.

    Raises PlatformNotFoundError afterwards, and for a sync that wrote to a branch."""


@endpoint("DELETE", _SYNC, operation_id="cancelDbtSync", permission=_WRITE)
def cancel_dbt_sync(
    *, sync_job_id: str, deployment_id: DeploymentId = None
) -> DbtSyncCancelResponse:
    """Cancel a running sync; returns the service's answer."""
