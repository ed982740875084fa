"""Who may ask `agtrace open`: the browser that came by its link, and no other page or program."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from html import escape
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ENTRANCE = "/enter"
"""Where a link leads: `/enter?key=KEY&to=/`."""

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
<p>This page opens with the link that <code>agtrace open</code> printed, once. Run it again for a new one.</p>
"""
_ONWARD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>agtrace</title>
<link rel="icon" href="/static/0/icon.svg"><meta http-equiv="refresh" content="0; url={to}">
"""


class Keys:
    """The keys of links that weren't used yet. Safe to use from several threads."""

    def __init__(self) -> None:
        self._unused: dict[str, Callable[[], None]] = {}

    def new(self, after_use: Callable[[], None]) -> str:
        """Return a new key; `after_use` is called once it was used."""
        key = secrets.token_urlsafe()
        self._unused[key] = after_use
        return key

    def use(self, key: str) -> bool:
        """Use a key, which is worth nothing from then on; False for one that is unknown or was used before."""
        after_use = self._unused.pop(key, None)
        if after_use is None:
            return False
        after_use()
        return True


class Auth:
    """Lets requests through that come from our own pages, or by a link. Safe to use from several threads.

    A link has a key that works once. The visit gets a cookie, with a value of its own, that scripts can't read and that
    other sites' pages can't send. Host and Origin must be ours, so that no web page reaches the server through a host
    name of its own (DNS rebinding). Whatever is answered says that nothing but our own scripts and styles may run,
    load, or frame it.
    """

    def __init__(self, app: ASGIApp, keys: Keys, port: int) -> None:
        self._app, self._keys, self._visitor = app, keys, secrets.token_urlsafe()
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
        refused = self._refusal(request.headers)
        if refused is not None:
            return refused
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("Only GET is supported.\n", 405, {"Allow": "GET, HEAD"})
        is_known = hmac.compare_digest(request.cookies.get(self._cookie, "").encode(), self._visitor.encode())
        if request.url.path == ENTRANCE:
            return self._entrance(request, is_known=is_known)
        return None if is_known else HTMLResponse(_STRANGER, 401)

    def _refusal(self, headers: Headers) -> Response | None:
        if headers.get("host", "").lower() not in self._hosts:
            return PlainTextResponse("Unknown host.\n", 421)
        if headers.get("origin") not in (None, *self._origins):
            return PlainTextResponse("Unknown origin.\n", 403)
        is_visit = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if headers.get("sec-fetch-site", "none") not in _OWN_SITES and not is_visit:
            return PlainTextResponse("Only our own pages may ask.\n", 403)
        return None

    def _entrance(self, request: Request, *, is_known: bool) -> Response:
        """Use the key of the link, and go on to where it leads.

        The page that comes next is asked for by our own page, so that the cookie, which is for our site only, is sent
        however the link was opened. What only looks ahead (a browser while its user still types, a link checker) gets
        nothing and leaves the key unused.
        """
        if request.method == "HEAD" or "prefetch" in request.headers.get(
            "sec-purpose", request.headers.get("purpose", "")
        ):
            return PlainTextResponse("Only a visit opens this link.\n", 503)
        if not self._keys.use(request.query_params.get("key", "")) and not is_known:
            return HTMLResponse(_STRANGER, 401)
        to = escape(_place(request.query_params.get("to", "/")))
        answer = HTMLResponse(_ONWARD.format(to=to))
        answer.set_cookie(self._cookie, self._visitor, httponly=True, samesite="strict", path="/")
        return answer


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
