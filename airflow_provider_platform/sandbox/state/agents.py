"""The AI agents of the sandbox: those that the management API lists can be asked."""

from __future__ import annotations

AGENTS = {1: "Data analyst", 2: "Embedded analyst"}
"""Names by id. All belong to deployment 1."""
EMBEDDABLE = (2,)
