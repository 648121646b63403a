"""The fast path for plain records gives the same result as the full path."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.resources.chat.turns import ChatRun, Connection
from tests.support.fakes.streams import (
    CHAT_ID,
    Turn,
    aborted,
    cut_up,
    cutoff,
    echo,
    encode,
    new_run,
    query_result,
    state,
    suspended,
    usage,
)
from tests.support.hypothesis_profiles import examples

ODD = st.sampled_from([None, True, 0, 7, -1.5, "", "text", [], ["x"], {}, {"a": 1}, 2**70])
PATHS = st.sampled_from([["final"], ["agent"], ["agent", "tools"], [], "final", None, [1, 2**70]])
RESULTS = st.sampled_from(
    [
        query_result([["a", 1], ["b", 2**70]]),
        query_result([{"month": "a", "x": 1e300}]),
        {"error": "Bad branch"},
        {"searchQuery": "orders", "cubes": []},
        "plain words",
        "[1, 1e999]",
        '{"data": [[1e999, NaN, 123456789012345678901]]}',
    ]
).map(lambda result: result if isinstance(result, str) else json.dumps(result))
CALLS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["cubeSqlApi", "serviceMeta"]) | ODD,
        "input": st.sampled_from(['{"queryTitle": "Orders"}', "{"]) | ODD,
        "result": RESULTS | ODD,
        "later": ODD,
    },
)
SORTS = st.integers(0, 9) | st.sampled_from([None, 1.5, True, "3", 2**70, 10**400])
ASSISTANT = st.fixed_dictionaries(
    {"id": st.sampled_from(["a", "a", "b", "__later__"]), "role": st.just("assistant")},
    optional={
        "content": st.sampled_from(["He", "llo ", "\ud83d", "\ude00"]) | ODD,
        "isDelta": st.sampled_from([True, True, False, None, 1]),
        "isInProcess": st.booleans() | ODD,
        "graphPath": PATHS,
        "sort": SORTS,
        "toolCall": CALLS | ODD,
        "error": st.sampled_from([None, None, "bad"]),
        "jsonrpc": st.just("2.0"),
        "thinking": ODD,
    },
)
DELTAS = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["a", "b"]),
        "role": st.just("assistant"),
        "content": st.sampled_from(["Re", "ve", "nue"]),
        "isDelta": st.just(True),
        "isInProcess": st.booleans(),
        "graphPath": st.sampled_from([["final"], ["agent"]]),
        "sort": SORTS,
    }
)
ANY = st.fixed_dictionaries({}, optional={"id": ODD, "role": ODD, "error": ODD, "content": ODD})
MARKS = [cutoff(), cutoff(streaming=True), echo(), echo("other"), suspended(), usage()]
ENDS = [aborted(), state(), state(Turn().messages()), {"error": "It failed."}]
RAW = [
    b'{"id":"a","role":"assistant","isDelta":true,"content":"x","sort":1e999}',
    b'{"id":"a","role":"assistant","isDelta":true,"content":"x","sort":NaN}',
    b'{"id":"a","role":"assistant","isDelta":true,"content":"\\ud83d"}',
    b'{"id":"a","id":"b","role":"assistant","isDelta":true,"content":"twice"}',
    b'{"id":"a","role":"assistant","content":"deep","x":' + b"[" * 102 + b"]" * 102 + b"}",
    b'{"id":"a","role":"assistant","content":"long","x":' + b"9" * 5000 + b"}",
    b"[1]",
    b"{broken",
]
OTHERS = st.sampled_from([*MARKS, *ENDS, *RAW]) | ANY
LINES = (
    st.sampled_from([DELTAS, ASSISTANT, ASSISTANT] * 6 + [OTHERS])
    .flatmap(lambda kind: kind)
    .map(lambda line: line if isinstance(line, bytes) else json.dumps(line).encode())
)


class LongWay(ChatRun):
    """A run of which every record takes the long way."""

    def _take_plain(self, connection: Connection, record: Any) -> bool:
        return False


def reported(run: ChatRun, *connections: tuple[bool, list[bytes]]) -> list[Any]:
    """Every event of a run while its records arrive, and its result."""
    said: list[Any] = []
    for submits, pieces in connections:
        run.connect(submits=submits)
        connection = run.connection
        try:
            for second, piece in enumerate(pieces):
                said += map(repr, run.feed(piece, float(second)))
                said += [connection.ended, connection.complete, connection.history_received]
                said += [connection.refused_at_once, connection.received_data]
                said += [run.is_confirmed, run.reported_idle, run.reported_streaming]
            said.append(run.disconnect(clean=True))
        except PlatformError as error:
            said.append((type(error), error.message))
        said += [run.accepted, run.chat_id, run.usage, run.echo_id, repr(connection.error)]
        said += [run.may_lack_records, run.passed_by, run.is_latest, connection.grew]
        fold = run._fold
        said += [fold.size, fold.highest_sort, fold.tool_errors(), fold.last_text()]
        said += [
            {**vars(record), "text": record.content, "thinking": record.thought} for record in fold
        ]
        said += map(asdict, fold.queries())
    try:
        said.append(run.result().to_json())
    except PlatformError as error:
        said.append(error.message)
    return said


@settings(max_examples=examples(250))
@given(
    first=st.lists(LINES, min_size=4, max_size=12),
    second=st.lists(LINES, max_size=8),
    given_thread=st.booleans(),
    opened=st.sampled_from([True, True, True, False]),
    places=st.lists(st.integers(min_value=0), max_size=6),
)
def test_fast_path_folds_records_like_the_full_path(
    first: list[bytes],
    second: list[bytes],
    given_thread: bool,
    opened: bool,
    places: list[int],
) -> None:
    beginning = [json.dumps(record).encode() for record in (cutoff(), echo())] if opened else []
    connections = [
        (True, cut_up(b"".join(line + b"\n" for line in [*beginning, *first]), places)),
        (False, cut_up(b"".join(line + b"\n" for line in second), places)),
    ]
    options = {"chat_id": CHAT_ID if given_thread else None, "in_existing_thread": given_thread}
    short, long = (
        reported(new_run(kind, max_rows=1, **options), *connections) for kind in (ChatRun, LongWay)
    )
    assert short == long


def test_second_delta_confirms_the_message() -> None:
    begun = {"id": "a", "role": "assistant", "graphPath": ["agent"], "isDelta": True}
    run = new_run()
    run.connect(submits=True)
    run.feed(encode(cutoff(), echo(), {**begun, "content": "Re"}), 0.0)
    run.disconnect(clean=False)
    run.connect(submits=False)
    assert not run.is_confirmed
    run.feed(encode(cutoff(streaming=True), {**begun, "content": "ve"}), 1.0)
    assert run.is_confirmed
