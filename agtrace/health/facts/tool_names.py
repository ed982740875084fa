"""What the names of tools tell of them: whether they run commands, wait, read, ask the human or start an agent.

The tools of all three agents are known by name; those of MCP servers by the words of theirs.
"""

from __future__ import annotations

import re
from functools import lru_cache

SHELLS = frozenset(
    {
        "bash",
        "exec",
        "exec_command",
        "execute_command",
        "local_shell",
        "powershell",
        "run_command",
        "run_shell_command",
        "run_terminal_cmd",
        "shell",
        "shell_command",
        "unified_exec",
    }
)
"""The tools with which agents run commands, in small letters, without a namespace such as `functions.`."""

_WAITING = frozenset(
    {"write_stdin", "bashoutput", "taskoutput", "agentoutputtool", "monitor", "schedulewakeup", "command_status"}
)
_WAITING_WORDS = frozenset({"wait", "await", "sleep", "poll", "watch"})

_READING = frozenset({"ls", "lsp", "glob", "google_web_search", "grep_search", "search_file_content", "view_image"})
_READING_WORDS = frozenset(
    """
    describe fetch find get glob grep inspect list lookup read screenshot search show snapshot view
    """.split()  # noqa: SIM905
)
_WRITING_WORDS = frozenset(
    """
    add answer apply approve assign cancel click close commit create delete deploy drop edit exec execute fill format
    generate insert install invoke kill make merge modify move navigate new open patch post press publish push put
    refresh remove rename replace reset restart run save send set start stop submit toggle trigger type undo update
    upload upsert write
    """.split()  # noqa: SIM905
)
ASKING = frozenset(
    {
        "askuserquestion",
        "askuser",
        "askhuman",
        "askfollowupquestion",
        "enterplanmode",
        "exitplanmode",
        "requestpermissions",
        "requestuserinput",
    }
)
"""The tools that ask the human, in small letters, without underscores."""

AGENTS = frozenset(
    {"agent", "codebase_investigator", "delegate_to_agent", "generalist", "resume_agent", "spawn_agent", "task"}
)
"""The tools that start sub-agents, in small letters."""

_NAMESPACE = re.compile(r"__|[.:/]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@lru_cache(maxsize=1_024)
def own_name(tool: str) -> str:
    """The name of a tool in small letters, without the server or namespace that offers it."""
    return _NAMESPACE.split(tool)[-1].lower()


@lru_cache(maxsize=1_024)
def waits(tool: str) -> bool:
    """Whether it waits on purpose, or asks for a state."""
    words = _words(tool)
    return own_name(tool) in _WAITING or not _WAITING_WORDS.isdisjoint(words) or words[-1:] == ["status"]


@lru_cache(maxsize=1_024)
def only_reads(tool: str) -> bool:
    """Whether it can't change anything."""
    words = _words(tool)
    if not _WRITING_WORDS.isdisjoint(words):
        return False
    return own_name(tool) in _READING or not _READING_WORDS.isdisjoint(words)


def _words(tool: str) -> list[str]:
    """The words of a tool's own name: `get_issue`, `getIssue` and `GetIssue` have the same."""
    return _CAMEL.sub(" ", _NAMESPACE.split(tool)[-1]).lower().replace("_", " ").replace("-", " ").split()
