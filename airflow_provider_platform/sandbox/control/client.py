"""A client of a sandbox's control API, for any process: faults, breakpoints, settings, counters."""

from __future__ import annotations

import http.client
import json
import time
import urllib.parse
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.sandbox.chat.planned_answers import PlannedAnswer
from airflow_provider_platform.sandbox.connection import connection
from airflow_provider_platform.sandbox.faults import Breakpoint, Fault
from airflow_provider_platform.sandbox.state.credentials import Credentials, service_token
from airflow_provider_platform.sandbox.state.journal import SandboxState

if TYPE_CHECKING:
    from collections.abc import Callable

_ROUND = 10.0
"""Seconds that one waiting request lasts at most."""
_SLACK = 30.0
_HEADERS = {"Content-Type": "application/json"}


class SandboxControlError(Exception):
    """The sandbox refused a control request. The message is the sandbox's."""


@dataclass(frozen=True)
class BreakpointHit:
    """A request (method and path) or a run (both None) that has stopped at a breakpoint."""

    method: str | None
    path: str | None
    chat_id: str | None
    message_id: str | None


@dataclass(frozen=True)
class FaultStatus:
    """An armed fault and how often it has taken effect."""

    id: str
    hits: int
    fault: Fault


class SandboxControl:
    """Controls the sandbox at ``url`` over HTTP.

    Every method raises ``SandboxControlError`` if the sandbox refuses the request. The methods that
    wait raise ``TimeoutError``.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._host = urllib.parse.urlsplit(self.url).netloc

    def info(self) -> dict[str, Any]:
        """Addresses, current credentials and the connection, as in the ready file."""
        return self._dict(self._call("info"))

    def connection(self, **overrides: Any) -> dict[str, Any]:
        """An Airflow connection with the current credentials (see ``connection.connection``)."""
        info = self.info()
        credentials = Credentials(info["management_token"], info["chat_api_key"])
        return connection(self.url, credentials, **overrides)

    def service_token(self, **claims: Any) -> str:
        """Return a signed service token, like ``Sandbox.service_token``."""
        return service_token(self.info()["api_secret"], **claims)

    def reset(self) -> None:
        """Go back to the start, without threads, runs, faults, breakpoints or counts; cut open
        streams."""
        self._call("reset")

    def set(self, **settings: Any) -> dict[str, Any]:
        """Change settings (see ``Settings``); returns all of them."""
        return self._dict(self._call("settings", settings))

    def settings(self) -> dict[str, Any]:
        return self._dict(self._call("settings"))

    def rotate_management_token(self) -> str:
        """Replace the management token and return the new one. The old token is refused from now
        on."""
        value: str = self._call("rotate", {"which": "management_token"})["value"]
        return value

    def rotate_chat_key(self) -> str:
        """Replace the chat API key and return the new one. The old key is refused from now on."""
        value: str = self._call("rotate", {"which": "chat_api_key"})["value"]
        return value

    def fault(self, kind: str, **parameters: Any) -> str:
        """Arm a fault (see ``Fault``); returns its id."""
        return self.arm(Fault(kind=kind, **parameters))

    def arm(self, fault: Fault) -> str:
        fault_id: str = self._call("arm", fault.as_json())["id"]
        return fault_id

    def faults(self) -> list[FaultStatus]:
        """Return the armed faults, including those that have taken effect as often as they
        should."""
        return [
            FaultStatus(entry.pop("id"), entry.pop("hits"), Fault(**entry))
            for entry in self._call("faults")
        ]

    def release_fault(self, fault_id: str) -> None:
        """End the silence or the blank lines of this fault. The stream continues."""
        self._call("release_fault", {"fault_id": fault_id})

    def clear_faults(self) -> None:
        """Disarm all faults and end every silence."""
        self._call("clear_faults")

    def set_breakpoint(self, name: str, **parameters: Any) -> None:
        """Stop the first matching request or run at this point (see ``Breakpoint``)."""
        self._call("set_breakpoint", Breakpoint(name=name, **parameters).as_json())

    def wait_for_breakpoint(self, name: str, timeout: float = 30.0) -> list[BreakpointHit]:
        """Wait until a request or a run has stopped at this breakpoint."""
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            wait = max(0.0, min(left, _ROUND))
            hits = self._call("wait_for_breakpoint", {"name": name, "wait": wait}, wait=wait)
            if hits:
                return [BreakpointHit(**entry) for entry in hits]
            if left <= 0:
                raise TimeoutError(f"nothing stopped at the breakpoint {name} within {timeout} s")

    def release(self, name: str = "all") -> int:
        """Let everything at this breakpoint (default: at each breakpoint) continue, and remove the
        breakpoint. Returns how many were set."""
        released: int = self._call("release", {"name": name})["released"]
        return released

    def answer(self, question: str, **plan: Any) -> None:
        """Plan the answer to questions that contain ``question`` (see ``PlannedAnswer``)."""
        self._call("answer", asdict(PlannedAnswer(question=question, **plan)))

    def clear_answers(self) -> None:
        """Let the agent follow its rules again."""
        self._call("clear_answers")

    def abort_thread(self, chat_id: str) -> None:
        """Abort the run of a thread from outside."""
        self._call("abort_thread", {"chat_id": chat_id})

    def branches(self, deployment: int = 1) -> list[str]:
        """Return the names of a deployment's branches, open or not."""
        names: list[str] = self._call("branches", {"deployment": deployment})
        return names

    def advance(self, seconds: float) -> None:
        """Move the sandbox's clock forward. It measures the lifetimes of exports, files and
        tokens."""
        self._call("advance", {"seconds": seconds})

    def add_branch(
        self, name: str, *, deployment: int = 1, parent: str | None = None, compiles: bool = True
    ) -> None:
        """Write a branch as a dbt sync does, again if it exists, without opening it."""
        body = {"name": name, "deployment": deployment, "parent": parent, "compiles": compiles}
        self._call("add_branch", body)

    def open_branch(self, name: str, *, deployment: int = 1) -> None:
        """Serve a branch at once, as if somebody had switched on its staging environment before.
        Create the branch if it does not exist."""
        self._call("open_branch", {"name": name, "deployment": deployment})

    def report_build(
        self,
        name: str,
        status: str | None,
        error_text: str | None = None,
        *,
        deployment: int = 1,
    ) -> None:
        """Set what build-status reports for a branch, whatever its build does. With ``status``
        None, it reports the real status again."""
        body = {"name": name, "status": status, "error_text": error_text, "deployment": deployment}
        self._call("report_build", body)

    def change(self, resource: str, item_id: int | str, **fields: Any) -> dict[str, Any]:
        """Change fields of one item of a resource, as another user would. Return the item."""
        body = {"resource": resource, "item_id": item_id, "fields": fields}
        return self._dict(self._call("change", body))

    def state(self) -> SandboxState:
        """Return everything that happened since the start or the last reset."""
        return SandboxState.from_json(self._call("state"))

    def wait_until(
        self, condition: Callable[[SandboxState], bool], timeout: float = 30.0
    ) -> SandboxState:
        """Wait until ``condition`` is true for the state, and return that state."""
        deadline = time.monotonic() + timeout
        state = self.state()
        while not condition(state):
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"the condition did not come true within {timeout} s: {state}")
            wait = min(left, _ROUND)
            body = {"after": state.version, "wait": wait}
            state = SandboxState.from_json(self._call("state", body, wait=wait))
        return state

    def _call(self, operation: str, body: Any = None, *, wait: float = 0.0) -> Any:
        peer = http.client.HTTPConnection(self._host, timeout=wait + _SLACK)
        try:
            peer.request("POST", f"/sandbox/{operation}", json.dumps(body or {}), _HEADERS)
            response = peer.getresponse()
            text = response.read().decode()
        finally:
            peer.close()
        if response.status != 200:
            raise SandboxControlError(f"/sandbox/{operation}: {response.status} {text}")
        return json.loads(text)

    @staticmethod
    def _dict(document: Any) -> dict[str, Any]:
        return dict(document)
