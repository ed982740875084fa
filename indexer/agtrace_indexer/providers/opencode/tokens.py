"""Token counts of a response: of its message, or of its `step-finish` parts if the message has none, never of both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agtrace_schema.events import TokenUsage

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.json_values import count, fields, text

_COUNTS = ("input", "output", "reasoning", "read", "write")


def usage_of(info: Record, finished: Iterable[Record]) -> TokenUsage:
    """Read the figures of an assistant message; if all are zero or missing, they are unknown.

    `input` excludes what was read from or written to the cache.
    """
    steps = [found for step in finished if any((found := _counts(step.get("tokens"))).values())]
    tokens = _counts(info.get("tokens"))
    if not any(tokens.values()):
        tokens = {name: sum(step.get(name, 0) for step in steps) for name in _COUNTS} if steps else {}
    known = any(tokens.values())
    return TokenUsage(
        response_id=info["id"],
        model=text(info.get("modelID")),
        input_tokens=tokens.get("input") if known else None,
        cache_creation_5m_tokens=tokens.get("write") if known else None,
        cache_creation_1h_tokens=None,
        cache_read_tokens=tokens.get("read") if known else None,
        output_tokens=_output(tokens) if known else None,
        reasoning_tokens=tokens.get("reasoning") if known else None,
        complete=known,
        cost_usd=_cost(info.get("cost")),
    )


def _counts(told: Any) -> dict[str, int]:
    tokens = fields(told)
    values = {**tokens, **fields(tokens.get("cache"))}
    found = {name: count(values.get(name)) for name in (*_COUNTS, "total")}
    return {name: value for name, value in found.items() if value is not None}


def _output(tokens: dict[str, int]) -> int | None:
    """Return the output with its reasoning, which is part of it until about 1.3 and comes in addition since.

    The total shows which: it is the sum of the figures with or without reasoning.
    """
    output, reasoning, total = tokens.get("output"), tokens.get("reasoning", 0), tokens.get("total")
    if output is None or not reasoning or total is None:
        return output
    without = output + sum(tokens.get(name, 0) for name in ("input", "read", "write"))
    return output + reasoning if abs(total - without - reasoning) < abs(total - without) else output


def _cost(told: Any) -> float | None:
    """Read the cost in dollars; it is zero for subscriptions, which says nothing about prices."""
    return float(told) if isinstance(told, (int, float)) and not isinstance(told, bool) and 0 < told < 1e9 else None
