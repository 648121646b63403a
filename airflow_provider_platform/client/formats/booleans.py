"""True and false as words: what a form, a URI or a template makes of a boolean."""

from __future__ import annotations

_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def read_boolean(value: object) -> bool:
    """The truth that is meant, in whatever case. Raises ValueError for any other word."""
    if isinstance(value, bool):
        return value
    found = _WORDS.get(str(value).strip().lower())
    if found is None:
        raise ValueError("must be true or false")
    return found
