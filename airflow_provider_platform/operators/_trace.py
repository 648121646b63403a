"""A span for each question, in the traces of Airflow (`[traces] otel_on`).

The names are those of OpenTelemetry's conventions for generative AI. A span has ids, counts and the
class of an error, and no prompt and no answer. The worker makes it when the question is over, so
that it is the same whether a worker or a trigger waited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_platform.client.errors import PlatformError
    from airflow_provider_platform.operators._attempt import Attempt
    from airflow_provider_platform.resources.run_kind import Ids

_INPUT = ("inputTokens", "cacheWriteTokens", "cacheReadTokens")
"""By the conventions, cached tokens are part of the input."""


def add_span(
    attempt: Attempt, ids: Ids, usage: dict[str, Any] | None, error: PlatformError | None = None
) -> None:
    """Add the span of a question that is over, below the current span. `error` is why it has no
    answer."""
    from opentelemetry import trace

    from airflow_provider_platform.client.connection_fields import agent_in
    from airflow_provider_platform.resources.chat.result import total_usage

    kind: Any = attempt.kind
    agent_id = ids.get("agent_id") or agent_in(attempt.config.chat_url) or ""
    name = attempt.config.agent_name(kind.agent, kind.agent_id)
    counts = total_usage([usage or {}])
    models = counts.get("models", ())
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "platform",
        "gen_ai.agent.id": str(agent_id),
        "gen_ai.agent.name": name,
        "gen_ai.conversation.id": ids.get("chat_id"),
        "gen_ai.response.model": models[0] if len(models) == 1 else None,
        "gen_ai.usage.input_tokens": sum(counts.get(part, 0) for part in _INPUT),
        "gen_ai.usage.output_tokens": counts.get("outputTokens"),
        "gen_ai.usage.cache_creation.input_tokens": counts.get("cacheWriteTokens"),
        "gen_ai.usage.cache_read.input_tokens": counts.get("cacheReadTokens"),
        "error.type": error and type(error).__name__,
    }
    span = trace.get_tracer("airflow_provider_platform").start_span(
        f"invoke_agent {name or agent_id}".strip(),
        kind=trace.SpanKind.CLIENT,
        start_time=int(ids["submitted_at"] * 1e9),
        attributes={name: value for name, value in attributes.items() if value},
    )
    if error is not None:
        span.set_status(trace.StatusCode.ERROR)
    span.end(int(attempt.now * 1e9))
