"""Whether a turn of Kiro CLI goes on, by single records of its log of JSON lines.

A response is written whole, with its calls: one without calls is the answer. Requests for permission go to the screen
only.
"""

from __future__ import annotations

from typing import Any

from agtrace_indexer.providers.provider import Phase

_AT_WORK = ("Prompt", "ToolResults")


def phase(record: dict[str, Any]) -> Phase | None:
    """Return what a record says about the turn; None if it says nothing."""
    kind, data = record.get("kind"), record.get("data")
    if kind in _AT_WORK:
        return Phase.GOES_ON
    if kind != "AssistantMessage" or not isinstance(data, dict):
        return None
    content = data.get("content")
    parts = content if isinstance(content, list) else []
    calls = any(isinstance(part, dict) and part.get("kind") == "toolUse" for part in parts)
    return Phase.GOES_ON if calls else Phase.OVER
