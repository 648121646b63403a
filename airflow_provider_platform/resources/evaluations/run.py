"""A run of a suite of golden questions: asked in small groups, graded here, each question once.

The questions of a group run on the service at the same time. Before the task asks a question, it
runs the expected SQL: if this fails or returns nothing, the agent is not asked. The task submits
the questions, waits for the end of all of them (in the triggerer, if it is deferrable), and grades
them: it runs the agent's SQL and the expected SQL through the data API, one after the other, and
compares the results. Then it asks the next group. `golden_questions` decides what is asked next and
what the answers mean. At the end the SQL before of each question that became wrong runs once more.

The ids of the run are its whole state, and a retry continues from them:

    active    the questions that were sent and not graded: the ids of each chat, and its phase
              (`intent`, `running`) as in the record of a chat
    graded    the askings that are graded, compressed: Airflow's task state store holds 64 KB
    tokens    the tokens of all askings so far, with and without an answer, in all tries
    uncounted the askings whose tokens the service did not report

A retry finds a question in phase `intent` as a chat does, follows those that run, and asks again
only what could not be measured. Chats are asked by `ChatRunKind`.
"""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

import asyncio
import base64
import json
import lzma
import uuid
from collections import defaultdict
from contextlib import suppress
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NotRequired, cast

from airflow_provider_platform.client.choices import QUERY_TIMEOUT
from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.errors import (
    ChatError,
    DataQueryError,
    DataQueryTimeoutError,
    EvaluationBudgetError,
    PlatformApiError,
    PlatformDeadlineError,
    PlatformError,
    PlatformInterruptedError,
    PlatformOutcomeUnknownError,
    PlatformProtocolError,
    ResultNotComparableError,
    from_payload,
)
from airflow_provider_platform.client.redaction import CUT, shortened
from airflow_provider_platform.resources.branches import refuse_production
from airflow_provider_platform.resources.chat.call import ChatIds
from airflow_provider_platform.resources.chat.run import ChatRunKind
from airflow_provider_platform.resources.deployments import (
    get_build_status,
    get_deployment_settings,
)
from airflow_provider_platform.resources.evaluations.equal_results import (
    Result,
    compare,
    digest,
    read_result,
)
from airflow_provider_platform.resources.evaluations.golden_questions import (
    Asking,
    Baseline,
    Key,
    Question,
    Side,
    estimate,
    judge,
    next_keys,
    sql_digest,
)
from airflow_provider_platform.resources.names import find_agent_id
from airflow_provider_platform.resources.run_kind import (
    MAX_EVENT_BYTES,
    Identified,
    Intended,
    RunAccepted,
    RunEnvironment,
    RunIds,
    RunKind,
)
from airflow_provider_platform.resources.run_log import LogLine, say, warn
from airflow_provider_platform.resources.sql.query import SqlQuery

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api
    from airflow_provider_platform.client.redaction import KnownSecrets


MAX_STATE_BYTES = 45_000
"""Of the compressed askings. If they are larger, their longest texts are shortened."""
MAX_SQL = 1000
MAX_DIFFERENCE = 500
"""Characters that are kept."""


@dataclass(frozen=True)
class QuestionOver:
    """A question was answered, or failed with `error`; `ids` are those of its chat."""

    ids: ChatIds
    usage: dict[str, Any] | None
    error: PlatformError | None


class ActiveIds(ChatIds):
    """The ids of a question that is active, and the phase of its submission."""

    phase: Literal["intent", "running"]


class SuiteIds(RunIds):
    """The ids of a suite. All but the first are missing until its first question is asked."""

    evaluation_id: str
    tokens: int | None
    """Used so far; None if no question has reported its tokens."""
    uncounted: NotRequired[int]
    """How many questions have not reported their tokens."""
    agent_id: NotRequired[int | str | None]
    builds: NotRequired[dict[str, str | None]]
    """The commit from which each side is built."""
    active: NotRequired[dict[str, ActiveIds]]
    """The questions that were asked and not graded, by `Key`."""
    graded: NotRequired[str]
    """The questions that were graded, compressed (`_packed`)."""


class EvaluationRunKind(RunKind[dict[str, Any], SuiteIds]):
    """A suite of questions, with the arguments of `PlatformEvaluationOperator`.

    The outcome is `{"askings": {key: [Asking]}, "before_today": {name: Asking}, "tokens": int |
    None, "uncounted": int, "submitted_at": Unix time}`, as plain JSON. A trigger waits for one
    group of questions: it knows neither suite nor baseline, and its event has the answers of the
    group.
    """

    followed_with = ("session_settings",)
    id_field = "evaluation_id"
    keeps_parts = True

    suite: tuple[Question, ...] = ()
    baseline: Baseline = Baseline()
    agent: str | None = None
    agent_id: int | str | None = None
    session_settings: dict[str, Any] | None = None
    deployment_id: int | str | None = None
    branch_name: str | None = None
    confirm: int = 2
    parallel: int = 4
    max_tokens: int | None = None
    max_seconds: float | None = None

    def idempotency_key(self, config: PlatformConfig) -> str:
        settings = config.resolve_session_settings(self.session_settings)
        return fingerprint(
            "evaluation",
            config.require_chat_url(self.agent_id),
            config.agent_name(self.agent, self.agent_id),
            config.chat_identity(settings),
            [asdict(question) for question in self.suite],
            self.branch_name,
            config.resolve_deployment_id(self.deployment_id),
            settings.to_json() if settings else None,
        )

    def baseline_owner(self, config: PlatformConfig) -> str:
        """Return the fingerprint of whom and what the questions ask."""
        settings = config.resolve_session_settings(self.session_settings)
        return fingerprint(
            "baseline",
            config.require_chat_url(self.agent_id),
            config.agent_name(self.agent, self.agent_id),
            config.chat_identity(settings),
            config.resolve_deployment_id(self.deployment_id),
        )

    async def submit(
        self, api: Api, env: RunEnvironment, earlier: SuiteIds | None, *, until_end: bool
    ) -> dict[str, Any] | None:
        self._check_budget(api)
        if self.branch_name is not None:
            deployment_id = api.config.resolve_deployment_id(self.deployment_id)
            await refuse_production(api, deployment_id, self.branch_name)
        now = api.clock()
        ids: SuiteIds = {
            "evaluation_id": uuid.uuid4().hex,
            "submitted_at": now,
            "tokens": None,
            "uncounted": 0,
        }
        await api.notify(Intended(ids))
        ids["agent_id"] = await find_agent_id(api, self.agent, self.agent_id)
        ids["builds"] = await self._builds(api, env)
        state = _State(ids)
        await state.save(api)
        await self._ask_next(api, env, state)
        return None if state.active else await self._outcome(api, env, state)

    async def find(self, api: Api, env: RunEnvironment, ids: SuiteIds) -> tuple[bool, SuiteIds]:
        """Nothing is asked before the run is recorded as accepted."""
        return False, ids

    async def follow(self, api: Api, env: RunEnvironment, ids: SuiteIds) -> dict[str, Any]:
        """Ask and grade all questions. In the triggerer, wait for the group that was asked."""
        state = _State(ids)
        if env.in_triggerer:
            return {"answers": await self._answers(api, env, state)}
        while state.active:
            await self._grade(api, env, state, await self._answers(api, env, state))
            await self._ask_next(api, env, state)
        return await self._outcome(api, env, state)

    async def stop(self, api: Api, ids: SuiteIds, *, seconds: float | None = None) -> bool:
        """Stop all active questions at the same time. Raises the first error after all stops have
        ended."""
        state = _State(ids)

        async def stop_one(api: Api, chat: ChatIds) -> bool:
            try:
                return await self._chat(state).stop(api, chat, seconds=seconds)
            finally:
                await api.aclose()

        accepted = [chat for chat in state.active.values() if chat.get("accepted")]
        stops = [stop_one(api.beside(), chat) for chat in accepted]
        stopped = await asyncio.gather(*stops, return_exceptions=True)
        for outcome in stopped:
            if isinstance(outcome, BaseException):
                raise outcome
        return any(stopped)

    def is_submitting(self, ids: SuiteIds) -> bool:
        return any(chat["phase"] == "intent" for chat in ids.get("active", {}).values())

    def to_event(self, secrets: KnownSecrets, outcome: dict[str, Any]) -> dict[str, Any]:
        """Return the answers, or None if they exceed 256 KB: the worker then reads the threads."""
        fits = len(json.dumps(outcome).encode()) <= MAX_EVENT_BYTES
        return secrets.redact_data(outcome) if fits else {"answers": None}

    async def read_event(
        self, api: Api, env: RunEnvironment, ids: SuiteIds, event: dict[str, Any]
    ) -> tuple[dict[str, Any] | None, SuiteIds]:
        """Grade the group of which the event reports, and ask the next one."""
        state = _State(ids)
        answers = event["answers"] or await self._answers(api, env, state)
        await self._grade(api, env, state, answers)
        await self._ask_next(api, env, state)
        outcome = None if state.active else await self._outcome(api, env, state)
        return outcome, state.ids

    async def resume(self, api: Api, env: RunEnvironment, ids: SuiteIds) -> SuiteIds:
        """Find or repeat the questions whose submission was interrupted, and ask those again that
        could not be measured."""
        state = _State(ids)
        for key, asked in state.askings.items():
            state.askings[key] = [one for one in asked if one.measured]
        for key, chat in list(state.active.items()):
            if chat["phase"] == "intent":
                try:
                    recording = _recording(api, state, key)
                    known, found = await self._chat(state, key).find(recording, env, chat)
                except (ChatError, PlatformOutcomeUnknownError) as error:
                    await self._grade(api, env, state, {str(key): {"error": error.to_payload()}})
                    continue
                if known:
                    state.active[key] = {**found, "phase": "running"}
                else:
                    await self._ask(api, env, state, key, found)
        await state.save(api)
        if not state.active:
            await self._ask_next(api, env, state)
        return state.ids

    # Ask.

    def _check_budget(self, api: Api) -> None:
        """Refuse a suite that costs more than `max_tokens`, by the last run."""
        tokens = estimate(self.suite, self.baseline, on_branch=self.branch_name is not None)
        if tokens is None:
            return
        about = f"{len(self.suite)} questions, about {tokens:,} tokens"
        say(api, f"Estimate by the last run: {about}")
        if self.max_tokens is not None and tokens > self.max_tokens:
            raise EvaluationBudgetError(
                f"Nothing was sent: {about}, and the limit is {self.max_tokens:,} (max_tokens). "
                "Raise max_tokens, or ask fewer questions."
            )

    async def _ask_next(self, api: Api, env: RunEnvironment, state: _State) -> None:
        """Ask the next group of questions, if there is one and no limit is reached."""
        on_branch = self.branch_name is not None
        ask = partial(next_keys, self.suite, on_branch=on_branch, confirm=self.confirm)
        while not state.active and (keys := ask(state.askings, self.baseline)):
            if limit := self._limit(api, env, state):
                warn(api, f"{len(keys)} questions are not asked, because {limit}.")
                return
            for key in keys[: self.parallel]:
                first = not state.askings.get(key)
                unmeasured = await self._check_expected(api, env, key) if first else None
                if unmeasured is None:
                    await self._ask(api, env, state, key, None)
                else:
                    warn(api, f"{state.named(key)}: not asked. {unmeasured.difference}")
                    state.add(key, unmeasured)
                    await state.save(api)

    async def _check_expected(self, api: Api, env: RunEnvironment, key: Key) -> Asking | None:
        """Return why a question cannot be measured, by its expected SQL; None if it can be."""
        self._refuse_if_stopped(env)
        expected = await self._expected(api, env, key)
        return expected if isinstance(expected, Asking) else None

    async def _expected(self, api: Api, env: RunEnvironment, key: Key) -> Result | Asking:
        """Return the expected result, or the asking of a question that has none."""
        question = self._question(key)
        try:
            expected = await self._result(api, env, key, question.sql)
        except PlatformError as error:
            said = api.secrets.redact_text(_said(error)).removeprefix("The query failed: ")
            return _error("ground truth query failed", f"The expected SQL failed: {said}")
        if expected.is_nothing and not question.allow_empty:
            return _error(
                "no expected result",
                "The expected SQL returns no row or only nulls. If this is right, set allow_empty "
                "to true for the question.",
            )
        return expected

    def _refuse_if_stopped(self, env: RunEnvironment) -> None:
        if env.interrupted():
            raise PlatformInterruptedError("The task was stopped, so it asks no further question.")

    def _limit(self, api: Api, env: RunEnvironment, state: _State) -> str | None:
        """Return the limit that ends the asking; None if none does."""
        tokens = state.ids["tokens"] or 0
        if self.max_tokens is not None and tokens >= self.max_tokens:
            return f"{tokens:,} tokens are used (max_tokens)"
        elapsed = api.clock() - state.ids["submitted_at"]
        if self.max_seconds is not None and elapsed >= self.max_seconds:
            return f"{elapsed:.0f} seconds have passed (max_seconds)"
        return "the deadline has passed (timeout)" if api.clock() >= env.deadline else None

    async def _ask(
        self, api: Api, env: RunEnvironment, state: _State, key: Key, earlier: ChatIds | None
    ) -> None:
        """Send one question, and record its ids before and after. An error of this question alone
        is its outcome."""
        self._refuse_if_stopped(env)
        try:
            kind, recording = self._chat(state, key), _recording(api, state, key)
            outcome = await kind.submit(recording, env, earlier, until_end=False)
            if outcome is not None:
                await self._grade(api, env, state, {str(key): _answer(outcome)})
        except (
            ChatError,
            PlatformDeadlineError,
            PlatformOutcomeUnknownError,
            PlatformProtocolError,
        ) as error:
            answer = await self._failed(api, env, state, key, error)
            await self._grade(api, env, state, {str(key): answer})

    def _chat(self, state: _State, key: Key | None = None) -> ChatRunKind:
        """Return the kind of a question's chat: without a key only to follow or to stop it."""
        branch = self.branch_name if key is not None and key.side == "branch" else None
        return ChatRunKind(
            prompt=self._question(key).question if key is not None else None,
            agent_id=state.ids["agent_id"],
            session_settings=self.session_settings,
            active_branch_name=branch,
            is_default_branch=None if branch is None else False,
            max_rows=0,
        )

    def _question(self, key: Key) -> Question:
        return next(question for question in self.suite if question.name == key.name)

    # Wait and grade.

    async def _answers(
        self, api: Api, env: RunEnvironment, state: _State
    ) -> dict[str, dict[str, Any]]:
        """Wait for the active questions. Return the answer of each: its queries and usage, or its
        error. At the deadline, stop those that still run."""
        waits = [
            asyncio.create_task(self._wait_for(api.beside(), env, state, key))
            for key in state.active
        ]
        try:
            return dict(await asyncio.gather(*waits))
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _wait_for(
        self, api: Api, env: RunEnvironment, state: _State, key: Key
    ) -> tuple[str, dict[str, Any]]:
        chat = state.active[key]
        try:
            if not chat.get("accepted"):
                raise PlatformDeadlineError("The question was not accepted before the deadline.")
            beside = replace(env, in_triggerer=True)
            outcome = await self._chat(state).follow(_naming(api, state, key), beside, chat)
        except (ChatError, PlatformDeadlineError, PlatformProtocolError) as error:
            return str(key), await self._failed(api, env, state, key, error)
        finally:
            await api.aclose()
        return str(key), _answer(outcome)

    async def _failed(
        self, api: Api, env: RunEnvironment, state: _State, key: Key, error: PlatformError
    ) -> dict[str, Any]:
        """Stop a question that failed, and return its error as the answer. An error that every
        other question would meet too, such as a used-up quota, is raised after all were stopped
        and its tokens are recorded."""
        is_final = not error.retryable and not isinstance(error, PlatformOutcomeUnknownError)
        usage = error.details.get("usage")
        stopped = {str(one): chat for one, chat in state.active.items() if is_final or one == key}
        with suppress(PlatformError):  # the error that led here says more
            await self.stop(api, {**state.ids, "active": stopped})
        if is_final:
            state.count(usage)
            if not env.in_triggerer:  # a trigger has no record
                await state.save(api)
            raise error
        return {"error": error.to_payload(), "usage": usage}

    async def _grade(
        self, api: Api, env: RunEnvironment, state: _State, answers: dict[str, dict[str, Any]]
    ) -> None:
        for text, answer in answers.items():
            key = Key.parse(text)
            chat = state.active.get(key)
            if chat is None:
                continue
            if key.name not in {question.name for question in self.suite}:
                warn(api, f"{state.named(key)} is no longer in questions: not graded.")
                del state.active[key]  # the file is newer than the question
                await state.save(api)
                continue
            asking = await self._graded(api, env, key, answer)
            failure = from_payload(answer["error"]) if "error" in answer else None
            await api.notify(QuestionOver(chat, answer.get("usage"), failure))
            difference = api.secrets.redact_text(asking.difference or "")
            tokens = state.count(answer.get("usage"))
            kept = {
                "difference": shortened(difference, MAX_DIFFERENCE) or None,
                "sql": asking.sql and _cut(asking.sql, MAX_SQL),
                "build": state.ids["builds"].get(key.side),
                "tokens": tokens,
                "seconds": round(api.clock() - float(chat.get("submitted_at") or api.clock()), 1),
                "chat_id": chat.get("chat_id"),
            }
            asking = asking.model_copy(update=kept)
            write = say if asking.passed else warn
            counted = "" if tokens is not None else " (its tokens are not counted: not reported)"
            write(api, f"{state.named(key)}: {asking.verdict}{_about(asking)}{counted}")
            state.add(key, asking)
            await state.save(api)

    async def _graded(
        self, api: Api, env: RunEnvironment, key: Key, answer: dict[str, Any]
    ) -> Asking:
        """Return the verdict on one answer, by the service's rules."""
        if "error" in answer:
            return _error("agent error", answer["error"]["message"])
        queries = answer["queries"]
        if not queries:
            return Asking(verdict="review", reason="the agent ran no query")
        expected = await self._expected(api, env, key)
        if isinstance(expected, Asking):
            return expected
        good = [query["sql"] for query in queries if query["error"] is None]
        sql = good[-1] if good else queries[-1]["sql"]
        if not good:
            known = {"expected_digest": digest(expected), "sql": sql, "sql_digest": sql_digest(sql)}
            return _error("query error", queries[-1]["error"], measured=True, **known)
        return await self._compared(api, env, key, sql, expected)

    async def _compared(
        self, api: Api, env: RunEnvironment, key: Key, sql: str, expected: Result
    ) -> Asking:
        """Return the verdict on SQL, by its result today."""
        known: dict[str, Any] = {
            "expected_digest": digest(expected),
            "sql": sql,
            "sql_digest": sql_digest(sql),
        }
        try:
            actual = await self._result(api, env, key, sql)
        except PlatformError as error:
            wrong = isinstance(error, DataQueryError | ResultNotComparableError)
            measured = wrong and not isinstance(error, DataQueryTimeoutError)
            return _error("query error", _said(error), measured=measured, **known)
        try:
            compared = compare(expected, actual)
        except ResultNotComparableError as error:
            return _error("query error", error.message, **known)
        return Asking(
            verdict=compared.verdict,
            reason=compared.reason,
            difference=compared.difference,
            rollups=tuple(sorted(actual.used_pre_aggregations)),
            rows=len(actual.rows),
            **known,
        )

    async def _outcome(self, api: Api, env: RunEnvironment, state: _State) -> dict[str, Any]:
        """Return the outcome of a run that has asked everything. The SQL before of each question
        that became wrong runs once more on today's build: it shows whether the agent or its data
        changed."""
        on_branch = self.branch_name is not None
        again: dict[str, Any] = {}
        judged = judge(
            self.suite, state.askings, self.baseline, on_branch=on_branch, confirm=self.confirm
        )
        for one in judged:
            sql = one.before.whole_sql if one.before and one.before.passed else None
            if one.passed or not one.measured or sql is None:
                continue
            key = Key(one.name, "branch" if on_branch else "production")
            self._refuse_if_stopped(env)
            expected = await self._expected(api, env, key)
            if isinstance(expected, Asking):
                continue
            today = await self._compared(api, env, key, sql, expected)
            if today.measured:
                kept = {"build": state.ids["builds"].get(key.side), "sql": None, "difference": None}
                again[one.name] = today.model_copy(update=kept).model_dump(mode="json")
        return {**state.outcome(), "before_today": again}

    async def _result(self, api: Api, env: RunEnvironment, key: Key, sql: str) -> Result:
        """Return the whole result of a query, read with the permissions of the user who asks if
        the connection has a service token, else with those of the connection."""
        query = SqlQuery(
            sql,
            deployment_id=api.config.resolve_deployment_id(self.deployment_id),
            deadline=api.clock() + QUERY_TIMEOUT,
            branch_name=self.branch_name if key.side == "branch" else None,
            token=api.config.chat_service_token,
        )
        return await read_result(api, query)

    async def _builds(self, api: Api, env: RunEnvironment) -> dict[str, str | None]:
        """Return the commit from which each side is built; None if the tenant does not say."""
        sides: list[Side] = ["production"] if self.branch_name is None else ["branch", "production"]
        return {side: await self._build(api, env, side) for side in sides}

    async def _build(self, api: Api, env: RunEnvironment, side: Side) -> str | None:
        if api.config.management_url is None:
            return None
        deployment_id = api.config.resolve_deployment_id(self.deployment_id)
        try:
            name = self.branch_name
            if side == "production":
                settings = await api.call(get_deployment_settings(deployment_id=deployment_id))
                name = settings.deploy_branch_name
            status = get_build_status(deployment_id=deployment_id, query={"branchName": name})
            return (await api.call(status)).last_hash
        except PlatformApiError as error:
            if error.retryable:
                raise
            warn(api, f"The build of {side} is unknown: {error.message}")
            return None


def _error(reason: str, said: str, *, measured: bool = False, **known: Any) -> Asking:
    return Asking(verdict="error", measured=measured, reason=reason, difference=said, **known)


def _about(asking: Asking) -> str:
    return f": {asking.reason}. {asking.difference or ''}".rstrip() if asking.reason else ""


@dataclass(frozen=True)
class _OfQuestion:
    """An event of one question's chat, with the question's name."""

    name: str
    event: Any

    @property
    def is_detail(self) -> bool:
        return bool(getattr(self.event, "is_detail", False))

    @property
    def is_warning(self) -> bool:
        return bool(getattr(self.event, "is_warning", False))

    def __str__(self) -> str:
        return f"{self.name}: {self.event}"


def _naming(api: Api, state: _State, key: Key) -> Api:
    """Return an `Api` that names the question in each line of the log."""
    named, report = copy(api), api.report
    named.report = lambda event: report(_named_event(state.named(key), event))
    return named


def _recording(api: Api, state: _State, key: Key) -> Api:
    """Return an `Api` that also records the ids of the question among those of its suite."""

    async def hear(event: object) -> None:
        match event:
            case Intended(chat) | Identified(chat):
                state.active[key] = cast("ActiveIds", {**chat, "phase": "intent"})
                await state.save(api, sends_next=isinstance(event, Intended))
            case RunAccepted(chat):
                state.active[key] = cast("ActiveIds", {**chat, "phase": "running"})
                await state.save(api)
            case _:
                await api.notify(_named_event(state.named(key), event))

    return _naming(api, state, key).hearing(hear)


def _named_event(name: str, event: Any) -> Any:
    if isinstance(event, LogLine):
        return LogLine(f"{name}: {event.text}", event.is_warning)
    return _OfQuestion(name, event)


def _said(error: PlatformError) -> str:
    """Return the error's message. An error for which no other question will do better is raised:
    the task was stopped, or the credential was refused."""
    about_query = isinstance(error, DataQueryError | ResultNotComparableError)
    if isinstance(error, PlatformInterruptedError) or not (error.retryable or about_query):
        raise error
    return error.message


def _answer(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of a chat's outcome: queries that have SQL, and the usage."""
    return {
        "queries": [
            {"sql": query["sql"], "error": query["error"]}
            for query in outcome["queries"]
            if query["sql"]
        ],
        "usage": outcome["usage"],
    }


class _State:
    """The ids of a run while it is worked on."""

    def __init__(self, ids: SuiteIds) -> None:
        self.ids = ids
        self.active = {Key.parse(text): chat for text, chat in ids.get("active", {}).items()}
        self.askings = _unpacked(ids.get("graded"))

    def named(self, key: Key) -> str:
        """Return a question for the log: its name, its side, and for which time it is asked."""
        times = len(self.askings.get(key, ())) + 1
        again = "" if times == 1 else f", asked again ({times})"
        return f"{shortened(key.name, 100)} ({key.side}{again})"

    def add(self, key: Key, asking: Asking) -> None:
        """Add an asking that is over."""
        self.active.pop(key, None)
        self.askings[key].append(asking)

    def count(self, usage: dict[str, Any] | None) -> int | None:
        """Count the tokens of an asking, whatever its outcome. Return their number, None if the
        service did not report it."""
        tokens = (usage or {}).get("totalTokens")
        if not isinstance(tokens, int):
            self.ids["uncounted"] = self.ids.get("uncounted", 0) + 1
            return None
        self.ids["tokens"] = (self.ids["tokens"] or 0) + tokens
        return tokens

    async def save(self, api: Api, *, sends_next: bool = False) -> None:
        """Have the record written. The ids that the caller holds change too."""
        self.ids["active"] = {str(key): chat for key, chat in self.active.items()}
        self.ids["graded"] = _packed(self.askings)
        await api.notify(RunAccepted(dict(self.ids), sends_next))

    def outcome(self) -> dict[str, Any]:
        return {
            "askings": {
                str(key): [one.model_dump(mode="json") for one in asked]
                for key, asked in self.askings.items()
            },
            "tokens": self.ids["tokens"],
            "uncounted": self.ids.get("uncounted", 0),
            "submitted_at": self.ids["submitted_at"],
        }


def _packed(askings: dict[Key, list[Asking]]) -> str:
    """Return the askings, compressed. Of a question that was asked again, only the last answer is
    kept, and the verdicts of the others."""
    stored = {
        str(key): [
            one.model_dump(
                mode="json",
                exclude_defaults=True,
                include=None if one in _last(asked) else {"verdict", "measured", "tokens"},
            )
            for one in asked
        ]
        for key, asked in askings.items()
    }
    texts = [(one, name) for asked in stored.values() for one in asked for name in _TEXTS]
    most = MAX_SQL
    while len(packed := _compressed(stored)) > MAX_STATE_BYTES and most:
        most = most * 2 // 3  # only a display is lost: `sql_digest` names the whole SQL
        for one, name in texts:
            if one.get(name):
                one[name] = _cut(one[name], most)
    return packed


_TEXTS = ("sql", "difference")


def _last(asked: list[Asking]) -> list[Asking]:
    """Return the last asking, and the last one that was measured."""
    return [*asked[-1:], *[one for one in asked if one.measured][-1:]]


def _cut(text: str, most: int) -> str:
    """Return the text as it is, or its beginning."""
    return text if len(text) <= most else f"{text[: most - 1]}{CUT}" if most else ""


def _compressed(value: Any) -> str:
    return base64.b85encode(lzma.compress(json.dumps(value).encode(), preset=1)).decode()


def _unpacked(text: str | None) -> defaultdict[Key, list[Asking]]:
    stored = json.loads(lzma.decompress(base64.b85decode(text))) if text else {}
    askings: defaultdict[Key, list[Asking]] = defaultdict(list)
    for key, asked in stored.items():
        askings[Key.parse(key)] = [Asking(**one) for one in asked]
    return askings
