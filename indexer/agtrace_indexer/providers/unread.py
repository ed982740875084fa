"""Agents whose logs agtrace doesn't read yet, and where they keep them: silence would be taken for "no sessions"."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Unread(NamedTuple):
    """An agent whose logs aren't read."""

    title: str
    variable: str
    """The environment variable that moves its folder; empty if there is none."""
    folder: str
    """The folder below the user's home if the variable isn't set."""
    logs: str
    """Where its logs are in that folder."""


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
)
"""Where they keep their logs in 2026, by their documentation or source."""


def found(environment: Mapping[str, str], home: Path) -> Iterator[tuple[str, str]]:
    """Yield the title and the place of the logs of each of these agents that has been used on this machine."""
    for agent in UNREAD:
        named = environment.get(agent.variable) if agent.variable else None
        place = (Path(named) if named else home / agent.folder) / agent.logs
        if place.exists():
            yield agent.title, str(place)
