"""Paths of the two APIs at the management host: checked where a caller gives one, filled where an
operation declares one. All raise PlatformInputError, before anything is sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal
from urllib.parse import quote

from airflow_provider_platform.client.addresses import has_relative_steps
from airflow_provider_platform.client.rules import refuse

ApiSide = Literal["management", "build"]
"""The two APIs of the management host; the build API is about the data model."""
BUILD_API = "/build/api"

DEPLOYMENT = "deploymentId"
"""The path parameter that the configuration fills in if no deployment is given."""

_PARAMETER = re.compile(r"\{(\w+)\}")


def api_of(path: str) -> tuple[ApiSide, str]:
    """Return the API of a path, and the path below that API's address."""
    if path.startswith(f"{BUILD_API}/"):
        return "build", path.removeprefix(BUILD_API)
    return "management", path


def placeholders(template: str) -> list[str]:
    """Return the names of a path's parameters, as the service spells them."""
    return _PARAMETER.findall(template)


def fill_path(template: str, parameters: Mapping[str, object], *, leave: str | None = None) -> str:
    """Return the path with each parameter encoded as one segment. The parameter `leave` is not
    filled in.

    Raises PlatformInputError naming a parameter that is missing, unknown, empty or a relative
    step.
    """
    names = placeholders(template)
    unknown = set(parameters) - set(names)
    if unknown:
        raise TypeError(f"{template} has no parameter {', '.join(sorted(unknown))}")

    def segment(match: re.Match[str]) -> str:
        name = match.group(1)
        if name == leave:
            return match.group(0)
        text = str(parameters.get(name) if parameters.get(name) is not None else "").strip()
        if not text or text in (".", ".."):
            raise refuse(name, "must be given and must be the id of one resource")
        try:
            return quote(text, safe="")
        except UnicodeEncodeError:
            raise refuse(name, "contains characters that cannot be part of a URL") from None

    return _PARAMETER.sub(segment, template)


def check_path(path: str) -> str:
    """Return a caller's path below the management address, with a leading `/`.

    A trailing `/` is kept (one described operation has it), and so is `{deploymentId}`. Raises
    PlatformInputError.
    """
    if not isinstance(path, str):
        raise refuse("path", f"must be text, not of type {type(path).__name__}")
    text = re.sub(r"^/?api/(?=v1/)", "/", path.strip())  # as the service's documents write it
    unknown = [name for name in placeholders(text) if name != DEPLOYMENT]
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


def subject_of(parameters: Mapping[str, object]) -> str:
    """Return the resources that the parameters name, for error messages."""
    known = {name: value for name, value in parameters.items() if value is not None}
    return ", ".join(f"{_words(name)} {value}" for name, value in known.items())


def _words(name: str) -> str:
    """`deploymentId` as `deployment`, `publicId` as `public`: a name for error messages."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    return spaced.removesuffix(" id") or spaced
