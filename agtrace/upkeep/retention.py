"""Which agents delete their logs, after how long, and what the index still has of what they deleted."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agtrace_indexer.index.questions import upkeep
from agtrace_indexer.providers.provider import Agent, Retention
from agtrace_indexer.providers.registry import AGENTS

from agtrace.index.freshness import Freshness
from agtrace.text.numbers import counted
from agtrace.upkeep.service import is_installed


def retentions(
    connection: sqlite3.Connection, environment: Mapping[str, str], home: Path, freshness: Freshness
) -> list[dict[str, Any]]:
    """Return, for each agent with sessions that deletes its logs, or whose logs are gone, what is known of that."""
    gone, known = upkeep.sessions_gone(connection), {one.provider for one in upkeep.providers(connection)}
    serviced = is_installed(sys.platform, environment, home)
    found = []
    for agent in AGENTS.values():
        read = agent.retention() if agent.retention is not None else None
        kept = read(environment, home) if read is not None else []
        if agent.name in known and (kept or gone.get(agent.name)):
            fresh = bool(kept) and all(serviced or one.refreshed for one in kept)
            found.append(_described(agent, kept, gone.get(agent.name, 0), fresh, freshness))
    return found


def _described(agent: Agent, kept: Sequence[Retention], gone: int, fresh: bool, freshness: Freshness) -> dict[str, Any]:
    ends = [one for one in kept if one.certain and one.days is not None]
    advice = [_advice(agent, one, freshness) for one in ends if not (fresh and freshness.state == "ready")]
    return {
        "agent": agent.title,
        "deleted_sessions": gone,
        "kept_fresh": fresh,
        "settings": [one._asdict() for one in kept],
        "advice": advice,
    }


def _advice(agent: Agent, kept: Retention, freshness: Freshness) -> str:
    behind = f"{counted(freshness.files_behind, 'file')} not indexed yet, and " if freshness.files_behind else ""
    return (
        f"{agent.title} deletes logs {days(kept.days or 0)} after their last change; {behind}nothing indexes them in "
        f"the background: `agtrace service --apply` does, or {kept.to_keep} in {kept.file}"
    )


def days(number: float) -> str:
    """Return a number of days: `30 days`, `36 hours`."""
    return counted(round(number), "day") if number >= 2 else counted(round(number * 24), "hour")
