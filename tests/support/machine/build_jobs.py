"""A deployment's builds of pre-aggregations, played with its tokens.

Every start that is processed begins builds of their own (`Builds`), so that starting twice shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.errors import (
    PlatformAuthenticationError,
    PlatformPermissionError,
)
from tests.support.fakes.played_service import PlayedTime
from tests.support.machine.tenant import ADDRESS, DEPLOYMENT

if TYPE_CHECKING:
    from airflow_provider_platform.client.operation import Operation
    from tests.support.fakes.effects import CallData
    from tests.support.machine.platform import Status
    from tests.support.machine.simulation import Actor

QUEUED_SECONDS = 20.0
BUILD_SECONDS = 60.0
MISSING_SECONDS = 30.0
"""Seconds for which a table is in neither place: it has left the queue and is not there yet."""
FORGOTTEN = {"status": "not_found"}


@dataclass(frozen=True)
class JobsHabits:
    """What this deployment reports of its builds: with `missing_before_end` tables that are missing
    for a moment, with `failure_once` a failure that is reported once and lost after that. With
    `repeat` the author has a start repeated whose answer was lost."""

    missing_before_end: bool = False
    failure_once: bool = False
    repeat: bool = False


@dataclass
class Builds:
    """The builds of one start. `began_by` names the start in a record that has no tokens yet."""

    number: int
    time: PlayedTime
    habits: JobsHabits
    began_by: float | None

    can_stop = False
    in_existing_thread = True
    was_suspended = False

    def __post_init__(self) -> None:
        self.repeats_lost_start = self.habits.repeat
        self.started_at = self.time.now
        self.epoch = 0
        """Which wish of a user they serve (see `PlayedTask.epoch`)."""
        self.late = False
        """Whether a try started them that Airflow had given up."""
        self.tokens = [f"{self.number:04x}{table}" for table in range(2)]
        self.reported_done = False
        self._failure_reports = 0
        self._broken_off: Status | None = None

    def __repr__(self) -> str:
        return f"builds {self.number} ({self.status})"

    @property
    def status(self) -> Status:
        """`aborted` once the service has forgotten its jobs."""
        if self._broken_off is not None:
            return self._broken_off
        missing = MISSING_SECONDS if self.habits.missing_before_end else 0.0
        end = self.started_at + BUILD_SECONDS + missing
        return "finished" if self.time.now >= end else "streaming"

    @property
    def expected(self) -> dict[str, Any]:
        """The result of a task that waited for them."""
        return {
            "status": "done",
            "table_count": len(self.tokens),
            "tables": [f"table_{token}" for token in self.tokens],
            "tokens": self.tokens,
            "verified": None,
        }

    def is_named_by(self, ids: dict[str, Any]) -> bool:
        """Whether a record's ids name them, or the start that began them."""
        if "tokens" in ids:
            return bool(ids["tokens"] == self.tokens)
        return self.began_by is not None and ids.get("submitted_at") == self.began_by

    def is_known_to(self, ids: dict[str, Any]) -> bool:
        """Whether a record's ids have their tokens."""
        return bool(ids.get("tokens") == self.tokens)

    def break_off(self) -> None:
        """Have one of them fail."""
        if self.status == "streaming":
            self._broken_off = "failed"

    def forget(self) -> None:
        """The service loses its jobs."""
        if self._broken_off is None:
            self._broken_off = "aborted"

    def report(self, token: str) -> dict[str, Any]:
        """What the service says of one token."""
        table = f"table_{token}"
        if self._broken_off == "aborted":
            return FORGOTTEN
        age = self.time.now - self.started_at
        status = "scheduled" if age < QUEUED_SECONDS else "processing"
        if age >= BUILD_SECONDS:
            status = "missing_partition" if self.status == "streaming" else "done"
        if self._broken_off == "failed" and token == self.tokens[0]:
            self._failure_reports += 1
            lost = self.habits.failure_once and self._failure_reports > 1
            status = "missing_partition" if lost else "failure: the warehouse is away"
        elif self._broken_off == "failed":
            status = "done"
        return {"table": table, "status": status}


@dataclass
class SimulatedJobs:
    """The service: its jobs, its token, and the data tokens that it gave."""

    habits: JobsHabits
    time: PlayedTime = field(default_factory=PlayedTime)
    key: str = ""
    builds: list[Builds] = field(default_factory=list)

    starts = ()

    def __post_init__(self) -> None:
        self._data_tokens: list[str] = []

    def connection(self, key: str) -> dict[str, Any]:
        """The fields of a connection with this token."""
        return {"host": ADDRESS, "password": key, "extra": {"deployment_id": DEPLOYMENT}}

    def secret_of(self, config: Any) -> str:
        """What the client sends to prove who it is."""
        secret: str = config.management_token.get_secret_value()
        return secret

    def check_key(self, key: str) -> None:
        """Raises PlatformAuthenticationError for a token that is not the one; it quotes it."""
        if key != self.key:
            raise PlatformAuthenticationError(f"401: token {key} is not valid", status=401)

    def expire_data_tokens(self) -> None:
        """The data tokens that it gave are valid no longer."""
        self._data_tokens = []

    def runs(self) -> list[Builds]:
        return self.builds

    def concerned(self, _: Operation[Any]) -> Builds | None:
        """No call of the management API names builds."""
        return None

    def answer(self, operation: Operation[Any], _: Actor) -> tuple[Any, None]:
        """The response to a call of the management API."""
        if operation.operation_id == "getDeployment":
            return {"id": DEPLOYMENT, "deploymentUrl": "https://acme.example.com/1"}, None
        assert operation.operation_id == "deploymentToken", operation.operation_id
        self._data_tokens.append(f"canary-data-token-{len(self._data_tokens)}-{self.time.now}")
        return {"cubeApiToken": self._data_tokens[-1]}, None

    def concerned_by(self, request: CallData) -> Builds | None:
        """The builds whose tokens a request of the data API has."""
        tokens = request.body.get("tokens", [])
        return next((one for one in self.builds if set(tokens) & set(one.tokens)), None)

    def answer_data(self, request: CallData, actor: Actor) -> tuple[Any, Builds | None]:
        """The response to a request of the data API, and the builds that it started."""
        token = request.token.get_secret_value()
        if request.body["action"] == "post":
            started = Builds(
                len(self.builds) + 1, self.time, self.habits, actor.known.store.began_by
            )
            self.builds.append(started)
            return started.tokens, started
        if token not in self._data_tokens:
            raise PlatformPermissionError("403: the data token has expired", status=403)
        known = {token: one for one in self.builds for token in one.tokens}
        asked = request.body["tokens"]
        told = [{"token": token, **known[token].report(token)} for token in asked]
        for one in {known[token].number: known[token] for token in asked}.values():
            if one.status == "finished":
                one.reported_done = True
        return told, None
