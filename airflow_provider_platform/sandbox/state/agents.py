"""The AI agents of the sandbox, which the management API lists and the chat API serves."""

from __future__ import annotations

AGENTS = {1: "Data analyst", 2: "Embedded analyst"}
"""Names by id. All belong to deployment 1."""
EMBEDDABLE = (2,)
