"""`RunKind`: how one kind of run is submitted, found, followed, stopped and read.

A `RunKind` has the arguments of one run. The operator uses it to submit the run and to wait for it
on the worker; the trigger uses it to wait in the triggerer. Its methods are async and get an `Api`,
so both carry out the same steps. A `RunKind` does not decide when a run is submitted, followed or
stopped: see `operators/_remote_run.py`.

`submit` sends the events from which the task's record is written (`Intended`, `Identified`,
`RunAccepted`). It waits until its caller has handled an event, so the record is
written before the request is sent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NotRequired, TypedDict, TypeVar

from pydantic import BaseModel, ConfigDict

from airflow_provider_platform.client.choices import POLL_INTERVAL, not_interrupted
from airflow_provider_platform.client.errors import (
    PlatformDeadlineError,
    PlatformError,
    PlatformOutcomeUnknownError,
    PlatformTransportError,
)
from airflow_provider_platform.client.redaction import quote_service

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.polling import Wait
    from airflow_provider_platform.client.redaction import KnownSecrets


# ruff: noqa: ARG002 - a run kind need not use all arguments


class RunIds(TypedDict):
    """What names a run on the service, as plain JSON: what the record and the trigger of a task
    hold. Each kind has a TypedDict of its own, which adds the names that only this kind knows. A
    name is missing until it is known."""

    submitted_at: float
    """Unix time."""
    key: NotRequired[str]
    """The idempotency key of the record."""
    followed_since: NotRequired[float]
    """When the try began that continues a run which outlives its deadline (Unix time)."""
    reattached: NotRequired[bool]
    """Whether an earlier try submitted the run."""


Ids = Mapping[str, Any]
"""The same, where the kind of the run is not known."""

IdsT = TypeVar("IdsT", bound=Mapping[str, Any])
OutcomeT = TypeVar("OutcomeT")
"""The outcome of a run that is over."""

Poll = Callable[["Api"], Awaitable[OutcomeT | None]]
"""Polls a run once: returns its outcome, or reports its status and returns None."""

NOT_STOPPED = "The service has no operation that stops this run, so the run continues."
"""The log line if `can_stop` is False."""
SINGLE_POLL_SECONDS = 15.0
"""Seconds that a single poll of a run may take, even after the deadline."""
MAX_EVENT_BYTES = 256 * 1024
"""A larger result is not put into the event, because Airflow stores events in the metadata
database."""


@dataclass(frozen=True)
class RunEnvironment:
    """How long and from where a run is followed. `deadline` is in Unix time; `poll_interval` and
    `timeout` (how long a whole run may take) are in seconds. In the triggerer many runs are
    followed in one process, and the input is not known. `interrupted` reports whether the task was
    stopped.
    """

    deadline: float
    poll_interval: float = POLL_INTERVAL
    timeout: float = 0.0
    in_triggerer: bool = False
    interrupted: Callable[[], bool] = not_interrupted

    @property
    def wait(self) -> Wait:
        """How often and until when the run is polled."""
        # A DAG file imports this module.
        from airflow_provider_platform.client.polling import PollInterval, Wait

        return Wait(
            self.deadline,
            PollInterval(self.poll_interval),
            begins="within the interval" if self.in_triggerer else "at once",
        )


@dataclass(frozen=True)
class Intended:
    """The submission is sent next. Record the phase `intent` before. `named` says whether these ids
    suffice to find or stop it."""

    ids: Ids
    named: bool = False


@dataclass(frozen=True)
class Identified:
    """These ids suffice to find or stop a submission that is not accepted yet."""

    ids: Ids


@dataclass(frozen=True)
class RunAccepted:
    """The service accepted the run: the run can be followed and stopped. If a part of it is sent
    next, the record must be written before."""

    ids: Ids
    sends_next: bool = False


class RunKind(BaseModel, ABC, Generic[OutcomeT, IdsT]):
    """One kind of run, with the arguments of one task.

    The methods raise PlatformError. Those that follow or read a run may add values that a later
    step needs to its `ids`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    followed_with: ClassVar[tuple[str, ...]] = ()
    """The arguments that following a run needs. Triggers store them: neither a prompt nor a
    secret is among them."""
    id_field: ClassVar[str]
    """The id that distinguishes one run from another."""
    noun: ClassVar[str]
    """What errors call the run."""
    outcome_class: ClassVar[type[Any]]
    """The dataclass of the outcome, unless `to_event` and `read_event` are the kind's own."""
    lifetime: ClassVar[float | None] = None
    """Seconds from the submission after which the service drops a run; None if it does not."""
    can_stop: ClassVar[bool] = True
    """Whether the service can stop what is active of a run."""
    keeps_parts: ClassVar[bool] = False
    """Whether a run has many parts, and keeps those that are done when it is stopped. This differs
    from `can_stop` for a suite of questions only: those that are active can be stopped."""
    may_be_late: ClassVar[bool] = True
    """Whether the service may not know a run for a minute after its start (404)."""

    @property
    def outlives_deadline(self) -> bool:
        """Whether a retry that comes after the deadline continues the run instead of starting
        another. `timeout` then counts from the start of each try."""
        return self.keeps_parts or not self.can_stop

    @abstractmethod
    def idempotency_key(self, config: PlatformConfig) -> str:
        """Return the fingerprint of address, identity and input."""

    @abstractmethod
    async def submit(
        self, api: Api, env: RunEnvironment, earlier: IdsT | None, *, until_end: bool
    ) -> OutcomeT | None:
        """Start the run; `earlier` are the ids of a lost submission, if there was one.

        Notifies of `Intended` before the request and of `RunAccepted` after it. Returns the outcome
        if the run is already over, else None; with `until_end` it may wait for the end.
        """

    @abstractmethod
    async def find(self, api: Api, env: RunEnvironment, ids: IdsT) -> tuple[bool, IdsT]:
        """Return whether the service processed a submission whose response was lost, and the ids
        known now. Raises PlatformOutcomeUnknownError if the service does not show it."""

    async def poll(self, api: Api, ids: IdsT) -> OutcomeT | None:
        """Poll the run once. Returns its outcome, or reports its status (an event with a `status`)
        and returns None."""
        raise NotImplementedError

    def watch(self, env: RunEnvironment, ids: IdsT) -> Poll[OutcomeT]:
        """Return what polls the run during one wait. It can remember what earlier polls saw."""
        return lambda api: self.poll(api, ids)

    async def follow(self, api: Api, env: RunEnvironment, ids: IdsT) -> OutcomeT:
        """Wait for the run, on the worker or in the triggerer. Each status is logged once.

        Raises what a poll raises, the sixth transient failure in a row, and PlatformDeadlineError.
        """
        # A DAG file imports this module.
        from airflow_provider_platform.client.polling import poll_until

        last: Any = None
        report = api.report

        def report_change(event: Any) -> None:
            nonlocal last
            if hasattr(event, "status"):
                if event == last:
                    return
                last = event
            report(event)

        api = copy(api)
        api.report = report_change
        outcome: OutcomeT | None = await poll_until(
            api, self.watch(env, ids), replace(env.wait, grace=self.may_be_late)
        )
        if outcome is None:
            raise self.overdue(ids, last)
        return outcome

    def overdue(self, ids: IdsT, last: Any) -> PlatformDeadlineError:
        """Return the error of a run that was not over at its deadline. `last` is the last event
        with a status, None if there was none."""
        goes_on = (
            " The service has no operation that stops it, so the run continues, and a retry "
            "follows it."
        )
        status = quote_service(last.status if last else "unknown")
        return PlatformDeadlineError(
            f"The {self.noun} did not end before its deadline. Its last status was {status}."
            f"{'' if self.can_stop else goes_on}",
            where=self.where(ids),
        )

    def where(self, ids: IdsT) -> str:
        """Return the name of the run, for the end of an error message."""
        return f"{self.noun} {quote_service(ids[self.id_field])}, deployment {ids['deployment_id']}"

    async def poll_past_deadline(self, api: Api, env: RunEnvironment, ids: IdsT) -> OutcomeT | None:
        """Return the outcome of the run, or None if the run is not over now. A retry that comes
        after the deadline of a run that can be stopped asks this. A poll that fails for a moment is
        repeated for `SINGLE_POLL_SECONDS`."""
        # A DAG file imports this module.
        from airflow_provider_platform.client.polling import FailureBudget, poll_once
        from airflow_provider_platform.client.repeats import pause_after

        until = api.clock() + SINGLE_POLL_SECONDS
        while True:
            poll = self.watch(replace(env, deadline=api.clock()), ids)
            outcome: OutcomeT | None
            outcome, failure = await poll_once(
                api, poll, FailureBudget(), grace=self.may_be_late, notify_failures=False
            )
            if failure is None:
                return outcome
            if api.clock() >= until:
                raise failure
            pause = max(env.poll_interval, pause_after(failure, 1))
            await api.sleep(min(pause, until - api.clock()))

    async def stop(self, api: Api, ids: IdsT, *, seconds: float | None = None) -> bool:
        """Stop the run, within so many seconds if given. Returns False if this task has nothing to
        stop, and always for a kind that the service cannot stop."""
        return False

    def is_submitting(self, ids: IdsT) -> bool:
        """Return whether a part of an accepted run is being sent. A task that is ended then goes on
        until the service has accepted it."""
        return False

    def to_event(self, secrets: KnownSecrets, outcome: OutcomeT) -> dict[str, Any]:
        """Return the fields of the trigger's event about the outcome, as plain JSON without
        secrets: the fields of `outcome_class`."""
        fields: Any = outcome
        return secrets.redact_data({"outcome": asdict(fields)})

    async def read_event(
        self, api: Api, env: RunEnvironment, ids: IdsT, event: dict[str, Any]
    ) -> tuple[OutcomeT | None, IdsT]:
        """Return the outcome in the trigger's event, and the ids. The outcome is None if the run
        must be followed further."""
        return self.outcome_class(**event["outcome"]), ids

    async def read(self, api: Api, ids: IdsT, outcome: OutcomeT) -> Any:
        """Return the outcome's part of the task's result, without secrets. Raises PlatformError if
        the outcome is a failure."""
        return outcome

    async def resume(self, api: Api, env: RunEnvironment, ids: IdsT) -> IdsT:
        """Prepare to follow a run that an earlier try started, and return its ids. This method does
        only what may be repeated without harm."""
        return ids

    def carried_over(self, ids: IdsT) -> IdsT | None:
        """Return what a new submission of the same input must know of the run before it, whatever
        the outcome of that run was. `submit` gets it as `earlier`. None: nothing."""
        return None


async def find_lost_start(
    cause: PlatformError, find: Awaitable[OutcomeT | None], *, noun: str, listing: str
) -> OutcomeT:
    """Return the run that `find` finds. `cause` is the error of the start, `noun` is what was
    started, and `listing` is where `find` looks, both as errors name them.

    Raises PlatformTransportError if nothing was started, or if the listing could not be read, and
    PlatformOutcomeUnknownError if the listing does not show it.
    """
    # A DAG file imports this module.
    from airflow_provider_platform.client.repeats import outcome_unknown, what_came_instead

    came = what_came_instead(cause)
    try:
        found = await find
    except PlatformOutcomeUnknownError as error:
        raise outcome_unknown(error, cause) from cause
    except PlatformError as error:
        # Not the error itself, which describes the request for the listing and not the start.
        raise PlatformTransportError(
            f"{came} The request may have started a {noun}, but the {listing} could not be "
            f"read: {error.reason.removesuffix('.')}. A retry reads the {listing} again.",
            where=cause.where,
        ) from error
    if found is None:
        raise PlatformTransportError(
            f"{came} The {listing} shows no new {noun}. A retry starts a {noun}.",
            where=cause.where,
        ) from cause
    return found


def path_of(kind: RunKind[Any, Any]) -> str:
    """Return where the class of a kind is in `resources`, as `chat.run.ChatRunKind`. Operators name
    it so, because a DAG file does not load it; triggers store it."""
    return f"{type(kind).__module__}.{type(kind).__name__}".removeprefix(f"{__package__}.")


def kind_class(path: str) -> type[RunKind[Any, Any]]:
    """Return the class of a kind."""
    module, class_name = path.rsplit(".", 1)
    kind: type[RunKind[Any, Any]] = getattr(import_module(f"{__package__}.{module}"), class_name)
    return kind
