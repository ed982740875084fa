"""Kiro CLI: JSONL sessions, and the conversations that it and Amazon Q kept in SQLite (README.md)."""

from __future__ import annotations

import re

from agtrace_schema.patterns import later

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.providers.provider import (
    Agent,
    Containers,
    Home,
    Notices,
    Sidecar,
    Sign,
    loader,
    of_user_data,
)

_DATABASES = ("kiro-cli/data.sqlite3", "amazon-q/data.sqlite3")


KIRO = Agent(
    name="kiro",
    title="Kiro CLI",
    parser=loader("kiro.parser"),
    home=Home("KIRO_HOME", "the home of Kiro CLI's logs; default ~/.kiro", ".kiro", ("sessions/cli",)),
    elsewhere=(of_user_data(*_DATABASES), Home("", "", "Library/Application Support", _DATABASES)),
    sidecar=Sidecar(".jsonl", ".json", loader("kiro.parser:refresh")),
    containers=(
        Containers(
            later(r"(.*[/\\]data\.sqlite3)(?:-wal|-shm|-journal)?", re.DOTALL), loader("kiro.parser"), "data.sqlite3"
        ),
    ),
    tools=Tools(
        shells=frozenset({"shell", "execute_bash", "execute_cmd"}),
        editing=frozenset({"fs_write", "write"}),
        showing=frozenset({"fs_read", "read"}),
        reading=frozenset({"code", "introspect", "web_fetch"}),
        starting=frozenset({"delegate", "subagent", "use_subagent"}),
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
    phase=loader("kiro.parser:phase"),
    command="kiro-cli",
    resumes=("chat", "--resume-id"),
    keys_remembered=64,  # only notes on the end of a turn replace one another
)
"""Kiro CLI: its logs, tools, notifications and settings."""
