"""The console users of the account, who own things and get notifications."""

from __future__ import annotations

from typing import Any

_USERS = {
    7: ("analyst@acme.example.com", "Ada"),
    8: ("admin@acme.example.com", "Grace"),
}


def owner(user_id: int) -> dict[str, Any]:
    """The user as answers name the owner of something."""
    email, first_name = _USERS.get(user_id, (f"user-{user_id}@acme.example.com", None))
    return {"id": user_id, "email": email, "firstName": first_name, "picture": None}


def find(user_id: int | None, email: str | None) -> dict[str, Any] | None:
    """The user with this id, or else with this e-mail address."""
    for known_id, (known_email, _) in _USERS.items():
        if known_id == user_id or (user_id is None and known_email == (email or "").lower()):
            return owner(known_id)
    return None
