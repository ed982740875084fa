"""The door of `agtrace open`: only the browser that came by the link gets in, and no page of anybody else's.

The link has a token; it becomes a cookie that scripts can't read and that other sites' pages can't send, and leaves the
address. Host and Origin must be ours, so that no web page reaches the server through a host name of its own (DNS
rebinding). Whatever is answered says that nothing but our own scripts and styles may run, load, or frame it.
"""

from __future__ import annotations

import hmac
from html import escape
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ENTRANCE = "/enter"
"""Where the link leads: `/enter?key=TOKEN&to=/`."""

_POLICY = "; ".join((
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
    "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
    "trusted-types agtrace",
))  # fmt: skip
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), clipboard-read=(), clipboard-write=(self)",
    "cache-control": "no-store",
}
_OWN_SITES = frozenset({"same-origin", "none"})
_STRANGER = """<!doctype html><html lang="en"><meta charset="utf-8"><title>agtrace</title>
<h1>Use the link</h1>
<p>This page opens with the link that <code>agtrace open</code> printed. Run it again for a new one.</p>
"""
_ONWARD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>agtrace</title>
<link rel="icon" href="/static/0/icon.svg"><meta http-equiv="refresh" content="0; url={to}">
"""


class Guard:
    """Lets requests through that come from our own pages, or by the link. Safe to use from several threads."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app, self._token = app, token
        self._hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))
        self._origins = frozenset(f"http://{host}" for host in self._hosts)
        self._cookie = f"agtrace-{port}"  # browsers give cookies to all ports of a host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self._answer(Request(scope)) or self._app
        await answer(scope, receive, _with_headers(send))

    def _answer(self, request: Request) -> Response | None:
        """Return what a request gets at the door; None if it may come in."""
        refused = self._refusal(request.headers)
        if refused is not None:
            return refused
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("Only GET is supported.\n", 405, {"Allow": "GET, HEAD"})
        if request.url.path == ENTRANCE:
            return self._entrance(request)
        return None if self._is_token(request.cookies.get(self._cookie, "")) else HTMLResponse(_STRANGER, 401)

    def _refusal(self, headers: Headers) -> Response | None:
        if headers.get("host", "").lower() not in self._hosts:
            return PlainTextResponse("Unknown host.\n", 421)
        if headers.get("origin") not in (None, *self._origins):
            return PlainTextResponse("Unknown origin.\n", 403)
        is_visit = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if headers.get("sec-fetch-site", "none") not in _OWN_SITES and not is_visit:
            return PlainTextResponse("Only our own pages may ask.\n", 403)
        return None

    def _entrance(self, request: Request) -> Response:
        """Turn the token of the link into a cookie, and go on to where it leads.

        The page that comes next is asked for by our own page, so that the cookie, which is for our site only, is sent
        however the link was opened.
        """
        if not self._is_token(request.query_params.get("key", "")):
            return HTMLResponse(_STRANGER, 401)
        to = escape(_place(request.query_params.get("to", "/")))
        answer = HTMLResponse(_ONWARD.format(to=to))
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict", path="/")
        return answer

    def _is_token(self, shown: str) -> bool:
        """Whether this is the token; compared in constant time."""
        return hmac.compare_digest(shown.encode(), self._token.encode())


def _place(given: str) -> str:
    """Return a place of ours; the first page for any other address."""
    try:
        parts = urlsplit(given)
    except ValueError:
        return "/"
    ours = not parts.scheme and not parts.netloc and given.startswith("/") and not given.startswith(("//", "/\\"))
    return given if ours and given.isprintable() else "/"


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
        await send(message)

    return sent
