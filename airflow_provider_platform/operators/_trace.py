"""A span for each question, in the traces of Airflow (`[traces] otel_on`).

The names are those of OpenTelemetry's conventions for generative AI. A span has ids, counts and the
class of an error, and no prompt and no answer. The worker makes it when the question is over, so
that it is the same whether a worker or a trigger waited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_platform.client.errors import PlatformError
    from airflow_provider_platform.operators._remote_run import Attempt
    from airflow_provider_platform.runs.run_kind import Ids

PROVIDER = "platform"
OPERATION = "invoke_agent"


def add_span(
    attempt: Attempt,
    ids: Ids,
    usage: dict[str, Any] | None,
    error: PlatformError | None = None,
) -> None:
    """Add the span of a question that is over, below the current span. `error` is why it has no
    answer."""
    from airflow_provider_platform._airflow import conf

    if not conf.getboolean("traces", "otel_on", fallback=False):
        return
    from opentelemetry import trace

    from airflow_provider_platform.client.addresses import agent_in

    kind: Any = attempt.kind
    agent_id = ids.get("agent_id") or agent_in(attempt.config.chat_url)
    name = attempt.config.agent_name(kind.agent, kind.agent_id)
    attributes = {
        "gen_ai.operation.name": OPERATION,
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.agent.id": agent_id and str(agent_id),
        "gen_ai.agent.name": name,
        "gen_ai.conversation.id": ids.get("chat_id"),
        "error.type": error and type(error).__name__,
        **_counts(usage or {}),
    }
    span = trace.get_tracer("airflow_provider_platform").start_span(
        " ".join(filter(None, [OPERATION, name or attributes["gen_ai.agent.id"]])),
        kind=trace.SpanKind.CLIENT,
        start_time=int(ids["submitted_at"] * 1e9),
        attributes={name: value for name, value in attributes.items() if value is not None},
    )
    if error is not None:
        span.set_status(trace.StatusCode.ERROR)
    span.end(int(attempt.now * 1e9))


def _counts(usage: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a usage. By the conventions, cached tokens are part of the input."""
    count = {name: value for name, value in usage.items() if type(value) is int}
    models = usage.get("models")
    model = str(models[0]) if isinstance(models, list) and len(models) == 1 else None
    written, read = count.get("cacheWriteTokens"), count.get("cacheReadTokens")
    sent = count.get("inputTokens")
    return {
        "gen_ai.usage.input_tokens": None if sent is None else sent + (written or 0) + (read or 0),
        "gen_ai.usage.output_tokens": count.get("outputTokens"),
        "gen_ai.usage.cache_creation.input_tokens": written,
        "gen_ai.usage.cache_read.input_tokens": read,
        "gen_ai.response.model": model,
    }
