"""Record streams as the service sends them, built by hand for the tests of the chat client."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.resources.chat.request import input_digest
from airflow_provider_platform.resources.chat.result import ChatResult, as_plain, check_tools
from airflow_provider_platform.resources.chat.run_state import ChatRun, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_platform.resources.chat.run_state import ChatEvent

Record = dict[str, Any]

CHAT_ID = "a1b2c3d4-08d7-40b9-8b1c-e7e3a698647e"
MESSAGE_ID = "1732512345678-message"
EARLIER_ID = "1732512000000-message"
PROMPT = "Show me revenue trends"
ANSWER = "Revenue grew – by 12 % 📈,\u2028mostly in “Zürich”."
USAGE = {"inputTokens": 900, "outputTokens": 100, "totalTokens": 1000}
EXPECTED: Record = {
    "answer": ANSWER,
    "chat_id": CHAT_ID,
    "message_id": MESSAGE_ID,
    "queries": [
        {
            "title": "Revenue",
            "description": "by month",
            "sql": "SELECT 1",
            "columns": [
                {"name": "month", "type": "String"},
                {"name": "revenue", "type": "Double"},
            ],
            "rows": [["2026-01", 1.5], ["2026-02", None]],
            "total_rows": 2,
            "truncated": False,
            "uuid": "q-1",
            "chart": None,
            "error": None,
        }
    ],
    "usage": USAGE,
}
"""The result of a `Turn`, whatever happens on the way."""
LATE: Record = {**EXPECTED, "usage": None}
"""The same, read from the thread after the run: only connected clients get the usage."""


ANY_JSON: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    10**400,
    float("nan"),
    float("inf"),
    "",
    "text",
    [],
    [[]],
    [None, 1, "a", {}],
    {},
    {"a": 1},
    {"message": []},
]
"""What may stand where something else was described."""


def cutoff(*, streaming: bool | None = False, chat_id: str | None = CHAT_ID) -> Record:
    state: Record = {"chatId": chat_id, "isStreaming": streaming}
    present = {name: value for name, value in state.items() if value is not None}
    return {"id": "__cutoff__", "role": "assistant", "sort": 0, "state": present}


def echo(message_id: str = MESSAGE_ID, prompt: str = PROMPT) -> Record:
    return {"id": message_id, "role": "user", "content": prompt, "isDelta": False, "sort": 1}


def state(messages: list[Record] | None = None, *, streaming: bool | None = None) -> Record:
    held: Record = {} if messages is None else {"messages": messages}
    if streaming is not None:
        held["isStreaming"] = streaming
    return {"id": "__state__", "role": "assistant", "isDelta": False, "state": held}


def usage() -> Record:
    return {"id": "__usage__", "role": "assistant", "usage": USAGE}


def aborted() -> Record:
    return {"id": "__aborted__", "role": "assistant"}


def suspended() -> Record:
    return {"id": "__suspended__", "role": "assistant"}


def serialized(kind: str, content: Any, message_id: str | None = None, **fields: Any) -> Record:
    """A conversation message as it stands in `__state__`."""
    known = {"content": content, **({"id": message_id} if message_id else {}), **fields}
    name = ["langchain_core", "messages", kind]
    return {"lc": 1, "type": "constructor", "id": name, "kwargs": known}


def final(content: str, *, record_id: str = "final-1", **fields: Any) -> Record:
    return {
        "id": record_id,
        "role": "assistant",
        "content": content,
        "graphPath": ["final"],
        "isDelta": False,
        "isInProcess": False,
        **fields,
    }


def tool(
    name: str,
    given: Record | None = None,
    result: Record | str | None = None,
    *,
    record_id: str = "tool-1",
    **fields: Any,
) -> Record:
    call: Record = {"name": name, "input": json.dumps(given or {})}
    if result is not None:
        call["result"] = result if isinstance(result, str) else json.dumps(result)
    return {
        "id": record_id,
        "role": "assistant",
        "graphPath": ["service_data_analyst_agent", "tools"],
        "isDelta": False,
        "isInProcess": result is None,
        "toolCall": call,
        **fields,
    }


def query_result(rows: list[list[Any]], *, total: int | None = None, **fields: Any) -> Record:
    return {
        "sqlQuery": "SELECT 1",
        "queryTitle": "Revenue",
        "description": "by month",
        "schema": [
            {"name": "month", "column_type": "String"},
            {"name": "revenue", "column_type": "Double"},
        ],
        "data": rows,
        "totalRows": len(rows) if total is None else total,
        "uuid": "q-1",
        **fields,
    }


@dataclass
class Turn:
    """One turn of a conversation: what the service streams for it, in order.

    `prefix` is that of the tools; with `one_sort` all records of a message carry the same `sort`;
    without `closing` the answer comes in deltas only.
    """

    prompt: str = PROMPT
    message_id: str = MESSAGE_ID
    answer: str = ANSWER
    rows: list[list[Any]] = field(default_factory=lambda: [["2026-01", 1.5], ["2026-02", None]])
    prefix: str = "service"
    one_sort: bool = False
    closing: bool = True
    name: str = ""

    def records(self) -> list[Record]:
        """The echo and the assistant's records, up to the final answer."""
        sorts = count(2)
        given = {"sqlQuery": "SELECT 1", "queryTitle": "Revenue", "userRequest": self.prompt}
        meta = {"searchQuery": "revenue"}
        sent = [
            self._record("thought", sorts, graph="agent", thinking="Let me think.", content=""),
            *self._text("note", "I look at the model – first. ", sorts, graph="agent"),
            *self._tool("meta", "Meta", meta, {"cubes": [{"name": "orders"}], **meta}, sorts),
            *self._tool("query", "SqlApi", given, query_result(self.rows), sorts),
            *self._text("answer", self.answer, sorts, graph="final", closing=self.closing),
        ]
        return [echo(self.message_id, self.prompt), *sent]

    def messages(self, *, answered: bool = True) -> list[Record]:
        """The turn as it stands in the messages of `__state__`."""
        sent = [
            serialized("HumanMessage", self.prompt, self.message_id),
            serialized("AIMessage", "", tool_calls=[{"name": self.prefix + "SqlApi"}]),
            serialized("ToolMessage", "{}"),
        ]
        return [*sent, serialized("AIMessage", self.answer)] if answered else sent

    def end(self, earlier: Iterable[Turn] = (), *, answered: bool = True) -> list[Record]:
        """`__state__` and `__usage__`."""
        before = [message for turn in earlier for message in turn.messages()]
        return [state([*before, *self.messages(answered=answered)]), usage()]

    def stream(self, *earlier: Turn) -> list[Record]:
        """Everything that the answer to the prompt carries."""
        history = [record for turn in earlier for record in turn.records()]
        return [*history, cutoff(), *self.records(), *self.end(earlier)]

    def _id(self, name: str) -> str:
        return f"{self.name}{name}"

    def _record(self, name: str, sorts: count[int], *, graph: str, **fields: Any) -> Record:
        node = "final" if graph == "final" else f"{self.prefix}_data_analyst_agent"
        defaults = {"isDelta": False, "isInProcess": False, "isStructuredResponse": False}
        return {
            "id": self._id(name),
            "role": "assistant",
            "graphPath": [node, "tools"] if graph == "tools" else [node],
            "sort": next(sorts),
            **defaults,
            **fields,
        }

    def _text(
        self, name: str, text: str, sorts: count[int], *, graph: str, closing: bool = True
    ) -> list[Record]:
        pieces = [text[at : at + 9] for at in range(0, len(text), 9)]
        sent = [
            self._record(name, sorts, graph=graph, content=piece, isDelta=True, isInProcess=True)
            for piece in pieces
        ]
        if closing:
            sent.append(self._record(name, sorts, graph=graph, content=text))
        return self._sorted(sent)

    def _tool(
        self, name: str, kind: str, given: Record, result: Record, sorts: count[int]
    ) -> list[Record]:
        call = {"name": self.prefix + kind, "input": json.dumps(given)}
        done = {**call, "result": json.dumps(result, ensure_ascii=False)}
        parts = [(call, True), (done, False)]
        return self._sorted(
            [
                self._record(
                    name, sorts, graph="tools", content="", toolCall=part, isInProcess=going
                )
                for part, going in parts
            ]
        )

    def _sorted(self, records: list[Record]) -> list[Record]:
        return [{**r, "sort": records[0]["sort"]} for r in records] if self.one_sort else records


EARLIER_TURN = Turn(prompt="Old?", message_id=EARLIER_ID, answer="Old.", name="old-").records()


def folded(records: list[Record]) -> list[Record]:
    """Records as a history shows them: one full record for each id."""
    known: dict[str, Record] = {}
    for record in records:
        before = known.get(record["id"])
        if before is not None and record.get("isDelta"):
            content = before["content"] + record["content"]
            known[record["id"]] = {**record, "isDelta": False, "content": content}
        else:
            known[record["id"]] = {**record, "isDelta": False}
    return list(known.values())


def encode(*records: Any) -> bytes:
    """Records as the lines of a stream, with characters beyond ASCII as they are; bytes stay."""
    return b"".join(map(_line, records))


def _line(record: Any) -> bytes:
    if isinstance(record, bytes):
        return record
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def new_run(kind: type[ChatRun] = ChatRun, **options: Any) -> ChatRun:
    """A run that has not been sent."""
    return kind(**{"message_id": MESSAGE_ID, "digest": input_digest(PROMPT), **options})


def given_thread(**options: Any) -> ChatRun:
    """A run in a thread that its caller has given."""
    return new_run(**{"in_existing_thread": True, "chat_id": CHAT_ID, **options})


def feed(
    run: ChatRun,
    *pieces: Any,
    submits: bool = True,
    clean: bool = True,
    events: list[ChatEvent] | None = None,
) -> Verdict:
    """One connection: records or bytes, one after the other, and its end."""
    run.connect(submits=submits)
    for second, piece in enumerate(pieces):
        new = run.feed(encode(piece), float(second))
        if events is not None:
            events.extend(new)
    return run.disconnect(clean=clean)


def cut_up(data: bytes, places: Iterable[int]) -> list[bytes]:
    """The bytes in pieces that end at these places."""
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]


def result_of(*records: Record, rule: Any = "never", **options: Any) -> ChatResult:
    """The result of a run whose records come on one connection."""
    run = new_run(**options)
    assert feed(run, cutoff(), echo(), *records, state()) is Verdict.OVER
    result = run.result()
    check_tools(as_plain(result), rule)
    return result
