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
    """Time a dbt sync spends in each stage."""
    dialect: Literal["service", "cube"] = "service"
    """Prefix of the tool names and of the agent's graph node."""
    development: Annotated[bool, Field(strict=True)] = True
    """Whether records with the agent's ``thinking`` are sent."""
    delta_sort: Literal["record", "message"] = "record"
    """Whether ``sort`` grows with every record or is one number for all records of a message."""

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
    submit_says_streaming: Annotated[bool, Field(strict=True)] = False
    """``isStreaming`` in the ``__cutoff__`` that answers a new message."""

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

    dbt: Literal["full", "start-only"] = "full"
    start_only_answer: Literal["html", "403", "404", "405"] = "html"
    """What the dbt sync operations other than the start answer in ``start-only`` mode."""
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
    """Ids of published dashboards that go live from an approved review only."""
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

    embed_tenant_path: Literal["slash", "plain"] = "slash"
    """Whether the path that deletes an embed tenant ends in ``/``, as on older tenants."""
    embed_tenant_other_path: Literal["404", "405", "redirect"] = "404"
    """What the other form of that path answers."""
    undeclared_answers: Literal["empty", "json"] = "empty"
    """What is sent under 200 where the contract declares no answer."""
    deleted_answer: Literal["204", "200"] = "204"
    """Status of deletions that are declared with both."""
    lists: Literal["cursor", "legacy", "unpaged", "repeating"] = "cursor"
    """``legacy``: lists answer ``data`` and ``count`` only and know no cursor; ``unpaged``:
    everything at once, with ``pageInfo`` null; ``repeating``: every page is the first one and
    promises another."""
    notifications_first: Count | None = 200
    """The greatest ``first`` of notifications and their recipients; None: there is no limit."""
    page_size: Count = 50
    """Items per page where a request names no ``first``."""
    data_chunk_rows: Count = 500
    """Rows per line of a data API answer."""
    data_bearer: Literal["as_documented", "either"] = "as_documented"
    """``as_documented``: a token of a deployment stands alone in the header, those of usage
    analytics and of metadata follow ``Bearer``; ``either``: both forms are taken for all."""
    data_streaming: Annotated[bool, Field(strict=True)] = False
    """Whether the deployment streams: a query with a limit of its own then has no other one."""
    query_seconds: Seconds = 0.0
    """Time a query of the data API takes before its first row is there."""
    query_wait: Seconds = 10.0
    """How long a request waits for it before it is told to come again."""

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
