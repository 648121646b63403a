"""An agent of Airflow asks the platform's agent.

The model of the connection `pydanticai_default` decides whether to call the tool. The model `test`
calls it once and needs no network: so you can try the DAG on the sandbox.

The tool takes a question and nothing else: who asks, and whom, is fixed by the connection
`platform_default`. With `durable` and `replayable`, a retry of the task does not ask again what was
answered (before Airflow 3.3, set `[common.ai] durable_cache_path` too).

Needs `apache-airflow-providers-common-ai`. Its contract for managed agents is experimental.
"""

from __future__ import annotations

from airflow.sdk import DAG

from airflow_provider_platform.hooks.platform import PlatformHook

try:
    from airflow.providers.common.ai.operators.agent import AgentOperator
    from airflow.providers.common.ai.toolsets.managed_agent import ManagedAgentToolset
except ImportError:  # no DAG without the provider
    AgentOperator = None

if AgentOperator is not None:
    with DAG(
        dag_id="agent_asks_platform",
        description="An agent of Airflow with the platform's agent as a tool",
        doc_md=__doc__,
        schedule=None,
        catchup=False,
        tags=["analytics platform", "recipe"],
    ):
        AgentOperator(
            task_id="answer",
            prompt="Which country brings the most revenue, and why?",
            system_prompt="Answer with numbers. Ask the analytics agent first.",
            llm_conn_id="pydanticai_default",
            toolsets=[
                ManagedAgentToolset(
                    PlatformHook("platform_default").agent(),
                    tool_name="ask_analytics_agent",
                    description="Knows revenue, orders and customers. Takes a question in words.",
                    timeout=600,
                    replayable=True,
                ),
            ],
            durable=True,
        )
