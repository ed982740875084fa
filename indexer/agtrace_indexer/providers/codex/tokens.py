"""Token counts: the tokens of a request are the growth of the session's total.

Codex repeats its counts, sends them without figures and, after a compaction, with a last request of zeros: with none
of these does the total grow. A total starts again if input or output shrink, or if it is no more than the last
request. The first total of a fork or sub-agent may include its parent's tokens: the last request counts instead.
"""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import Notification, TokenUsage

from agtrace_indexer.events.drafts import Draft, LogState, Record
from agtrace_indexer.events.json_values import compact_json, count, fields
from agtrace_indexer.providers.codex.steps import close_step, last_step
from agtrace_indexer.providers.notes import skip

_TOTALS = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)


def token_count(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read the tokens of a request: the growth of the session's total (indexer/README.md)."""
    if payload.get("info") is None:
        return skip("token_count/rate_limits", state)
    info = fields(payload["info"])
    last, total = _counts(info.get("last_token_usage")), _counts(info.get("total_token_usage"))
    if not last and not total:
        return [Draft(Notification("token_count", compact_json(payload["info"])), at)]
    used = _growth(total, last, state) if total else _unrepeated(last, state)
    if not any(used.values()):
        return skip("token_count/repeated", state)
    return _usage(used, count(info.get("model_context_window")), state, at)


def _counts(value: Any) -> dict[str, int]:
    """Return the known figures of a usage, by name."""
    usage = fields(value)
    return {key: number for key in _TOTALS if (number := count(usage.get(key))) is not None}


def _growth(total: dict[str, int], last: dict[str, int], state: LogState) -> dict[str, int]:
    """Return the growth of the total; the last request if the total starts again or may include a parent's."""
    before: dict[str, int] | None = state.memory.get("total")
    state.memory["total"] = total
    if total == before:
        return {}
    if before is None:
        return total if state.sessions[""].kind == "main" else last
    grown = {key: number - before.get(key, 0) for key, number in total.items()}
    if total == last or grown.get("input_tokens", 0) < 0 or grown.get("output_tokens", 0) < 0:
        return last if any(last.values()) else total
    return {key: max(number, 0) for key, number in grown.items()}


def _unrepeated(last: dict[str, int], state: LogState) -> dict[str, int]:
    """Return the last request if there is no total; the same figures in the same step were counted already."""
    counted = [last, last_step(state)]
    if state.memory.get("last") == counted:
        return {}
    state.memory["last"] = counted
    return last


def _usage(used: dict[str, int], window: int | None, state: LogState, at: int | None) -> list[Draft]:
    """Convert Codex's figures, whose input includes tokens read from and written to the cache."""
    fresh, cached = used.get("input_tokens"), used.get("cached_input_tokens")
    written = used.get("cache_write_input_tokens")
    if fresh is not None:
        fresh = max(fresh - (cached or 0) - (written or 0), 0)
    usage = TokenUsage(
        response_id=None,
        model=state.sessions[""].model,
        input_tokens=fresh,
        cache_creation_5m_tokens=written,
        cache_creation_1h_tokens=None,
        cache_read_tokens=cached,
        output_tokens=used.get("output_tokens"),
        reasoning_tokens=used.get("reasoning_output_tokens"),
        context_window=window or None,
        speed=state.memory.get("speed"),
    )
    close_step(state)
    return [Draft(usage, at, last_step(state))]


def odd_usage(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a usage on an item itself, `info.last_token_usage`, as in some published fixtures."""
    used = _counts(fields(payload.get("info")).get("last_token_usage"))
    return _usage(used, None, state, at) if any(used.values()) else []


def bare_token_count(payload: Record, state: LogState, at: int | None) -> list[Draft]:
    """Read a `token_count` among response items, with bare figures, as in some published fixtures."""
    used = _counts(payload)
    return _usage(used, None, state, at) if any(used.values()) else token_count(payload, state, at)
