"""How the sandbox behaves without faults: pace, dialect, and what the contract leaves open."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Permission = Literal[
    "Admin",
    "DeploymentAgentRead",
    "DeploymentRead",
    "DeploymentUpdate",
    "DownloadData",
    "FolderEdit",
    "FolderManage",
    "FolderRead",
    "OAuthIntegrationsManage",
    "ReportEdit",
    "ReportManage",
    "ReportRead",
    "SchemaRead",
    "SchemaUpdate",
    "SchemaUpdateDevBranches",
    "WorkbookEdit",
    "WorkbookManage",
    "WorkbookRead",
]
"""Permissions that operations need; ``Admin`` is the role of an administrator. Without
``SchemaUpdate``, ``SchemaUpdateDevBranches`` allows the changes of all branches but the deploy
branch."""


BuildOutcome = Literal["built", "failed", "cancelled", "stopped", "none"]
"""How a build ends, as build-status names it."""

JobOutcome = Literal[
    "done", "no_rows", "failure", "missing_partition", "pre_agg_not_found", "not_found"
]
"""How the build of a pre-aggregation's table ends; ``no_rows`` is reported as ``done`` too, and
``not_found`` from the beginning."""

Seconds = Annotated[float, Field(ge=0, strict=True)]
Count = Annotated[int, Field(ge=1, strict=True)]


class Settings(BaseModel):
    """All settings; each can be changed at any time through ``SandboxControl.set``.

    Times are in seconds. A change applies to what happens after it: an active run reads the pace
    again before each record.
    """

    model_config = ConfigDict(extra="forbid")

    pace: Seconds = 0.0
    """Pause before each record of a chat run."""
    dbt_pace: Seconds = 0.0
    """Time a dbt sync spends in each stage; with 0 it is over before the next request is read."""

    follow_up: Literal["subscribe", "state"] = "subscribe"
    """What a request without ``input`` returns while its run is active."""
    replay: Literal["before_cutoff", "after_cutoff", "overlap", "none"] = "before_cutoff"
    """Where a subscription to an active run gets the earlier records of the run. ``overlap``
    repeats the last three records after ``__cutoff__``, without the user echo; with ``none``,
    earlier turns are not replayed either."""
    stopped_thread: Literal["state", "aborted", "close"] = "state"
    """What ends a later read of a thread whose last run was aborted: ``__state__``,
    ``__aborted__``, or nothing (the connection is properly closed after ``__cutoff__``)."""
    chat_row_limit: Count = 100
    """Rows of a query that a chat sends; a default of the service, not a limit."""

    service_tokens: Annotated[bool, Field(strict=True)] = False
    """Whether the deployment accepts service tokens, which must be switched on for a deployment."""
    chat_rows: Literal["values", "texts"] = "values"
    """Whether the rows of a tool result have typed values or, like the data API, strings."""

    release: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] = "0.19.1"
    """The tenant's release: operations and fields of later releases are missing. ``0.2.1`` is the
    tenant of July 2026, which starts dbt syncs and knows no builds, branches or history."""
    dbt_outcome: Literal["COMPLETED", "FAILED", "UNKNOWN"] = "COMPLETED"
    """How syncs started from now on end; UNKNOWN never shows in the status, only in the history."""

    build_delay: Seconds = 0.0
    """Time after a branch was opened or written until its build is reported. Until then an opened
    branch is "not active", and production reports the previous build."""
    build_seconds: Seconds = 0.0
    """Time that a build takes after that."""
    build_outcome: BuildOutcome = "built"
    """How builds that start from now on end, if the model compiles."""
    merge_outcome: Literal["merged", "nothing", "conflict", "not_allowed"] = "merged"
    """``nothing``: merges answer ``merged`` false; ``conflict``: they are refused with 409;
    ``not_allowed``: merges into the deploy branch are refused with 403."""
    merge_commit: Literal["own", "fast_forward"] = "own"
    """Which commit the target has after a merge: a new commit, or the branch's."""
    deploy_mode: Literal["git", "cli"] = "git"
    """``cli``: production is built only from uploads, not after a merge."""

    token_lacks: tuple[Permission, ...] = ()
    """Permissions the management token lacks: operations needing one of them answer 403."""

    export_pace: Seconds = 0.0
    """Time a dashboard export is pending, and again the time it is processing."""
    export_outcome: Literal["completed", "failed"] = "completed"
    """How exports submitted from now on end."""

    delivery_queue_seconds: Seconds = 0.0
    """Time that a run of a report delivery is ``queued`` before it begins."""
    delivery_seconds: Seconds = 0.0
    """Time that a run of a report delivery takes."""
    delivery_outcome: Literal["succeeded", "failed", "unreported"] = "succeeded"
    """How runs of deliveries that start from now on end; ``unreported``: without an error and
    without a success."""

    lists: Literal["cursor", "legacy"] = "cursor"
    """``legacy``: lists have only ``data`` and ``count``, and no cursor."""
    page_size: Count = 50
    """Items per page if a request has no ``first``."""
    data_chunk_rows: Count | None = None
    """Rows per line of a data API answer. None: all rows in one line, or 500 rows per line if
    ``data_max_rows`` is None."""
    column_types: Literal["core", "words"] = "core"
    """How the data API declares types. ``core``: as the open core, where decimals are ``Int32``,
    timestamps ``String``, dates ``{"Date": false}`` and booleans JSON booleans; ``words``: each by
    the word for its type, with strings as values."""
    data_default_rows: Count = 10_000
    """The most rows of a query without its own limit."""
    data_max_rows: Count | None = 50_000
    """The most rows of a query with its own limit; None: the deployment streams, without such a
    maximum."""
    jobs_build_seconds: Seconds = 0.0
    """Time that the table of a pre-aggregation is ``scheduled`` and then, half of it,
    ``processing``."""
    jobs_gap_seconds: Seconds = 0.0
    """Time from the end of its build until the table exists: ``missing_partition``."""
    jobs_outcome: JobOutcome = "done"
    """How builds that start from now on end."""
    jobs_outcome_of: tuple[str, ...] = ()
    """The tables to which ``jobs_outcome`` applies: full names of pre-aggregations, each with or
    without a month after a space. If empty: all tables."""
    default_api_scopes: tuple[Literal["meta", "data", "graphql", "jobs", "sql"], ...] = (
        "meta",
        "data",
        "graphql",
    )
    """Scopes of a data token; ``jobs`` and ``sql`` are off by default."""

    def has(self, since: str) -> bool:
        """Return whether the tenant's release is ``since`` or later."""
        return _parts(self.release) >= _parts(since)

    def change(self, changes: dict[str, Any]) -> None:
        """Apply ``changes``; raises ``ValueError`` naming the setting and the rule."""
        try:
            changed = type(self).model_validate({**self.as_json(), **changes})
        except ValidationError as error:
            raise ValueError("; ".join(map(_problem, error.errors(include_url=False)))) from None
        for name in changes:
            setattr(self, name, getattr(changed, name))

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


SETTING_NAMES = frozenset(Settings.model_fields)


def _problem(found: Any) -> str:
    name = str(found["loc"][0])
    if found["type"] == "extra_forbidden":
        return f"no setting {name!r}; known are {', '.join(sorted(SETTING_NAMES))}"
    return f"{name}: {found['msg']}"


def _parts(release: str) -> list[int]:
    return [int(part) for part in release.split(".")]
