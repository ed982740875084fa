"""Short texts that describe a session: masked, then cut."""

from __future__ import annotations

from typing import Any

from agtrace_indexer.events.json_values import text
from agtrace_indexer.events.strings import masked

_LONGEST = 200


def shown(value: Any) -> str | None:
    """The beginning of a text on one line, without secrets; None where it is none."""
    line = " ".join(masked(text(value) or "").split())
    return line[:_LONGEST] or None
