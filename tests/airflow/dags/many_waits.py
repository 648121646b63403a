"""A DAG whose tasks begin and end in the triggerer, so that hundreds of them cost no worker."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, BaseOperator
from airflow.triggers.base import StartTriggerArgs

CHATS = 300


class FollowChat(BaseOperator):
    """Waits for one of the chats that `test_many_waits` has asked."""

    start_trigger_args = StartTriggerArgs(
        trigger_cls="chat_by_number.ChatByNumber", trigger_kwargs={}, next_method="not_resumed"
    )
    start_from_trigger = True

    def __init__(self, *, number: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.number = number


with DAG("many_waits", schedule=None, max_active_tasks=CHATS):
    FollowChat.partial(task_id="follow").expand(number=list(range(CHATS)))
