"""GitHub Copilot CLI, and Copilot Chat in VS Code, which writes the same records (README.md)."""

from __future__ import annotations

from typing import Any

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.providers.provider import Agent, Home, Notices, Phase, Sign, Tested, loader

# Whether a turn of Copilot CLI goes on, by single records of its events.
# A request for permission is in the log (from 1.0.64). `assistant.turn_end` ends one response of the model, not the
# turn that the human began: nothing tells when that is over.

_OF_TYPES = {
    **dict.fromkeys(("session.start", "session.resume", "user.message", "permission.completed"), Phase.GOES_ON),
    **dict.fromkeys(("assistant.turn_start", "assistant.message"), Phase.GOES_ON),
    **dict.fromkeys(("tool.execution_start", "tool.execution_complete"), Phase.GOES_ON),
    "permission.requested": Phase.ASKS_PERMISSION,
    "abort": Phase.OVER,
    "session.shutdown": Phase.CLOSED,
}


def phase(record: dict[str, Any]) -> Phase | None:
    """Return what a record says about the turn; None if it says nothing."""
    kind = record.get("type")
    return _OF_TYPES.get(kind) if isinstance(kind, str) else None


SHELLS = frozenset({"bash", "powershell", "local_shell"})
"""The tools that run a command; `local_shell` is the human's own, typed after `!`."""

POLLING = frozenset({"read_bash", "write_bash", "stop_bash", "read_powershell", "write_powershell", "stop_powershell"})
"""The tools that ask about a command that is still running, type into it or stop it."""

AGENT_TOOL = "task"
"""The tool that starts a sub-agent."""

_NOTICES = Notices(
    api_errors=frozenset({"session.error"}),
    telling=frozenset({"session.task_complete"}),
    interruptions=(Sign("abort", r"\A(?:user_|remote_)"),),
    compactions=(Sign("session.compaction_complete", '"success":true'),),
)


COPILOT = Agent(
    name="copilot",
    title="Copilot CLI",
    parser=loader("copilot.parser"),
    tested=Tested("1.0.91", "2026-11", "messages without figures, exit codes beside results"),
    home=Home("COPILOT_HOME", "the home of Copilot CLI's logs; default ~/.copilot", ".copilot", ("session-state",)),
    tools=Tools(
        shells=SHELLS,
        patching=SHELLS,
        editing=frozenset({"create"}),
        reading=frozenset({"glob", "rg", "list_agents", "list_bash", "report_intent", "web_fetch"}),
        waiting=POLLING | {"read_agent"},
        asking=frozenset({"ask_user", "exit_plan_mode"}),
        starting=frozenset({AGENT_TOOL}),
        servers=("agtrace-",),
        commands=("command",),
        paths=("path",),
        removed=("old_str",),
        added=("new_str",),
        contents=("file_text",),
    ),
    notices=_NOTICES,
    hidden_reasoning="encrypted",
    phase=phase,
    command="copilot",
    resumes=("--resume",),
    keys_remembered=64,  # only chunks of one response repeat a key, and they are close together
    repeats_lines=True,
)
"""GitHub Copilot CLI: its logs, tools and notifications."""

COPILOT_CHAT = Agent(
    name="copilot_chat",
    title="Copilot Chat",
    parser=loader("copilot.parser:Chat"),
    home=Home("", "", "", ()),
    tools=Tools(
        shells=frozenset({"run_in_terminal"}),
        editing=frozenset({"create_file", "insert_edit_into_file", "replace_string_in_file"}),
        reading=frozenset({"file_search", "grep_search", "list_dir", "semantic_search", "get_errors"}),
        waiting=frozenset({"get_terminal_output", "await_terminal"}),
        starting=frozenset({"runSubagent"}),
        commands=("command",),
        paths=("filePath",),
        removed=("oldString",),
        added=("newString",),
        contents=("content",),
    ),
    notices=_NOTICES,
    hidden_reasoning="encrypted",
    keys_remembered=64,
    repeats_lines=True,
)
"""Copilot Chat in VS Code: its transcripts are below VS Code's `workspaceStorage`, which isn't searched by itself."""
