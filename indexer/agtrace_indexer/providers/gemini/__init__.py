"""Gemini CLI: JSON sessions, JSONL sessions since 0.39.0, and `/chat save` checkpoints (README.md)."""

from __future__ import annotations

import re

from agtrace_schema.patterns import later

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.logs.discovery import Forms
from agtrace_indexer.providers.provider import Agent, Client, Home, Notices, Sign, loader

_SESSION = later(r"(session-.+)\.jsonl?$", re.DOTALL)


def _log_of(folder: str, name: str) -> tuple[str, str] | None:
    """Return the same for a `.json` and the `.jsonl` of the same name, which continues it."""
    session = _SESSION.match(name)
    return (folder, session[1]) if session else None


def _rank(path: str) -> tuple[bool, ...]:
    return (path.endswith(".json"),)


GEMINI = Agent(
    name="gemini",
    title="Gemini CLI",
    parser=loader("gemini.parser"),
    home=Home("GEMINI_CLI_HOME", "the folder that holds Gemini CLI's .gemini; default ~", "", (".gemini/tmp",)),
    forms=Forms("session-", _log_of, _rank),
    tools=Tools(
        shells=frozenset({"run_shell_command"}),
        reading=frozenset({"google_web_search", "grep_search", "search_file_content"}),
        asking=frozenset({"ask_user", "enter_plan_mode", "exit_plan_mode"}),
        questioning=frozenset({"ask_user"}),
        starting=frozenset({"codebase_investigator", "delegate_to_agent", "generalist"}),
        servers=("mcp_agtrace_", "agtrace__", ""),  # if two servers have a tool of this name; before 2026
        commands=("command",),
        paths=("absolute_path", "file_path"),
        removed=("old_string",),
        added=("new_string",),
        contents=("content",),
    ),
    notices=Notices(
        api_errors=frozenset({"error"}),
        also_of_commands=True,
        interruptions=(Sign("info", r"\ARequest cancelled\."),),
        compactions=(Sign("info", r"(?i)\bcompressed (?:context will be sent|from\b)"),),
    ),
    command="gemini",
    resumes=("--resume",),
    setup=loader("gemini.parser:SETUP"),
    phase=loader("gemini.parser:phase"),
    retention=loader("gemini.parser:retention"),
    client=Client("gemini-cli-mcp-client", 39_900),  # it adds 41 characters to an answer, and cuts above 40,000
    keys_remembered=None,  # any message can be replaced or rewound
)
"""Gemini CLI: its logs, tools, notifications and settings."""
