"""Cursor: the transcripts of its agent, in the editor and in the terminal (README.md)."""

from __future__ import annotations

import os

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.logs.discovery import Forms
from agtrace_indexer.providers.provider import Agent, Home, loader

_FOLDER, _LINES = "agent-transcripts", ".jsonl"


def _log_of(folder: str, name: str) -> tuple[str, str] | None:
    """Return the same for a transcript and the one to which it moves in a folder of its own (entireio/cli#707)."""
    above, own = os.path.split(folder)
    if own == name.removesuffix(_LINES):
        folder, (above, own) = above, os.path.split(above)
    return (folder, name) if own == _FOLDER and name.endswith(_LINES) else None


def _rank(path: str) -> tuple[bool, ...]:
    return (os.path.basename(os.path.dirname(path)) == _FOLDER,)


CURSOR = Agent(
    name="cursor",
    title="Cursor",
    parser=loader("cursor.parser"),
    home=Home("CURSOR_CONFIG_DIR", "the home of Cursor's transcripts; default ~/.cursor", ".cursor", ("projects",)),
    forms=Forms(_FOLDER, _log_of, _rank),
    tools=Tools(
        shells=frozenset({"Shell", "run_terminal_cmd", "run_terminal_command_v2"}),
        editing=frozenset({"StrReplace", "search_replace", "Delete", "delete_file"}),
        showing=frozenset({"ReadFile"}),
        reading=frozenset({"Glob", "LS", "SemanticSearch", "codebase_search", "list_dir"}),
        asking=frozenset({"AskQuestion"}),
        starting=frozenset({"Task", "task_v2"}),
        servers=("mcp_agtrace_", ""),
        commands=("command",),
        paths=("path", "file_path", "target_file"),
        removed=("old_string",),
        added=("new_string",),
        contents=("contents", "content", "code_edit"),
    ),
    command="cursor-agent",
    resumes=("--resume",),
    records_to_recognize=2,  # a record has two keys, and one of them is a general one
    logs_results=False,
)
"""Cursor: its logs, tools and settings."""
