"""The chat API as described: order of records, follow-ups, subscriptions, refusals, abort."""

from __future__ import annotations

import json

import pytest

from tests.support.raw_client import (
    MESSAGE,
    USER,
    Platform,
    answer,
    chat_id,
    ids,
    records,
    results,
)


def test_the_records_come_in_the_documented_order(platform: Platform) -> None:
    stream = platform.ask("chart revenue by country", messageId=MESSAGE)

    assert ids(stream)[:2] == ["__cutoff__", MESSAGE]
    assert stream[0]["sort"] == 0
    assert stream[1]["role"] == "user"
    assert stream[1]["content"] == "chart revenue by country"
    assert ids(stream)[-2:] == ["__state__", "__usage__"]
    assert any(record.get("thinking") for record in stream)
    calls = [(r["toolCall"]["name"], "result" in r["toolCall"]) for r in stream if "toolCall" in r]
    assert calls == [
        ("serviceMeta", False),
        ("serviceMeta", True),
        ("serviceSqlApi", False),
        ("serviceSqlApi", True),
    ]
    assert [r["isInProcess"] for r in stream if "toolCall" in r] == [True, False, True, False]
    final = [r for r in stream if r.get("graphPath") == ["final"]]
    assert [r["isDelta"] for r in final] == [True] * (len(final) - 1) + [False]
    assert "".join(r["content"] for r in final[:-1]) == final[-1]["content"]
    state = stream[-2]["state"]["messages"]
    assert state[0]["id"] == ["langchain_core", "messages", "HumanMessage"]
    assert state[-1]["id"] == ["langchain_core", "messages", "AIMessage"]
    assert state[-1]["kwargs"]["content"] == final[-1]["content"]


def test_sample_warehouse_always_has_the_same_rows(platform: Platform) -> None:
    total = "sql: SELECT count(*), round(sum(amount), 2), min(ordered_at) FROM orders"
    assert results(platform.ask(total))[0]["data"] == [[480, 188182.6, "2025-01-02"]]


@pytest.mark.parametrize(
    ("question", "title", "rows"),
    [
        ("revenue by country", "Revenue by country", 8),
        ("What were the sales per month?", "Revenue by month", 12),
        ("orders per month", "Orders by month", 12),
        ("top 5 products", "Top 5 by product: revenue", 5),
        ("top 3 countries by orders", "Top 3 by country: orders", 3),
        ("total revenue in March", "Revenue (2025-03)", 1),
        (
            "average order value by segment for Germany",
            "Average order value by segment (Germany)",
            3,
        ),
        ("list all products", "All products", 12),
        ("sql: SELECT CASE WHEN 1 THEN 'a' END", "Your query", 1),
    ],
)
def test_agent_answers_known_questions_with_a_query(
    platform: Platform, question: str, title: str, rows: int
) -> None:
    (result,) = results(platform.ask(question))
    assert (result["queryTitle"], result["totalRows"]) == (title, rows)


def test_result_has_at_most_100_rows_and_the_true_total(platform: Platform) -> None:
    (result,) = results(platform.ask("list all orders"))
    assert (len(result["data"]), result["totalRows"]) == (100, 480)


def test_a_follow_up_knows_its_thread_and_replays_it_before_the_cutoff(platform: Platform) -> None:
    first = platform.ask("revenue by country", messageId=MESSAGE)
    second = platform.ask("only for Germany", chatId=chat_id(first))
    third = platform.ask("and by product?", chatId=chat_id(first))

    assert chat_id(second) == chat_id(third) == chat_id(first)
    assert [row[0] for row in results(second)[-1]["data"]] == ["Germany"]
    assert (
        "WHERE customers.country IN ('Germany') GROUP BY products.name"
        in (results(third)[-1]["sqlQuery"])
    )
    cutoff = ids(second).index("__cutoff__")
    assert ids(second)[0] == MESSAGE
    assert answer(second[:cutoff]) == answer(first)
    assert all(not record.get("isDelta") for record in second[:cutoff])


def test_one_of_several_queries_may_fail(platform: Platform) -> None:
    stream = platform.ask("revenue by country, then sql: SELECT id FROM nowhere")
    good, bad = results(stream)
    assert good["totalRows"] == 8
    assert bad == {"error": "no such table: nowhere"}


@pytest.mark.parametrize(
    "sql", ["DELETE FROM orders", "PRAGMA table_info(orders)", "SELECT 1; SELECT 2"]
)
def test_only_one_read_only_statement_is_run(platform: Platform, sql: str) -> None:
    assert "error" in results(platform.ask(f"sql: {sql}"))[0]
    assert results(platform.ask("sql: SELECT count(*) FROM orders"))[0]["data"] == [[480]]


@pytest.mark.parametrize(
    ("branch", "good"),
    [
        ({"activeBranchName": "no-such-branch"}, False),
        ({"activeBranchName": "dev"}, True),
        ({"activeBranchName": "main"}, False),
        ({"activeBranchName": "main", "isDefaultBranch": True}, True),
        ({"activeBranchName": "dev", "isDefaultBranch": True}, False),
    ],
)
def test_query_of_an_unknown_branch_fails(
    platform: Platform, branch: dict[str, object], good: bool
) -> None:
    stream = platform.ask("revenue by country", **branch)
    (result,) = results(stream)
    assert ("Bad branch" in result.get("error", "")) is not good
    assert ("sorry" in (answer(stream) or "")) is not good


def test_repeated_message_on_a_streaming_thread_follows_its_run(platform: Platform) -> None:
    platform.control.set_breakpoint("before_final")
    body = {"input": "revenue by country", "messageId": MESSAGE}
    with platform.stream(**body) as first:
        lines = first.iter_lines()
        thread = json.loads(next(lines))["state"]["chatId"]
        platform.control.wait_for_breakpoint("before_final")
        with platform.stream(chatId=thread, **body) as second:
            platform.control.wait_until(lambda state: len(state.subscriptions) == 2)
            platform.control.release()
            again = records(second.read())
        whole = [json.loads(line) for line in lines]

    state = platform.control.state()
    assert len(state.runs) == 1
    assert [message.outcome for message in state.messages] == ["started", "resubscribed"]
    assert ids(again).count("__cutoff__") == 1
    assert ids(again).index(MESSAGE) < ids(again).index("__cutoff__")
    assert answer(again) == answer(whole)
    assert ids(again)[-1] == "__usage__"


@pytest.mark.parametrize("replay", ["before_cutoff", "after_cutoff", "overlap", "none"])
def test_setting_replay_decides_what_a_follow_up_repeats(platform: Platform, replay: str) -> None:
    platform.control.set(replay=replay)
    platform.control.set_breakpoint("mid_stream", after=5)
    with platform.stream(input="revenue by country", messageId=MESSAGE) as first:
        thread = json.loads(next(first.iter_lines()))["state"]["chatId"]
    platform.control.wait_for_breakpoint("mid_stream")
    with platform.stream(chatId=thread, messageId=MESSAGE) as second:
        platform.control.release()
        again = records(second.read())

    cutoff = ids(again).index("__cutoff__")
    before, after = again[:cutoff], again[cutoff + 1 :]
    assert (MESSAGE in ids(before)) == (replay == "before_cutoff")
    assert (MESSAGE in ids(after)) == (replay == "after_cutoff")
    if replay == "overlap":
        assert [r["sort"] for r in after[:4]] == [3, 4, 5, 6]
    if replay == "none":
        assert after[0]["sort"] == 6
    if replay == "after_cutoff":
        text = [r for r in after if r.get("content", "").startswith("Let me")]
        assert [r["isDelta"] for r in text] == [False]
    assert again[cutoff]["state"]["isStreaming"] is True
    assert answer(again) is not None
    assert len(platform.control.state().runs) == 1


def test_a_new_message_on_a_streaming_thread_is_refused(platform: Platform) -> None:
    platform.control.set_breakpoint("after_echo")
    with platform.stream(input="revenue by country", messageId=MESSAGE) as first:
        thread = json.loads(next(first.iter_lines()))["state"]["chatId"]
        platform.control.wait_for_breakpoint("after_echo")
        refused = platform.ask("top 5 products", chatId=thread)
    assert ids(refused) == ["__cutoff__", "-"]
    assert chat_id(refused) == thread
    assert refused[1] == {"error": "Streaming for thread is in progress"}
    assert platform.control.state().messages[-1].outcome == "busy"


def test_run_continues_after_its_client_leaves(platform: Platform) -> None:
    platform.control.set_breakpoint("after_echo")
    with platform.stream(input="revenue by country", messageId=MESSAGE) as first:
        thread = json.loads(next(first.iter_lines()))["state"]["chatId"]
    platform.control.wait_until(lambda state: state.requests[0].ended == "disconnected")
    platform.control.release()
    platform.control.wait_until(lambda state: state.runs[0].status == "finished")

    seen = records(platform.chat(chatId=thread, messageId=MESSAGE).content)
    cutoff = ids(seen).index("__cutoff__")
    assert seen[cutoff]["state"] == {"chatId": thread, "isStreaming": False}
    assert answer(seen[:cutoff]) == seen[-1]["state"]["messages"][-1]["kwargs"]["content"]
    assert ids(seen)[cutoff + 1 :] == ["__state__"]


def test_read_of_a_streaming_thread_shows_only_its_state(platform: Platform) -> None:
    platform.control.set(follow_up="state", replay="none")
    platform.control.set_breakpoint("after_echo")
    with platform.stream(input="revenue by country", messageId=MESSAGE) as first:
        thread = json.loads(next(first.iter_lines()))["state"]["chatId"]
        platform.control.wait_for_breakpoint("after_echo")
        seen = records(platform.chat(chatId=thread, messageId=MESSAGE).content)
    assert ids(seen) == ["__cutoff__", "__state__"]
    assert seen[0]["state"]["isStreaming"] is True
    assert [m["kwargs"]["content"] for m in seen[1]["state"]["messages"]] == ["revenue by country"]


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({"input": "x", "foo": 1}, "property foo should not exist"),
        ({"input": ""}, "input must not be empty"),
        ({"input": 5}, "input must be a string"),
        ({"input": None}, "input must be a string"),
        ({"input": "x", "messageId": "123-message"}, "messageId must match"),
        ({"input": "x", "messageId": "1732512345678-msg"}, "messageId must match"),
        ({"input": "x", "messageId": f"{2**63}-message"}, "that fits 64 bits"),
        ({"input": "x", "messageId": "1" * 25 + "-message"}, "that fits 64 bits"),
        ({"input": "x", "messageId": "١٧٣٢٥١٢٣٤٥٦٧٨-message"}, "messageId must match"),
        ({"input": "x", "isDefaultBranch": "yes"}, "isDefaultBranch must be a boolean"),
        ({"input": "x", "sessionSettings": None}, "sessionSettings is required"),
        ({"input": "x", "sessionSettings": {}}, "exactly one of"),
        ({"input": "x", "sessionSettings": {"externalId": "Nightly"}}, "must be lowercase"),
        ({"input": "x", "sessionSettings": {"externalId": "a b"}}, "without spaces"),
        ({"input": "x", "sessionSettings": {**USER, "internalId": "a@b.c"}}, "exactly one of"),
        ({"input": "x", "sessionSettings": {"internalId": "nobody@acme.example.com"}}, "no user"),
        (
            {
                "input": "x",
                "sessionSettings": {"internalId": "admin@acme.example.com", "groups": ["a"]},
            },
            "groups is not allowed with internalId",
        ),
        ({"input": "x", "sessionSettings": {**USER, "groups": "a"}}, "groups must be an array"),
        (
            {"input": "x", "sessionSettings": {**USER, "userAttributes": [{"name": "shoe"}]}},
            "userAttributes[0].value is required",
        ),
        ({"input": "x", "sessionSettings": {**USER, "team": 1}}, "property sessionSettings.team"),
    ],
)
def test_invalid_chat_bodies_are_refused(
    platform: Platform, body: dict[str, object], rule: str
) -> None:
    response = platform.chat(**body)
    assert response.status_code == 400
    assert rule in " ".join(response.json()["message"])
    assert platform.control.state().messages == []


def test_a_thread_belongs_to_its_user(platform: Platform) -> None:
    stream = platform.ask("revenue by country")
    other = {"externalId": "somebody-else"}
    assert platform.chat(chatId=chat_id(stream), sessionSettings=other).status_code == 404
    assert platform.chat(input="x", chatId="no-such-thread").status_code == 404
    refused = platform.chat("abort", chatId=chat_id(stream), sessionSettings=other)
    assert refused.status_code == 403


def test_abort_stops_the_run(platform: Platform) -> None:
    platform.control.set_breakpoint("mid_stream", after=5)
    with platform.stream(input="revenue by country", messageId=MESSAGE) as stream:
        lines = stream.iter_lines()
        thread = json.loads(next(lines))["state"]["chatId"]
        platform.control.wait_for_breakpoint("mid_stream")
        stopped = platform.chat("abort", chatId=thread)
        rest = [json.loads(line) for line in lines]

    assert (stopped.status_code, stopped.content) == (204, b"")
    assert ids(rest)[-1] == "__aborted__"
    assert len(rest) == 6
    state = platform.control.state()
    assert state.runs[0].status == "aborted"
    assert [entry.outcome for entry in state.aborts] == ["aborted"]
    assert state.aborts[0].message_id == MESSAGE
    assert answer(platform.ask("revenue by country", chatId=thread))


def test_abort_with_a_key_must_name_the_user(platform: Platform) -> None:
    thread = chat_id(platform.ask("revenue by country"))
    url = f"{platform.sandbox.chat_url}/abort"
    nameless = {"json": {"chatId": thread}, "headers": platform.key}
    assert platform.http.post(url, **nameless).status_code == 403


def test_questions_are_refused_once_the_quota_is_used_up(platform: Platform) -> None:
    platform.control.set(answer_tokens=1_000, token_quota=1_500)
    costs = [platform.ask("revenue by country")[-1]["usage"]["totalTokens"] for _ in range(2)]
    assert costs == [1_000, 1_000]
    *_, error, usage = platform.ask("revenue by country")
    assert "token limit" in error["error"]
    assert usage["usage"] == {
        "models": [],
        **dict.fromkeys(("llmCalls", "inputTokens", "outputTokens", "totalTokens"), 0),
        **dict.fromkeys(("cacheWriteTokens", "cacheReadTokens"), 0),
    }
    run = platform.control.state().runs[-1]
    assert (run.status, run.sql) == ("failed", [])
    platform.control.set(token_quota=None)
    assert answer(platform.ask("revenue by country"))


@pytest.mark.parametrize(
    ("kind", "last"), [("abort", "__aborted__"), ("suspend", "__suspended__"), ("error", "-")]
)
def test_usage_does_not_follow_a_run_without_an_answer(
    platform: Platform, kind: str, last: str
) -> None:
    platform.control.fault(kind, after=5)
    assert ids(platform.ask("revenue by country"))[-1] == last


@pytest.mark.parametrize(
    "question", ["total revenue for Dubois 99", "total revenue of Acme", "orders for customer acme"]
)
def test_unknown_customer_does_not_get_the_numbers_of_everybody(
    platform: Platform, question: str
) -> None:
    everybody, unknown = (
        [call["data"] for call in results(platform.ask(asked))]
        for asked in ("total revenue", question)
    )
    assert everybody != unknown
    assert unknown in ([[[None]]], [[[0]]])
