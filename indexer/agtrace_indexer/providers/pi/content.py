"""The text of the blocks of a message or a result: images are replaced by their size."""

from __future__ import annotations

from typing import Any

from agtrace_indexer.events.json_values import fields, image_placeholder, listed, text
from agtrace_indexer.providers.notes import readable_json


def block_type(block: Any) -> str:
    """Read a block's type; a plain string counts as text."""
    if isinstance(block, str):
        return "text"
    return text(fields(block).get("type")) or "untyped"


def block_text(block: Any) -> str:
    """Read a block as text: its text, a placeholder for an image, JSON for anything else."""
    if isinstance(block, str):
        return block
    if not isinstance(block, dict):
        return readable_json(block)
    written = block.get("text")
    if isinstance(written, str) and block.get("type") == "text":
        return written
    if block.get("type") == "image":
        return image_placeholder(block.get("mimeType"), block.get("data"))
    return readable_json(block)


def joined_text(content: Any) -> str:
    """Read a content as one text, with a line break between blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(map(block_text, listed(content)))
