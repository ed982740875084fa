"""Gemini CLI: JSON sessions, JSONL sessions since 0.39.0, and `/chat save` checkpoints (README.md)."""

from __future__ import annotations

from typing import Any

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.logs.discovery import forms
from agtrace_indexer.providers.provider import Agent, Client, Home, Notices, Phase, Sign, loader

# Whether a turn of Gemini CLI goes on, by single records of its log of JSON lines.
# After a text of the model the log doesn't tell whether the turn is over: some versions write a tool call only once it
# has ended. A call that is written before its end has a status.

_WAITS = "awaiting_approval"


def phase(record: dict[str, Any]) -> Phase | None:
    """Return what a record says about the turn; None if it says nothing."""
    kind = record.get("type")
    if kind in ("gemini", "model"):
        calls = record.get("toolCalls")
        states = [call.get("status") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
        return Phase.ASKS_PERMISSION if _WAITS in states else Phase.GOES_ON
    if kind == "info":
        said = record.get("content")
        return Phase.OVER if isinstance(said, str) and said.startswith("Request cancelled.") else None
    return Phase.GOES_ON if kind == "user" and not _is_command(record.get("content")) else None


def _is_command(content: Any) -> bool:
    first = content[0] if isinstance(content, list) and content else content
    text = first.get("text") if isinstance(first, dict) else first
    return isinstance(text, str) and text.startswith(("/", "?"))


GEMINI = Agent(
    name="gemini",
    title="Gemini CLI",
    parser=loader("gemini.parser"),
    home=Home("GEMINI_CLI_HOME", "the folder that holds Gemini CLI's .gemini; default ~", "", (".gemini/tmp",)),
    forms=forms("session-", r"(.*)/(session-[^/]+)\.jsonl", r"(.*)/(session-[^/]+)\.json"),  # the first goes on
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
    phase=phase,
    as_patch=loader("gemini.parser:as_patch"),
    retention=loader("gemini.parser:retention"),
    client=Client("gemini-cli-mcp-client", 39_100),  # with a link it adds up to 860 characters, and cuts above 40,000
    keys_remembered=None,  # any message can be replaced or rewound
)
"""Gemini CLI: its logs, tools, notifications and settings."""
