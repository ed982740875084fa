"""One answered request, as telemetry records it: figures and codes, and never a text, an id or a path of the user's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from agtrace_indexer.redact import redact_json

if TYPE_CHECKING:  # `agtrace metrics` reads requests without the modules that make them
    from agtrace.settings.limits import Limits
    from agtrace.shaping.shape import Answer

Transport = Literal["stdio", "http"]

_LONGEST_NAME = 60
_LONGEST_ARGUMENTS = 2_000


class Origin(NamedTuple):
    """Who asked, as far as the protocol says."""

    client: str | None = None
    """The name that the client reports of itself."""
    client_version: str | None = None
    protocol: str | None = None
    """The version of MCP that was agreed on."""
    transport: Transport = "stdio"
    connection: str | None = None
    """What all requests of a connection have in common; a client may have chosen it. None for a command."""

    def shortened(self) -> Origin:
        """Return the same with names of a bounded length: a client can report any."""
        name, version, protocol = (text and text[:_LONGEST_NAME] for text in self[:3])
        return Origin(name, version, protocol, self.transport, self.connection)

    @property
    def connection_digest(self) -> str | None:
        """12 characters that the requests of a connection have in common, and no others."""
        return self.connection and sha256(self.connection.encode()).hexdigest()[:12]


class Request(NamedTuple):
    """A request and the figures of its answer; the fields are the columns of the telemetry file."""

    at: int
    """Milliseconds since 1970 UTC, when it was answered."""
    tool: str
    request_id: str
    """The id that the server's log has for it, too; made at random."""
    client: str | None
    client_version: str | None
    protocol: str | None
    transport: str
    outcome: str
    """`ok`, or the code of the error."""
    ms: float
    """From the request to its answer."""
    tokens: int
    """Estimated, of the answer."""
    asked_bytes: int
    """The size of the answer as it was asked for; equal to `bytes` if that fit."""
    bytes: int
    """The size of the answer that was sent."""
    items: int | None
    """The items of a list."""
    attempt: int
    """The number of the form that fit: 1 is as asked, or a page, which is fitted before."""
    paginated: bool
    chunked: bool
    summarized: bool
    """Whether a digest of a text was asked for."""
    pruned: bool
    """Whether only the lines that a question is about were given."""
    cut: bool
    """Whether parts are missing that no cursor continues."""
    index_state: str
    """ready, catching_up or building."""
    connection: str | None = None
    """12 characters that the requests of a connection have in common, and no others."""
    arm: str | None = None
    """The side of a comparison with answers without protection: protected or unprotected."""
    arguments: str | None = None
    """The arguments as JSON, without secrets; None unless the user wants them recorded."""


class Observer(Protocol):
    """Gets the figures of every answered request, in the request's thread: it must be quick and safe for threads."""

    def record(self, request: Request) -> None:
        """Take the figures of a request."""


def request_of(
    tool: str,
    arguments: Mapping[str, Any],
    given: Answer,
    origin: Origin,
    held: Limits,
    *,
    at: float,
    ms: float,
    id: str,
) -> Request:
    """Return the record of an answer that was given at this time, in seconds since 1970 UTC, after so many ms."""
    from agtrace.shaping.shape import estimated_tokens

    value, size = given.value, len(given.text.encode())
    pagination = value.get("pagination")
    return Request(
        at=round(1000 * at),
        tool=tool,
        request_id=id,
        client=origin.client,
        client_version=origin.client_version,
        protocol=origin.protocol,
        transport=origin.transport,
        outcome=value["error"]["code"] if given.is_error else "ok",
        ms=round(ms, 2),
        tokens=value["budget"]["estimated_tokens"] if "budget" in value else estimated_tokens(len(given.text)),
        asked_bytes=given.asked_bytes or size,
        bytes=size,
        items=_items(value.get("data")),
        attempt=given.attempt,
        paginated=bool(pagination and (pagination["has_more"] or "cursor" in arguments)),
        chunked="chunk" in value,
        summarized=not given.is_error and arguments.get("mode") is not None,
        pruned=bool(value.get("pruning", {}).get("applied")),
        cut="truncation" in value,
        index_state=value["index"]["state"] if "index" in value else "ready",
        connection=origin.connection_digest,
        arm=held.arm,
        arguments=_written(arguments) if held.settings.telemetry.arguments else None,
    )


def _written(arguments: Mapping[str, Any]) -> str:
    """Return arguments as one line, without secrets and not too long."""
    return json.dumps(redact_json(dict(arguments)), ensure_ascii=False, default=str)[:_LONGEST_ARGUMENTS]


def _items(data: Any) -> int | None:
    """Return the number of items of an answer that is a list; None for any other."""
    lists = [value for value in data.values() if isinstance(value, list)] if isinstance(data, dict) else []
    return len(lists[0]) if len(lists) == 1 else None
