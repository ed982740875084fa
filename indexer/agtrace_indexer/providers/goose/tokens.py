"""Token counts: each request once, whether a message, the ledger of requests or only the session's totals have them.

Input includes what was read from and written to the cache: Goose adds these up for all models.
"""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import TokenUsage

from agtrace_indexer.events.drafts import Draft, LogState, Record, Retraction, Said
from agtrace_indexer.events.json_values import count, fields, milliseconds, text

TOTALS = "session-usage"
"""The key of the tokens of requests that are only in a session's totals."""

_NAMES = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cache_read_tokens": "cacheReadInputTokens",
    "cache_write_tokens": "cacheWriteInputTokens",
}
"""The names of figures in the ledger, and in the metadata of a message."""


def usage_of(record: Record, named: str | None, at: int | None, step: str | None, state: LogState) -> Draft | None:
    """Return the tokens of a message's response: from the ledger, if its row is known, else from the message."""
    if record.get("counted") is True:  # the ledger's row came before the message
        return None
    ledger, metadata = fields(record.get("ledger")), fields(fields(record.get("metadata")).get("usage"))
    told = ledger or {name: metadata.get(other) for name, other in _NAMES.items()}
    usage = _usage(told, named, state)
    if usage is None:
        return None
    key = f"usage/l{ledger.get('row')}" if ledger else f"usage/m{named or record.get('created')}"
    return Draft(usage, at, step, key=key, identity=f"{named}/usage" if named else None)


def ledger_usage(record: Record, state: LogState) -> list[Said]:
    """Read a request in the ledger that no message has: a compaction, or the answer to a message that is gone."""
    usage = _usage(record, None, state)
    if usage is None:
        state.skipped.append("usage/empty")
        return []
    return [Draft(usage, milliseconds(record.get("created")), key=f"usage/l{record.get('row')}")]


def totals(record: Record, state: LogState) -> list[Said]:
    """Read the tokens of requests that are in a session's totals and nowhere else; none takes back those before."""
    usage = _usage(record, None, state)
    return [Retraction([TOTALS])] if usage is None else [Draft(usage, None, key=TOTALS)]


def _usage(told: dict[str, Any], response: str | None, state: LogState) -> TokenUsage | None:
    """Return figures in our terms; None if there are none, or only zeros."""
    figures = {name: count(told.get(name)) for name in _NAMES}
    if not any(figures.values()):
        return None
    sent, read, written = figures["input_tokens"], figures["cache_read_tokens"], figures["cache_write_tokens"]
    cost = told.get("cost")
    return TokenUsage(
        response_id=response,
        model=text(told.get("model")) or state.sessions[""].model,
        input_tokens=None if sent is None else max(sent - (read or 0) - (written or 0), 0),
        cache_creation_5m_tokens=written,
        cache_creation_1h_tokens=None,
        cache_read_tokens=read,
        output_tokens=figures["output_tokens"],
        reasoning_tokens=None,
        cost_usd=float(cost) if isinstance(cost, (int, float)) and 0 <= cost < 1e6 else None,
    )
