"""Short texts that describe a session: they are stored with the state of a log, so they are masked at once."""

from __future__ import annotations

from typing import Any

from agtrace_indexer.redact import redact
from agtrace_indexer.values import text

_LOOKED_AT = 2000
_LONGEST = 200


def shown(value: Any) -> str | None:
    """The beginning of a text on one line, without secrets; None where it is none."""
    line = " ".join(redact((text(value) or "")[:_LOOKED_AT]).split())
    return line[:_LONGEST] or None
