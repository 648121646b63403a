"""Whether failed queries and tool calls fail the whole chat run, and the error that says so.

The agent can answer although a query failed: it may have corrected its SQL. `fail_on_tool_error`
decides.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.client.branch_names import branch_advice
from airflow_provider_platform.client.chat.tool_calls import UNFINISHED
from airflow_provider_platform.client.choices import FailOnToolError
from airflow_provider_platform.client.errors import ChatToolError
from airflow_provider_platform.client.service_text import quote_service


def check_tools(result: dict[str, Any], rule: FailOnToolError) -> None:
    """Raise ChatToolError if the tool errors of a result, given as plain JSON (`as_plain`), make
    the run a failure under the rule.

    A query whose result did not reach us does not count: nobody knows whether it failed.
    """
    query_errors = [query["error"] for query in result["queries"]]
    failed = [error for error in query_errors if error is not None and error != UNFINISHED]
    every_query = bool(failed) and len(failed) == len(query_errors)
    errors = failed + [
        error for error in result["tool_errors"] if quote_service(error) not in failed
    ]
    if rule == "never" or not (every_query if rule == "all" else errors):
        return
    subject = "Every query of the run failed" if every_query else "A tool call of the run failed"
    reason = quote_service(errors[0]).removesuffix(".")
    advice = branch_advice(errors[0])
    raise ChatToolError(
        f"{subject}: {reason}. "
        f"{advice + ' ' if advice else ''}"
        f"The agent answered: {quote_service(result['answer'])}",
        where=f"chat {result['chat_id']}, message {result['message_id']}",
    )
