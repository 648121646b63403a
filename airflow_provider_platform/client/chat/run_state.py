"""`RunState`: the part of a chat run that its connections write: ids, acceptance, echo and records.

A connection reads what a record says of the run and notes it here; what the whole of it means is
judged in `run`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_provider_platform.client.chat.events import ProgressEvents
from airflow_provider_platform.client.chat.record_fold import RecordFold
from airflow_provider_platform.client.chat.request import input_digest, is_message_id
from airflow_provider_platform.client.chat.state_messages import ThreadMessages
from airflow_provider_platform.client.formats.service_text import quote_service


@dataclass(kw_only=True, eq=False)
class RunState:
    """What the connections have told of one message's run.

    `digest` is the prompt's `input_digest`; `thread_given` says that the caller named the thread,
    so that it may hold other turns. `accepted` turns true once the service has shown that it
    processes the message. `max_rows` is how many rows of a query are kept; with `details` thoughts
    and searches are kept too.
    """

    message_id: str
    digest: str
    chat_id: str | None = None
    thread_given: bool = False
    accepted: bool = False
    max_rows: int = 100
    details: bool = False

    def __post_init__(self) -> None:
        self.echo_id: str | None = None
        """The id under which the service tells of our message, once that is known."""
        self.usage: dict[str, Any] | None = None
        self._fold = RecordFold(self.max_rows, details=self.details)
        self._known_before: RecordFold | None = None
        self._progress = ProgressEvents(
            thread_known=self.chat_id is not None, accepted=self.accepted
        )

    def __str__(self) -> str:
        thread = quote_service(self.chat_id) if self.chat_id else "(no thread yet)"
        return f"chat {thread}, message {self.message_id}"

    @property
    def can_be_followed(self) -> bool:
        """Whether the message is accepted and its thread known."""
        return self.accepted and self.chat_id is not None

    def learn_chat_id(self, chat_id: Any) -> None:
        """The thread's id, as the service names it; the one that we know stays."""
        if self.chat_id is None and isinstance(chat_id, str) and chat_id.isprintable():
            self.chat_id = chat_id or None

    def forget_thread(self) -> None:
        """The thread that the service made for our message is gone, and the message with it."""
        self.chat_id = None
        self.echo_id = None
        self._progress.forget_thread()

    def learn_echo_id(self, received_id: str) -> None:
        """The id under which the service tells of our message: our own, if it ever does so."""
        if self.echo_id is None or received_id == self.message_id:
            self.echo_id = received_id

    def take_echo(self) -> None:
        """Our message came back: the run is told from its beginning."""
        self.accepted = True
        if self._known_before is None or self._fold.size > self._known_before.size:
            self._known_before = self._fold
        self._fold = self._fold.restart()

    def take_assistant(self, record: dict[str, Any], *, known_up_to: float | None) -> None:
        """Fold a record of the run in, and note what is worth telling."""
        folded = self._fold.add(record, known_up_to=known_up_to)
        if folded is not None:
            self._progress.note_record(folded)

    def take_delta(self, record: dict[str, Any]) -> bool:
        """Fold in one more delta of a known record, which is no news; False for any other, and for
        one that ends a thought."""
        thinks = self._progress.thinks
        if thinks is not None and (
            record.get("id") != thinks.id or record.get("isInProcess") is not True
        ):
            return False
        return self._fold.append(record)

    def may_be_ours(self, message_id: str, text: str) -> bool:
        """Whether a message of the thread has our id, or our words and no client's id."""
        if is_message_id(message_id):
            return message_id == self.message_id
        return input_digest(text) == self.digest

    def is_our_prompt(self, messages: ThreadMessages) -> bool:
        """Whether the last human message of a thread is ours."""
        return bool(messages.humans) and self.may_be_ours(*messages.humans[-1])
