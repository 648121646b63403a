"""What reading a chat stream costs, beside a bare `json.loads` of each of its lines.

The streams are made here, in the shapes of the chat API: a long answer in deltas, a long thought,
queries of 100 rows, a replayed history, and all of them together. Each is fed as a connection
brings it, in pieces of 64 KiB, and line by line. A ratio of 2 is twice as fast as the bare loop,
which neither parses the rows of a query (a JSON text inside the line) nor keeps anything; nor does
the fold read them before somebody asks. The last ratio is that of both with the rows: the fold
gives its result, the loop loads the texts of results as well. The rounds take turns, the best of
each counts.
"""

from __future__ import annotations

import json
import math
import os
import time
from itertools import islice
from typing import TYPE_CHECKING, Any

import psutil

from airflow_provider_platform.resources.chat.request import input_digest
from airflow_provider_platform.resources.chat.run_state import ChatRun, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from airflow_provider_platform.resources.chat.result import ChatResult

RECORDS = int(os.environ.get("BENCH_RECORDS", "200000"))
PIECE = 64 * 1024
ROUNDS = 5
CHAT_ID = "a1b2c3d4-08d7-40b9-8b1c-e7e3a698647e"
MESSAGE_ID = "1732512345678123-message"
PROMPT = "Show me revenue trends"
WORDS = ("revenue ", "grew by ", "12 % ", "in “Zürich”", ", mostly\n", "because of ", "📈 ")
AGENT = ["service_data_analyst_agent"]

Record = dict[str, Any]


def main() -> None:
    """Print the ratios and what stays in memory."""
    heads = ("records", "MB", "json", "64 KiB", "by line", "kept", "results")
    print(" " * 28 + "".join(f"{head:>9}" for head in heads))
    for name, (records, count) in streams().items():
        told = list(islice(records, count))
        mark = 0 if name != "a replayed history" else count
        lines = [*map(_line, [*told[:mark], *_beginning(), *told[mark:], *_end()])]
        del told
        data = b"".join(lines)
        pieces = [data[at : at + PIECE] for at in range(0, len(data), PIECE)]
        before = _memory()
        run = _fold(pieces)
        kept = (_memory() - before) / 1e6
        del run
        works = {
            "bare": (_bare, lines),
            "results": (_bare_with_results, lines),
            "whole": (_fold, pieces),
            "by line": (_fold, lines),
            "with rows": (_fold_to_result, pieces),
        }
        best = dict.fromkeys(works, math.inf)
        for _ in range(ROUNDS):
            for each, (work, fed) in works.items():
                best[each] = min(best[each], _seconds(work, fed))
        print(
            f"{name:<28}{len(lines):>9}{len(data) / 1e6:>9.0f}{best['bare']:>7.2f} s"
            f"{best['bare'] / best['whole']:>9.2f}{best['bare'] / best['by line']:>9.2f}"
            f"{kept:>6.0f} MB{best['results'] / best['with rows']:>9.2f}"
        )


def streams() -> dict[str, tuple[Iterable[Record], int]]:
    """The streams by name: assistant records, and how many of them."""
    return {
        "a mixed run": (_mixed(), RECORDS),
        "a long answer in deltas": (_deltas("answer", ["final"], "content"), RECORDS),
        "a long thought": (_deltas("thought", AGENT, "thinking"), RECORDS),
        "queries with 100 rows": (_queries(), RECORDS // 20),
        "a replayed history": (_history(), RECORDS // 2),
    }


def _mixed() -> Iterator[Record]:
    """Half a kilobyte for a record: thought, query, note, again and again; then the answer."""
    queries = _queries()
    for turn in range(RECORDS):
        yield from islice(_deltas(f"thought-{turn}", AGENT, "thinking"), 60)
        yield from islice(queries, 6)
        yield from islice(_deltas(f"note-{turn}", AGENT, "content"), 60)
        yield from islice(_deltas("answer", ["final"], "content"), 40)


def _deltas(name: str, path: list[str], field: str) -> Iterator[Record]:
    for number in range(RECORDS):
        text = WORDS[number % len(WORDS)]
        texts = {"content": "", field: text}
        yield _record(name, path, **texts, sort=number, isDelta=True, isInProcess=True)


def _queries() -> Iterator[Record]:
    """Each call twice: when it begins, and with its result."""
    for number in range(RECORDS):
        given = {"sqlQuery": "SELECT month, revenue FROM orders", "queryTitle": f"Query {number}"}
        rows = [
            [f"2026-{row % 12:02}-01", "Zürich", row * 7, row * 1.25, None] for row in range(100)
        ]
        kinds = {
            "month": "Date",
            "city": "String",
            "count": "Int64",
            "sum": "Double",
            "x": "String",
        }
        schema = [{"name": name, "column_type": kind} for name, kind in kinds.items()]
        result = {**given, "schema": schema, "data": rows, "totalRows": 100, "uuid": f"q-{number}"}
        call = {"name": "serviceSqlApi", "input": json.dumps(given)}
        done = {**call, "result": json.dumps(result)}
        name = f"query-{number}"
        path = [*AGENT, "tools"]
        yield _record(name, path, content="", toolCall=call, isDelta=False, isInProcess=True)
        yield _record(name, path, content="", toolCall=done, isDelta=False, isInProcess=False)


def _history() -> Iterator[Record]:
    """Earlier turns, as a follow-up replays them before the mark."""
    queries = _queries()
    for turn in range(RECORDS):
        yield {"id": f"{1732512000000 + turn}-message", "role": "user", "content": "And before?"}
        yield _record(f"thought-{turn}", AGENT, content="", thinking="".join(WORDS) * 4)
        yield from islice(queries, 2)
        yield _record(f"answer-{turn}", ["final"], content="".join(WORDS) * 4)


def _record(name: str, path: list[str], **fields: Any) -> Record:
    return {
        "id": name,
        "role": "assistant",
        "graphPath": path,
        "isStructuredResponse": False,
        "threadId": CHAT_ID,
        "createdAt": "2026-01-01T09:00:00.000Z",
        **fields,
    }


def _beginning() -> list[Record]:
    mark = {"id": "__cutoff__", "role": "assistant", "state": {"chatId": CHAT_ID}}
    return [mark, {"id": MESSAGE_ID, "role": "user", "content": PROMPT}]


def _end() -> list[Record]:
    answer = _record("last", ["final"], content="Done.", isDelta=False, isInProcess=False)
    return [answer, {"id": "__state__", "role": "assistant", "state": {"isStreaming": False}}]


def _line(record: Record) -> bytes:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def _bare(lines: list[bytes]) -> None:
    for line in lines:
        json.loads(line)


def _bare_with_results(lines: list[bytes]) -> None:
    for line in lines:
        result = json.loads(line).get("toolCall", {}).get("result")
        if result is not None:
            json.loads(result)


def _fold(pieces: list[bytes]) -> ChatRun:
    run = ChatRun(message_id=MESSAGE_ID, digest=input_digest(PROMPT))
    run.connect(submits=True)
    for piece in pieces:
        run.feed(piece, 0.0)
    if run.disconnect(clean=True) is not Verdict.OVER:
        raise RuntimeError("the stream was not read to its end")
    return run


def _fold_to_result(pieces: list[bytes]) -> ChatResult:
    return _fold(pieces).result()


def _seconds(work: Callable[[list[bytes]], object], data: list[bytes]) -> float:
    began = time.process_time()
    work(data)
    return time.process_time() - began


def _memory() -> int:
    used: int = psutil.Process().memory_info().rss
    return used


if __name__ == "__main__":
    main()
