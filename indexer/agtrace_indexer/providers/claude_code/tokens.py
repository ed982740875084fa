"""Token counts of model responses in Claude Code's logs (indexer/README.md)."""

from __future__ import annotations

from typing import Any, Final

from agtrace_schema.events import TokenUsage

from agtrace_indexer.events.drafts import LogState
from agtrace_indexer.events.json_values import count, fields, text
from agtrace_indexer.events.strings import identifier
from agtrace_indexer.providers.claude_code.windows import window_of
from agtrace_indexer.providers.notes import remember

SYNTHETIC: Final = "<synthetic>"
"""The model of assistant lines that Claude Code wrote itself, without asking a model."""

_MOST_DOLLARS = 1_000_000
_STANDARD_SPEEDS = (None, "standard")
_RESPONSES_REMEMBERED = 32
_OUTPUT, _COMPLETE, _COST = 4, 5, 6


def token_usage(record: dict[str, Any], message: dict[str, Any], state: LogState) -> TokenUsage | None:
    """Count a response once: at its first line, and again at a later line with larger figures.

    All figures of the later line count, not the larger of each. Only the newest 32 responses are remembered: a
    response whose lines are repeated later than that is returned again, with the same `response_id`.
    """
    usage = message.get("usage")
    model = text(message.get("model"))
    if not isinstance(usage, dict) or model == SYNTHETIC:
        return None
    figures = _figures(usage)
    fresh, written_5m, written_1h, read, output = figures
    complete = output is not None and any(figures[:_OUTPUT]) and not _is_placeholder(record, message)
    cost = _cost(record.get("costUSD"))
    response = _response_id(record, message)
    if response is not None and not _is_news(response, [*figures, complete, cost], state.memory):
        return None
    speed = text(usage.get("speed"))
    reasoning = None if output is None else count(fields(usage.get("output_tokens_details")).get("thinking_tokens"))
    return TokenUsage(
        response, model, fresh, written_5m, written_1h, read, output, reasoning, complete,
        window_of(model, sum(filter(None, figures[:_OUTPUT])), state),
        speed=None if speed in _STANDARD_SPEEDS else speed, cost_usd=cost,
    )  # fmt: skip


def _figures(usage: dict[str, Any]) -> list[int | None]:
    """Return uncached input, cache written for 5 minutes, for 1 hour, cache read, output.

    A zero that is impossible counts as unknown: no request is empty, and no response. Gateways to other models write
    zeros instead of counting. Uncached input alone may be zero, if all input was cached.
    """
    fresh, read = count(usage.get("input_tokens")), count(usage.get("cache_read_input_tokens"))
    written = _cache_written(count(usage.get("cache_creation_input_tokens")), usage.get("cache_creation"))
    sent = [fresh, *written, read]
    return [*(sent if any(sent) else [None] * _OUTPUT), count(usage.get("output_tokens")) or None]


def _cache_written(whole: int | None, detail: Any) -> tuple[int | None, int | None]:
    """Return the tokens written for 5 minutes and for 1 hour; those not in the detail are short-lived."""
    if not isinstance(detail, dict):
        return whole, None
    short, long = count(detail.get("ephemeral_5m_input_tokens")), count(detail.get("ephemeral_1h_input_tokens"))
    return (whole - (long or 0) if whole and whole >= (long or 0) else short), long


def _cost(value: Any) -> float | None:
    """Read the cost that Claude Code itself calculated (until 1.0.x); no response is free, so zero is unknown."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < _MOST_DOLLARS else None


def _response_id(record: dict[str, Any], message: dict[str, Any]) -> str | None:
    response, request = identifier(message.get("id")), identifier(record.get("requestId"))
    if response and request:
        return f"{response}/{request}"
    return response or request or identifier(record.get("uuid"))


def _is_placeholder(record: dict[str, Any], message: dict[str, Any]) -> bool:
    """Whether the line may only have what was known when the response began."""
    return message.get("stop_reason") is None and text(record.get("version")) is not None


def _is_news(response: str, noted: list[Any], memory: dict[str, Any]) -> bool:
    responses = memory.setdefault("responses", {})
    earlier = responses.get(response)
    if earlier is not None and (earlier == noted or _rank(noted) < _rank(earlier)):
        return False
    remember(responses, response, noted, _RESPONSES_REMEMBERED)
    return True


def _rank(noted: list[Any]) -> tuple[int, bool, bool]:
    return noted[_OUTPUT] or 0, noted[_COMPLETE], noted[_COST] is not None
