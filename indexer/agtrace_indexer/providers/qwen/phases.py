"""Whether a turn of Qwen Code goes on, by single records of its log.

A response is written whole, with its calls: one without calls is the answer. A sub-agent's is written in pieces, so its
texts say nothing. Requests for permission go to the screen only.
"""

from __future__ import annotations

from typing import Any

from agtrace_indexer.providers.provider import Phase

_ASIDE = ("notification",)


def phase(record: dict[str, Any]) -> Phase | None:
    """Return what a record says about the turn; None if it says nothing."""
    kind, message = record.get("type"), record.get("message")
    if kind == "tool_result":
        return Phase.GOES_ON
    if kind == "user":
        return None if record.get("subtype") in _ASIDE else Phase.GOES_ON
    if kind != "assistant" or not isinstance(message, dict):
        return None
    given = message.get("parts")
    parts = given if isinstance(given, list) else []
    calls = any(isinstance(part, dict) and "functionCall" in part for part in parts)
    if calls:
        return Phase.GOES_ON
    return None if record.get("isSidechain") is True else Phase.OVER
