"""Short texts that describe a session: masked, then cut."""

from __future__ import annotations

from typing import Any

from agtrace_indexer.events.json_values import text
from agtrace_indexer.events.strings import masked

_LONGEST = 200


def shown(value: Any) -> str | None:
    """Return the beginning of a text on one line, without secrets; None if it isn't a text or is empty."""
    line = " ".join(masked(text(value) or "").split())
    return line[:_LONGEST] or None
