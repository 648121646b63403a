"""The sandbox: both APIs of the platform in one process, for demos and tests, without an account.

Importing this package is cheap: the server and its libraries load when a name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl, SandboxControlError
    from airflow_provider_platform.sandbox.faults import Breakpoint, Fault
    from airflow_provider_platform.sandbox.server import Sandbox

_HOMES = {
    "Fault": "faults",
    "Breakpoint": "faults",
    "Sandbox": "server",
    "SandboxControl": "control.client",
    "SandboxControlError": "control.client",
}

__all__ = ["Breakpoint", "Fault", "Sandbox", "SandboxControl", "SandboxControlError"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
