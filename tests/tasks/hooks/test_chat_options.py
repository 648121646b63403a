"""The options of a chat that the hook asks are checked before anything is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.hooks.platform import PlatformHook

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

BAD: list[tuple[dict[str, Any], str]] = [
    (
        {"active_branch": "nightly"},
        r"no option active_branch \(did you mean active_branch_name\?\)",
    ),
    ({"details": True}, r"no option details\. Its options are chat_id, "),
    ({"if_thread_busy": "wiat"}, "if_thread_busy must be one of wait, fail, got 'wiat'"),
    ({"fail_on_tool_error": "some"}, "fail_on_tool_error must be one of all, any, never"),
    ({"agent": ""}, "agent must be a non-empty string"),
    ({"max_rows": -1}, "max_rows must be a whole number, 0 or more, got -1"),
    ({"max_rows": "5"}, "max_rows must be a whole number, 0 or more, got '5'"),
    ({"max_rows": True}, "max_rows must be a whole number, 0 or more, got True"),
]


@pytest.mark.parametrize(("options", "said"), BAD, ids=[str(options) for options, _ in BAD])
def test_a_bad_option_is_refused_before_the_question_is_asked(
    options: dict[str, Any], said: str, platform_sandbox: Sandbox
) -> None:
    hook = PlatformHook()
    with pytest.raises(PlatformInputError, match=said):
        hook.chat("How many orders?", **options)
    assert platform_sandbox.control.state().requests == []


@pytest.mark.parametrize("bad", [{"max_rows": -1}, {"max_rows": "5"}, {"chat_id": 5}])
def test_bad_arguments_of_a_reading_are_refused_before_anything_is_sent(
    bad: dict[str, Any], platform_sandbox: Sandbox
) -> None:
    with pytest.raises(PlatformInputError, match=f"Nothing was sent: {next(iter(bad))} must be"):
        PlatformHook().read_thread(**{"chat_id": "a", **bad})
    assert platform_sandbox.control.state().requests == []
