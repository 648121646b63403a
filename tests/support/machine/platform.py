"""A chat service with many threads, many askers and one key, played on top of `PlayedService`.

Each message that is processed is a run of its own (`Run`); a thread answers with its last one. A
prompt that comes a second time to a thread that streams nothing is asked a second time, so that
asking twice shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_platform.client.failed_calls import CHAT_STREAM, chat_error
from tests.support.fakes.played_service import BUSY, Answer, Fault, PlayedService, PlayedTime
from tests.support.fakes.streams import Record, Turn, aborted, folded, query_result

if TYPE_CHECKING:
    from collections.abc import Iterator

USER = "analyst"
ADDRESS = "https://acme.example.com/agents/1/chat"
PACE = 10.0
"""Seconds between two records."""

Status = Literal["streaming", "suspended", "finished", "aborted", "failed"]


@dataclass(frozen=True)
class Habits:
    """How this service answers: what is replayed and where, whether a follow-up is subscribed,
    what resumes a suspended run, what a later look at a stopped thread gets, and whether its runs
    are `long`: of many records."""

    replay: Literal["before", "after", "none"] = "before"
    follow_up: Literal["subscribe", "state"] = "subscribe"
    resume: Literal["follow_up", "input", "never"] = "follow_up"
    stopped: Literal["aborted", "state", "aborted and state", "mark"] = "aborted"
    long: bool = False


@dataclass
class ShortTurn(Turn):
    """A turn of few records, unless it is `long`."""

    long: bool = False

    def records(self) -> list[Record]:
        told = super().records()
        if self.long:
            return told
        kept = [r for r in told if r.get("id") in (self.message_id, self._id("query"))]
        answer = [r for r in told if r.get("id") == self._id("answer")]
        return [*kept, answer[0], answer[-1]]


class PastTurn(Turn):
    """A turn that is over, as the history of its thread has it."""

    def __init__(self, run: Run) -> None:
        super().__init__(prompt=run.turn.prompt, message_id=run.turn.message_id)
        self._run = run

    def records(self) -> list[Record]:
        stop = [aborted()] if self._run.status == "aborted" else []
        return [*self._run.own(), *stop]

    def messages(self, *, answered: bool = True) -> list[Record]:
        return self._run.turn.messages(answered=self._run.status == "finished")


class Run(PlayedService):
    """One run of the agent."""

    can_stop = True
    repeats_lost_start = False

    def __init__(self, thread: Thread, prompt: str, message_id: str, asker: Any) -> None:
        platform = thread.platform
        self.number = next(platform.numbers)
        self.asker = asker
        self.broke = False
        self.was_suspended = False
        self.in_existing_thread = bool(thread.runs)
        self.epoch = 0
        """Which wish of a user it serves (see `PlayedTask.epoch`)."""
        self.late = False
        """Whether a try started it that Airflow had given up."""
        self.habits = platform.habits
        turn = ShortTurn(
            prompt=prompt,
            message_id=message_id,
            answer=f"Answer {self.number} to {prompt}",
            rows=[[f"month {self.number}", float(self.number)]],
            name=f"{self.number}-",
            long=self.habits.long,
        )
        super().__init__(
            turn=turn,
            earlier=tuple(PastTurn(run) for run in thread.runs),
            replay=self.habits.replay,
            follow_up=self.habits.follow_up,
            resume=self.habits.resume,
            pace=PACE,
            chat_id=thread.chat_id,
            time=platform.time,
        )

    def __repr__(self) -> str:
        return f"run {self.number} ({self.status}) of {self.turn.message_id} in {self.chat_id}"

    @property
    def message_id(self) -> str:
        return self.turn.message_id

    @property
    def started_at(self) -> float:
        return self.starts[0]

    def is_named_by(self, ids: dict[str, Any]) -> bool:
        """Whether a record's ids name its message."""
        return ids.get("message_id") == self.message_id

    def is_known_to(self, ids: dict[str, Any]) -> bool:
        """Whether a record's ids name its message and its thread."""
        return self.is_named_by(ids) and ids.get("chat_id") == self.chat_id

    @property
    def status(self) -> Status:
        if self._stopped_at is not None:
            return "aborted"
        if self.broke:
            return "failed"
        if len(self.produced()) >= len(self.records or []):
            return "finished"  # its answer is told; its state may come later
        return "suspended" if self.suspended else "streaming"

    @property
    def expected(self) -> Record:
        """The result of the run, without its usage."""
        shown = query_result(self.turn.rows)
        columns = [{"name": c["name"], "type": c["column_type"]} for c in shown["schema"]]
        query = {
            "title": "Revenue",
            "description": "by month",
            "sql": "SELECT 1",
            "columns": columns,
            "rows": self.turn.rows,
            "total_rows": 1,
            "truncated": False,
            "uuid": "q-1",
            "chart": None,
            "error": None,
        }
        return {
            "answer": self.turn.answer,
            "chat_id": self.chat_id,
            "message_id": self.message_id,
            "queries": [query],
            "prompt": self.turn.prompt,
            "user": USER,
        }

    @property
    def is_answering(self) -> bool:
        """Whether a part of its answer is told."""
        return any(record.get("graphPath") == ["final"] for record in self.own())

    def own(self) -> list[Record]:
        """The records of the turn so far."""
        return self._own()

    def stop(self) -> None:
        """Abort it."""
        self.records, self.ends = self.own(), []
        self.suspends_at = None
        self._stopped_at = self.now

    def suspend(self) -> None:
        """Pause it here until somebody resumes it."""
        self.was_suspended = True
        self.suspends_at = len(self.produced())
        self._resumed_at = None

    def break_off(self, *, error: bool) -> None:
        """End it here without an answer: with an error line, or with its state."""
        self.records = self.own()
        self.ends = [{"error": "The agent lost its way"}] if error else [self._state()]
        self.suspends_at = None
        self.broke = True

    def join(self, body: Record) -> Answer:
        """The answer to a request that this run answers."""
        head, start = self._answer(body)
        return Answer(self, Fault("none"), head, start)

    def refuse(self) -> Answer:
        """The answer to a prompt while another message is being answered."""
        history = [record for turn in self.earlier for record in turn.records()]
        return Answer(self, Fault("none"), [*history, self._mark(streaming=True), BUSY], None)

    def _rest(self) -> list[Record]:
        if self._stopped_at is None:
            return super()._rest()
        mark = self._mark(streaming=False)
        told = {
            "aborted": [aborted(), mark],
            "state": [mark, self._state()],
            "aborted and state": [aborted(), mark, self._state()],
            "mark": [mark],
        }
        return [*folded(self.own()), *told[self.habits.stopped]]


@dataclass
class Thread:
    """A conversation."""

    platform: SimulatedPlatform
    chat_id: str
    runs: list[Run] = field(default_factory=list)

    @property
    def active(self) -> Run | None:
        last = self.runs[-1] if self.runs else None
        return last if last is not None and last.status in ("streaming", "suspended") else None


class SimulatedPlatform:
    """The service: its threads, its key, and what was asked of it."""

    def __init__(self, habits: Habits) -> None:
        self.habits = habits
        self.time = PlayedTime()
        self.numbers = count(1)
        self.threads: dict[str, Thread] = {}
        self.key = ""
        self.prompts: list[tuple[str, str, Any]] = []
        """Thread, message id and asker of each prompt that was processed or found a run."""

    def connection(self, key: str) -> dict[str, Any]:
        """The fields of a connection with this key."""
        settings = {"externalId": USER}
        extra = {"chat_url": ADDRESS, "chat_api_key": key, "session_settings": settings}
        return {"extra": extra}

    def secret_of(self, config: Any) -> str:
        """What the client sends to prove who it is."""
        secret: str = config.chat_api_key.get_secret_value()
        return secret

    def runs(self) -> Iterator[Run]:
        for thread in self.threads.values():
            yield from thread.runs

    def new_thread(self) -> Thread:
        chat_id = f"thread-{len(self.threads) + 1}"
        self.threads[chat_id] = Thread(self, chat_id)
        return self.threads[chat_id]

    def check_key(self, key: str) -> None:
        """Raises PlatformAuthenticationError for a key that is not the one; it quotes it."""
        if key != self.key:
            said = f'{{"error": "API key {key} is not valid"}}'.encode()
            raise chat_error(CHAT_STREAM, 401, {}, said, now=self.time.now)

    def open(self, body: Record, asker: Any) -> tuple[Answer, Run | None]:
        """The answer to a stream request, and the run that it started, if it did."""
        chat_id = body.get("chatId")
        if chat_id is not None and chat_id not in self.threads:
            raise chat_error(CHAT_STREAM, 404, {}, b'{"error": "no thread"}', now=self.time.now)
        prompted = "input" in body
        assert prompted or chat_id is not None
        thread = self.threads[chat_id] if chat_id is not None else self.new_thread()
        active = thread.active
        if not prompted:
            return thread.runs[-1].join(body), None
        if active is not None and active.message_id != body["messageId"]:
            if active.status == "streaming":
                return active.refuse(), None
            active.break_off(error=False)  # nobody resumed it before the next message came
            active = None
        self.prompts.append((thread.chat_id, body["messageId"], asker))
        if active is not None:
            return active.join(body), None
        run = Run(thread, body["input"], body["messageId"], asker)
        thread.runs.append(run)
        return run.join(body), run

    def abort(self, body: Record) -> Run | None:
        """Stop what streams in a thread; the run that was stopped."""
        thread = self.threads.get(body["chatId"])
        if thread is None:
            raise chat_error(CHAT_STREAM, 404, {}, b'{"error": "no thread"}', now=self.time.now)
        run = thread.active
        if run is not None:
            run.stop()
        return run
