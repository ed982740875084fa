"""Goose: sessions in `sessions.db`, and one JSONL file for each before 1.10 (README.md)."""

from __future__ import annotations

import re

from agtrace_schema.patterns import later

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.logs.discovery import forms
from agtrace_indexer.providers.provider import Agent, Containers, Home, Notices, Sign, loader, of_user_data

GOOSE = Agent(
    name="goose",
    title="Goose",
    parser=loader("goose.parser"),
    home=Home("GOOSE_PATH_ROOT", "the folder to which all of Goose's files are moved", None, ("data/sessions",)),
    elsewhere=(
        of_user_data("goose/sessions", "Block/goose/sessions"),
        Home("", "", "Library/Application Support", ("goose/sessions",)),
        Home("", "", "AppData/Roaming", ("Block/goose/data/sessions",)),
    ),
    rewrites=True,  # before 1.10 the whole file at each message, as its first line counts them
    forms=forms("sessions", r"(.*)/sessions\.db/([^/]+)", r"(.*/sessions)/([^/]+)\.jsonl"),  # imported from files
    containers=(
        Containers(
            later(r"(.*[/\\]sessions\.db)(?:-wal|-shm|-journal)?", re.DOTALL), loader("goose.parser"), "sessions.db"
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
