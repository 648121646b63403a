"""The control API below ``/sandbox/``: faults, breakpoints, settings, counters. Never faulted."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from airflow_provider_platform.sandbox.chat import runs as chat_runs
from airflow_provider_platform.sandbox.chat.threads import Threads
from airflow_provider_platform.sandbox.connection import describe
from airflow_provider_platform.sandbox.faults.breakpoints import Breakpoint
from airflow_provider_platform.sandbox.faults.faults import Fault
from airflow_provider_platform.sandbox.faults.matching import from_json
from airflow_provider_platform.sandbox.management.items import Items
from airflow_provider_platform.sandbox.management.samples import DEPLOYMENTS, OWNER
from airflow_provider_platform.sandbox.state.branches import (
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

Answer = dict[str, Any] | list[Any] | None


def routes(server: Callable[[], ServerState], reset: Callable[[], Awaitable[None]]) -> list[Route]:
    """Return the routes. They use the current server state, which a reset replaces."""
    control = _Control(server, reset)
    table: list[tuple[str, str, Callable[[Request], Awaitable[Answer]]]] = [
        ("GET", "info", control.info),
        ("GET", "state", control.state),
        ("POST", "reset", control.reset),
        ("GET", "settings", control.get_settings),
        ("POST", "settings", control.change_settings),
        ("POST", "credentials/{which}/rotate", control.rotate),
        ("GET", "faults", control.list_faults),
        ("POST", "faults", control.arm),
        ("DELETE", "faults", control.clear_faults),
        ("POST", "faults/{fault}/release", control.release_fault),
        ("GET", "breakpoints/{name}", control.wait_for_breakpoint),
        ("POST", "breakpoints", control.set_breakpoint),
        ("POST", "breakpoints/{name}/release", control.release),
        ("POST", "threads/{chat}/abort", control.abort),
        ("POST", "branches", control.branches),
        ("POST", "branches/add", control.add_branch),
        ("POST", "branches/open", control.open_branch),
        ("POST", "branches/close", control.close_branch),
        ("POST", "branches/report", control.report_build),
        ("POST", "credentials/management-token/add", control.add_management_token),
        ("POST", "clock", control.advance),
        ("POST", "resources/{name}/{id}", control.change),
    ]
    return [Route(f"/sandbox/{path}", _endpoint(do), methods=[verb]) for verb, path, do in table]


async def unknown(scope: Scope, receive: Receive, send: Send) -> None:
    await JSONResponse({"error": "no such control operation"}, 404)(scope, receive, send)


class Refused(Exception):
    """A control request that cannot be carried out, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def _endpoint(do: Callable[[Request], Awaitable[Answer]]) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        try:
            return JSONResponse(await do(request))
        except Refused as refused:
            return JSONResponse({"error": str(refused)}, refused.status)
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 400)

    return endpoint


def _body(request: Request) -> dict[str, Any]:
    document = json.loads(request.scope["body"] or b"{}")
    if not isinstance(document, dict):
        raise ValueError("the body must be an object")
    return document


def _seconds(request: Request) -> float:
    return min(float(request.query_params.get("timeout", "0")), MAX_WAIT)


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

    async def info(self, _request: Request) -> Answer:
        return describe(self._server.base_url, self._server.credentials)

    async def state(self, request: Request) -> Answer:
        """Return the journal; with ``after`` and ``timeout``, wait until it is newer than that
        version."""
        journal = self._server.journal
        after = request.query_params.get("after")
        if after is not None:
            await journal.wait_beyond(int(after), _seconds(request))
            await asyncio.sleep(_SETTLE)
        return journal.as_json()

    async def reset(self, _request: Request) -> Answer:
        await self._reset()
        return None

    async def get_settings(self, _request: Request) -> Answer:
        return self._server.settings.as_json()

    async def change_settings(self, request: Request) -> Answer:
        self._server.settings.change(_body(request))
        return self._server.settings.as_json()

    async def rotate(self, request: Request) -> Answer:
        credentials = self._server.credentials
        rotations = {
            "management-token": credentials.rotate_management_token,
            "chat-api-key": credentials.rotate_chat_api_key,
        }
        rotate = rotations.get(request.path_params["which"])
        if rotate is None:
            raise Refused(404, f"no such credential; known are {', '.join(rotations)}")
        return {"value": rotate()}

    async def list_faults(self, _request: Request) -> Answer:
        return [
            {"id": armed.id, "hits": armed.tally.hits, **armed.fault.as_json()}
            for armed in self._server.faults.all()
        ]

    async def arm(self, request: Request) -> Answer:
        return {"id": self._server.faults.arm(from_json(Fault, _body(request))).id}

    async def clear_faults(self, _request: Request) -> Answer:
        self._server.faults.clear()
        return None

    async def release_fault(self, request: Request) -> Answer:
        armed = self._server.faults.get(request.path_params["fault"])
        if armed is None:
            raise Refused(404, f"no fault {request.path_params['fault']}")
        armed.released.set()
        return None

    async def set_breakpoint(self, request: Request) -> Answer:
        self._server.breakpoints.set(from_json(Breakpoint, _body(request)))
        return None

    async def wait_for_breakpoint(self, request: Request) -> Answer:
        """What has stopped at the breakpoint; waits up to ``timeout`` while nothing has."""
        name, server = request.path_params["name"], self._server
        if name not in server.breakpoints.names():
            raise Refused(404, f"no breakpoint is set at {name}")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _seconds(request)
        while (
            not (stopped := server.breakpoints.stopped(name)) and name in server.breakpoints.names()
        ):
            left = deadline - loop.time()
            if left <= 0:
                break
            await server.journal.wait_beyond(server.journal.state.version, left)
        return [
            {
                "method": subject.method,
                "path": subject.path,
                "chat_id": subject.chat_id,
                "message_id": subject.message_id,
            }
            for subject in stopped
        ]

    async def release(self, request: Request) -> Answer:
        name = request.path_params["name"]
        return {"released": self._server.breakpoints.release(None if name == "all" else name)}

    async def abort(self, request: Request) -> Answer:
        """Stop a run as another user would."""
        chat_id = request.path_params["chat"]
        thread = self._server.store(Threads).get(chat_id)
        if thread is None or thread.current is None:
            raise Refused(404, f"nothing is running in thread {chat_id}")
        chat_runs.abort(self._server, thread.current)
        return None

    async def change(self, request: Request) -> Answer:
        """Change fields of a sample resource, as another user would."""
        name, item_id = request.path_params["name"], request.path_params["id"]
        items = self._server.store(Items)
        if name not in items.names():
            raise Refused(404, f"no resource {name}; known are {', '.join(items.names())}")
        item = next((one for one in items.all(name) if str(one["id"]) == item_id), None)
        if item is None:
            raise Refused(404, f"{name} has no item {item_id}")
        item.update(_body(request))
        return item

    async def advance(self, request: Request) -> Answer:
        seconds = _body(request).get("seconds")
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds < 0:
            raise ValueError("seconds must be a number, at least 0")
        self._server.clock.advance(seconds)
        return None

    async def branches(self, request: Request) -> Answer:
        return self._branches(_body(request)).names()

    async def add_branch(self, request: Request) -> Answer:
        """Write a branch as a dbt sync does, without opening it."""
        body = _body(request)
        branches, name = self._branches(body), str(body["name"])
        branch = branches.add(name, body.get("parent") or branches.deploy)
        model = written_model(name, f"{name} {self._server.journal.state.version}")
        if not body.get("compiles", True):
            model = replace(model, compiles=False)
        branches.write(branch, model, self._server)
        self._server.journal.changed()
        return {"name": name}

    async def open_branch(self, request: Request) -> Answer:
        """Serve a branch at once, as if somebody had opened it before; create it if it does not
        exist."""
        body = _body(request)
        branches, name = self._branches(body), str(body["name"])
        if name == branches.deploy:
            raise ValueError(f"{name} is the deploy branch, which is always open")
        branches.serve(branches.add(name, branches.deploy), self._server.clock.now())
        self._server.journal.changed()
        return {"name": name}

    async def close_branch(self, request: Request) -> Answer:
        """Switch off a branch's staging environment."""
        body = _body(request)
        branches = self._branches(body)
        branch = branches.get(str(body["name"]))
        if branch is None:
            raise Refused(404, f"no branch {body['name']} in deployment {branches.deployment}")
        branches.set_staging(branch, False, self._server)
        self._server.journal.changed()
        return {"name": branch.name}

    async def report_build(self, request: Request) -> Answer:
        """Set what build-status reports for a branch; with ``status`` None, it reports the real
        status again."""
        body = _body(request)
        branches, status = self._branches(body), body.get("status")
        branch = branches.get(str(body["name"]))
        if branch is None:
            raise Refused(404, f"no branch {body['name']} in deployment {branches.deployment}")
        branch.reported = None if status is None else (str(status), body.get("error_text"))
        return {"name": branch.name}

    async def add_management_token(self, request: Request) -> Answer:
        user = _body(request).get("user", OWNER)
        return {"value": self._server.credentials.add_management_token(int(user))}

    def _branches(self, body: dict[str, Any]) -> DeploymentBranches:
        deployment = body.get("deployment", 1)
        if deployment not in DEPLOYMENTS:
            raise Refused(404, f"no deployment {deployment}")
        return branches_of(self._server, deployment)
