"""What identifies the events of a line in whatever log it is copied to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agtrace_schema.events import TokenUsage

from agtrace_indexer.drafts import Draft, Said


def identified(said: Iterable[Said], uuid: str | None) -> Iterator[Said]:
    """Give the events of a line their identities: its uuid and their place in it; of token figures the response.

    A response is known everywhere by its message and request ids together; one of them alone is no identity.
    """
    for number, draft in enumerate(said):
        if not isinstance(draft, Draft):
            yield draft
        elif isinstance(draft.payload, TokenUsage):
            response = draft.payload.response_id
            named = response if response and "/" in response else uuid
            yield draft.known_as(named and f"usage/{named}")
        else:
            yield draft.known_as(uuid and (f"{uuid}#{number}" if number else uuid))
