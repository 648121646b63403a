"""A chat service played by a test: it answers a program's effects, and its clock is ours.

It keeps one thread, starts a run when it processes a prompt, produces the run's records one after
the other, a second apart, whoever listens, and spoils single answers by a `Fault`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from airflow_provider_platform.client.errors import PlatformError, PlatformTransportError
from airflow_provider_platform.client.failed_calls import CHAT_STREAM, chat_error
from tests.support.fakes.effects import (
    CloseStream,
    OpenStream,
    Program,
    ReadStream,
    ReloadCredentials,
    SendChat,
    Sleep,
    play,
)
from tests.support.fakes.streams import (
    CHAT_ID,
    Record,
    Turn,
    aborted,
    cutoff,
    encode,
    folded,
    suspended,
)

T = TypeVar("T")

NOON = 1_800_000_000.0
_ROUNDING = 1e-3
BUSY = {"error": "Streaming for thread is in progress"}


@dataclass
class PlayedTime:
    """Unix time as a test plays it; services that share one live in the same moment."""

    now: float = NOON


@dataclass(frozen=True)
class Fault:
    """What happens to one answer.

    "refuse" gives an error status without processing the request, "lose" processes it and loses
    the answer; "unreachable" means that no connection is made. The others spoil the stream after
    so many bytes: a reset, a clean end, silence, blank lines for ever; "none" lets it through.
    """

    kind: Literal["none", "refuse", "lose", "unreachable", "reset", "close", "silence", "blank"]
    after: int = 0
    status: int = 503
    retry_after: str | None = None
    body: bytes = b'{"message": "Try later"}'

    def before(self) -> PlatformError | None:
        """The error that takes the place of an answer, of a request that is not processed."""
        if self.kind == "unreachable":
            return PlatformTransportError("no connection", processed=False)
        if self.kind == "refuse":
            headers = {"retry-after": self.retry_after} if self.retry_after else {}
            return chat_error(CHAT_STREAM, self.status, headers, self.body, now=NOON)
        return None


@dataclass
class PlayedService:
    """The service. `faults` are those of the first answers, one for each.

    `replay` says where a subscriber gets what it missed, `follow_up` whether a request without
    input is subscribed at all, `history` whether records are replayed to those who are not.
    `ends` is what the run ends with, after `turn`'s records; it pauses before record `suspends_at`
    until a request resumes it (one with input, if `resume` says so). `scripted` are first answers
    that are sent unchanged, without any effect. `pace` is the time between two records, in
    seconds; with `by_lines` every record comes by itself. `chat_id` names its thread.
    """

    turn: Turn = field(default_factory=Turn)
    earlier: tuple[Turn, ...] = ()
    faults: list[Fault] = field(default_factory=list)
    replay: Literal["before", "after", "none"] = "before"
    raw: bool = False
    history: bool = True
    follow_up: Literal["subscribe", "state"] = "subscribe"
    ends: list[Record] | None = None
    records: list[Record] | None = None
    suspends_at: int | None = None
    resume: Literal["follow_up", "input", "never"] = "follow_up"
    busy_until: float = 0.0
    scripted: list[list[Any]] = field(default_factory=list)
    pace: float = 1.0
    by_lines: bool = False
    reloads: list[bool] = field(default_factory=list)

    chat_id: str = CHAT_ID
    time: PlayedTime = field(default_factory=PlayedTime)
    bodies: list[Record] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    aborts: list[Record] = field(default_factory=list)
    abort_errors: list[PlatformError] = field(default_factory=list)
    """What the next aborts end with, unprocessed."""
    sleeps: list[float] = field(default_factory=list)
    notices: list[Any] = field(default_factory=list)
    accepted_at: int | None = None
    _stream: Answer | None = None
    _resumed_at: float | None = None
    _stopped_at: float | None = None

    def __post_init__(self) -> None:
        self.records = self.turn.records() if self.records is None else self.records
        self.ends = self.turn.end(self.earlier) if self.ends is None else self.ends

    @property
    def now(self) -> float:
        return self.time.now

    @now.setter
    def now(self, value: float) -> None:
        self.time.now = value

    @property
    def prompts(self) -> list[Record]:
        """The requests with `input`, processed or not."""
        return [body for body in self.bodies if "input" in body]

    def clock(self) -> float:
        return self.now

    def produced(self) -> list[Record]:
        """What the run has brought forth by now, its end included."""
        if not self.starts:
            return []
        all_records = [*(self.records or []), *(self.ends or [])]
        if self._stopped_at is not None:
            return [*all_records[: self._count(self._stopped_at - self.starts[0])], aborted()]
        pause = self.suspends_at
        if pause is None:
            return all_records[: self._count(self.now - self.starts[0])]
        first = min(pause, self._count(self.now - self.starts[0]))
        if self._resumed_at is None:
            return all_records[:first]
        return all_records[: pause + self._count(self.now - self._resumed_at)]

    def _count(self, seconds: float) -> int:
        return int(seconds / self.pace + _ROUNDING) + 1 if self.pace else 10**9

    @property
    def suspended(self) -> bool:
        at = self.suspends_at
        return at is not None and self._resumed_at is None and len(self.produced()) >= at

    @property
    def over(self) -> bool:
        until_end = len(self.records or []) + len(self.ends or [])
        return self._stopped_at is not None or len(self.produced()) >= until_end

    @property
    def streaming(self) -> bool:
        return bool(self.starts) and not self.over and not self.suspended

    def next_change(self) -> float:
        """When the next record comes."""
        start = self.starts[0] if self._resumed_at is None else self._resumed_at
        return start + self._count(self.now - start) * self.pace

    def perform(self, effect: Any) -> Any:
        match effect:
            case OpenStream(body=body, timeout=timeout):
                self._open(body, timeout)
            case ReadStream(timeout=timeout):
                assert self._stream is not None, "no stream is open"
                return self._stream.read(timeout)
            case CloseStream():
                self._stream = None
            case Sleep(seconds=seconds):
                self.sleeps.append(seconds)
                self.now += seconds
            case SendChat(body=body):
                self.aborts.append(body)
                if self.abort_errors:
                    raise self.abort_errors.pop(0)
                self._stopped_at = self.now
            case ReloadCredentials():
                return self.reloads.pop(0) if self.reloads else False
            case _:
                raise AssertionError(f"unexpected effect {effect!r}")
        return None

    def _open(self, body: Record, timeout: float) -> None:
        assert self._stream is None, "the stream before was not closed"
        self.bodies.append(body)
        fault = self.faults.pop(0) if self.faults else Fault("none")
        refusal = fault.before()
        if refusal is not None:
            raise refusal
        head, start = self._answer(body)
        if fault.kind == "lose":
            self.now += timeout
            raise PlatformTransportError("no complete answer in time")
        self._stream = Answer(self, fault, head, start)

    def _answer(self, body: Record) -> tuple[list[Record], int | None]:
        """What the answer begins with, and from which of the run's records on it goes on; None
        where it ends there."""
        if self.scripted:
            return self.scripted.pop(0), None
        turns = self.earlier if self.history else ()
        history = [record for turn in turns for record in turn.records()]
        prompted = "input" in body
        if prompted and self.now < self.busy_until:
            return [*history, self._mark(streaming=True), BUSY], None
        if prompted and (not self.starts or self.over):
            self.starts.append(self.now)
            return [*history, self._mark(streaming=False)], 0
        if self.suspended and self._resumes(prompted=prompted):
            all_records = len(self._own())
            self._resumed_at = self.now
            return self._joined(history, self._own()[:all_records]), all_records
        if self.suspended:
            sent_so_far = [*history, *folded(self._own())]
            return [*sent_so_far, self._mark(streaming=False), suspended()], None
        if self.streaming and (prompted or self.follow_up == "subscribe"):
            return self._joined(history, self._own()), len(self.produced())
        return [*history, *self._rest()], None

    def _resumes(self, *, prompted: bool) -> bool:
        return self.resume == "follow_up" or (prompted and self.resume == "input")

    def _own(self) -> list[Record]:
        return [r for r in self.produced() if not str(r.get("id", "__")).startswith("__")]

    def _rest(self) -> list[Record]:
        """The thread's own turn, its mark and its state, for who is not subscribed."""
        own = folded(self._own()) if self.history else []
        mark = self._mark(streaming=self.streaming)
        if self._stopped_at is not None:
            return [*own, aborted(), mark]
        ends = self.ends or []
        return [*own, mark, *(ends[:1] if self.starts and self.over else [self._state()])]

    def _joined(self, history: list[Record], own: list[Record]) -> list[Record]:
        mark = self._mark(streaming=True)
        seen = own if self.raw else folded(own)
        if self.replay == "before":
            return [*history, *seen, mark]
        if self.replay == "after":
            return [*history, mark, *seen]
        return [*history, mark]

    def _mark(self, *, streaming: bool) -> Record:
        return cutoff(streaming=streaming, chat_id=self.chat_id)

    def _state(self) -> Record:
        before = [message for turn in self.earlier for message in turn.messages()]
        own = self.turn.messages(answered=False) if self.starts else []
        held = {"messages": [*before, *own]}
        return {"id": "__state__", "role": "assistant", "isDelta": False, "state": held}


class Answer:
    """The bytes of one answer as they come, spoiled by its fault."""

    def __init__(
        self, service: PlayedService, fault: Fault, head: list[Record], start: int | None
    ) -> None:
        self._service = service
        self._fault = fault
        self._waiting = encode(*head)
        self._next = start
        self._sent = 0
        self._shown = b""

    def read(self, timeout: float) -> bytes | None:
        """The next bytes, as `ReadStream` describes them."""
        service = self._service
        until = service.now + timeout
        while True:
            if self._fault.kind != "none" and self._sent >= self._fault.after:
                return self._spoiled(until)
            self._take_produced()
            if self._waiting:
                return self._give()
            if self._next is None or service.over:
                return b""
            if service.suspended:
                self._waiting, self._next = encode(suspended()), None
            elif service.next_change() > until:
                service.now = until
                return None
            else:
                service.now = service.next_change()

    def _take_produced(self) -> None:
        if self._next is not None:
            produced = self._service.produced()
            self._waiting += encode(*produced[self._next :])
            self._next = max(self._next, len(produced))

    def _give(self) -> bytes:
        data = self._waiting
        if self._service.by_lines:
            data = data[: data.index(b"\n") + 1]
        if self._fault.kind != "none":
            data = data[: self._fault.after - self._sent]
        self._waiting = self._waiting[len(data) :]
        self._sent += len(data)
        self._note_acceptance(data)
        return data

    def _note_acceptance(self, data: bytes) -> None:
        """Remember the request in whose answer the client could see its own echo."""
        self._shown += data
        echo = f'"id":"{self._service.turn.message_id}","role":"user"'.encode()
        lines = self._shown.split(b"\n")[:-1]
        if self._service.accepted_at is None and any(echo in line for line in lines):
            self._service.accepted_at = len(self._service.bodies)

    def _spoiled(self, until: float) -> bytes | None:
        if self._fault.kind == "reset":
            self._service._stream = None
            raise PlatformTransportError("the connection broke")
        if self._fault.kind == "close":
            return b""
        if self._fault.kind == "blank":
            self._service.now += 1.0
            return b"\n" if self._shown.endswith(b"\n") else b" "
        self._service.now = until
        return None


def drive(program: Program[T], service: PlayedService) -> T:
    """Run a program to its end, with the service answering its effects."""
    return play(program, service.perform, service.notices)
