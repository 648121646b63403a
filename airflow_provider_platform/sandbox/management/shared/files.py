"""Definitions as text: canonical JSON with its SHA-256."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_file(document: Any) -> dict[str, str]:
    """Text that is the same for the same content, and its hash."""
    content = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)
    return {"content": content, "hash": hashlib.sha256(content.encode()).hexdigest()}
