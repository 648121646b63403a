"""Settings of the property tests: no time limit for an example, which parallel runs stretch."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("client", deadline=None)
settings.load_profile("client")
