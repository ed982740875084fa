"""Kiro: JSONL sessions of its CLI and its editor, and conversations that it and Amazon Q kept in SQLite (README.md)."""

from __future__ import annotations

import re
from typing import Any

from agtrace_schema.patterns import later

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.providers.provider import (
    Agent,
    Containers,
    Home,
    Notices,
    Phase,
    Sidecar,
    Sign,
    loader,
    of_user_data,
)

_DATABASES = ("kiro-cli/data.sqlite3", "amazon-q/data.sqlite3")


# Whether a turn goes on, by single records of a log of JSON lines.
# A response is written whole, with its calls: one without calls is the answer. Since 3, a line says that the turn ends.
# Requests for permission go to the screen only.

_AT_WORK = ("Prompt", "ToolResults")
OF_EVENTS = {
    **dict.fromkeys(("user", "turn_start", "assistant", "tool_call", "tool_result"), Phase.GOES_ON),
    "turn_end": Phase.OVER,
}


def phase(record: dict[str, Any]) -> Phase | None:
    """Return what a record says about the turn; None if it says nothing."""
    kind, data, event = record.get("kind"), record.get("data"), record.get("payload")
    if isinstance(event, dict):
        return OF_EVENTS.get(str(event.get("type")))
    if kind in _AT_WORK:
        return Phase.GOES_ON
    if kind != "AssistantMessage" or not isinstance(data, dict):
        return None
    content = data.get("content")
    parts = content if isinstance(content, list) else []
    calls = any(isinstance(part, dict) and part.get("kind") == "toolUse" for part in parts)
    return Phase.GOES_ON if calls else Phase.OVER


KIRO = Agent(
    name="kiro",
    title="Kiro CLI",
    parser=loader("kiro.parser"),
    home=Home("KIRO_HOME", "the home of Kiro CLI's logs; default ~/.kiro", ".kiro", ("sessions",)),
    elsewhere=(of_user_data(*_DATABASES), Home("", "", "Library/Application Support", _DATABASES)),
    sidecar=Sidecar(((".jsonl", ".json"), ("messages.jsonl", "session.json")), loader("kiro.parser:refresh")),
    containers=(
        Containers(
            later(r"(.*[/\\]data\.sqlite3)(?:-wal|-shm|-journal)?", re.DOTALL), loader("kiro.parser"), "data.sqlite3"
        ),
    ),
    tools=Tools(
        shells=frozenset({"shell", "execute_bash", "execute_cmd", "executeBash", "executePwsh"}),
        editing=frozenset({"fs_write", "write", "fsWrite", "fsAppend", "strReplace"}),
        showing=frozenset({"fs_read", "read"}),
        reading=frozenset({"code", "introspect", "web_fetch"}),
        starting=frozenset({"delegate", "subagent", "use_subagent", "invokeSubAgent"}),
        servers=("@agtrace/", "agtrace___", ""),  # with the server's name only if two have a tool of this name
        commands=("command",),
        paths=("path",),
        removed=("old_str", "oldStr"),
        added=("new_str", "newStr"),
        contents=("content", "file_text"),
    ),
    notices=Notices(
        api_errors=frozenset({"turn_error"}),
        interruptions=(Sign("turn_end", r"(?i)\Acancel"),),
        compactions=(Sign("compaction"),),
    ),
    phase=phase,
    command="kiro-cli",
    resumes=("chat", "--resume-id"),
    keys_remembered=64,  # only notes on the end of a turn replace one another
)
"""Kiro CLI: its logs, tools, notifications and settings."""
