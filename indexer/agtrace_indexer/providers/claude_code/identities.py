"""The identities of a line's events, which stay the same in every log that the line is copied to."""

from __future__ import annotations

from collections.abc import Iterable

from agtrace_schema.events import TokenUsage

from agtrace_indexer.events.drafts import Draft, Said


def identify(said: Iterable[Said], uuid: str | None) -> None:
    """Give the events of a line their identities: the line's uuid and their place in it; for token usage, the response.

    A response is identified by its message and request ids together; one of them alone isn't enough.
    """
    for number, draft in enumerate(said):
        if not isinstance(draft, Draft):
            continue
        if isinstance(draft.payload, TokenUsage):
            response = draft.payload.response_id
            named = response if response and "/" in response else uuid
            draft.identity = named and f"usage/{named}"
        elif uuid is not None:
            draft.identity = f"{uuid}#{number}" if number else uuid
