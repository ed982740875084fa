"""Two sessions side by side: what each did, how it went, what it cost, and what they have in common.

Figures cover a session's own events: superseded events and copies from another session are not counted,
but the copies are reported. In names for both sessions, `_1` is the first and `_2` the second.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import orjson
from agtrace_indexer.index.queries import calls, events, sessions, turns
from agtrace_indexer.index.queries.events import NOW, with_texts
from agtrace_indexer.index.queries.sessions import Session
from agtrace_schema.answers import ModelTotals
from agtrace_schema.comparison import CallFailures, ComparedSession, ComparedTool, Comparison, FailedCall, Relation
from agtrace_schema.events import Outcome
from agtrace_schema.model import dump
from msgspec import Meta, Struct
from msgspec.structs import replace

from agtrace.problems import InvalidParameter
from agtrace.sessions.counting import Access, compared_files, touched_files
from agtrace.sessions.listing import session_head, shown_kind
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import labels
from agtrace.sessions.query import find_session, short_id
from agtrace.sessions.turns import last_outcome
from agtrace.sessions.usage import Usage, usage_of
from agtrace.settings.limits import limits
from agtrace.shaping.replies import Reply
from agtrace.text.lines import LABEL, NO_TOOL, SUMMARY, USER_MESSAGE, name_in_sentence, one_line
from agtrace.text.next_call import NextCall, call
from agtrace.tools.arguments import AnotherId, Arguments, SessionId
from agtrace.tools.tool import Context, Tool, opens_event

_QUOTE = 80
_MODELS = 3
_ALL = 1 << 62

_OF_HEAD = ("provider", "kind", "title", "project_hash", "root_path", "start_time")
_OF_STATS = (
    "active_seconds", "tool_calls", "responses", "total_tokens", "tokens", "tokens_made", "incomplete_responses",
    "cost_usd", "cost_made", "copied",
)  # fmt: skip
"""The fields that a side of a comparison has as the overview of its session has them."""


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
        return replace(self.facts, failures=replace(failures, examples=failures.examples[: most.failures]))


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


# -- one side --------------------------------------------------------------------------------------


def _side(
    connection: sqlite3.Connection, session: Session, same_project: bool, prices: PriceTable, most_failures: int
) -> Side:
    tools = {name or "": (n, failed) for _, name, n, failed in calls.by_session(connection, [session.id])}
    files = touched_files(connection, session, same_project=same_project)
    return Side(
        session, short_id(connection, session.uid), _facts(connection, session, prices, most_failures), tools, files
    )


def _facts(connection: sqlite3.Connection, session: Session, prices: PriceTable, most_failures: int) -> ComparedSession:
    head = session_head(connection, session, prices)
    usage = usage_of(connection, prices, [session.id]).get(session.id, Usage())
    duration = events.duration(connection, session.id)
    return ComparedSession(
        session_id=short_id(connection, session.uid),
        snippet=one_line(session.snippet, USER_MESSAGE) if session.snippet and not head.title else None,
        duration_seconds=None if duration is None else duration // 1000,
        outcome=last_outcome(connection, session),
        turns=head.stats.total_turns,
        steps=turns.count_steps(connection, session.id),
        failures=_failures(connection, session, most_failures),
        models=[
            replace(model, tokens=None) if len(usage.models) > 1 else ModelTotals(model=model.model)
            for model in usage.by_model(_MODELS)
        ],
        total_models=len(usage.models) if len(usage.models) > _MODELS else None,
        **{name: getattr(head, name) for name in _OF_HEAD},
        **{name: getattr(head.stats, name) for name in _OF_STATS},
    )


def _failures(connection: sqlite3.Connection, session: Session, most: int) -> CallFailures:
    ended = calls.failures(connection, session.id, NOW, behind=-1, most=_ALL)
    found = sorted(ended, key=lambda call: (call.outcome is not Outcome.FAILED, call.shown))[:most]
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
    counts = Counter(call.outcome for call in ended)
    return CallFailures(
        failed=counts[Outcome.FAILED],
        rejected=counts[Outcome.REJECTED],
        interrupted=counts[Outcome.INTERRUPTED],
        examples=examples,
    )


# -- tools -----------------------------------------------------------------------------------------


def compared_tools(one: dict[str, tuple[int, int]], two: dict[str, tuple[int, int]]) -> list[ComparedTool]:
    """Return the tools of both sessions, most used first."""
    counts = {name: (*one.get(name, (0, 0)), *two.get(name, (0, 0))) for name in one.keys() | two.keys()}
    order = sorted(counts.items(), key=lambda tool: (-(tool[1][0] + tool[1][2]), tool[0]))
    return [
        ComparedTool(name=one_line(name or NO_TOOL, LABEL), calls_1=n, failed_1=failed, calls_2=m, failed_2=others)
        for name, (n, failed, m, others) in order
    ]


# -- both sides ------------------------------------------------------------------------------------


def relation_of(connection: sqlite3.Connection, one: Session, two: Session) -> Relation | None:
    """Return how two sessions are related, or None."""
    copied = one.copied_events or two.copied_events
    shared = sessions.shared_events(connection, one.id, two.id) if copied else 0
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


_MOST_BYTES = 30_720
_ENVELOPE = 1_200
"""Bytes of an answer reserved for the envelope around the payload."""

_LENGTHS = (Lengths(20, 10, 3), Lengths(12, 6, 2), Lengths(8, 3, 1))
_LONG_LENGTHS = (Lengths(60, 60, 10), Lengths(40, 30, 6))
"""From long to short: the first that fits is used; the long ones only if more bytes were asked for."""

_MARKED = 1.5
"""The ratio from which on a difference between two figures is reported."""

_SOUND = ("exact", "estimated")
"""The kinds of cost that can be compared."""

_TOOLS_NAMED = 3


class CompareSessions(Arguments):
    """Arguments of compare_sessions."""

    id1: SessionId
    id2: AnotherId
    max_bytes: Annotated[int, Meta(ge=2_048, le=_MOST_BYTES)] | None = None


def answer(context: Context, request: CompareSessions) -> Reply:
    """Answer with two sessions side by side."""
    connection = context.connection
    one, two = find_session(connection, request.id1), find_session(connection, request.id2)
    if one.id == two.id:
        same = f"id1 and id2 are the same session, {short_id(connection, one.uid)}; give two different ones"
        raise InvalidParameter("id2", same, "a session other than id1")
    most_failures = _LONG_LENGTHS[0].failures
    names = labels(connection)
    projects = {names.get(each.project_id or 0) for each in (one, two)}
    same_project = len(projects) == 1 and None not in projects
    compared = Compared(
        _side(connection, one, same_project, context.prices, most_failures),
        _side(connection, two, same_project, context.prices, most_failures),
        relation_of(connection, one, two),
    )
    differences = list(_differences(compared.one, compared.two, projects))
    budget = request.max_bytes or limits().size()
    for lengths in (*(_LONG_LENGTHS if budget > limits().usual else ()), *_LENGTHS):  # shape shortens the shortest
        data = dump(compared.cut(lengths, differences))
        if len(orjson.dumps(data)) <= budget - _ENVELOPE:
            break
    more = f". max_bytes={_MOST_BYTES} lists more." if budget < _MOST_BYTES and _is_cut(data) else "."
    return Reply(
        summary=_summary(compared, differences),
        data=data,
        budget=budget,
        hint=_hint(compared, after=more),
        untrusted=True,
        counts={
            f"{what}_{number}": getattr(session, what) or 0
            for number, session in ((1, one), (2, two))
            for what in ("turn_count", "tool_calls", "failed_calls", "total_tokens")
        },
    )


def _is_cut(data: dict[str, Any]) -> bool:
    files = data["files"]
    lists = [("only_in_1", files), ("only_in_2", files), ("in_both", files), ("tools", data)]
    return any(len(part[name]) < part[f"total_{name}"] for name, part in lists)


def _summary(compared: Compared, differences: list[str]) -> str:
    """Return the two ids, how the sessions are related, and as many of the differences as fit."""
    one, two = compared.one.shown_id, compared.two.shown_id
    said = f"{one} (1) and {two} (2)"
    parts = [*([compared.relation.summary] if compared.relation else []), *differences] or ["no notable difference"]
    between = ": "
    for part in parts:
        if len(said) + len(part) + 2 <= SUMMARY:
            said, between = f"{said}{between}{part}", "; "
    return said


def _hint(compared: Compared, *, after: str) -> NextCall:
    """Return the call that opens the first failure of the session with more; without any, the turns of the second."""
    sides = ((side.facts.failures, side) for side in (compared.two, compared.one))
    _, worst = max(sides, key=lambda found: (found[0].failed, len(found[0].examples)))
    if worst.facts.failures.examples:
        example = worst.facts.failures.examples[0]
        opens = f"opens the first unsuccessful call of {1 if worst is compared.one else 2}"
        return opens_event(worst.shown_id, example.event_index, opens, after)
    return call("get_session_details", session_id=compared.two.shown_id).saying("shows the turns of 2", after=after)


def _differences(one: Side, two: Side, projects: set[str | None]) -> Iterator[str]:
    """Yield the notable differences, the most important first; each stands alone and has at most 100 characters."""
    a, b = one.facts, two.facts
    if a.outcome != b.outcome:
        yield f"last turn: {a.outcome} in 1, {b.outcome} in 2"
    rates = [(side.failures.failed, side.tool_calls) for side in (a, b)]
    if (a.failures.failed or b.failures.failed) and rates[0] != rates[1]:
        yield f"failed calls: {_failed(a)} in 1, {_failed(b)} in 2"
    stopped = [side.failures.rejected + side.failures.interrupted for side in (a, b)]
    if stopped[0] != stopped[1]:
        yield f"rejected or interrupted calls: {stopped[0] or 'none'} in 1, {stopped[1] or 'none'} in 2"
    if (a.total_tokens is None) != (b.total_tokens is None):
        yield f"the log of {1 if a.total_tokens is None else 2} has no token figures"
    incomplete = " (figures incomplete)" if a.incomplete_responses or b.incomplete_responses else ""
    for difference in _times_more("tokens", a.total_tokens or 0, b.total_tokens or 0):
        yield difference + incomplete
    if a.cost_made in _SOUND and b.cost_made in _SOUND:
        yield from _times_more("cost", a.cost_usd or 0, b.cost_usd or 0)
    yield from _times_more("active time", one.row.active_ms, two.row.active_ms)
    yield from _times_more("turns", a.turns, b.turns)
    yield from _times_more("steps", a.steps, b.steps)
    if a.provider != b.provider or _main_model(a) != _main_model(b):
        yield one_line(f"1: {a.provider}, {_main_model(a)}; 2: {b.provider}, {_main_model(b)}", SUMMARY)
    if len(projects - {None}) == 2:
        yield "different projects"
    for number, mine, other in ((1, one.tools, two.tools), (2, two.tools, one.tools)):
        only = sorted(mine.keys() - other.keys(), key=lambda name: (-mine[name][0], name))
        if only:
            names = ", ".join(name_in_sentence(name, 25) if name else NO_TOOL for name in only[:_TOOLS_NAMED])
            more = f" and {len(only) - _TOOLS_NAMED} more" if len(only) > _TOOLS_NAMED else ""
            yield f"only {number} used {names}{more}"
    wrote = [{path for path, access in side.items() if access.writes} for side in (one.files, two.files)]
    if wrote[0] != wrote[1]:
        counts = [len(files) or "none" for files in (wrote[0] - wrote[1], wrote[1] - wrote[0], wrote[0] & wrote[1])]
        yield "files written: {} only in 1, {} only in 2, {} in both".format(*counts)


def _failed(side: ComparedSession) -> str:
    if not side.tool_calls:
        return "no calls"
    return f"{side.failures.failed or 'none'} of {side.tool_calls}"


def _times_more(what: str, one: float, two: float) -> Iterator[str]:
    """Yield a difference such as `2: 3.1x the tokens` if one figure is at least 1.5 times the other."""
    least, most = sorted((one, two))
    if least > 0 and most >= _MARKED * least:
        ratio = most / least
        yield f"{1 if one == most else 2}: {f'{ratio:.1f}' if ratio < 10 else f'{ratio:,.0f}'}x the {what}"


def _main_model(side: ComparedSession) -> str:
    return name_in_sentence(side.models[0].model, LABEL) if side.models else "unknown model"


TOOL = Tool(
    "compare_sessions",
    "Compare two sessions",
    "Two tries at one task side by side; and whether one derives from the other.",
    CompareSessions,
    (Comparison,),
    answer,
)
