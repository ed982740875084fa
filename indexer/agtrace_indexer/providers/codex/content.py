"""The parts of a content as text, with placeholders for images and without encrypted parts."""

from __future__ import annotations

from typing import Any

from agtrace_indexer.events.json_values import compact_json, fields, image_placeholder, items, text


def content_text(content: Any) -> str:
    """Join the parts of a content to one text with line breaks; images become placeholders."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part for part in map(_part_text, content) if part is not None)
    if isinstance(content, dict):
        part = _part_text(content)
        return compact_json(content) if part is None else part
    return "" if content is None else compact_json(content)


def _part_text(part: Any) -> str | None:
    """Return a part's text or image placeholder; None for anything else, such as encrypted parts."""
    if isinstance(part, str):
        return part
    part = fields(part)
    inner = part.get("text")
    return inner if isinstance(inner, str) else image(part)


def image(part: dict[str, Any]) -> str | None:
    """Return the placeholder of an image part (`image_url`, or MCP's `data`); None if there is no image."""
    if isinstance(part.get("data"), str):
        return image_placeholder(part.get("mimeType"), part["data"])
    url = part.get("image_url")
    return None if text(url) is None else image_of(url)


def image_of(url: Any) -> str:
    """Return the placeholder of an image address: with the size for a `data:` address, with the address for others."""
    if not isinstance(url, str) or not url.startswith("data:"):
        return f"[image: {url}]" if text(url) else image_placeholder(None, None)
    head, _, data = url.partition(",")
    return image_placeholder(head[5:].partition(";")[0], data)


def texts(value: Any) -> list[str]:
    """Return the non-empty texts of a list of texts or text parts, or of one text."""
    parts = [value] if isinstance(value, str) else items(value)
    found = [part if isinstance(part, str) else fields(part).get("text") for part in parts]
    return [words for words in found if isinstance(words, str) and words]
