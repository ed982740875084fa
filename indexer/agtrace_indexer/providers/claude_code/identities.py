"""What identifies the events of a line in whatever log it is copied to."""

from __future__ import annotations

from collections.abc import Iterable

from agtrace_schema.events import TokenUsage

from agtrace_indexer.events.drafts import Draft, Said


def identify(said: Iterable[Said], uuid: str | None) -> None:
    """Give the events of a line their identities: its uuid and their place in it; of token figures the response.

    A response is known everywhere by its message and request ids together; one of them alone is no identity.
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
