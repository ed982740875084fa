"""What stands above a conversation: which one it is, who worked on it, when, for how much, and how it ended."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping

from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.answers import SessionStats, WithChildren
from agtrace_schema.model import dump
from msgspec import Struct

from agtrace.report.conversation.cleaning import Cleaner, said
from agtrace.sessions.landmarks import said as told
from agtrace.sessions.listing import session_head
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import labels
from agtrace.sessions.turns import last_outcome, why_unknown
from agtrace.text.lines import LABEL, PATH
from agtrace.text.numbers import counted, dollars, how_made, seconds
from agtrace.times import iso

_ENDED = {
    "success": "the model had the last word",
    "partial": "the model had the last word; calls had failed on the way",
    "failed": "the last thing that happened failed",
    "no turns": "nobody asked for anything",
    "open call": "the last call has no result",
    "no answer": "the last request has no answer",
    "no results in its log": "unknown, as its log has no results of calls",
}
"""How a session ended, by the outcome of its last turn, or by why that is unknown."""


class Fact(Struct, frozen=True):
    """A line of the head: what it is about, a sentence, and a name from the log, either of which may be empty."""

    name: str
    says: str
    quoted: str = ""


class Head(Struct, frozen=True):
    """The head of a conversation."""

    title: str
    agent: str
    """The agent's display name."""
    facts: list[Fact]
    began: str | None
    """The time in ISO form."""


def head(
    connection: sqlite3.Connection,
    session: Session,
    turns: tuple[int, int] | None,
    cleaner: Cleaner,
    *,
    prices: PriceTable,
) -> Head:
    """Return the head of a session of which only some turns may be told."""
    agent = AGENTS[session.provider].title
    title = cleaner.line(session.title or session.snippet or "", LABEL * 2)
    facts = [*_facts(connection, session, turns, cleaner, prices), Fact("Ended", ended(connection, session))]
    return Head(title or "Untitled session", agent, facts, iso(session.started_at))


def masked(found: Mapping[str, int]) -> Fact:
    """Return the line that says what was masked."""
    return Fact("Masked", said(found))


def _facts(
    connection: sqlite3.Connection,
    session: Session,
    turns: tuple[int, int] | None,
    cleaner: Cleaner,
    prices: PriceTable,
) -> Iterator[Fact]:
    about = session_head(connection, session, prices)
    stats = about.stats
    project = labels(connection).get(session.project_id or 0)
    folder = session.cwd or session.root_path
    if about.user:
        yield Fact("User", "", cleaner.line(about.user, LABEL))
    if project:
        yield Fact("Project", "", cleaner.line(project, LABEL * 2))
    if folder:
        yield Fact("Folder", "", cleaner.line(folder, PATH))
    if about.parent_id:
        yield Fact("Part of", f"{about.kind} of", cleaner.line(about.parent_id, LABEL))
    yield Fact("Agent", AGENTS[session.provider].title, cleaner.line(about.version or "", LABEL))
    if about.model:
        yield Fact("Model", "", cleaner.line(about.model, LABEL))
    yield Fact("Session", "", cleaner.line(about.session_id, LABEL * 2))
    if about.start_time:
        yield Fact("Began", when(about.start_time))
    lasted, active = seconds(stats.duration_seconds), seconds(stats.active_seconds)
    if lasted:
        yield Fact("Lasted", f"{lasted}, active {active}" if active and active != lasted else lasted)
    if cost := _cost(stats):
        yield Fact("Cost", cost)
    yield Fact("Size", f"{counted(stats.total_turns, 'turn')}, {_calls(stats)}")
    if stats.done:
        yield Fact("Done", told(dump(stats.done)))
    if turns is not None:
        shown = f"only turn {turns[0]}" if turns[0] == turns[1] else f"only turns {turns[0]} to {turns[1]}"
        yield Fact("Shown", shown)


def _cost(stats: SessionStats) -> str:
    """Return what a session cost, alone and with its sub-agents; empty if no price is known."""
    whole, cost = stats.with_children, _priced(stats)
    if whole is None or whole.cost_usd is None:
        return cost
    return ", ".join(filter(None, (cost, f"{with_agents(whole)} {_priced(whole)}")))


def _priced(sums: SessionStats | WithChildren) -> str:
    return how_made(dollars(sums.cost_usd), sums.cost_made)


def _calls(stats: SessionStats) -> str:
    """Return how many tool calls there were, and how many of them failed, alone and with sub-agents."""
    whole, calls = stats.with_children, counted(stats.tool_calls, "tool call") + _failed(stats.failed_calls)
    return f"{calls}, {with_agents(whole)} {whole.tool_calls:,}{_failed(whole.failed_calls)}" if whole else calls


def _failed(calls: int | None) -> str:
    return f", {calls:,} failed" if calls else ""


def with_agents(whole: WithChildren) -> str:
    """Return what stands before a sum that includes sub-agents: `with 6 sub-agents`."""
    return f"with {counted(whole.sessions - 1, 'sub-agent')}" if whole.sessions > 1 else "with warm-ups"


def ended(connection: sqlite3.Connection, session: Session) -> str:
    """Return how a session ended, as words."""
    outcome = last_outcome(connection, session)
    return _ENDED[why_unknown(connection, session) if outcome == "unknown" else outcome]


def when(time: str | None) -> str:
    """Return an ISO time in UTC as people read it: `2026-11-03 10:00 UTC`."""
    return f"{time[:16].replace('T', ' ')} UTC" if time else ""


def took(milliseconds: int | None) -> str:
    """Return the duration of a call: `340 ms`, `2.3 s`, `4 min 10 s`; empty if it is unknown or nothing."""
    if not milliseconds:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    return f"{milliseconds / 1000:.1f} s" if milliseconds < 60_000 else seconds(milliseconds // 1000)
