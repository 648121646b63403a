"""`PlatformDbtSyncOperator`: start a dbt sync once, and wait if the tenant reports its status.

How the sync is started and followed, and what is logged about it, is in resources/dbt_sync.py.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.choices import SyncOutput, SyncSource
from airflow_provider_platform.links import BranchLink, all_links
from airflow_provider_platform.operators._base import DeploymentOperator
from airflow_provider_platform.operators._remote_run import StoppableRunOperator

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from airflow_provider_platform.client.argument_rules import Rule
    from airflow_provider_platform.operators._base import Checks

DBT_SYNC_TIMEOUT = 3600.0
IfSyncRunning = Literal["start", "follow", "fail", "skip"]


MAX_MANIFEST_BYTES = 50 * 1024 * 1024
"""The service takes no larger request."""


def _manifest(name: str, value: Any) -> dict[str, Any] | None:
    manifest = arguments.mapping(name, value)
    if manifest is not None and len(json.dumps(manifest)) > MAX_MANIFEST_BYTES:
        raise arguments.refuse(name, f"must have at most {MAX_MANIFEST_BYTES} bytes")
    return manifest


def _manifest_fits(manifest: dict[str, Any] | None, source: str | None, ref: str | None) -> None:
    """A rule: `manifest` and `source="manifest"` are given together, and without `ref`."""
    if (source == "manifest") != (manifest is not None):
        raise ValueError("manifest and source='manifest' must be given together")
    if manifest is not None and ref is not None:
        raise ValueError("ref is not used with source='manifest': no repository is cloned")


def _compares_what_the_history_shows(
    if_running: str, branch_name: str | None, source: str | None, output_mode: str | None
) -> None:
    """A rule: the history of syncs shows whether one of a branch, from a ref, is going on."""
    if if_running == "start":
        return
    if branch_name is None:
        raise ValueError(
            f"if_running={if_running!r} needs branch_name: without it each sync writes a branch of "
            "its own"
        )
    if source == "manifest" or output_mode == "files":
        raise ValueError(
            f"if_running={if_running!r} works only for a sync from git into a branch, because the "
            "history of syncs shows neither the manifest nor the output_mode of a sync"
        )


class PlatformDbtSyncOperator(DeploymentOperator, StoppableRunOperator):
    """Start a dbt sync and wait until it has written the data model.

    Use it after a dbt run, so that the platform gets the new models. Use a new branch if something
    must be checked before it is published. To wait for a sync that somebody else started, use
    `PlatformDbtSyncSensor`.

    Returns `{"sync_job_id", "workflow_id", "branch_name", "status", "result"}`; `status` and
    `result` are None if the task did not wait for the sync, and `result` also if the service has
    none.

    Questions and queries on the branch fail until it is open: put `PlatformOpenBranchOperator`
    after this task.

    A tenant without a history of dbt syncs does not report the state of a sync and ignores `ref`,
    `source` and `output_mode`. There, and without the permission SchemaRead, a task that sets
    one of these, or an `if_running` other than `start`, fails before it starts anything.

    :param branch_name: the platform's branch to write to (default: the service makes one)
    :param ref: branch or tag of the dbt repository (default: the ref of the integration)
    :param wait_for_completion: True waits; if the tenant does not report the status of a sync, the
        task fails before it starts anything. False returns after the start. `if_supported` waits if
        the tenant reports the status and the token may read it
    :param source: `git` (the service's default) or `manifest`
    :param manifest: the dbt manifest, with `source="manifest"`
    :param output_mode: the service's `output`: `branch` (its default) or `files`
    :param if_running: what to do if a sync from the same `ref` into the same `branch_name` is
        running: `start` another one, `follow` that sync, which may lack later
        commits, `fail` with AlreadyRunningError, after which a retry tries again, or `skip` this
        task. All but `start` need `branch_name`. A followed sync is not cancelled with this task,
        and its `workflow_id` is None. Two tasks that start at the same moment can both start a sync
    :param timeout: seconds (or a timedelta) of wall time from submission; an earlier
        `execution_timeout` counts too
    :param durable: record the run in Airflow's task state store (Airflow 3.3 and later), so that a
        retry finds it (None means True). Without the record, a retry starts another sync, or does
        what `if_running` says. The sync of a lost worker continues until it ends by itself
    :param multiple_outputs: push the result key by key too, so that `sync.output["branch_name"]`
        works
    """

    kind_path = "dbt_sync.DbtSyncRunKind"
    operator_extra_links = all_links(BranchLink)
    linked_result: ClassVar[dict[str, str]] = {"branch_name": "branch_name"}

    template_fields_renderers: ClassVar[dict[str, str]] = {"manifest": "json"}
    checks: ClassVar[Checks] = {
        "branch_name": arguments.optional_branch,
        "ref": arguments.optional_text,
        "wait_for_completion": partial(arguments.boolean_or, choices=("if_supported",)),
        "source": partial(arguments.optional_choice, choices=get_args(SyncSource)),
        "manifest": _manifest,
        "output_mode": partial(arguments.optional_choice, choices=get_args(SyncOutput)),
        "if_running": partial(arguments.choice, choices=get_args(IfSyncRunning)),
    }

    rules: ClassVar[Sequence[Rule]] = (
        (("manifest", "source", "ref"), _manifest_fits),
        (
            ("if_running", "branch_name", "source", "output_mode"),
            _compares_what_the_history_shows,
        ),
    )

    def __init__(
        self,
        *,
        branch_name: str | None = None,
        ref: str | None = None,
        wait_for_completion: bool | Literal["if_supported"] = "if_supported",
        source: SyncSource | None = None,
        manifest: dict[str, Any] | None = None,
        output_mode: SyncOutput | None = None,
        if_running: IfSyncRunning = "start",
        timeout: float | timedelta = DBT_SYNC_TIMEOUT,
        multiple_outputs: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(timeout=timeout, multiple_outputs=multiple_outputs, **kwargs)
        self.branch_name = branch_name
        self.ref = ref
        self.wait_for_completion = wait_for_completion
        self.source = source
        self.manifest = manifest
        self.output_mode = output_mode
        self.if_running: Any = if_running
        self.validate_known_arguments()
