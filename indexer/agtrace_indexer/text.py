"""What of an event can be searched, and what of it is stored beside that.

The searchable text is one function of the event (indexer/README.md): a tool call gives the
tool's name, then per line each argument's key and decoded value; every other event gives its body
text. The law of search is that it finds exactly what a scan of these texts would find.
"""

from __future__ import annotations

import math
import re
from typing import Any

from agtrace_schema.events import (
    Json,
    Message,
    Notification,
    Payload,
    Reasoning,
    TokenUsage,
    ToolCall,
    ToolResult,
    User,
)

from agtrace_indexer.redact import names_secret, redact, redact_json, suspicious
from agtrace_indexer.values import compact_json

_INLINE_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.-]+)*;base64,([A-Za-z0-9+/=\s]{64,})")
_TYPED_IN_AN_IDE = "## My request for Codex:"
MOST_LEVELS = 64
"""Levels of nesting that arguments keep as JSON; a hostile log can have a thousand."""

_NUL = "\x00"
_NUL_SHOWN = "\u2400"


def stored(payload: Payload) -> tuple[str, dict[str, Any] | None]:
    """Split an event into its searchable text and the rest of its payload, both redacted.

    Returns (text, rest); rest is None where the text says it all. Text and rest together are what
    `agtrace` shows of the event: nothing else of the log is kept.
    """
    match payload:
        case ToolCall():
            said, arguments = _plain_text(payload), payload.arguments
            if said is None:
                arguments = redact_json(clean_json(arguments))
                said = call_text(payload.name, arguments)
            return said, _known(call_id=payload.call_id, arguments=arguments)
        case ToolResult():
            rest = _known(
                call_id=payload.call_id,
                outcome_source=payload.outcome_source,
                exit_code=payload.exit_code,
                duration_ms=payload.duration_ms,
                agent_id=payload.agent_id,
            )
            return redact(clean(payload.text)), rest or None
        case TokenUsage():
            return "", None
        case User() | Message() | Reasoning() | Notification():
            return redact(clean(payload.text)), None


def without_preface(request: str) -> str:
    """A request without the open files that Codex's IDE extensions put before it (indexer/README.md)."""
    return request.rpartition(_TYPED_IN_AN_IDE)[2]


def call_text(name: str, arguments: Json) -> str:
    """The searchable text of a tool call: its name, then a line for each argument."""
    return clean(f"{name}\n{_lines(arguments)}")


def clean(text: str) -> str:
    """Replace inline base64 data by its type and size, and the NUL that separates texts by its symbol."""
    if "base64," in text:
        text = _INLINE_DATA.sub(_data_placeholder, text)
    return text.replace(_NUL, _NUL_SHOWN) if _NUL in text else text


def clean_json(value: Json, levels: int = MOST_LEVELS) -> Json:
    """Apply `clean` to every string of a JSON value.

    What lies deeper than `levels` becomes its JSON text, and so do numbers that other readers of JSON refuse.
    """
    if isinstance(value, str):
        return clean(value)
    if _is_odd_number(value):
        return compact_json(value)
    if not isinstance(value, (dict, list)):
        return value
    if not levels:
        return clean(compact_json(value))
    if isinstance(value, dict):
        return {clean(k): clean_json(v, levels - 1) for k, v in value.items()}
    return [clean_json(v, levels - 1) for v in value]


def _plain_text(call: ToolCall) -> str | None:
    """The text of a call whose arguments are kept as they are; None where they must be looked at one by one.

    Nearly all are objects of short values without secrets: then one look at the whole text is enough.
    """
    if not isinstance(call.arguments, dict):
        return None
    lines = []
    for key, value in call.arguments.items():
        shown = value if isinstance(value, str) else _plain_value(value)
        if shown is None or names_secret(key):
            return None
        lines.append(f"{key}: {shown}")
    said = f"{call.name}\n" + "\n".join(lines)
    return None if clean(said) != said or suspicious(said) else said


def _plain_value(value: Json) -> str | None:
    """The text of a number, a flag or a list of texts; None for what may have to be written otherwise."""
    if isinstance(value, list):
        texts = [item for item in value if isinstance(item, str)]
        return "\n".join(texts) if len(texts) == len(value) else None
    return None if isinstance(value, dict) or _is_odd_number(value) else _lines(value)


def _is_odd_number(value: Json) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    return isinstance(value, int) and not -(2**63) <= value < 2**64


def _lines(value: Json) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_lines(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "\n".join(map(_lines, value))
    if isinstance(value, str):
        return value
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _data_placeholder(found: re.Match[str]) -> str:
    return f"[data: {found[1] or 'unknown type'}, {len(found[2]) * 3 // 4} bytes]"


def _known(**fields: Json) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
