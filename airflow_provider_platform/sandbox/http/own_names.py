"""Refuses requests that a web page sends or that are not addressed to this machine.

Any page in a browser on this machine can send requests to loopback, and a foreign name can be made
to resolve to it. The browser writes the name and the page's origin into the request, so these two
are checked before anything else, whatever the method and the path.
"""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from airflow_provider_platform.sandbox.http.responses import is_json

CONTROL = "/sandbox/"
"""Prefix of the paths of the control API."""

_OWN_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE)
_WITHOUT_EFFECT = ("GET", "HEAD")
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}


def refusal(scope: Scope) -> Response | None:
    """Return the response to a request that the sandbox refuses; None if it serves the request.

    ``Host`` must be a name of loopback (403). An ``Origin`` must be the one that the request went
    to (403). A control request that changes something must be JSON (415), which a page cannot send
    without asking first.
    """
    headers = Headers(scope=scope)
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not _OWN_HOST.fullmatch(hosts[0]):
        return _refused(403, "the sandbox answers to 127.0.0.1, localhost and [::1] only")
    own = f"http://{hosts[0]}".lower()
    if any(origin.lower() != own for origin in headers.getlist("origin")):
        return _refused(403, "the sandbox refuses requests from web pages of other addresses")
    control = scope["path"].startswith(CONTROL) and scope["method"] not in _WITHOUT_EFFECT
    if control and not is_json(headers):
        return _refused(415, "a control request must have the Content-Type application/json")
    return None


def _refused(status: int, reason: str) -> Response:
    return JSONResponse({"error": reason}, status, headers=_HEADERS)
