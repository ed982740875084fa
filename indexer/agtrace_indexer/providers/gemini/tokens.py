"""Token counts of a response (indexer/README.md)."""

from __future__ import annotations

from agtrace_schema.events import TokenUsage

from agtrace_indexer.drafts import Record
from agtrace_indexer.values import count, fields, text


def usage_of(record: Record) -> TokenUsage | None:
    """Read `tokens`: theirs of input include the cached, theirs of output exclude the thoughts.

    `tool` (prompt tokens of built-in tools) is counted beside `input` in their total, so it is added
    to our input. All zero means that the CLI was given no figures: none here.
    """
    tokens = {key: count(value) for key, value in fields(record.get("tokens")).items()}
    if not any(tokens.values()):
        return None
    sent, cached = tokens.get("input"), tokens.get("cached")
    answered, thoughts = tokens.get("output"), tokens.get("thoughts")
    return TokenUsage(
        response_id=record["id"],
        model=text(record.get("model")),
        input_tokens=None if sent is None else max(sent - (cached or 0), 0) + (tokens.get("tool") or 0),
        cache_creation_5m_tokens=None,
        cache_creation_1h_tokens=None,
        cache_read_tokens=cached,
        output_tokens=None if answered is None else answered + (thoughts or 0),
        reasoning_tokens=thoughts,
    )
