"""Token counts and costs of a response, which Pi writes with each of them."""

from __future__ import annotations

from agtrace_schema.events import TokenUsage

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.json_values import count, fields, text
from agtrace_indexer.events.strings import identifier


def usage_of(message: Record, *, says_something: bool) -> TokenUsage | None:
    """Read `usage`, whose input excludes what was cached, and whose output includes reasoning.

    A response that failed or was stopped has only zeros: its figures are unknown, if it said anything at all.
    """
    usage = fields(message.get("usage"))
    figures = {key: count(usage.get(key)) for key in ("input", "output", "cacheRead", "cacheWrite")}
    response, model = identifier(message.get("responseId")), text(message.get("model"))
    if not any(figures.values()):
        if not says_something:
            return None
        return TokenUsage(response, model, None, None, None, None, None, None, complete=False)
    hour = count(usage.get("cacheWrite1h"))
    written = figures["cacheWrite"]
    return TokenUsage(
        response_id=response,
        model=model,
        input_tokens=figures["input"],
        cache_creation_5m_tokens=written if written is None else max(written - (hour or 0), 0),
        cache_creation_1h_tokens=hour,
        cache_read_tokens=figures["cacheRead"],
        output_tokens=figures["output"],
        reasoning_tokens=count(usage.get("reasoning", usage.get("reasoningTokens"))),
        cost_usd=_cost(fields(usage.get("cost")).get("total")),
    )


def _cost(total: object) -> float | None:
    """Read a cost in dollars; 0 stands for a model whose price isn't known."""
    known = isinstance(total, (int, float)) and not isinstance(total, bool) and 0 < total < 1e9
    return float(total) if known else None  # type: ignore[arg-type]  # `known` says that it is a number
