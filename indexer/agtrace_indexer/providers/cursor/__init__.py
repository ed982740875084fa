"""Cursor: the transcripts of its agent, in the editor and in the terminal (README.md)."""

from __future__ import annotations

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.logs.discovery import forms
from agtrace_indexer.providers.provider import Agent, Home, loader

CURSOR = Agent(
    name="cursor",
    title="Cursor",
    parser=loader("cursor.parser"),
    home=Home("CURSOR_CONFIG_DIR", "the home of Cursor's transcripts; default ~/.cursor", ".cursor", ("projects",)),
    forms=forms(  # a transcript moves into a folder of its own (entireio/cli#707)
        "agent-transcripts",
        r"(.*/agent-transcripts)/([^/]+)/\2\.jsonl",
        r"(.*/agent-transcripts)/([^/]+)\.jsonl",
    ),
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
