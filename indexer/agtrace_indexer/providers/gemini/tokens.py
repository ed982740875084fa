"""Token counts of a response (indexer/README.md).

The CLI writes the API's counts for one request (`promptTokenCount` and so on): the figures of a message are its own,
not a running total. In published logs `input` also falls within sessions (13,629, then 6,219).
"""

from __future__ import annotations

from agtrace_schema.events import TokenUsage

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.json_values import count, fields, text


def usage_of(record: Record, *, says_something: bool) -> TokenUsage | None:
    """Read `tokens`, in which input includes cached tokens, and output excludes thoughts.

    `tool` (prompt tokens of built-in tools) is counted separately from `input` in their total, so it is added to our
    input. If figures are missing or all zero, they are unknown; a message that says nothing, or that the CLI wrote
    back from its history, isn't a response.
    """
    tokens = {key: count(value) for key, value in fields(record.get("tokens")).items()}
    if not any(tokens.values()):
        return _unknown(record) if says_something and not _is_written_back(record) else None
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


def _unknown(record: Record) -> TokenUsage:
    return TokenUsage(record["id"], text(record.get("model")), None, None, None, None, None, None, complete=False)


def _is_written_back(record: Record) -> bool:
    """Whether the CLI made the message from an API turn: a list of parts, without anything else of a response."""
    return isinstance(record.get("content"), list) and not record.keys() & {"model", "tokens"}
