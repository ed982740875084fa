"""Texts in the user's role: who speaks in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agtrace_schema.events import UserKind

from agtrace_indexer.events.drafts import Record, SessionFacts
from agtrace_indexer.events.json_values import image_placeholder, text

_SHELL = "The following tool was executed by the user"
"""What stands in place of a text if the human ran a command with `!`."""


def kind_of(part: Record, facts: SessionFacts) -> UserKind | None:
    """Return who says the text of a part; None if it has none.

    OpenCode marks what it added itself. A slash command leaves no trace: its template is an ordinary text.
    """
    said = part.get("text")
    if part.get("type") != "text" or not isinstance(said, str) or not said.strip():
        return None
    if part.get("synthetic"):
        return UserKind.COMMAND if said.startswith(_SHELL) else UserKind.INJECTED
    if part.get("ignored"):  # shown to the human only
        return UserKind.NOTIFICATION
    return UserKind.TASK if facts.kind == "subagent" else UserKind.HUMAN


def command(part: Record) -> str:
    """Return a slash command that is run by a sub-agent, and what that is asked to do."""
    name, prompt = text(part.get("command")), text(part.get("prompt")) or ""
    return f"/{name}\n{prompt}".rstrip() if name else prompt


def runs_only_a_command(parts: Iterable[Record]) -> bool:
    """Whether no model answers a message: it starts a sub-agent, or reports what the human ran."""
    return any(
        part.get("type") == "subtask" or (part.get("synthetic") and str(part.get("text")).startswith(_SHELL))
        for part in parts
    )


def attachment(part: Record) -> str | None:
    """Return a text that stands for an image of the human's; None for anything else.

    What other files contain follows as a text that OpenCode added.
    """
    kind: Any = part.get("mime")
    if part.get("type") != "file" or not isinstance(kind, str) or not kind.startswith("image/"):
        return None
    url = part.get("url")
    data = url.partition("base64,")[2] if isinstance(url, str) and url.startswith("data:") else ""
    return image_placeholder(kind, data) if data else f"[image: {kind}, {text(part.get('filename')) or 'unnamed'}]"
