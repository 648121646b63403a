"""The sandbox's secrets and the checks made with them: bearer token, chat key and signed tokens."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jwt

_SIGNATURE_ONLY: Any = {"verify_exp": False, "verify_iat": False, "verify_nbf": False} | {
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}
"""Expiry is checked with the sandbox's own clock, and the other claims by the code of each API."""


def _secret(prefix: str) -> str:
    return f"{prefix}-{secrets.token_urlsafe(24)}"


_PREFIXES = {"management_token": "mgmt", "chat_api_key": "sk-chat"}


@dataclass
class Credentials:
    """The credentials that the sandbox accepts: new after each reset, and each can be replaced."""

    management_token: str = field(default_factory=lambda: _secret("mgmt"), repr=False)
    chat_api_key: str = field(default_factory=lambda: _secret("sk-chat"), repr=False)
    api_secret: str = field(default_factory=lambda: _secret("secret"), repr=False)

    def rotate(self, which: str) -> str:
        """Replace a credential and return the new one. Raises ``ValueError``."""
        if which not in _PREFIXES:
            raise ValueError(f"no such credential; known are {', '.join(_PREFIXES)}")
        setattr(self, which, _secret(_PREFIXES[which]))
        value: str = getattr(self, which)
        return value

    def all(self) -> list[str]:
        """Return all secrets."""
        return [self.management_token, self.chat_api_key, self.api_secret]


def matches(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


def sign(claims: Mapping[str, Any], secret: str) -> str:
    """Return a JWT signed with HS256."""
    return jwt.encode(dict(claims), secret, algorithm="HS256")


def verify(token: str, secret: str, now: float) -> dict[str, Any]:
    """Return the claims of a JWT. Raises ``ValueError`` for a bad form, signature or expiry.
    ``now`` is the Unix time with which the expiry is compared.
    """
    try:
        claims: dict[str, Any] = jwt.decode(
            token, secret, algorithms=["HS256"], options=_SIGNATURE_ONLY
        )
    except jwt.InvalidSignatureError:
        raise ValueError("the signature is wrong") from None
    except jwt.InvalidAlgorithmError:
        raise ValueError("the token must be signed with HS256") from None
    except jwt.InvalidTokenError:
        raise ValueError("not a JWT") from None
    expires = claims.get("exp")
    if expires is not None and (not isinstance(expires, (int, float)) or expires <= now):
        raise ValueError("the token has expired")
    return claims


def service_token(secret: str, **claims: Any) -> str:
    """Return a service token for the chat API. A claim of None is left out."""
    now = int(time.time())
    merged: dict[str, Any] = {
        "externalId": "nightly-pipeline",
        "scope": ["chat"],
        "iat": now,
        "exp": now + 3600,
        **claims,
    }
    return sign({name: value for name, value in merged.items() if value is not None}, secret)
