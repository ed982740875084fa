"""Token counts of a call to the API: in the telemetry, which has all calls, or else with the response.

Telemetry comes first, then the response that it is about. As soon as a log has telemetry, figures with responses repeat
it. Calls of internal agents (memory, titles) leave telemetry but no response.
"""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import TokenUsage

from agtrace_indexer.events.drafts import LogState
from agtrace_indexer.events.json_values import count, text
from agtrace_indexer.events.strings import identifier

_OF_TELEMETRY = tuple(f"{name}_token_count" for name in ("input", "cached_content", "output", "thoughts", "total"))
_OF_A_RESPONSE = tuple(f"{name}TokenCount" for name in ("prompt", "cachedContent", "candidates", "thoughts", "total"))


def usage_of_call(event: dict[str, Any], state: LogState) -> TokenUsage:
    """Read the telemetry of a response of the API."""
    figures = [count(event.get(key)) for key in _OF_TELEMETRY]
    return _usage(figures, identifier(event.get("response_id")), text(event.get("model")), state)


def usage_of_response(metadata: dict[str, Any], model: str | None, state: LogState) -> TokenUsage:
    """Read the figures with a response."""
    return _usage([count(metadata.get(key)) for key in _OF_A_RESPONSE], None, model, state)


def _usage(figures: list[int | None], response: str | None, model: str | None, state: LogState) -> TokenUsage:
    """Read figures in which input includes what was cached. Nothing but zeros means that they are unknown.

    Output includes thoughts, unless the total shows that they are beside it, as in Gemini's API.
    """
    sent, cached, answered, thoughts, total = figures
    if not (sent or answered):
        return TokenUsage(response, model, None, None, None, None, None, None, complete=False)
    beside = bool(thoughts) and total is not None and total == (sent or 0) + (answered or 0) + (thoughts or 0)
    return TokenUsage(
        response_id=response,
        model=model,
        input_tokens=None if sent is None else max(sent - (cached or 0), 0),
        cache_creation_5m_tokens=None,
        cache_creation_1h_tokens=None,
        cache_read_tokens=cached,
        output_tokens=None if answered is None else answered + ((thoughts or 0) if beside else 0),
        reasoning_tokens=thoughts,
        context_window=state.memory.get("window"),
    )
