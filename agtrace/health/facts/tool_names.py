"""The kinds of tools by their names: those that run commands, wait, read, ask the human or start an agent.

The agents' own tools are known by name; those of MCP servers are judged by the words in their names.
"""

from __future__ import annotations

from functools import lru_cache

from agtrace_indexer.providers.registry import TOOLS
from agtrace_schema.patterns import later

_NAMESPACE = later(r"__|[.:/]")
_CAMEL = later(r"(?<=[a-z0-9])(?=[A-Z])")


@lru_cache(maxsize=1_024)
def own_name(tool: str) -> str:
    """Return the name of a tool in lower case, without its server or namespace."""
    return _NAMESPACE.split(tool)[-1].lower()


SHELLS = frozenset(map(own_name, TOOLS.shells)) | {"execute_command", "run_command", "run_terminal_cmd", "unified_exec"}
"""The tools with which agents run commands, in lower case, without a namespace such as `functions.`."""

_WAITING = frozenset(map(own_name, TOOLS.waiting)) | {"command_status"}
_WAITING_WORDS = frozenset({"wait", "await", "sleep", "poll", "watch"})

_READING = frozenset(map(own_name, TOOLS.reading))
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
ASKING = frozenset(own_name(tool).replace("_", "") for tool in TOOLS.asking) | {
    *("askhuman", "askfollowupquestion", "requestpermissions")
}
"""The tools that ask the human, in lower case, without underscores."""

AGENTS = frozenset(map(own_name, TOOLS.starting))
"""The tools that start sub-agents, in lower case."""


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
    """Return the words of a tool's own name, the same for `get_issue`, `getIssue` and `GetIssue`."""
    return _CAMEL.sub(" ", _NAMESPACE.split(tool)[-1]).lower().replace("_", " ").replace("-", " ").split()
