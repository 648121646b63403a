"""dbt syncs: start one, follow it, read its result, log and files, cancel it.

A tenant of the first release with dbt syncs has only the start. `syncJobId` names a sync in every
other operation; `workflowId` is only echoed by the service.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from airflow_provider_platform.client.choices import SyncOutput, SyncSource
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.operations.models import (
    EmptiableResponse,
    InputModel,
    ResponseModel,
)
from airflow_provider_platform.client.operations.operation import typed
from airflow_provider_platform.client.operations.paging import Page

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

    @model_validator(mode="before")
    @classmethod
    def _names_the_sync(cls, answer: Any) -> Any:
        """Say what came without `syncJobId`: it shows whether something was started."""
        if not isinstance(answer, dict) or not answer.get("syncJobId"):
            raise PydanticCustomError(
                "sync_without_id",
                "syncJobId is missing, the service sent {sent}",
                {"sent": quote_service(answer)},
            )
        return answer


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


class DbtGeneratedFileContent(ResponseModel):
    """A file that a sync generated without committing it, with its text."""

    path: str
    content: str | None = None


class DbtSyncResultResponse(EmptiableResponse):
    """What a completed sync wrote; no field is set if the service has no result yet."""

    @property
    def is_ready(self) -> bool:
        """Whether there is a result: it can be empty for a moment after the end."""
        return bool(self.model_fields_set or self.model_extra)


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


start_dbt_sync = typed("startDbtSync", DbtSyncResponse)
list_dbt_syncs = typed("listDbtSyncs", Page[DbtSyncRun])
get_dbt_sync_status = typed("getDbtSyncStatus", DbtSyncStatusResponse)
get_dbt_sync_result = typed("getDbtSyncResult", DbtSyncResultResponse)
list_dbt_sync_files = typed("getDbtSyncGeneratedFiles", Page[DbtGeneratedFileContent])
cancel_dbt_sync = typed("cancelDbtSync", EmptiableResponse)
