"""JSON texts of the service as plain values that can be stored and sent on.

Python's reader lets more through than JSON has: `NaN` and numbers beyond a float's range, which
no strict reader takes back, and nesting that later exhausts the stack. The former become None,
the latter is refused.
"""

from __future__ import annotations

import json
import math
from typing import Any

MAX_DEPTH = 100

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text; bytes are UTF-8. Raises ValueError saying what is wrong."""
    if isinstance(text, bytes):
        try:
            text = text.removeprefix(_BYTE_ORDER_MARK).decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"is not UTF-8 at byte {error.start}") from None
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON at character {error.pos} ({error.msg})") from None
    except ValueError:
        raise ValueError("holds a number with too many digits") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(value):
        raise ValueError("is nested too deeply")
    return value


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


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_none)
