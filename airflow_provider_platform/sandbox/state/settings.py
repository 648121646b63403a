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
    "WorkbookEdit",
    "WorkbookManage",
    "WorkbookRead",
]
"""Actions that operations need; ``Admin`` stands for the role of an administrator."""


BuildOutcome = Literal["built", "failed", "cancelled", "stopped", "none"]
"""How a build ends, in the words of build-status."""

JobOutcome = Literal[
    "done", "no_rows", "failure", "missing_partition", "pre_agg_not_found", "stalled", "n/a"
]
"""How the build of a pre-aggregation's table ends; ``no_rows`` is reported as ``done`` too."""

Seconds = Annotated[float, Field(ge=0, strict=True)]
Count = Annotated[int, Field(ge=1, strict=True)]


class Settings(BaseModel):
    """All settings; each can be changed at any time through ``SandboxControl.set``.

    Times are in seconds. Settings hold for what happens after the change: a run that is under way
    reads the pace anew before each record.
    """

    model_config = ConfigDict(extra="forbid")

    pace: Seconds = 0.0
    """Pause before each record of a chat run."""
    dbt_pace: Seconds = 0.0
    """Time a dbt sync spends in each stage; with 0 it is over before the next request is read."""
    dialect: Literal["service", "cube"] = "service"
    """Prefix of the tool names and of the agent's graph node."""
    development: Annotated[bool, Field(strict=True)] = True
    """Whether records with the agent's ``thinking`` are sent."""

    follow_up: Literal["subscribe", "state"] = "subscribe"
    """What a request without ``input`` gets while its run is active."""
    history: Literal["replay", "none"] = "replay"
    """Whether earlier records are replayed at all, those of earlier turns included."""
    replay: Literal["before_cutoff", "after_cutoff", "overlap", "none"] = "before_cutoff"
    """Where a subscription to a run under way gets the records it missed; ``overlap`` repeats the
    last ``replay_overlap`` records after ``__cutoff__`` without the user echo."""
    replay_overlap: Count = 3
    replay_form: Literal["folded", "raw"] = "folded"
    """Whether replayed records of the same id come as one full record or as they were streamed."""
    stopped_thread: Literal["state", "aborted", "close"] = "state"
    """What ends a later look at a thread whose last run was aborted: ``__state__``,
    ``__aborted__``, or nothing (the connection is closed in order after ``__cutoff__``)."""
    message_shape: Literal["constructor", "type_data", "role", "json"] = "constructor"
    """How the messages of ``__state__`` are serialized: ``lc``/``constructor``/``kwargs``,
    ``type``/``data``, ``role``/``content`` without ids, or each as a JSON text of the second."""
    stream_type: Literal["json", "html"] = "json"
    """Content type of the chat stream; the API's document names ``text/html`` for it too."""
    busy_answer: Literal["record", "text", "json_text"] = "record"
    """What refuses a message in a thread that is streaming: an error record after ``__cutoff__``,
    or a body of nothing but the words, plain or as a JSON string, without a line end."""
    chat_row_limit: Count = 100
    """Rows of a query that a chat sends; a default of the service, not a limit."""
    usage_last: Literal["always", "after_answer"] = "after_answer"
    """Whether ``__usage__`` also follows an error, ``__aborted__`` and ``__suspended__``."""

    service_tokens: Annotated[bool, Field(strict=True)] = False
    """Whether the deployment accepts service tokens: a deployment switches them on."""
    chat_rows: Literal["values", "texts"] = "values"
    """Whether the rows of a tool result hold values of their types or, as the data API, texts."""
    external_user_limit: Count = 10_000
    """External users that the account may hold besides ephemeral ones."""
    external_user_limit_answer: Literal["400", "403", "429"] = "429"
    """Status of a chat request that would persist one more."""
    abort_needs_identity: Annotated[bool, Field(strict=True)] = True
    """Whether an abort with an API key must name the user, who alone owns the thread."""

    release: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] = "0.19.1"
    """The tenant's release: operations and fields of later ones are missing. ``0.2.1`` is the
    tenant of July 2026, which starts dbt syncs and knows no builds, branches or history."""
    missing_operation: Literal["html", "403", "404", "405"] = "html"
    """What an operation that the tenant's release lacks answers: the tenant's web page under 200,
    as any unknown path, or an error."""
    dbt_history_answer: Literal["200", "400", "500"] = "200"
    """What the history of dbt syncs answers; the other operations stay as they are."""
    dbt_outcome: Literal["COMPLETED", "FAILED", "UNKNOWN"] = "COMPLETED"
    """How syncs started from now on end; UNKNOWN never shows in the status, only in the history."""
    dbt_history: Literal["newest_first", "oldest_first"] = "newest_first"
    """Order of the list of dbt syncs."""
    dbt_unknown: Seconds = 0.0
    """Time after its start, by the sandbox's clock, in which a sync is known to no operation."""
    dbt_cancelled_status: Literal["stage", "CANCELLED", "FAILED", "404"] = "stage"
    """What the status of a cancelled sync answers; the history says CANCELLED in any case."""
    dbt_result_delay: Seconds = 0.0
    """Time after its end, by the sandbox's clock, in which a completed sync has no result yet."""
    dbt_no_result_yet: Literal["404", "null", "empty"] = "404"
    """What the result answers until it is there; the last two under 200, as JSON."""
    dbt_ignored: tuple[Literal["ref", "source", "manifest", "output"], ...] = ()
    """Fields of the start that this tenant is too old to know and drops without a word."""
    dbt_extra_stage: str | None = None
    """A stage of an unknown name, walked through after INITIALIZING."""

    error_body: Literal["message", "error", "empty"] = "message"
    """How errors are written: an object with ``message``, one with ``error`` only, or no body."""
    length_required: Annotated[bool, Field(strict=True)] = False
    """Whether a front end answers 411 to a POST, PUT, PATCH or DELETE that declares no length."""
    usage_analytics: Annotated[bool, Field(strict=True)] = True
    """Whether usage analytics are enabled for the account (404 otherwise)."""
    build_delay: Seconds = 0.0
    """Time until a build shows after its branch was opened or written to: an opened branch is
    "not active" until then, production reports the build before."""
    build_seconds: Seconds = 0.0
    """Time from then on that a build takes."""
    warmup_seconds: Seconds = 0.0
    """Time that a good build of production warms up in the end."""
    build_outcome: BuildOutcome = "built"
    """How builds that start from now on end, where the model compiles."""
    building_answer: Literal["503", "continue_wait"] = "503"
    """What the data API answers while a branch is being built: an error page of the ingress, or
    "Continue wait"."""
    idle_seconds: Seconds = 600.0
    """Time without a query after which a staging or development environment falls asleep."""
    idle_answer: Literal["503", "none"] = "503"
    """What the data API answers to the query that wakes it: an error page of the ingress, or the
    result."""
    idle_status: Literal["stopped", "built"] = "stopped"
    """What build-status reports of an environment that is asleep."""
    branch_error: Literal["tool", "line"] = "tool"
    """How a chat run reports a branch that does not answer: in the result of its tool call, or as
    an error line that ends the run."""
    branch_errors_name_it: Annotated[bool, Field(strict=True)] = False
    """Whether "Bad branch" and "Branch is not active" are followed by the branch's name."""
    branch_path: Literal["encoded", "plain"] = "encoded"
    """How the slashes of a branch name stand in the paths of the data API; the other way names
    no branch."""
    dev_mode_of: Literal["credential", "user"] = "credential"
    """Whether two tokens of one user have a development mode each, or share one."""
    reentered_fork: Literal["stale", "updated"] = "stale"
    """Whether a fork that is entered again keeps its files or takes its parent's."""
    left_fork: Literal["closed", "served"] = "closed"
    """Whether a fork that nobody is on any more is closed at once, or when it falls asleep."""
    leave_nothing: Literal["400", "404", "200"] = "400"
    """What leaving development mode answers where the credential is not in it."""
    validate_not_active: Literal["400", "invalid"] = "400"
    """What validating a branch without a running environment answers: an error, or a report that
    says it is not valid."""
    merge_outcome: Literal["merged", "nothing", "conflict"] = "merged"
    """``nothing``: merges answer ``merged`` false; ``conflict``: they are refused with 409."""
    merge_commit: Literal["own", "fast_forward"] = "own"
    """Which commit the target has after a merge: one that the merge makes, or the branch's."""
    merge_removes_branch: Annotated[bool, Field(strict=True)] = True
    """What merging to the default branch does where ``removeBranchAfterMerge`` is not sent."""
    deploy_mode: Literal["git", "cli"] = "git"
    """``cli``: production is built from uploads only, not after a merge."""
    deploy_branch_read_only: Annotated[bool, Field(strict=True)] = False
    """Whether dbt syncs and commits to the deploy branch are refused."""
    deploy_branch_merge_allowed: Annotated[bool, Field(strict=True)] = True
    """Whether branches can be merged into the deploy branch."""
    dev_branches_only: Annotated[bool, Field(strict=True)] = False
    """The token's role has SchemaUpdateDevBranches in place of SchemaUpdate: what would change the
    deploy branch is refused, merging into it too."""

    token_lacks: tuple[Permission, ...] = ()
    """Permissions the management token lacks: operations needing one of them answer 403."""
    caller: Count = 7
    """Id of the user the management token belongs to: 7 or 8."""
    hidden_reports: tuple[str, ...] = ()
    """Ids of reports that the management token may not read."""
    notification_drops: tuple[Literal["filters", "timeGrains", "memberSwitchers"], ...] = ()
    """Settings of a notification that an older tenant neither stores nor reports."""
    publish_needs_config: Annotated[bool, Field(strict=True)] = False
    """A tenant before v0.16.0, which publishes no saved draft by itself."""
    reviewed_dashboards: tuple[str, ...] = ()
    """Ids of published dashboards that require review: only a person publishes them."""
    workbook_limit: Count = 1000
    """Workbooks a deployment may hold."""
    embed_user_limit: Count = 10_000
    """Embed users the account may hold."""

    export_pace: Seconds = 0.0
    """Time a dashboard export is pending, and again the time it is processing."""
    export_outcome: Literal["completed", "failed"] = "completed"
    """How exports submitted from now on end."""
    export_lifetime: Seconds = 300.0
    """Time from submission to the loss of an export's job and file."""
    export_limit: Count = 5
    """Exports in flight at once for one rendered identity."""

    deliveries_activated: Annotated[bool, Field(strict=True)] = True
    """Whether report deliveries are activated for the account; every path answers 404 otherwise."""
    delivery_seconds: Seconds = 0.0
    """Time that a run of a report delivery takes."""
    delivery_outcome: Literal["succeeded", "failed", "unreported"] = "succeeded"
    """How runs of deliveries that start from now on end; ``unreported``: without an error and
    without a success."""
    delivery_error: str = "The delivery would overwrite filled cells (Revenue!A1:C40)"
    """What a run that failed reports as its error."""
    delivery_ends: Literal["states", "finished"] = "states"
    """How the status of a run that is over reads, which is not documented: as the states of the
    platform's pages, or one word for all ends."""
    delivery_success_delay: Seconds = 0.0
    """Time from the end of a run until the delivery's ``lastSuccessAt`` shows it."""
    delivery_pause_again: Literal["200", "409"] = "200"
    """What pausing a paused delivery answers, and resuming one that is active."""
    run_ids: Literal["id", "runId", "none"] = "id"
    """How the runs of deliveries and scheduled tasks name themselves in a list."""
    tasks_enabled: Annotated[bool, Field(strict=True)] = True
    """Whether scheduled tasks are enabled for the account (403 otherwise)."""
    task_seconds: Seconds = 0.0
    """Time that a run of a scheduled task takes."""
    task_outcome: Literal["complete", "failed"] = "complete"
    """How runs of scheduled tasks that start from now on end."""
    task_start_answer: Literal["runId", "empty"] = "runId"
    """What starting a scheduled task answers, which is not documented: the run's id, or nothing."""
    task_run_status: Literal["status", "none"] = "status"
    """Whether a run of a scheduled task has a ``status``: no property of it is documented."""
    task_while_running: Literal["start", "409"] = "start"
    """What running a scheduled task does while a run of it is going on."""

    embed_tenant_path: Literal["slash", "plain"] = "slash"
    """Whether the path that deletes an embed tenant ends in ``/``, as on older tenants."""
    embed_tenant_other_path: Literal["404", "405", "redirect"] = "404"
    """What the other form of that path answers."""
    lists: Literal["cursor", "legacy", "unpaged", "repeating"] = "cursor"
    """``legacy``: lists answer ``data`` and ``count`` only and know no cursor; ``unpaged``:
    everything at once, with ``pageInfo`` null; ``repeating``: every page is the first one and
    promises another."""
    notifications_first: Count | None = 200
    """The greatest ``first`` of notifications and their recipients; None: there is no limit."""
    page_size: Count = 50
    """Items per page where a request names no ``first``."""
    data_chunk_rows: Count | None = None
    """Rows per line of a data API answer. None: all rows in one line, and 500 rows per line where
    the deployment streams."""
    column_types: Literal["core", "words"] = "core"
    """How the data API declares types. ``core``: as the open core, where decimals are ``Int32``,
    timestamps ``String``, dates ``{"Date": false}`` and booleans JSON booleans; ``words``: each by
    the word for its type, with texts as values."""
    data_streaming: Annotated[bool, Field(strict=True)] = False
    """Whether the deployment streams: a query with a limit of its own then has no other one."""
    data_default_rows: Count = 10_000
    """Rows that the deployment gives for a query without a limit of its own."""
    data_max_rows: Count = 50_000
    """Rows that it gives at most for a query with one, unless it streams."""
    query_seconds: Seconds = 0.0
    """Time a query of the data API takes before its first row is there."""
    query_wait: Seconds = 10.0
    """How long a request waits for it before it is told to come again."""
    jobs_start_seconds: Seconds = 0.0
    """Time that the start of builds of pre-aggregations takes, since it asks the warehouse first;
    beyond ``query_wait`` it answers "Continue wait"."""
    jobs_queue_seconds: Seconds = 0.0
    """Time that the table of a pre-aggregation is ``scheduled``."""
    jobs_build_seconds: Seconds = 0.0
    """Time that it is ``processing`` then."""
    jobs_gap_seconds: Seconds = 0.0
    """Time from the end of its build until the table is there: ``missing_partition``."""
    jobs_rows_delay: Seconds = 0.0
    """Time that the table is there, and ``done``, before its rows are."""
    jobs_outcome: JobOutcome = "done"
    """How builds that start from now on end."""
    jobs_outcome_of: tuple[str, ...] = ()
    """Which tables end so: full names of pre-aggregations, each with or without a month after a
    space. Without any: all."""
    jobs_failure_shown_once: Annotated[bool, Field(strict=True)] = True
    """Whether a failure is reported once, and ``missing_partition`` from then on."""
    jobs_other_data_sources: Literal["status", "missing_partition"] = "status"
    """What is reported of tables in other data sources than the default one while they are built;
    before July 2026 it was ``missing_partition``."""
    jobs_lifetime: Seconds = 86400.0
    """Time for which tokens are known, from the start and again from the first ``done`` or
    ``failure`` that is reported."""
    jobs_no_match: Literal["400", "empty"] = "400"
    """What the start answers where the selector matches nothing: an error, or no tokens."""
    default_api_scopes: tuple[Literal["meta", "data", "graphql", "jobs", "sql"], ...] = (
        "meta",
        "data",
        "graphql",
    )
    """Scopes of a data token; ``jobs`` and ``sql`` are off by default."""

    def has(self, since: str) -> bool:
        """Whether the tenant's release is ``since`` or a later one."""
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
