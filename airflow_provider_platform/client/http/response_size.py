"""Limits the size of a response, in bytes and in lists and objects, and reads its body."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

from airflow_provider_platform.client.errors import PlatformProtocolError, RequestName
from airflow_provider_platform.client.http.connection_errors import BROKEN
from airflow_provider_platform.client.http.connection_pool import OpenResponse
from airflow_provider_platform.client.operations.operation import Operation
from airflow_provider_platform.client.operations.paging import Page

MAX_RESPONSE_BYTES = 8 * 1024 * 1024
"""The most bytes of a response that has a model and is not a list."""
MAX_LIST_BYTES = 16 * 1024 * 1024
"""The most bytes of a page of a list, and of a response without a model."""
MAX_DOWNLOAD_BYTES = 128 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024
MAX_DESCRIBED_CONTAINERS = 200_000
MAX_CONTAINERS = 1_000_000
"""The most lists and objects of a response. Each is a few bytes of text, but takes a hundred bytes
of memory, and most of the time of parsing."""


def max_bytes(operation: Operation[Any]) -> int:
    """Return how many bytes a response of the operation may have after decoding."""
    if operation.binary:
        return MAX_DOWNLOAD_BYTES
    answer: Any = operation.answer
    is_list = isinstance(answer, type) and issubclass(answer, Page)
    return MAX_LIST_BYTES if is_list or not operation.described else MAX_RESPONSE_BYTES


async def read_body(name: RequestName, response: OpenResponse, limit: int, *, cut: bool) -> bytes:
    """Return the body. With `cut`, return as much of it as arrives: any part of an error is good
    enough."""
    pieces: list[bytes] = []
    size = 0
    try:
        async with aclosing(response.pieces()) as arriving:
            async for piece in arriving:
                pieces.append(piece)
                size += len(piece)
                if size > limit:
                    if cut:
                        break
                    raise PlatformProtocolError(
                        f"{name.action}: the response is larger than {limit} bytes, so reading "
                        "stopped.",
                        where=name.where,
                    )
    except BROKEN:
        if not cut:
            raise
    return b"".join(pieces)


def refuse_too_many(operation: Operation[Any], body: bytes) -> None:
    """Raise PlatformProtocolError if a JSON body has too many lists and objects to read it."""
    name = operation.request_name
    most = MAX_DESCRIBED_CONTAINERS if operation.described else MAX_CONTAINERS
    if len(body) > most and body.count(b"[") + body.count(b"{") > most:
        raise PlatformProtocolError(
            f"{name.action}: the response was not read, because it contains more than {most} "
            "lists and objects.",
            where=name.where,
        )
