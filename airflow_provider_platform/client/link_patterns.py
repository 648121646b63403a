"""Addresses for people: where the platform's web application shows a thread, a report and so on.

The service tells none of them, so whoever sets the connection up copies one from the browser and
puts a placeholder where the id stands: `https://acme.example.com/reports/{report_id}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

PLACEHOLDERS: dict[str, tuple[str, ...]] = {
    "agent": ("agent_id",),
    "thread": ("agent_id", "chat_id"),
    "branch": ("deployment_id", "branch_name"),
    "report": ("deployment_id", "report_id"),
    "workbook": ("deployment_id", "workbook_id"),
    "dashboard": ("deployment_id", "dashboard_id"),
    "notification": ("deployment_id", "notification_id"),
    "export": ("deployment_id", "job_id"),
    "file": ("path",),
}
"""What can be linked to, and the placeholders that its address may have."""

_PLACEHOLDER = re.compile(r"\{(\w*)\}")


def check_patterns(value: Any) -> dict[str, str]:
    """The patterns by what they lead to; empty ones count as absent. Raises ValueError."""
    if not isinstance(value, Mapping):
        raise ValueError(
            f"must be a JSON object whose keys are {', '.join(PLACEHOLDERS)} and "
            "whose values are web addresses"
        )
    patterns = {name: pattern for name, pattern in value.items() if pattern not in (None, "")}
    for name, pattern in patterns.items():
        if name not in PLACEHOLDERS:
            raise ValueError(
                f"has the unknown key {name!r}; its keys are {', '.join(PLACEHOLDERS)}"
            )
        _check(name, pattern)
    return patterns


def _check(name: str, pattern: Any) -> None:
    example = f"https://acme.example.com/.../{{{PLACEHOLDERS[name][-1]}}}"
    try:
        parts = urlsplit(pattern) if isinstance(pattern, str) else None
        usable = parts is not None and parts.scheme in ("http", "https") and parts.hostname
    except ValueError:
        usable = False
    if not usable or parts is None or "{" in parts.netloc or not str(pattern).isprintable():
        raise ValueError(f"must have a web address for {name!r}, for example {example}")
    if "@" in parts.netloc:
        raise ValueError(f"must not contain a user name or password in the address for {name!r}")
    unknown = set(_PLACEHOLDER.findall(pattern)) - set(PLACEHOLDERS[name])
    if unknown:
        known = " and ".join(f"{{{placeholder}}}" for placeholder in PLACEHOLDERS[name])
        raise ValueError(
            f"must contain only {known} as placeholder in the address for {name!r}, not "
            f"{{{min(unknown)}}}"
        )


def fill(pattern: str, values: Mapping[str, Any]) -> str | None:
    """The address; None while a value is missing."""
    names = _PLACEHOLDER.findall(pattern)
    if any(values.get(name) in (None, "") for name in names):
        return None
    return _PLACEHOLDER.sub(
        lambda match: quote(str(values[match[1]]), safe="/" if match[1] == "path" else ""), pattern
    )
