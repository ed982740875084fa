"""The answer sizes that known clients accept: they cut a longer answer again, or move it to a file."""

from __future__ import annotations

from collections.abc import Mapping

from agtrace_indexer.providers.registry import AGENTS

from agtrace.settings import ABSOLUTE_MAX_BYTES

CLIENTS: dict[str, int] = {
    agent.client.name: agent.client.characters for agent in AGENTS.values() if agent.client is not None
}
"""The limit in characters by the name that a client reports; Gemini CLI appends the name of the server.

A character takes at least one byte, so an answer of as many bytes always fits.
"""


_NONE: Mapping[str, int] = {}


def known(name: str | None) -> str | None:
    """Return the known client with this name, or None."""
    given = (name or "").lower()
    return next((client for client in CLIENTS if given == client or given.startswith(f"{client}-")), None)


def most_bytes(name: str | None, configured: Mapping[str, int] = _NONE) -> int:
    """Return the bytes that an answer to a client may take; for an unknown client only the contract is the limit.

    `configured` are the user's own limits by the name that a client reports, which replace the known ones.
    """
    own = next((most for client, most in configured.items() if client.lower() == (name or "").lower()), None)
    if own is not None:
        return own
    client = known(name)
    return configured.get(client or "", ABSOLUTE_MAX_BYTES if client is None else CLIENTS[client])
