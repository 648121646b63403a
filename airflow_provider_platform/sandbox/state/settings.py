"""How the sandbox behaves without faults: pace, dialect, and what the contract leaves open."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from airflow_provider_platform.client.operations_table import operations


def _known_permission(name: str) -> str:
    known = {one.needs for one in operations().values() if one.needs} | _FURTHER_PERMISSIONS
    if name not in known:
        raise ValueError(f"{name!r} is none of {', '.join(map(repr, sorted(known)))}")
    return name


_FURTHER_PERMISSIONS = {"DownloadData", "SchemaUpdateDevBranches"}
"""Permissions that only some calls of an operation need. Without ``SchemaUpdate``,
``SchemaUpdateDevBranches`` allows the changes of all branches but the deploy branch."""
Permission = Annotated[str, AfterValidator(_known_permission)]

BuildOutcome = Literal["built", "failed", "cancelled", "stopped", "none"]
"""How a build ends, as build-status names it."""

JobOutcome = Literal[
    "done", "no_rows", "failure", "missing_partition", "pre_agg_not_found", "not_found"
]
"""How the build of a pre-aggregation's table ends; ``no_rows`` is reported as ``done`` too, and
``not_found`` from the beginning."""

Seconds = Annotated[float, Field(ge=0, strict=True)]
Count = Annotated[int, Field(ge=1, strict=True)]
Tokens = Annotated[int, Field(ge=0, strict=True)]
Flag = Annotated[bool, Field(strict=True)]


class Settings(BaseModel):
    """All settings; each can be changed at any time through ``SandboxControl.set``.

    The text below a setting is its row in the reference. A change applies to what happens after
    it: an active run reads the pace again before each record.
    """

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    pace: Seconds = 0.0
    """Pause before each record of a chat stream."""
    dbt_pace: Seconds = 0.0
    """Duration of each stage of a dbt sync."""
    tenant: Literal["described", "newest"] = "newest"
    """`newest`: every operation. `described`: only what the service description shows. It
    starts dbt syncs, reports nothing of them and ignores `ref`, `source` and `output_mode`.
    It has no branches, deliveries or exports."""
    token_lacks: tuple[Permission, ...] = ()
    """Permissions that the management token does not have, such as `SchemaUpdate`,
    `DeploymentAgentRead`, `DownloadData` or `ReportEdit`. `Admin` is the role. An unknown name is
    refused with a list of all."""
    service_tokens: Flag = False
    """False: the chat refuses service tokens."""
    default_api_scopes: tuple[Literal["meta", "data", "graphql", "jobs", "sql"], ...] = (
        "meta",
        "data",
        "graphql",
    )
    """The scopes of a data token. A missing scope answers 403."""
    chat_row_limit: Count = 100
    """Rows that a chat sends of each query."""
    chat_rows: Literal["values", "texts"] = "values"
    """Whether rows in a chat have typed values or strings."""
    answer_tokens: Tokens | None = None
    """`totalTokens` of each answer. None: the tokens follow from the length of the texts."""
    token_quota: Tokens | None = None
    """After so many tokens, each question gets an `error` line, and a `__usage__` with
    zeros."""
    usage_seconds: Seconds = 0.0
    """Time between `__state__` and `__usage__`."""
    follow_up: Literal["subscribe", "state"] = "subscribe"
    """What a read of the thread with the active run's `messageId` gets: the records until the end
    of the run (`subscribe`), or the records so far and `__state__` (`state`), which any other
    read gets."""
    replay: Literal["before_cutoff", "after_cutoff", "overlap", "none"] = "before_cutoff"
    """Where a read that joins the active run finds the records that it missed. `overlap`: only the
    last three, after `__cutoff__`. `none`: nowhere; then a read that does not join the run
    gets no earlier records either."""
    stopped_thread: Literal["state", "aborted", "close"] = "state"
    """How the stream of an aborted thread ends when it is read later: with `__state__`, with
    `__aborted__`, or after `__cutoff__`."""
    dbt_outcome: Literal["COMPLETED", "FAILED", "UNKNOWN"] = "COMPLETED"
    """How a dbt sync ends. `UNKNOWN` shows only in the history."""
    build_delay: Seconds = 0.0
    """Time until the build of a branch starts."""
    build_seconds: Seconds = 0.0
    """Duration of a build."""
    build_outcome: BuildOutcome = "built"
    """How a build ends."""
    branch_lacks_months: tuple[str, ...] = ()
    """Months such as `2025-12`: only production has their orders."""
    branch_lacks_columns: tuple[str, ...] = ()
    """Columns such as `orders.amount`: SQL that reads one of them fails on every branch except
    production."""
    named_commits: Literal["all", "branches", "none"] = "all"
    """`branches`: build-status names no commit (`lastHash`). `none`: the list of branches
    names none either."""
    merge_outcome: Literal["merged", "nothing", "conflict", "not_allowed"] = "merged"
    """`nothing`: `merged` is false. `conflict`: 409. `not_allowed`: 403 for a merge into
    the deploy branch."""
    merge_commit: Literal["own", "fast_forward"] = "own"
    """The target's commit after a merge: a new one, or the branch's."""
    deploy_mode: Literal["git", "cli"] = "git"
    """`cli`: a merge does not build production."""
    export_pace: Seconds = 0.0
    """Time for which an export is pending, and again for which it is processing."""
    export_outcome: Literal["completed", "failed"] = "completed"
    """How an export ends."""
    delivery_queue_seconds: Seconds = 0.0
    """Time for which a delivery's run is `queued`."""
    delivery_seconds: Seconds = 0.0
    """Time that it then takes."""
    delivery_outcome: Literal["succeeded", "failed", "unreported", "hangs"] = "succeeded"
    """`unreported`: neither an error nor a success. `hangs`: it fails after an hour."""
    lists: Literal["cursor", "legacy"] = "cursor"
    """`legacy`: a list has only `data` and `count`."""
    page_size: Count = 50
    """Items of a page."""
    data_default_rows: Count = 10_000
    """Rows of a query without a limit."""
    data_max_rows: Count | None = 50_000
    """Rows of a query with a limit. None: the deployment streams, without this maximum."""
    data_chunk_rows: Count | None = None
    """Rows in each line of a response. None: all rows in one line, or 500 in each line if the
    deployment streams."""
    column_types: Literal["core", "words"] = "core"
    """`core`: types as the open core declares them (decimals are `Int32`, timestamps
    `String`). `words`: each type has its own name."""
    evaluations: Flag = True
    """False: the operations of evaluations answer 404."""
    evaluation_pace: Seconds = 0.0
    """Time for which an evaluation is `queued`, and again for which it is `running`."""
    evaluation_results_delay: Seconds = 0.0
    """Time after `completed` until the results exist."""
    built_pre_aggregations: tuple[str, ...] = ()
    """Pre-aggregations, such as `orders.revenue_by_month`, that are already built on each
    branch."""
    jobs_build_seconds: Seconds = 0.0
    """Duration of the build of a pre-aggregation's table: half of it `scheduled`, then
    `processing`."""
    jobs_gap_seconds: Seconds = 0.0
    """Time for which the table is `missing_partition` after that."""
    jobs_outcome: JobOutcome = "done"
    """How the build of a table ends. `no_rows` is reported as `done`; `missing_partition`
    stays for ever."""
    jobs_outcome_of: tuple[str, ...] = ()
    """The tables with this outcome, such as `orders.revenue_by_month 2025-03`. Empty: all."""

    def has(self, *, newest: bool) -> bool:
        """Return whether the tenant has what only the newest one has, if it is that."""
        return self.tenant == "newest" or not newest

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
