"""Token counts of model responses in Claude Code's logs (indexer/README.md)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from agtrace_schema.events import TokenUsage

from agtrace_indexer.drafts import LogState
from agtrace_indexer.providers.notes import remember
from agtrace_indexer.values import count, text

SYNTHETIC: Final = "<synthetic>"
"""The model of assistant lines that Claude Code wrote itself, without asking a model."""

_RESPONSES_REMEMBERED = 32
_VERSION = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})\.([0-9]{1,6})")
_FIRST_RELIABLE_VERSION = (2, 1, 60)
_OUTPUT, _COMPLETE = 4, 5


def token_usage(record: dict[str, Any], message: dict[str, Any], state: LogState) -> TokenUsage | None:
    """Count a response once: at its first line, and again where a later line has grown figures.

    The whole of the later line counts, not the larger of each figure. Only the newest
    32 responses are remembered: a response whose lines are appended again later than that is given
    again, with the same `response_id`.
    """
    usage = message.get("usage")
    model = text(message.get("model"))
    if not isinstance(usage, dict) or model == SYNTHETIC:
        return None
    figures = _figures(usage)
    complete = any(figures) and not _is_placeholder(record, message)
    if not any(figures):
        figures = [None] * len(figures)  # what some gateways write instead of counting
    response = _response_id(record, message)
    if response is not None and not _is_news(response, [*figures, complete], state.memory):
        return None
    fresh, written_5m, written_1h, read, output = figures
    return TokenUsage(response, model, fresh, written_5m, written_1h, read, output, None, complete)


def _figures(usage: dict[str, Any]) -> list[int | None]:
    """Uncached input, cache written for 5 minutes, for 1 hour, cache read, output."""
    written_5m, written_1h = count(usage.get("cache_creation_input_tokens")), None
    detail = usage.get("cache_creation")
    if isinstance(detail, dict):
        in_5m = count(detail.get("ephemeral_5m_input_tokens"))
        in_1h = count(detail.get("ephemeral_1h_input_tokens"))
        if in_5m or in_1h or not written_5m:
            written_5m, written_1h = in_5m, in_1h
    return [
        count(usage.get("input_tokens")),
        written_5m,
        written_1h,
        count(usage.get("cache_read_input_tokens")),
        count(usage.get("output_tokens")),
    ]


def _response_id(record: dict[str, Any], message: dict[str, Any]) -> str | None:
    response, request = text(message.get("id")), text(record.get("requestId"))
    if response and request:
        return f"{response}/{request}"
    return response or request or text(record.get("uuid"))


def _is_placeholder(record: dict[str, Any], message: dict[str, Any]) -> bool:
    """Whether the line may only hold what was known when the response began."""
    version = text(record.get("version"))
    return message.get("stop_reason") is None and version is not None and _writes_placeholders(version)


@lru_cache(maxsize=64)
def _writes_placeholders(version: str) -> bool:
    found = _VERSION.match(version)
    return found is not None and tuple(map(int, found.groups())) < _FIRST_RELIABLE_VERSION


def _is_news(response: str, noted: list[Any], memory: dict[str, Any]) -> bool:
    responses = memory.setdefault("responses", {})
    earlier = responses.get(response)
    if earlier is not None and (earlier == noted or _rank(noted) < _rank(earlier)):
        return False
    remember(responses, response, noted, _RESPONSES_REMEMBERED)
    return True


def _rank(noted: list[Any]) -> tuple[int, bool]:
    return noted[_OUTPUT] or 0, noted[_COMPLETE]
