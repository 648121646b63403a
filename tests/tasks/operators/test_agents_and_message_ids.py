"""Another agent than the connection's, and a message id that the author chooses."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.errors import (
    PlatformInputError,
)
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators._run_record import STORE_KEY
from airflow_provider_platform.resources.names import Agent, choose_agent
from airflow_provider_platform.sensors.chat import PlatformChatThreadSensor
from tests.support.remote_tasks import PROMPT, chat, deferral_while_stopped
from tests.support.task_context import TaskTries, deferral

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl
    from airflow_provider_platform.sandbox.server import Sandbox

OWN_ID = "1764000000000-message"


def asked_agents(control: SandboxControl) -> set[str]:
    """The agents that received a request."""
    paths = [request.path for request in control.state().requests if request.api == "chat"]
    return {path.partition("/agents/")[2].partition("/")[0] for path in paths}


async def events_of(trigger: Any) -> list[Any]:
    return [event.payload async for event in trigger.run()]


class TestAgent:
    @pytest.mark.parametrize("agent", [2, "2"])
    def test_question_goes_to_the_named_agent(
        self, control: SandboxControl, agent: int | str
    ) -> None:
        result = chat(agent_id=agent).execute(TaskTries().context())
        assert result["answer"]
        assert asked_agents(control) == {"2"}

    def test_decorator_takes_the_agent_and_the_message_id(self, control: SandboxControl) -> None:
        from airflow.sdk import task

        @task.platform_chat(agent_id=2, message_id=OWN_ID)
        def ask() -> str:
            return PROMPT

        operator = ask().operator
        operator.execute(TaskTries().context())
        assert asked_agents(control) == {"2"}
        assert [message.message_id for message in control.state().messages] == [OWN_ID]

    def test_changed_agent_stops_the_run_at_the_earlier_agent(
        self, control: SandboxControl
    ) -> None:
        control.set_breakpoint("mid_stream")
        tries = TaskTries()
        deferral(chat(deferrable=True, agent_id=2).execute, tries.context())
        before = tries.store[STORE_KEY]["key"]
        deferral_while_stopped(control, chat(deferrable=True).execute, tries.context())
        assert tries.store[STORE_KEY]["key"] != before
        assert control.state().runs[0].status == "aborted"
        control.release("mid_stream")
        assert len(control.state().messages) == 2

    @pytest.mark.parametrize("bad", ["..", "2/chat", "%2e"])
    def test_id_that_is_no_part_of_an_address_is_refused(
        self, platform_sandbox: Sandbox, bad: str
    ) -> None:
        with pytest.raises((AirflowFailException, PlatformInputError), match="Nothing was sent"):
            chat(agent_id=bad).execute(TaskTries().context())
        with pytest.raises(PlatformInputError, match="agent_id must be the id of an agent"):
            PlatformHook().chat(PROMPT, agent_id=bad)
        assert platform_sandbox.control.state().requests == []

    def test_address_of_a_deployment_becomes_that_of_the_agent(
        self, platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        url = platform_sandbox.chat_url.replace("/agents/1/", "/deployments/1/")
        connection = platform_sandbox.connection_json(chat_url=url)
        monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", connection)
        PlatformHook().chat(PROMPT, agent_id=2)
        assert asked_agents(platform_sandbox.control) == {"2"}

    def test_address_without_an_agent_is_refused(
        self, platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        url = f"{platform_sandbox.url}/chat"
        connection = platform_sandbox.connection_json(chat_url=url)
        monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", connection)
        with pytest.raises(PlatformInputError, match="does not end in /agents/"):
            PlatformHook().chat(PROMPT, agent_id=2)
        assert platform_sandbox.control.state().requests == []


def lookups(control: SandboxControl) -> int:
    """How often the agents of the deployment were listed."""
    return sum(request.path.endswith("/agents") for request in control.state().requests)


class TestAgentByName:
    @pytest.mark.parametrize("name", ["Embedded analyst", "embedded ANALYST", "2"])
    def test_question_goes_to_the_agent_of_this_name(
        self, control: SandboxControl, name: str
    ) -> None:
        assert chat(agent=name).execute(TaskTries().context())["answer"]
        assert asked_agents(control) == {"2"}
        assert lookups(control) == (name != "2")

    def test_connection_names_an_agent_that_a_task_can_replace(
        self, platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        control = platform_sandbox.control
        connection = platform_sandbox.connection_json(agent="Embedded analyst")
        monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", connection)
        asked = PlatformHook().chat(PROMPT)
        PlatformHook().read_thread(asked.chat_id)
        sensor = PlatformChatThreadSensor(task_id="wait", chat_id=asked.chat_id)
        assert sensor.poke(TaskTries().context())
        context = TaskTries().context()
        assert chat().execute(context)["answer"]
        assert asked_agents(control) == {"2"}
        control.reset()
        assert chat(agent_id=1).execute(TaskTries().context())["answer"]
        assert chat(agent="Data analyst").execute(TaskTries().context())["answer"]
        assert asked_agents(control) == {"1"}

    @pytest.mark.parametrize("name", ["Embedded analyst", "2", 2])
    def test_hook_and_sensor_take_the_name_or_the_id(
        self, control: SandboxControl, name: Any
    ) -> None:
        hook = PlatformHook()
        asked = hook.chat(PROMPT, agent=name)
        assert hook.read_thread(asked.chat_id, agent=name).turns
        settings = hook.config.resolve_session_settings(None)
        assert settings is not None
        hook.abort_chat(asked.chat_id, settings.identity, agent=name)
        sensor = PlatformChatThreadSensor(task_id="wait", chat_id=asked.chat_id, agent=name)
        assert sensor.poke(TaskTries().context())
        assert asked_agents(control) == {"2"}

    def test_retry_and_trigger_ask_the_stored_agent_without_a_second_look_up(
        self, control: SandboxControl
    ) -> None:
        control.set_breakpoint("mid_stream")
        tries = TaskTries()
        task = chat(deferrable=True, agent="Embedded analyst")
        waiting = deferral(task.execute, tries.context())
        assert waiting.kwargs["run"]["agent_id"] == 2
        again = deferral(task.execute, tries.context())
        control.release("mid_stream")
        (event,) = asyncio.run(events_of(again.trigger))
        result = task.execute_complete(tries.context(), event, again.kwargs["run"])
        assert result["answer"]
        assert (lookups(control), asked_agents(control)) == (1, {"2"})
        assert len(control.state().messages) == 1

    def test_unknown_name_is_refused_with_the_known_ones(self, control: SandboxControl) -> None:
        words = r"no agent has the name 'Embeded'.*'Data analyst' \(1\), 'Embedded analyst' \(2\)"
        with pytest.raises(AirflowFailException, match=words):
            chat(agent="Embeded").execute(TaskTries().context())
        assert asked_agents(control) == set()

    def test_name_needs_the_management_api(
        self, platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        connection = platform_sandbox.connection_json(deployment_id=None)
        monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", connection)
        with pytest.raises(AirflowFailException, match="deployment_id is missing"):
            chat(agent="Data analyst").execute(TaskTries().context())

    def test_name_and_id_together_are_refused(self, platform_sandbox: Sandbox) -> None:
        with pytest.raises(PlatformInputError, match="only one of agent and agent_id"):
            chat(agent="Data analyst", agent_id=1)
        with pytest.raises(PlatformInputError, match="only one of agent and agent_id"):
            PlatformChatThreadSensor(task_id="wait", chat_id="x", agent="a", agent_id=1)
        with pytest.raises(PlatformInputError, match="only one of agent and agent_id"):
            PlatformHook().chat(PROMPT, agent="Data analyst", agent_id=1)
        assert platform_sandbox.control.state().requests == []


@pytest.mark.parametrize(("name", "chosen"), [("sales", 1), ("OPS", 2), ("both", 3), ("Both", 3)])
def test_agent_has_its_shown_name_and_the_name_in_the_data_model(name: str, chosen: int) -> None:
    agents = [
        Agent(id=1, name="Sales"),
        Agent(id=2, agent_config_name="ops"),
        Agent(id=3, name="Both", agent_config_name="both"),
    ]
    assert choose_agent(name, agents) == chosen


@pytest.mark.parametrize("name", ["sales", "SALES"])
def test_ambiguous_name_is_refused_with_the_ids(name: str) -> None:
    agents = [Agent(id=7, name="sales"), Agent(id=8, agent_config_name="Sales"), Agent(id=9)]
    words = rf"2 agents have the name '{name}'.*'sales' \(7\), 'Sales' \(8\)"
    with pytest.raises(PlatformInputError, match=words):
        choose_agent(name, agents)


def test_deployment_without_listed_agents_is_explained() -> None:
    with pytest.raises(PlatformInputError, match=r"agents and their ids: none.*leave agent out"):
        choose_agent("sales", [])


class TestMessageId:
    def test_question_is_sent_under_the_given_id(self, control: SandboxControl) -> None:
        result = chat(message_id=OWN_ID).execute(TaskTries().context())
        assert result["message_id"] == OWN_ID
        assert [message.message_id for message in control.state().messages] == [OWN_ID]

    @pytest.mark.parametrize("bad", ["42", "1764000000000", "9999999999999999999-message"])
    def test_id_that_the_service_refuses_is_refused_when_the_dag_is_parsed(self, bad: str) -> None:
        with pytest.raises(PlatformInputError, match="message_id must be a"):
            chat(message_id=bad)

    def test_second_task_joins_the_running_question_of_its_id(
        self, control: SandboxControl
    ) -> None:
        chat_id = PlatformHook().chat(PROMPT).chat_id
        arguments = {"chat_id": chat_id, "message_id": OWN_ID, "deferrable": True}
        control.set_breakpoint("mid_stream")
        deferral(chat(**arguments).execute, TaskTries().context())
        other = TaskTries(store=False)
        deferral(chat(**arguments).execute, other.context())
        control.release("mid_stream")
        assert [message.outcome for message in control.state().messages][1:] == [
            "started",
            "resubscribed",
        ]
        assert len(control.state().runs) == 2

    def test_another_id_is_another_question_for_a_retry(self, control: SandboxControl) -> None:
        tries = TaskTries()
        chat(message_id=OWN_ID).execute(tries.context())
        chat(message_id=OWN_ID).execute(tries.context())
        assert len(control.state().messages) == 1
        chat(message_id="1764000000001-message").execute(tries.context())
        assert len(control.state().messages) == 2
