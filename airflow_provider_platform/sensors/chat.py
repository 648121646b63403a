"""`PlatformChatThreadSensor`: wait until a chat thread is not streaming."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.links import ThreadLink, all_links
from airflow_provider_platform.operators._arguments import session_settings
from airflow_provider_platform.sensors._base import PlatformSensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform.client.argument_rules import Rule
    from airflow_provider_platform.operators._base import Checks


class PlatformChatThreadSensor(PlatformSensor):
    """Wait until a chat thread is not streaming, so that it accepts the next message.

    Use it before a follow-up in a thread that others use too. `PlatformChatOperator` can wait by
    itself (`if_thread_busy`); the sensor waits without asking a question.

    Returns `{"chat_id", "is_streaming": False}`.

    :param chat_id: the thread
    :param agent: the thread's agent by its name in the platform, which is looked up at each poll;
        needs `host`, `password` and `deployment_id` in the connection. Give `agent` or `agent_id`,
        not both
    :param agent_id: the thread's agent, if it is not the agent of the connection
    :param session_settings: the user of the chat; replaces the connection's settings as a whole
    """

    operator_extra_links = all_links(ThreadLink)

    template_fields_renderers: ClassVar[dict[str, str]] = {"session_settings": "json"}
    condition_kind = "chat_thread"
    checks: ClassVar[Checks] = {
        "chat_id": arguments.text,
        "agent": arguments.optional_text,
        "agent_id": arguments.optional_agent,
        "session_settings": session_settings,
    }
    rules: ClassVar[Sequence[Rule]] = ((("agent", "agent_id"), arguments.at_most_one),)

    def __init__(
        self,
        *,
        chat_id: str,
        agent: str | None = None,
        agent_id: int | str | None = None,
        session_settings: dict[str, Any] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.chat_id = chat_id
        self.agent = agent
        self.agent_id = agent_id
        self.session_settings = session_settings
        self.validate_known_arguments()
