"""What known clients do to long answers: beyond these sizes they cut an answer a second time, or move it to a file."""

from __future__ import annotations

from agtrace.settings import ABSOLUTE_MAX_BYTES

CLIENTS: dict[str, int] = {
    "claude-code": 50_000,
    "codex-mcp-client": 11_900,  # with some models it cuts the middle out of what has more than 12,000 bytes
    "gemini-cli-mcp-client": 39_900,  # it counts the 41 characters that it puts around an answer, and cuts above 40,000
}
"""Characters by the name that a client gives itself; Gemini CLI appends the name of the server.

A character takes a byte or more, so an answer of as many bytes always fits.
"""


def known(name: str | None) -> str | None:
    """The client of the table that goes by this name."""
    given = (name or "").lower()
    return next((client for client in CLIENTS if given == client or given.startswith(f"{client}-")), None)


def most_bytes(name: str | None) -> int:
    """The bytes that an answer to a client may take; an unknown one's are limited by the contract alone."""
    client = known(name)
    return ABSOLUTE_MAX_BYTES if client is None else CLIENTS[client]
