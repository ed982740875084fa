"""The text of an event that can be searched, and the rest of its payload that is stored next to it.

The searchable text is one function of the event (indexer/README.md): for a tool call, the tool's name and then a line
for each argument with its key and decoded value; for every other event, its body text. The law of search is that it
finds exactly what a scan of these texts would find.
"""

from __future__ import annotations

import math
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
from agtrace_schema.patterns import later

from agtrace_indexer.events.json_values import compact_json
from agtrace_indexer.redact import names_secret, redact, redact_json, suspicious

_INLINE_DATA = later(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.-]+)*;base64,([A-Za-z0-9+/=\s]{64,})")
_TYPED_IN_AN_IDE = "## My request for Codex:"
MOST_LEVELS = 64
"""Levels of nesting that are kept as JSON in arguments; a hostile log can have a thousand."""

_NUL = "\x00"
_NUL_SHOWN = "\u2400"


def unmasked(payload: Payload) -> str:
    """Return the searchable text of an event before masking; empty for a call that must be rewritten."""
    match payload:
        case ToolCall():
            return call_text(payload.name, payload.arguments) if _is_plain(payload.arguments) else ""
        case TokenUsage():
            return ""
        case User() | Message() | Reasoning() | Notification() | ToolResult():
            return clean(payload.text)


def stored(payload: Payload, text: str) -> tuple[str, dict[str, Any] | None]:
    """Split an event, with `text` from `unmasked`, into its searchable text and the rest, both redacted.

    Return (text, rest); rest is None if the text says it all. Text and rest together are what
    `agtrace` shows of the event: nothing else of the log is kept.
    """
    match payload:
        case ToolCall():
            arguments = payload.arguments
            if not text or suspicious(text):  # nearly all have no secret, which one look at the whole text shows
                arguments = redact_json(clean_json(arguments))
                text = call_text(payload.name, arguments)
            return text, _known(call_id=payload.call_id, arguments=arguments)
        case ToolResult():
            rest = _known(
                call_id=payload.call_id,
                outcome_source=payload.outcome_source,
                exit_code=payload.exit_code,
                duration_ms=payload.duration_ms,
                agent_id=payload.agent_id,
            )
            return redact(text), rest or None
        case TokenUsage():
            return "", None
        case User() | Message() | Reasoning() | Notification():
            return redact(text), None


def without_preface(request: str) -> str:
    """Return a request without the list of open files that Codex's IDE extensions put before it (indexer/README.md)."""
    return request.rpartition(_TYPED_IN_AN_IDE)[2]


def call_text(name: str, arguments: Json) -> str:
    """Return the searchable text of a tool call: its name, then a line for each argument."""
    return clean(f"{name}\n{_lines(arguments)}")


def clean(text: str) -> str:
    """Replace inline base64 data with its type and size, and the NUL that separates texts with its symbol."""
    if "base64," in text:
        text = _INLINE_DATA.sub(lambda of: f"[data: {of[1] or 'unknown type'}, {len(of[2]) * 3 // 4} bytes]", text)
    return text.replace(_NUL, _NUL_SHOWN) if _NUL in text else text


def clean_json(value: Json, levels: int = MOST_LEVELS) -> Json:
    """Apply `clean` to every string of a JSON value.

    Anything nested deeper than `levels` becomes its JSON text, as do numbers that other JSON readers reject.
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


def _is_plain(value: Json, levels: int = MOST_LEVELS) -> bool:
    """Whether arguments without secrets are kept unchanged; none of their names indicates a secret."""
    if isinstance(value, str):
        return clean(value) is value
    if isinstance(value, dict):
        return levels > 0 and all(
            not names_secret(key) and clean(key) is key and _is_plain(item, levels - 1) for key, item in value.items()
        )
    if isinstance(value, list):
        return levels > 0 and all(_is_plain(item, levels - 1) for item in value)
    return not _is_odd_number(value)


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


def _known(**fields: Json) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
