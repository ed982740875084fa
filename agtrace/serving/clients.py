"""What known clients do to long answers: beyond these sizes they cut an answer a second time, or move it to a file."""

from __future__ import annotations

from agtrace_indexer.providers.registry import AGENTS

from agtrace.settings import ABSOLUTE_MAX_BYTES

CLIENTS: dict[str, int] = {
    agent.client.name: agent.client.characters for agent in AGENTS.values() if agent.client is not None
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
