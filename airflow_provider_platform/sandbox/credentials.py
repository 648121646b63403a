"""The sandbox's secrets and the checks made with them: bearer token, chat key and signed tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def _secret(prefix: str) -> str:
    return f"{prefix}-{secrets.token_urlsafe(24)}"


@dataclass
class Credentials:
    """What the sandbox accepts; fresh for every server, replaceable one by one."""

    management_token: str = field(default_factory=lambda: _secret("mgmt"), repr=False)
    chat_api_key: str = field(default_factory=lambda: _secret("sk-chat"), repr=False)
    api_secret: str = field(default_factory=lambda: _secret("secret"), repr=False)

    def rotate_management_token(self) -> str:
        self.management_token = _secret("mgmt")
        return self.management_token

    def rotate_chat_api_key(self) -> str:
        self.chat_api_key = _secret("sk-chat")
        return self.chat_api_key


def matches(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


def sign(claims: Mapping[str, Any], secret: str) -> str:
    """A JWT signed with HS256."""
    head = _part({"alg": "HS256", "typ": "JWT"})
    payload = f"{head}.{_part(claims)}"
    return f"{payload}.{_encode(_digest(payload, secret))}"


def verify(token: str, secret: str, now: float) -> dict[str, Any]:
    """The claims of a JWT; raises ``ValueError`` for a bad form, signature or expiry.

    ``now`` is the Unix time that expiry is held against.
    """
    parts = token.split(".")
    if len(parts) != 3:
        raise ValueError("not a JWT")
    try:
        header, claims = (json.loads(_decode(part)) for part in parts[:2])
        signature = _decode(parts[2])
    except ValueError:
        raise ValueError("not a JWT") from None
    if not isinstance(header, dict) or header.get("alg") != "HS256" or not isinstance(claims, dict):
        raise ValueError("the token must be signed with HS256")
    if not hmac.compare_digest(signature, _digest(f"{parts[0]}.{parts[1]}", secret)):
        raise ValueError("the signature is wrong")
    expires = claims.get("exp")
    if expires is not None and (not isinstance(expires, (int, float)) or expires <= now):
        raise ValueError("the token has expired")
    return claims


def service_token(secret: str, **claims: Any) -> str:
    """A service token for the chat API. A claim given as None is left out."""
    now = int(time.time())
    merged: dict[str, Any] = {
        "externalId": "nightly-pipeline",
        "scope": ["chat"],
        "iat": now,
        "exp": now + 3600,
        **claims,
    }
    return sign({name: value for name, value in merged.items() if value is not None}, secret)


def _digest(payload: str, secret: str) -> bytes:
    return hmac.new(secret.encode(), payload.encode(), hashlib.sha256).digest()


def _part(document: Mapping[str, Any]) -> str:
    return _encode(json.dumps(document, separators=(",", ":")).encode())


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
