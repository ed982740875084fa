"""Two sessions side by side: what each did, how it went, what it cost, and what they have in common.

Figures cover a session's own events: superseded events and copies from another session are not counted,
but the copies are reported. In names for both sessions, `_1` is the first and `_2` the second.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from agtrace_indexer.index.questions import calls, events, sessions, turns
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import with_texts
from agtrace_schema.comparison import CallFailures, ComparedSession, ComparedTool, Comparison, FailedCall, Relation
from msgspec import Struct
from msgspec.structs import replace

from agtrace.sessions.files import Access, compared_files, touched_files
from agtrace.sessions.listing import session_head, shown_kind
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.query import short_id
from agtrace.sessions.turns import last_outcome
from agtrace.sessions.usage import Usage, usage_of
from agtrace.text.lines import LABEL, NO_TOOL, USER_MESSAGE, one_line

_QUOTE = 80
_MODELS = 3


class Lengths(NamedTuple):
    """The most items to show of each list."""

    tools: int
    files: int
    """For each of the three lists."""
    failures: int
    """For each session."""


class Side(Struct, frozen=True):
    """One of the two sessions, with complete lists."""

    row: Session
    shown_id: str
    facts: ComparedSession
    tools: dict[str, tuple[int, int]]
    """Tool -> (calls, failed calls)."""
    files: dict[str, Access]

    def cut(self, most: Lengths) -> ComparedSession:
        """Return the facts, with at most this many failures quoted."""
        failures = self.facts.failures
        shown = replace(failures, examples=failures.examples[: most.failures])
        return replace(self.facts, failures=shown)


class Compared(Struct, frozen=True):
    """Two sessions side by side."""

    one: Side
    two: Side
    relation: Relation | None

    def cut(self, most: Lengths, differences: list[str]) -> Comparison:
        """Return the comparison with lists of these lengths; totals stay exact."""
        tools = compared_tools(self.one.tools, self.two.tools)
        return Comparison(
            differences=differences,
            relation=self.relation,
            session_1=self.one.cut(most),
            session_2=self.two.cut(most),
            total_tools=len(tools),
            tools=tools[: most.tools],
            files=compared_files(self.one.files, self.two.files, most.files),
        )


def compare(
    connection: sqlite3.Connection, one: Session, two: Session, prices: PriceTable, most_failures: int
) -> Compared:
    """Compare two sessions; at most this many failures of each are quoted."""
    same_project = one.project_id is not None and one.project_id == two.project_id
    return Compared(
        _side(connection, one, same_project, prices, most_failures),
        _side(connection, two, same_project, prices, most_failures),
        relation_of(connection, one, two),
    )


# -- one side --------------------------------------------------------------------------------------


def _side(
    connection: sqlite3.Connection, session: Session, same_project: bool, prices: PriceTable, most_failures: int
) -> Side:
    tools = {tool.name: (tool.calls, tool.failed) for tool in calls.tools(connection, session.id)}
    files = touched_files(connection, session, same_project=same_project)
    return Side(
        session, short_id(connection, session.uid), _facts(connection, session, prices, most_failures), tools, files
    )


def _facts(connection: sqlite3.Connection, session: Session, prices: PriceTable, most_failures: int) -> ComparedSession:
    head = session_head(connection, session, prices)
    usage = usage_of(connection, prices, [session.id]).get(session.id, Usage())
    first, last = events.times(connection, session.id)
    return ComparedSession(
        session_id=short_id(connection, session.uid),
        provider=head.provider,
        kind=head.kind,
        title=head.title,
        snippet=one_line(session.snippet, USER_MESSAGE) if session.snippet and not head.title else None,
        project_hash=head.project_hash,
        root_path=head.root_path,
        start_time=head.start_time,
        duration_seconds=None if first is None or last is None else (last - first) // 1000,
        active_seconds=head.stats.active_seconds,
        outcome=last_outcome(connection, session),
        turns=head.stats.total_turns,
        steps=turns.count_steps(connection, session.id),
        tool_calls=head.stats.tool_calls,
        failures=_failures(connection, session, most_failures),
        responses=head.stats.responses,
        total_tokens=head.stats.total_tokens,
        tokens=head.stats.tokens,
        tokens_made=head.stats.tokens_made,
        incomplete_responses=head.stats.incomplete_responses,
        cost_usd=head.stats.cost_usd,
        cost_made=head.stats.cost_made,
        models=[replace(model, tokens=None) for model in usage.by_model(_MODELS)],
        total_models=len(usage.models) if len(usage.models) > _MODELS else None,
        copied=head.stats.copied,
    )


def _failures(connection: sqlite3.Connection, session: Session, most: int) -> CallFailures:
    found = calls.worst(connection, session.id, most)
    shown = events.several(connection, session.id, (call.shown for call in found))
    quotes = {event.event_index: one_line(event.text, _QUOTE) for event in with_texts(connection, shown)}
    examples = [
        FailedCall(
            event_index=call.shown,
            tool=one_line(call.tool or NO_TOOL, LABEL),
            outcome=call.outcome,
            quote=quotes[call.shown],
        )
        for call in found
    ]
    return CallFailures(**calls.ill_ended(connection, session.id)._asdict(), examples=examples)


# -- tools -----------------------------------------------------------------------------------------


def compared_tools(one: dict[str, tuple[int, int]], two: dict[str, tuple[int, int]]) -> list[ComparedTool]:
    """Return the tools of both sessions, most used first."""
    none = (0, 0)
    order = sorted(one.keys() | two.keys(), key=lambda name: (-(one.get(name, none)[0] + two.get(name, none)[0]), name))
    return [
        ComparedTool(
            name=one_line(name or NO_TOOL, LABEL),
            calls_1=one.get(name, none)[0],
            failed_1=one.get(name, none)[1],
            calls_2=two.get(name, none)[0],
            failed_2=two.get(name, none)[1],
        )
        for name in order
    ]


# -- both sides ------------------------------------------------------------------------------------


def relation_of(connection: sqlite3.Connection, one: Session, two: Session) -> Relation | None:
    """Return how two sessions are related, or None."""
    shared = _shared_events(connection, one, two)
    started_by = None
    if two.parent_session == one.id:
        summary, started_by = f"2 {_descent(two)} 1", two.started_by
    elif one.parent_session == two.id:
        summary, started_by = f"1 {_descent(one)} 2", one.started_by
    elif one.parent_session is not None and one.parent_session == two.parent_session:
        parent = short_id(connection, sessions.id_of(connection, one.parent_session))
        summary = f"1 and 2 have the same parent, {parent}"
    elif shared:
        summary = "1 and 2 share events"
    else:
        return None
    return Relation(summary=summary, started_by_event=started_by, shared_events=shared or None)


def _descent(child: Session) -> str:
    return {"subagent": "is a sub-agent of", "fork": "is a fork of"}.get(shown_kind(child), "continues")


def _shared_events(connection: sqlite3.Connection, one: Session, two: Session) -> int:
    if not one.copied_events and not two.copied_events:
        return 0
    return sessions.shared_events(connection, one.id, two.id)
