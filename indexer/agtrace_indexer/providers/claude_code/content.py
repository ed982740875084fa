"""The text of the blocks of a message or a result: images and other base64 data are replaced by their size."""

from __future__ import annotations

from typing import Any

from agtrace_schema.patterns import later

from agtrace_indexer.events.json_values import compact_json, fields, image_placeholder, listed, text

_BASE64 = later(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{256,}={0,2}")
_BASE64_MARKS = ('"base64"', '"data":"', '"blob"')


def readable_json(value: Any) -> str:
    """Write a JSON value compactly, with base64 data replaced by a note of its size."""
    try:
        written = compact_json(value)
    except RecursionError:
        return "[nested too deeply to be shown]"
    if len(written) > 256 and any(mark in written for mark in _BASE64_MARKS):
        return _BASE64.sub(lambda data: f"[base64: {len(data.group()) * 3 // 4} bytes]", written)
    return written


def block_type(block: Any) -> str:
    """Read a block's type; a plain string counts as text."""
    if isinstance(block, str):
        return "text"
    return text(fields(block).get("type")) or "untyped"


def block_text(block: Any) -> str:
    """Read a block as text: its text, a placeholder for an image or document, JSON for anything else."""
    if isinstance(block, str):
        return block
    if not isinstance(block, dict):
        return readable_json(block)
    written = block.get("text")
    if isinstance(written, str) and block.get("type") == "text":
        return written
    source = fields(block.get("source")) or block  # MCP images have no source
    if block.get("type") == "image" or isinstance(source.get("data"), str):
        return image_placeholder(source.get("media_type") or source.get("mimeType"), source.get("data"))
    return readable_json(block)


def joined_text(content: Any) -> str:
    """Read message content as one text, with a line break between blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(block_text(block) for block in listed(content))
