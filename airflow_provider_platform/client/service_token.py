"""What the claims of a chat service token tell about why it will be refused, now or soon."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

SOON = 24 * 3600.0
"""Seconds: a token that lives no longer does not last until the next nightly run."""


def unverified_claims(token: str) -> dict[str, Any] | None:
    """The claims of a JWT, its signature unchecked; None where it is not a JWT."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return None
    return claims if isinstance(claims, dict) else None


def token_warnings(token: str, now: float) -> list[str]:
    """A sentence for each fault of the token's claims; `now` is Unix time.

    The signature is not checked, and a custom check function of the deployment may make up for
    missing claims: only the service knows whether it accepts the token.
    """
    claims = unverified_claims(token)
    if claims is None:
        return [
            "Chat service token (chat_service_token) is not a JWT: it must have three parts "
            "separated by dots."
        ]
    return [*_missing_claims(claims), *_times(claims, now)]


def _missing_claims(claims: dict[str, Any]) -> Iterator[str]:
    scope = claims.get("scope")
    if not isinstance(scope, list) or "chat" not in scope:
        yield (
            "Chat service token (chat_service_token) lacks the scope 'chat'. Its claim scope "
            "must be a list that includes 'chat'."
        )
    if not claims.get("externalId") and not claims.get("sub"):
        yield (
            "Chat service token (chat_service_token) names no user: it has neither the claim "
            "externalId nor sub."
        )


def _times(claims: dict[str, Any], now: float) -> Iterator[str]:
    expires, begins = _seconds(claims.get("exp")), _seconds(claims.get("nbf"))
    if begins is not None and begins > now:
        yield f"Chat service token (chat_service_token) is not valid before {_when(begins)}."
    if expires is None:
        return
    if expires <= now:
        yield (
            f"Chat service token (chat_service_token) expired on {_when(expires)}. Enter a new "
            "token."
        )
    elif expires - now < SOON:
        yield (
            f"Chat service token (chat_service_token) expires soon, on {_when(expires)}. Runs "
            "after that need a new token."
        )


def _seconds(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _when(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, OSError, ValueError):
        return f"an invalid date ({seconds:g})"
