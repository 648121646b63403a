"""The control API below ``/sandbox/``: faults, breakpoints, settings, counters. Never faulted.

Each method of ``_Control`` is one operation: ``POST /sandbox/advance`` with ``{"seconds": 60}``.
GET reads ``info``, ``state``, ``settings`` and ``faults``.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from airflow_provider_platform.sandbox.chat import runs as chat_runs
from airflow_provider_platform.sandbox.chat.planned_answers import PlannedAnswer, PlannedAnswers
from airflow_provider_platform.sandbox.chat.threads import Threads
from airflow_provider_platform.sandbox.connection import describe
from airflow_provider_platform.sandbox.faults import Breakpoint, Fault, from_json
from airflow_provider_platform.sandbox.management.samples import DEPLOYMENTS, Items
from airflow_provider_platform.sandbox.state.branches import (
    Branch,
    DeploymentBranches,
    branches_of,
    written_model,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from airflow_provider_platform.sandbox.state.server_state import ServerState

MAX_WAIT = 30.0
"""Seconds that one waiting request lasts at most; clients then send it again."""
_SETTLE = 0.02
"""Seconds in which changes are collected, so that a waiting client does not slow a busy sandbox."""

_READ = ("info", "state", "settings", "faults")
"""Operations that GET reads."""

Answer = dict[str, Any] | list[Any] | None


def routes(server: Callable[[], ServerState], reset: Callable[[], Awaitable[None]]) -> list[Route]:
    """Return the route. It uses the current server state, which a reset replaces."""
    control = _Control(server, reset)

    async def endpoint(request: Request) -> Response:
        name = request.path_params["operation"]
        known = name in _READ or (request.method == "POST" and not name.startswith("_"))
        operation = getattr(control, name, None) if known else None
        if operation is None:
            return JSONResponse({"error": "no such control operation"}, 404)
        try:
            arguments = json.loads(request.scope["body"] or b"{}")
            if not isinstance(arguments, dict):
                raise ValueError("the body must be an object")
            return JSONResponse(await operation(**arguments))
        except Refused as refused:
            return JSONResponse({"error": str(refused)}, refused.status)
        except (TypeError, ValueError) as error:
            return JSONResponse({"error": str(error)}, 400)

    return [Route("/sandbox/{operation}", endpoint, methods=["GET", "POST"])]


async def unknown(scope: Scope, receive: Receive, send: Send) -> None:
    await JSONResponse({"error": "no such control operation"}, 404)(scope, receive, send)


class Refused(Exception):
    """A control request that cannot be carried out, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Control:
    """The operations of the control API."""

    def __init__(
        self, server: Callable[[], ServerState], reset: Callable[[], Awaitable[None]]
    ) -> None:
        self._current_server = server
        self._reset = reset

    @property
    def _server(self) -> ServerState:
        return self._current_server()

    async def info(self) -> Answer:
        return describe(self._server.base_url, self._server.credentials)

    async def state(self, after: int | None = None, wait: float = 0) -> Answer:
        """Return the journal; with ``after``, wait until it is newer than that version."""
        journal = self._server.journal
        if after is not None:
            await journal.wait_beyond(after, min(wait, MAX_WAIT))
            await asyncio.sleep(_SETTLE)
        return journal.as_json()

    async def reset(self) -> Answer:
        await self._reset()
        return None

    async def settings(self, **changes: Any) -> Answer:
        self._server.settings.change(changes)
        return self._server.settings.as_json()

    async def rotate(self, which: str) -> Answer:
        return {"value": self._server.credentials.rotate(which)}

    async def faults(self) -> Answer:
        return [
            {"id": armed.id, "hits": armed.tally.hits, **armed.fault.as_json()}
            for armed in self._server.faults.all()
        ]

    async def arm(self, **fault: Any) -> Answer:
        return {"id": self._server.faults.arm(from_json(Fault, fault)).id}

    async def clear_faults(self) -> Answer:
        self._server.faults.clear()
        return None

    async def release_fault(self, fault_id: str) -> Answer:
        armed = self._server.faults.get(fault_id)
        if armed is None:
            raise Refused(404, f"no fault {fault_id}")
        armed.released.set()
        return None

    async def set_breakpoint(self, **rule: Any) -> Answer:
        self._server.breakpoints.set(from_json(Breakpoint, rule))
        return None

    async def wait_for_breakpoint(self, name: str, wait: float) -> Answer:
        """Return what has stopped at the breakpoint; wait so many seconds while nothing has."""
        server = self._server
        if name not in server.breakpoints.names():
            raise Refused(404, f"no breakpoint is set at {name}")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(wait, MAX_WAIT)
        while (
            not (stopped := server.breakpoints.stopped(name)) and name in server.breakpoints.names()
        ):
            left = deadline - loop.time()
            if left <= 0:
                break
            await server.journal.wait_beyond(server.journal.state.version, left)
        names = ("method", "path", "chat_id", "message_id")
        return [{name: getattr(subject, name) for name in names} for subject in stopped]

    async def release(self, name: str) -> Answer:
        return {"released": self._server.breakpoints.release(None if name == "all" else name)}

    async def answer(self, **plan: Any) -> Answer:
        self._server.store(PlannedAnswers).append(PlannedAnswer(**plan))
        return None

    async def clear_answers(self) -> Answer:
        self._server.store(PlannedAnswers).clear()
        return None

    async def abort_thread(self, chat_id: str) -> Answer:
        """Stop a run as another user would."""
        thread = self._server.store(Threads).get(chat_id)
        if thread is None or thread.current is None:
            raise Refused(404, f"nothing is running in thread {chat_id}")
        chat_runs.abort(self._server, thread.current)
        return None

    async def change(self, resource: str, item_id: int | str, fields: dict[str, Any]) -> Answer:
        """Change fields of a sample resource, as another user would."""
        items = self._server.store(Items)
        if resource not in items.names():
            raise Refused(404, f"no resource {resource}; known are {', '.join(items.names())}")
        found = next((one for one in items.all(resource) if str(one["id"]) == str(item_id)), None)
        if found is None:
            raise Refused(404, f"{resource} has no item {item_id}")
        found.update(fields)
        return found

    async def advance(self, seconds: Any) -> Answer:
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds < 0:
            raise ValueError("seconds must be a number, at least 0")
        self._server.clock.advance(seconds)
        return None

    async def branches(self, deployment: int) -> Answer:
        return self._branches(deployment).names()

    async def add_branch(
        self, name: str, deployment: int, parent: str | None, compiles: bool
    ) -> Answer:
        """Write a branch as a dbt sync does, without opening it."""
        branches = self._branches(deployment)
        branch = branches.add(name, parent or branches.deploy)
        model = written_model(name, f"{name} {self._server.journal.state.version}")
        if not compiles:
            model = replace(model, compiles=False)
        branches.write(branch, model, self._server)
        self._server.journal.changed()
        return None

    async def open_branch(self, name: str, deployment: int) -> Answer:
        """Serve a branch at once, as if somebody had opened it before; create it if it does not
        exist."""
        branches = self._branches(deployment)
        if name == branches.deploy:
            raise ValueError(f"{name} is the deploy branch, which is always open")
        branches.serve(branches.add(name, branches.deploy), self._server.clock.now())
        self._server.journal.changed()
        return None

    async def report_build(
        self, name: str, deployment: int, status: str | None, error_text: str | None
    ) -> Answer:
        """Set what build-status reports for a branch; with ``status`` None, it reports the real
        status again."""
        reported = None if status is None else (status, error_text)
        self._branch(name, deployment).reported = reported
        return None

    def _branches(self, deployment: int) -> DeploymentBranches:
        if deployment not in DEPLOYMENTS:
            raise Refused(404, f"no deployment {deployment}")
        return branches_of(self._server, deployment)

    def _branch(self, name: str, deployment: int) -> Branch:
        branch = self._branches(deployment).get(name)
        if branch is None:
            raise Refused(404, f"no branch {name} in deployment {deployment}")
        return branch
