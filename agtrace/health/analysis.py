"""The health of one session: its findings, its score, how it ended, where time and tokens went.

Sub-agents are rolled up into the session that started them: their findings are listed among its own, with their id,
and their tool calls count in its score. The rules are in `agtrace/health/detectors`.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from agtrace_indexer.index.questions import histories, sessions
from agtrace_indexer.index.questions.sessions import Session
from agtrace_schema.analysis import AgentHealth, Analysis, Evidence, Insight, Share, TokenShares
from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODES
from agtrace_schema.events import EventType, Outcome
from msgspec.structs import replace

from agtrace.health.detectors.context import CHARS_PER_TOKEN
from agtrace.health.detectors.outcome import ending_of
from agtrace.health.detectors.registry import DETECTORS
from agtrace.health.detectors.waiting import time_spent
from agtrace.health.facts.actions import is_passed_over, is_probe
from agtrace.health.facts.changes import files_read
from agtrace.health.facts.checks import checks, problems_in, reviews
from agtrace.health.facts.corrections import corrections
from agtrace.health.finding import SEVERITIES, Detector, Finding
from agtrace.health.history import Call, Entry, History, Message, Notice, Said, Usage, read_history
from agtrace.health.score import Examined, Found, Score, score
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.query import failures_known, known_failures, short_id
from agtrace.sessions.turns import telling_argument
from agtrace.text.lines import one_line, shown_path
from agtrace.text.signatures import telling_text

# -- shares ----------------------------------------------------------------------------------------
# Where the tokens of a session went: by turn from the log, by tool and file estimated from the length of results.

LARGEST = 3
"""The most shares of each kind."""


def token_shares(history: History) -> TokenShares:
    """Return the turns, tools and files that took the most tokens; those of results are estimated from characters."""
    turns: Counter[str] = Counter()
    tools: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for usage in history.usages:
        if usage.turn is not None:
            turns[str(usage.turn)] += usage.total
    for call in history.calls:
        if call.result_event is None:
            continue
        tools[call.tool] += call.result_chars
        read = files_read(call)
        for path in read:
            files[path] += call.result_chars // len(read)
    return TokenShares(
        turns=_largest(turns), tools=_largest(tools, CHARS_PER_TOKEN), files=_largest(files, CHARS_PER_TOKEN)
    )


def _largest(found: Counter[str], per_token: int = 1) -> list[Share]:
    largest = sorted(found.items(), key=lambda share: (-share[1], share[0]))[:LARGEST]
    return [Share(name=shown_path(name), tokens=amount // per_token) for name, amount in largest if amount >= per_token]


# -- examination -------------------------------------------------------------------------------------

_QUOTE = 80
_TOLD_BEFORE = 0.6
_MESSAGE = 240
_LOOPS = "Loops"


@dataclass
class Examination:
    """One session, read and examined without its sub-agents."""

    row: Session
    session_id: str
    """In the short form of answers."""
    history: History
    examined: Examined

    @cached_property
    def by_event(self) -> dict[int, Entry]:
        """The entries that can be quoted, by their events; a call also by the event of its result."""
        entries = {entry.event_index: entry for entry in self.history.entries}
        results = {call.result_event: call for call in self.history.calls if call.result_event is not None}
        return {**results, **entries}

    def insights(self, *, as_agent: bool = False) -> list[Insight]:
        """Return its findings with quotes; those of a sub-agent carry its id."""
        return [self._insight(*pair, as_agent=as_agent) for pair in self.examined.found]

    def _insight(self, detector: Detector, finding: Finding, *, as_agent: bool) -> Insight:
        return Insight(
            turn_index=finding.turn,
            severity=finding.severity,
            lens=detector.lens,
            detector=detector.name,
            version=detector.version,
            message=one_line(finding.message, _MESSAGE),
            count=finding.count,
            session_id=self.session_id if as_agent else None,
            evidence=[
                Evidence(
                    event_index=event,
                    ref=f"ax://event/{self.session_id}/{event}",
                    quote=one_line(_said(self.by_event.get(event), event), _QUOTE),
                )
                for event in finding.events
            ],
        )


def examine(connection: sqlite3.Connection, session: Session, *, now: float, prices: PriceTable) -> Examination:
    """Run every detector over a session; `now` is seconds since 1970 UTC."""
    history = read_history(connection, session, now=now, prices=prices)
    found = distinct((detector, finding) for detector in DETECTORS for finding in _found(detector, history))
    calls = [call for call in history.calls if not is_probe(call)]
    unanswered = sum(finding.count for detector, finding in found if detector.name == "unanswered_calls")
    examined = Examined(
        calls=len(calls),
        failed=sum(call.failed and not is_passed_over(call) for call in calls),
        unanswered=unanswered,
        probes=len(history.calls) - len(calls),
        turns=history.turns,
        corrections=len(corrections(history)),
        reviews=len(reviews(history)),
        silent=sum(correction.silent for correction in corrections(history)),
        checks=checks(history),
        ending=ending_of(history),
        found=found,
        untold=not failures_known(session.provider, session.tool_calls),
    )
    return Examination(session, short_id(connection, session.uid), history, examined)


def distinct(found: Iterable[Found]) -> tuple[Found, ...]:
    """Leave out findings whose events are mostly covered by an earlier, more telling one.

    Of loops that go on at the same time (edits and the check that fails after each of them), the worst is told.
    """
    found = list(found)
    by_severity = iter(sorted(filter(_is_loop, found), key=lambda one: SEVERITIES.index(one[1].severity)))
    told: set[int] = set()
    loops: list[tuple[int, int]] = []
    kept: list[Found] = []
    for detector, finding in (next(by_severity) if _is_loop(one) else one for one in found):
        events = finding.told or frozenset(finding.events)
        if events and len(events & told) > _TOLD_BEFORE * len(events):
            continue
        if events and detector.lens == _LOOPS:
            span = min(events), max(events)
            if any(_at_the_same_time(span, other) for other in loops):
                continue
            loops.append(span)
        told |= events
        kept.append((detector, finding))
    return tuple(kept)


def _at_the_same_time(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two spans of events share most of each: a short loop within a long one is another story."""
    shared = min(one[1], other[1]) - max(one[0], other[0])
    return shared > _TOLD_BEFORE * max(one[1] - one[0], other[1] - other[0])


def _is_loop(found: Found) -> bool:
    return found[0].lens == _LOOPS


def _found(detector: Detector, history: History) -> list[Finding]:
    """Run a detector. If it breaks on a strange log, only its own findings are missing, and a finding says so."""
    try:
        return list(detector.find(history))
    except Exception as error:  # noqa: BLE001
        broken = f"The detector {detector.name} broke on this session ({type(error).__name__}): a bug in agtrace"
        return [Finding(severity="Info", message=broken, count=1, events=())]


def agents_of(connection: sqlite3.Connection, session: Session, *, now: float, prices: PriceTable) -> list[Examination]:
    """Examine the sub-agents of a session, oldest first."""
    agents = sessions.in_rows(connection, histories.sub_agents(connection, session.id))
    return [examine(connection, agent, now=now, prices=prices) for agent in agents]


def analyze(connection: sqlite3.Connection, session: Session, *, now: float, prices: PriceTable) -> Analysis:
    """Return the health of a session with its sub-agents: all findings, the worst first."""
    own = examine(connection, session, now=now, prices=prices)
    agents = agents_of(connection, session, now=now, prices=prices)
    types: Counter[EventType] = Counter()
    outcomes: Counter[str] = Counter()
    for type, outcome, count in histories.counts(connection, session.id):
        types[EVENT_TYPE_CODES[type]] += count
        if EVENT_TYPE_CODES[type] is EventType.TOOL_CALL:
            outcomes[Outcome.UNKNOWN if outcome is None else OUTCOME_CODES[outcome]] += count
    names = {
        "assistant_messages": EventType.MESSAGE,
        "tool_calls": EventType.TOOL_CALL,
        "tool_results": EventType.TOOL_RESULT,
        "user_messages": EventType.USER,
        "reasoning": EventType.REASONING,
        "notifications": EventType.NOTIFICATION,
    }
    return replace(
        analysis_of(own, agents),
        summary={
            "event_counts": {name: types[kind] for name, kind in names.items()},
            "outcomes": dict(outcomes),
        },
    )


def analysis_of(own: Examination, agents: Sequence[Examination]) -> Analysis:
    """Combine a session and its sub-agents; `summary` is left empty, for callers that want it to fill in."""
    whole = score(own.examined, [agent.examined for agent in agents])
    taken = sorted(((agent.row.total_tokens or 0, agent.session_id) for agent in agents), reverse=True)
    shares = [Share(name=name, tokens=tokens) for tokens, name in taken if tokens]
    return Analysis(
        session_id=own.session_id,
        score=whole.score,
        unscored=whole.unscored,
        parts=whole.parts,
        own_score=score(own.examined).score if agents else None,
        ending=own.examined.ending,
        insights=sorted(  # of one severity, detectors are already in the order in which they tell most
            [*own.insights(), *(found for agent in agents for found in agent.insights(as_agent=True))],
            key=lambda insight: SEVERITIES.index(insight.severity),
        ),
        time=time_spent(own.history),
        token_shares=replace(token_shares(own.history), agents=shares[:LARGEST] or None),
        agents=sorted(map(_agent, agents), key=lambda agent: (agent.score is None, agent.score or 0)) or None,
        summary={},
    )


def _agent(agent: Examination) -> AgentHealth:
    own: Score = score(agent.examined)
    return AgentHealth(
        session_id=agent.session_id,
        score=own.score,
        findings=len(agent.examined.found),
        tool_calls=agent.row.tool_calls,
        failed_calls=known_failures(agent.row.provider, agent.row.tool_calls, agent.row.failed_calls),
    )


def _said(entry: Entry | None, event_index: int) -> str:
    """Return the text of an event to quote; of a failed result, the line that says most about the error."""
    match entry:
        case Call() if event_index == entry.result_event:
            return (telling_text(entry.result) if entry.failed else entry.result) or "(no output)"
        case Call():
            return f"{entry.tool} {telling_argument(entry.arguments)}"
        case Notice() if titles := problems_in(entry.text):
            return "; ".join(titles)
        case Said() | Message() | Notice():
            return entry.text
        case Usage():
            return f"{entry.whole_input or 0:,} input tokens, {entry.output_tokens or 0:,} output tokens"
        case _:
            return ""
