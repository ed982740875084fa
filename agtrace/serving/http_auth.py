"""Who may ask a server over HTTP: known names only, a token, a seat for each request.

No web page can reach a server through a host name of its own (DNS rebinding), and no client keeps others waiting.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

import anyio
import anyio.lowlevel
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agtrace.problems import SettingError
from agtrace.settings import is_token

MOST_REQUESTS = 32
"""The most requests at a time."""
_SEAT_SECONDS = 1
"""How long a request waits for a seat."""
_WILDCARDS = frozenset({"0.0.0.0", "::"})
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class KnownNames:
    """Refuses requests with an unknown host or from an unknown web origin."""

    def __init__(self, app: ASGIApp, security: TransportSecuritySettings) -> None:
        self._app, self._names = app, TransportSecurityMiddleware(security)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = await self._names.validate_request(Request(scope)) if scope["type"] == "http" else None
        await (refused or self._app)(scope, receive, send)


class Auth:
    """Checks the token and method of a request, and gives it a seat, before its body is read.

    If no seat is free, the oldest request whose body is still arriving gives up its seat to a new one. Sending an
    answer needs no seat: a client that doesn't receive it keeps nobody waiting.
    """

    def __init__(self, app: ASGIApp, token: str | None, seats: int = MOST_REQUESTS) -> None:
        self._app, self._token = app, token
        self._seats = anyio.CapacityLimiter(seats)
        self._seated: dict[anyio.CancelScope, bool] = {}
        """The requests, oldest first, and whether their bodies have arrived completely."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        refused = self._refusal(request)
        if refused is not None:
            await refused(scope, receive, send)
            return
        with anyio.CancelScope() as turn:
            coming = [other for other, is_whole in self._seated.items() if not is_whole]
            if coming and not self._seats.available_tokens:
                self._leave(coming[0])
                coming[0].cancel()
            with anyio.move_on_after(_SEAT_SECONDS):
                await self._seats.acquire_on_behalf_of(turn)
                self._seated[turn] = False
            if turn not in self._seated:
                full = f"{int(self._seats.total_tokens)} requests are being answered; try again."
                await refused_with(503, full, {"Retry-After": "1"})(scope, receive, send)
                return
            try:
                await self._app(scope, self._noticing(receive, turn), self._leaving(send, turn))
            finally:
                self._leave(turn)
        if turn.cancelled_caught:
            await refused_with(408, "The body didn't arrive in time.", {"Connection": "close"})(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        if not shows(request, self._token):
            return without_token()
        if request.method != "POST":
            return refused_with(405, "Only POST is supported: there are no sessions or streams.", {"Allow": "POST"})
        return None

    def _leave(self, turn: anyio.CancelScope) -> None:
        if self._seated.pop(turn, None) is not None:
            self._seats.release_on_behalf_of(turn)

    def _noticing(self, receive: Receive, turn: anyio.CancelScope) -> Receive:
        """Note when a body has arrived completely, and end the request of a client that leaves before that."""

        async def noticed() -> Message:
            message = await receive()
            is_coming = self._seated.get(turn) is False
            if is_coming and message["type"] == "http.disconnect":
                turn.cancel()
                await anyio.lowlevel.checkpoint()
            elif is_coming and not message.get("more_body", False):
                self._seated[turn] = True
            return message

        return noticed

    def _leaving(self, send: Send, turn: anyio.CancelScope) -> Send:
        """Give up the seat when the answer starts to be sent."""

        async def left(message: Message) -> None:
            self._leave(turn)
            await send(message)

        return left


def shows(request: Request, token: str | None) -> bool:
    """Whether a request has the token, if one is required; compared in constant time."""
    scheme, _, shown = request.headers.get("authorization", "").partition(" ")
    return token is None or (scheme.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), token.encode()))


def without_token() -> Response:
    """Return the refusal of a request without the token."""
    return refused_with(401, "Send the token as `Authorization: Bearer`.", {"WWW-Authenticate": "Bearer"})


def refused_with(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """Return a protocol error that belongs to no request."""
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message}}
    return JSONResponse(body, status, headers)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def known_names(
    host: str, port: int, hosts: Iterable[str] = (), origins: Iterable[str] = ()
) -> TransportSecuritySettings:
    """Return the allowed values of Host and Origin: loopback, the listening address and the user's names."""
    own = (*_LOOPBACK, *(() if host in _WILDCARDS else (bracketed(host),)))
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=sorted({*_forms(own, port), *_forms(hosts, port), *hosts}),
        allowed_origins=[*(f"http://{form}" for form in _forms(_LOOPBACK, port)), *origins],
    )


def _forms(names: Iterable[str], port: int) -> list[str]:
    """Return hosts as clients write them: with the port, and for port 80 also without it."""
    return [form for name in names for form in (f"{name}:{port}", *([name] if port == 80 else []))]


def bracketed(host: str) -> str:
    """Return a host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


# -- the token ----------------------------------------------------------------------------------------

_LONGEST = 1_000


def load_token(path: Path) -> str:
    """Read the token; generate it first if there is none.

    Raises `SettingError` if it can't be written or read, or if somebody else could have read or written it.
    """
    try:
        if not os.path.lexists(path):
            _make(path)
        if not stat.S_ISREG(path.lstat().st_mode):
            raise SettingError(f"{path} is not a regular file; remove it, and a new token is generated")
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if os.name != "nt" and (status.st_mode & 0o077 or status.st_uid != os.geteuid()):
                raise SettingError(f"{path} may be accessible to other users; remove it, and a new token is generated")
            token = file.read(_LONGEST).decode("ascii", "replace").strip()
        if not is_token(token):
            raise SettingError(f"{path} doesn't hold a token; remove it, and a new one is generated")
        return token
    except OSError as error:
        raise SettingError(
            f"can't keep a token in {path}: {error.strerror or error}; set AGTRACE_HTTP_TOKEN or AGTRACE_DATA_DIR"
        ) from None


def _make(path: Path) -> None:
    """Put a new token in place atomically, but never over one that another process put there."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=path.parent, prefix=f"{path.name}.") as fresh:  # readable by its owner only
        fresh.write(f"{secrets.token_urlsafe()}\n")
        fresh.flush()
        with suppress(FileExistsError):
            os.link(fresh.name, path)
