"""Requests to the chat API: `ChatRequest` and message ids."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import secrets
import time
from collections.abc import Iterator
from functools import cache
from typing import Any, Self

from pydantic import Field, field_validator

from airflow_provider_platform.client.argument_rules import integer
from airflow_provider_platform.client.config import SessionSettings
from airflow_provider_platform.client.models import InputModel

RANDOM_DIGITS = 5
"""With the 13 digits of the time they make 18, which fit a signed integer of 64 bits."""
LARGEST_ID = 2**63 - 1
"""The largest number in a message id that the service can store."""
_MESSAGE_ID = re.compile(r"[0-9]{13,}-message")


def new_message_id(now: float | None = None) -> str:
    """Return a new message id: `<Unix time in milliseconds><random digits>-message`.

    The service requires 13 digits or more. A process starts at random digits and counts up from
    there, so it never gives two messages of one millisecond the same id. A forked process draws
    digits of its own.
    """
    milliseconds = max(0, int((time.time() if now is None else now) * 1000))
    digits = next(_digits_of(os.getpid())) % 10**RANDOM_DIGITS
    return f"{milliseconds:013d}{digits:0{RANDOM_DIGITS}d}-message"


@cache
def _digits_of(_process: int) -> Iterator[int]:
    return itertools.count(secrets.randbelow(10**RANDOM_DIGITS))


def is_message_id(text: str) -> bool:
    """Return whether a client chose this id, as `new_message_id` does."""
    return _MESSAGE_ID.fullmatch(text) is not None


def check_message_id(text: str) -> None:
    """Raise ValueError for an id that the service refuses."""
    if not is_message_id(text):
        raise ValueError("must be a Unix time in milliseconds (13 digits or more) + '-message'")
    if not _fits_64_bits(text):
        raise ValueError(
            "must be a number that fits a signed 64-bit integer, followed by '-message'"
        )


def _fits_64_bits(message_id: str) -> bool:
    digits = message_id.removesuffix("-message")
    return len(digits) <= len(str(LARGEST_ID)) and int(digits) <= LARGEST_ID


def check_max_rows(max_rows: object) -> int:
    """Return how many rows of a query to keep. Raises PlatformInputError if this is not a whole
    number of 0 or more."""
    return integer("max_rows", max_rows, minimum=0)


def input_digest(text: str) -> str:
    """Return the SHA-256 of a prompt. It is stored where the prompt itself must not be."""
    return hashlib.sha256(text.strip().encode("utf-8", "surrogatepass")).hexdigest()


class ChatRequest(InputModel):
    """The body of a stream request. With `input` it asks; without, it reads or follows a thread."""

    input: str | None = None
    chat_id: str | None = Field(default=None, min_length=1)
    message_id: str | None = None
    session_settings: SessionSettings | None = None
    active_branch_name: str | None = Field(default=None, min_length=1)
    is_default_branch: bool | None = None

    @field_validator("input")
    @classmethod
    def _prompt_says_something(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("the prompt is empty")
        return value

    @field_validator("message_id")
    @classmethod
    def _message_id_is_well_formed(cls, value: str | None) -> str | None:
        if value is not None:
            check_message_id(value)
        return value

    @classmethod
    def ask(
        cls,
        prompt: str,
        *,
        message_id: str,
        chat_id: str | None = None,
        session_settings: SessionSettings | None = None,
        active_branch_name: str | None = None,
        is_default_branch: bool | None = None,
    ) -> Self:
        """Return the request that asks. A named branch counts as a development branch unless
        `is_default_branch` says otherwise. Raises PlatformInputError."""
        if active_branch_name and is_default_branch is None:
            is_default_branch = False
        return cls.build(
            input=prompt,
            chat_id=chat_id,
            message_id=message_id,
            session_settings=session_settings,
            active_branch_name=active_branch_name,
            is_default_branch=is_default_branch,
        )

    def follow(self, chat_id: str) -> dict[str, Any]:
        """Return the body that follows this message's run. Without `input` it never starts one."""
        body = self.to_json()
        kept = ("messageId", "sessionSettings")
        return {"chatId": chat_id} | {name: body[name] for name in kept if name in body}
