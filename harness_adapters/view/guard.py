"""Who may ask: this page, in the browser of whoever was given the address, and nobody else.

The page's own files hold no secret and are given to any caller on this machine. All else is under /api and needs
the token in a header: a cookie would be sent to every port of 127.0.0.1, so to other accounts' servers too. The token
reaches the page behind the `#` of its address, which no browser sends to a server.

A page of another site can't read an answer (no CORS header is ever sent) nor set that header; a name that was made
to lead to 127.0.0.1 (DNS rebinding) is told by the Host header.
"""

import hmac

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_HEADER = "x-agent-channel-token"  # noqa: S105  its name, not one

API = "/api/"

SECURITY_HEADERS = {
    "content-security-policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",  # no text can become markup, whatever the script does
        )
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""On every answer, refusals too."""


class Guard:
    """An ASGI application around another: refuses, or passes on, and puts SECURITY_HEADERS on the answer."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"  # web sockets and the lifespan are off

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            await send(message)

        refusal = self._refusal(scope["method"], scope["path"], Headers(scope=scope))
        await (refusal or self._app)(scope, receive, send_safely)

    def _refusal(self, method: str, path: str, headers: Headers) -> JSONResponse | None:
        host = headers.get("host", "")
        if host not in self._hosts:
            return _refuse(421, "This view answers to 127.0.0.1 and localhost only, at its own port.")
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return _refuse(403, "A page of another site may not ask.")
        if not path.startswith(API):
            return None
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return _refuse(403, "Only the view's own page may ask.")
        if not hmac.compare_digest(headers.get(TOKEN_HEADER, "").encode(), self._token):
            return _refuse(401, "The token is missing or wrong: open the address that `agent-channel view` printed.")
        if method == "POST" and origin is None:
            return _refuse(403, "A decision must name the page that it comes from (Origin).")
        return None


def _refuse(status: int, why: str) -> JSONResponse:
    return JSONResponse({"error": why}, status)
