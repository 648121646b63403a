"""Paths of the two APIs at the management host, and the check of a path that a caller gives.

A DAG file may give a path, so only the standard library is imported here.
"""

from __future__ import annotations

import re
from typing import Literal

from airflow_provider_platform.client.argument_rules import has_relative_steps, refuse

ApiSide = Literal["management", "build"]
"""The two APIs of the management host; the build API is about the data model."""
BUILD_API = "/build/api"

DEPLOYMENT = "deploymentId"
"""The path parameter that the configuration fills in if no deployment is given."""

PARAMETER = re.compile(r"\{(\w+)\}")
"""A parameter of a path, named as the service spells it."""


def api_of(path: str) -> tuple[ApiSide, str]:
    """Return the API of a path, and the path below that API's address."""
    if path.startswith(f"{BUILD_API}/"):
        return "build", path.removeprefix(BUILD_API)
    return "management", path


def check_path(path: str) -> str:
    """Return a caller's path below the management address, with a leading `/`.

    A trailing `/` is kept (one described operation has it), and so is `{deploymentId}`. Raises
    PlatformInputError.
    """
    if not isinstance(path, str):
        raise refuse("path", f"must be text, not of type {type(path).__name__}")
    text = re.sub(r"^/?api/(?=v1/)", "/", path.strip())  # as the service's documents write it
    unknown = [name for name in PARAMETER.findall(text) if name != DEPLOYMENT]
    if "://" in text or text.startswith("//"):
        problem = "must be a path below the management address, not a full URL"
    elif any(character in text for character in "?#\\") or not text.isprintable() or " " in text:
        problem = "must not contain a query, a fragment, a backslash or white space"
    elif not text.strip("/"):
        problem = "must not be empty"
    elif unknown:
        problem = (
            f"has the placeholder {{{unknown[0]}}}. Replace it with the id. The task fills in "
            f"only {{{DEPLOYMENT}}}, from the connection"
        )
    elif text.removeprefix("/").startswith("api/"):
        problem = "must begin with /v1 or /build/api, such as /v1/reports"
    else:
        if not has_relative_steps(text.removeprefix("/").removesuffix("/")):
            return "/" + text.removeprefix("/")
        problem = "must not contain empty or relative segments"
    raise refuse("path", problem)
