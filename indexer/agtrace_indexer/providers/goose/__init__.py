"""Goose: sessions in `sessions.db`, and one JSONL file for each before 1.10 (README.md)."""

from __future__ import annotations

import os
import re

from agtrace_schema.patterns import later

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.logs.discovery import Forms
from agtrace_indexer.providers.provider import Agent, Containers, Home, Notices, Sign, loader, of_user_data

_FOLDER, _DATABASE, _LINES = "sessions", "sessions.db", ".jsonl"


def _log_of(folder: str, name: str) -> tuple[str, str] | None:
    """Return the same for a session in the database and for the file of that name, from which it was imported."""
    above, own = os.path.split(folder)
    if own == _DATABASE:
        return above, name
    return (folder, name.removesuffix(_LINES)) if own == _FOLDER and name.endswith(_LINES) else None


def _rank(path: str) -> tuple[bool, ...]:
    return (path.endswith(_LINES),)


GOOSE = Agent(
    name="goose",
    title="Goose",
    parser=loader("goose.parser"),
    home=Home("GOOSE_PATH_ROOT", "the folder to which all of Goose's files are moved", None, ("data/sessions",)),
    elsewhere=(of_user_data("goose/sessions"), Home("", "", "AppData/Roaming", ("Block/goose/data/sessions",))),
    rewrites=True,  # before 1.10 the whole file at each message, as its first line counts them
    forms=Forms(_FOLDER, _log_of, _rank),
    containers=(
        Containers(
            later(r"(.*[/\\]sessions\.db)(?:-wal|-shm|-journal)?", re.DOTALL), loader("goose.parser"), _DATABASE
        ),
    ),
    tools=Tools(
        shells=frozenset({"developer__shell", "shell"}),
        reading=frozenset({"analyze", "developer__analyze", "load", "load_skill", "tree"}),
        starting=frozenset({"delegate", "dynamic_task__create_task", "subagent__execute_task"}),
        servers=("agtrace__",),
        commands=("command",),
        paths=("path",),
        removed=("old_str", "before"),
        added=("new_str", "after"),
        contents=("file_text", "content"),
    ),
    notices=Notices(
        compactions=(
            Sign("conversationCompacted"),
            Sign("systemNotification", r"(?i)\b(?:compaction complete|conversation (?:was )?compacted)"),
        ),
    ),
    command="goose",
    resumes=("session", "--resume", "--session-id"),
    keys_remembered=None,  # the figures of any request may come again when a conversation is rewritten
)
"""Goose: its logs, tools, notifications and settings."""
