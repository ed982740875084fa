"""Stores of agents that agtrace doesn't read yet: silence would be taken for "no sessions"."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Unread(NamedTuple):
    """A store that isn't read."""

    title: str
    variable: str
    """The environment variable that moves its folder; empty if there is none."""
    folder: str
    """The folder below the user's home if the variable isn't set."""
    logs: str
    """Where its logs are in that folder; a store is there if something matches."""


UNREAD = (
    Unread("Factory Droid", "FACTORY_DIR", ".factory", "sessions"),
    Unread("Amp", "XDG_DATA_HOME", ".local/share", "amp/threads"),
    Unread("Cline", "CLINE_DIR", ".cline", "data/sessions"),
    Unread("Kimi Code", "KIMI_CODE_HOME", ".kimi-code", "sessions"),
    Unread("Kimi CLI", "KIMI_SHARE_DIR", ".kimi", "sessions"),
    Unread("Crush", "XDG_DATA_HOME", ".local/share", "crush/projects.json"),
    Unread("Hermes", "HERMES_HOME", ".hermes", "state.db"),
    Unread("Mistral Vibe", "VIBE_HOME", ".vibe", "logs/session"),
    Unread("Grok CLI", "", ".grok", "sessions"),
    Unread("Copilot CLI's session store", "COPILOT_HOME", ".copilot", "session-store.db"),
    Unread("Copilot CLI's sessions before 0.0.342", "COPILOT_HOME", ".copilot", "history-session-state/*.json"),
    Unread("OpenCode before 0.6", "XDG_DATA_HOME", ".local/share", "opencode/project/*/storage"),
    Unread("Pi's database", "PI_CODING_AGENT_DIR", ".pi/agent", "sessions.sqlite"),
    Unread("Copilot's desktop application", "COPILOT_HOME", ".copilot", "data.db"),
    *(Unread("Cursor CLI", "CURSOR_CONFIG_DIR", ".cursor", f"{of}/store.db") for of in ("chats/*/*", "acp-sessions/*")),
    Unread("Cursor CLI", "XDG_CONFIG_HOME", ".config", "cursor/chats/*/*/store.db"),
    *(
        Unread("Antigravity's tokens", "", f".gemini/antigravity{of}", f"conversations/*.{ending}")
        for of in ("-cli", "", "-ide")
        for ending in ("db", "pb")
    ),
    *(
        Unread(title, "", folder, store)
        for folder in (".config", "Library/Application Support", "AppData/Roaming")
        for title, store in (
            ("Cursor", "Cursor/User/globalStorage/state.vscdb"),
            ("Kiro", "Kiro/User/globalStorage/kiro.kiroagent"),
            ("Copilot Chat", "Code*/User/workspaceStorage/*/chatSessions"),
            ("Copilot Chat's transcripts", "Code*/User/workspaceStorage/*/GitHub.copilot-chat/transcripts"),
        )
    ),
)
"""Where they are in 2026, by documentation, source or reports: those of other agents, and stores of agents that keep
other logs, too, which are read."""


def store_within(path: str) -> str | None:
    """Return the title of the agent whose store a file in a project's folder is, if its logs aren't read."""
    return "Crush" if Path(path).parts[-2:] == (".crush", "crush.db") else None


def unread_stores(environment: Mapping[str, str], home: Path, others: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the title and the place of each of these stores on this machine, also of those among other files' paths."""
    for agent in UNREAD:
        named = environment.get(agent.variable) if agent.variable else None
        folder = Path(named) if named else home / agent.folder
        if next(folder.glob(agent.logs), None) is not None:
            yield agent.title, str(folder / agent.logs.partition("/*")[0])
    yield from ((title, path) for path in others if (title := store_within(path)))
