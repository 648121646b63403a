"""JSON texts of the service as plain values that can be stored and sent on.

Python's reader lets more through than what takes the values over can carry. `NaN` and numbers
beyond a float's range become None; whole numbers beyond 64 bits, which end the process that packs
them into a message of Airflow, become floats. Nesting that later exhausts the stack is refused.
Half a character (a lone surrogate) fits into no UTF-8 text; its other half may come in the next
piece of a text, so that is for the reader of the whole to mend (`whole_characters`).
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

MAX_DEPTH = 100

_HALF = re.compile("[\ud800-\udfff]")
_WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_CUT_NUMBER = re.compile(r"[.eE][+-]?")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class CutJsonError(ValueError):
    """The text is the beginning of a JSON text."""


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text; bytes are UTF-8. Raises ValueError saying what is wrong, and
    CutJsonError where only the end is missing."""
    if isinstance(text, bytes):
        try:
            text = text.removeprefix(_BYTE_ORDER_MARK).decode()
        except UnicodeDecodeError as error:
            cut = error.reason == "unexpected end of data"
            raise (CutJsonError if cut else ValueError)(
                f"is not UTF-8 at byte {error.start}"
            ) from None
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        kind = CutJsonError if _is_beginning(text, error) else ValueError
        raise kind(f"is not JSON at character {error.pos} ({error.msg})") from None
    except ValueError:
        raise ValueError("holds a number with too many digits") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(value):
        raise ValueError("is nested too deeply")
    return value


def whole_characters(value: Any) -> Any:
    """The value with the halves of characters put together, and lone ones replaced."""
    if isinstance(value, str):
        if value.isascii() or _HALF.search(value) is None:
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [whole_characters(item) for item in value]
    if isinstance(value, dict):
        return {whole_characters(name): whole_characters(item) for name, item in value.items()}
    return value


def _is_beginning(text: str, error: json.JSONDecodeError) -> bool:
    """Whether the text is JSON as far as it goes: the error stands where it ends, or at the start
    of a word, number, escape or string that it breaks off in."""
    rest = text[error.pos :].strip()
    if not text.lstrip().startswith(("{", "[", '"')):
        return False
    return (
        not rest
        or error.msg.startswith("Unterminated string")
        or (error.msg.startswith("Invalid \\uXXXX escape") and '"' not in rest)
        or any(word.startswith(rest) for word in _WORDS)
        or _CUT_NUMBER.fullmatch(rest) is not None
    )


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _none(_name: str) -> None:
    """What `NaN`, `Infinity` and `-Infinity` become."""


def _within_64_bits(digits: str) -> int | float | None:
    number = int(digits)
    return number if -(2**63) <= number < 2**64 else _finite(digits)


_DECODER = json.JSONDecoder(parse_float=_finite, parse_int=_within_64_bits, parse_constant=_none)
