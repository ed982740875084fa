"""The parts of a content: their text, and the calls, answers and thoughts among them."""

from __future__ import annotations

from typing import Any

from agtrace_indexer.events.json_values import compact_json, fields, image_placeholder


def joined_text(content: list[Any]) -> str:
    """Read a content as one text, with a line break between parts."""
    return "\n".join(filter(None, map(part_text, content)))


def part_text(part: Any) -> str:
    """Read a part as text: images become placeholders; calls, answers and thoughts have events of their own."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return compact_json(part)
    if is_thought(part) or any(isinstance(part.get(key), dict) for key in ("functionCall", "functionResponse")):
        return ""
    if isinstance(part.get("text"), str):
        return str(part["text"])
    if isinstance(part.get("inlineData"), dict):
        return image_placeholder(part["inlineData"].get("mimeType"), part["inlineData"].get("data"))
    return compact_json(part) if part else ""


def bodies(content: list[Any], key: str) -> list[dict[str, Any]]:
    """Return the values of this key (`functionCall`, `functionResponse`) in the parts of a content."""
    return [part[key] for part in content if isinstance(fields(part).get(key), dict)]


def is_thought(part: Any) -> bool:
    """Whether a part is a thought, which checkpoints keep in the content."""
    return fields(part).get("thought") is True
