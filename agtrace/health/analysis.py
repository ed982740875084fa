"""The health of a session: findings, score, how it ended, where time and tokens went.

Sub-agents are rolled up into the session that started them: their findings are listed among its own, with their id,
and their tool calls count in its score. The rules are in `agtrace/health/detectors`; the index keeps what they find.

The score is 100 minus what each part of a session's health cost the human: how often they had to come back weighs most,
then how far from done it ended, whether its last check failed, and the calls that did. If nothing can be judged there
is no score at all.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from math import log2
from pathlib import Path
from typing import NamedTuple, TypeAlias

from agtrace_indexer.index.opening import path_of
from agtrace_indexer.index.queries import histories, sessions
from agtrace_indexer.index.queries.base import is_team
from agtrace_indexer.index.queries.sessions import Session
from agtrace_indexer.texts.blocks import pack, unpack
from agtrace_schema import analysis
from agtrace_schema.analysis import (
    AgentHealth,
    Analysis,
    Ending,
    Insight,
    ScorePart,
    Share,
)  # fmt: skip
from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODES
from agtrace_schema.events import EventType, Outcome
from msgspec import Struct, json
from msgspec.structs import replace

from agtrace import __version__
from agtrace.health.examination import SEVERITIES, Examination, accepted, called_wrong
from agtrace.health.history import is_at_work, read_history
from agtrace.problems import TooManyEvents
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.query import short_id
from agtrace.sessions.terms import ENDINGS, known_failures
from agtrace.text.numbers import counted

LARGEST = 3
"""The most shares of each kind."""

# -- what is kept ------------------------------------------------------------------------------------

_WORDS = Path(__file__).parents[1] / "data" / "corrections.toml"

LEAST_EVENTS = 60_000
"""The number of events from which worker processes are started: a second of work alone, half a second with them."""

_MOST_WORKERS = 8

Note: TypeAlias = Callable[[int, int], None]
"""Is told how many of how many sessions are done."""


def nobody(_done: int, _total: int) -> None:
    """Tell nobody."""


@cache
def _code() -> bytes:
    """Return a digest of the rules: other rules find other things."""
    sources = [*sorted(Path(__file__).parent.rglob("*.py")), _WORDS, Path(analysis.__file__)]
    return blake2b(b"".join([__version__.encode(), *(path.read_bytes() for path in sources)]), digest_size=8).digest()


def examinations(
    connection: sqlite3.Connection,
    chosen: Sequence[Session],
    *,
    now: float,
    prices: PriceTable,
    entries: int = 0,
    most_events: int | None = None,
    workers: bool = False,
    note: Note = nobody,
) -> Mapping[int, Examination]:
    """Return the examinations of sessions by row id: those that the index keeps, and the others made anew and kept,
    without what a person called wrong.

    `now` is seconds since 1970 UTC. With `entries`, each has a timeline of at most so many entries, which isn't kept.
    `workers`: whether many are made on all cores. Raises `TooManyEvents` if those to be made have more than
    `most_events`.
    """
    rules = blake2b(_code() + json.encode(prices), digest_size=8).hexdigest()
    kept = {} if is_team(connection) else histories.kept_health(connection, rules, [one.id for one in chosen])
    lasting = {one.id: kept[one.id].state for one in chosen if one.id in kept and not is_at_work(one, now)}
    read = json.Decoder(Examination).decode
    found = {id: read(unpack(packed)) for id in lasting if (packed := kept[id].found) is not None}
    missing = [one for one in chosen if one.id not in found]
    events = sum(one.event_count for one in missing)
    if most_events is not None and events > most_events:
        raise TooManyEvents(len(missing))
    uids = {one.id: one.uid for one in chosen}
    wrong = {} if is_team(connection) else called_wrong(path_of(connection).parent)

    def agreed(every: Mapping[int, Examination]) -> Mapping[int, Examination]:
        return {id: accepted(one, wrong.get(uids[id], ())) for id, one in every.items()} if wrong else every

    if not missing and not entries:
        return agreed(found)
    from agtrace.health.examine import examine_all, timeline_of  # loads all detectors

    for one in chosen if entries else ():
        if one.id in found:
            times = timeline_of(connection, one, read_history(connection, one, now=now, prices=prices), entries)
            found[one.id] = replace(found[one.id], timeline=times)
    cores = min(os.cpu_count() or 1, _MOST_WORKERS) if workers and events >= LEAST_EVENTS else 1
    made = examine_all(connection, missing, cores, note, now=now, prices=prices, entries=entries)
    new = {id: pack(json.encode(replace(one, timeline=None))) for id, one in made.items() if id in lasting}
    if new:
        histories.keep_health(path_of(connection), rules, {id: (lasting[id], packed) for id, packed in new.items()})
    return agreed(found | made)


# -- score -----------------------------------------------------------------------------------------

CORRECTIONS, OUTCOME, CHECKS, FAILURES = 60, 20, 10, 10
"""The most points that each part can cost."""

_KEPT = 0.65
"""The share of what corrections can cost that each of them leaves."""
_REVIEW, _REQUEST = 0.5, 0.1
"""For how much of a correction problems count that a review or the CI found, and each further request up to one: about
one in ten is a correction that no rule sees.
"""

_ENDINGS: dict[Ending, int] = {
    "finished": 0, "question_left": 5, "error_left": 5, "unknown": 5, "tool_left": 10, "interrupted": 15,
    "abandoned": 15,
}  # fmt: skip
"""Points by how far from done an end is."""

_TOLD = {
    "ended_on_failure": "it failed at the end",
    "left_question": "it couldn't go on without the human",
    "dangerous_commands": "something was done unasked",
}
"""The detectors that cost points of the outcome for each finding: `_WORSE` if it is critical, else `_BAD`."""
_BAD, _WORSE = 10, 15

_REFUSED_SHARE = 3
"""A session of whose calls one in so many was refused again and again couldn't do what it was asked to."""
_DOUBLED = 2
"""Points for the first call that failed or never got a result, and for each time that their number and one doubles."""

_ROLLED_UP = ("dangerous_commands", "refused_again", "returning_error")
"""The detectors of which a session shows what they find in its sub-agents."""


class Score(Struct, frozen=True):
    """A session's score with its parts; None, with the reason, if there is nothing to judge."""

    score: int | None
    unscored: str | None
    parts: list[ScorePart]


def score(session: Examination, agents: Sequence[Examination] = ()) -> Score:
    """Return the score of a session with its sub-agents rolled up; only the session's own ending counts."""
    every = [session, *agents]
    calls = sum(one.calls for one in every)
    found = [insight for one in every for insight in one.insights]
    unscored = _unscored(session, calls, found)
    if unscored:
        return Score(None, unscored, [])
    parts = [_corrections(session), _outcome(session), _checks(session), _failures(every)]
    return Score(100 - sum(part.lost for part in parts), None, parts)


def _unscored(session: Examination, calls: int, insights: Iterable[Insight]) -> str | None:
    if session.untold:
        return "its log doesn't say how its tool calls ended"
    if calls or session.ending.ending not in ("finished", "question_left", "unknown"):
        return None
    if any(insight.severity != "Info" for insight in insights):
        return None
    if session.ending.ending == "unknown":
        return "no tool was called, and how it ended isn't known"
    return "no tool was called: there is nothing to judge except that the model answered"


def _corrections(session: Examination) -> ScorePart:
    times = session.corrections
    reviewed = any(one.detector == "review_problems" and one.severity != "Info" for one in session.insights)
    why = f"the human corrected the work {counted(times, 'time')} in {counted(session.turns, 'turn')}" if times else ""
    if reviewed:
        why = f"{why}, and a review or the CI found problems" if why else "a review or the CI found problems"
    more = max(0, session.requests - times)
    if more:
        why = f"{why or 'the human corrected nothing'}, but wrote {counted(more, 'further request')}"
    lost = round(CORRECTIONS * (1 - _KEPT ** (times + _REVIEW * reviewed + min(1, _REQUEST * more))))
    return ScorePart(part="corrections", lost=lost, of=CORRECTIONS, why=why or "the human corrected nothing")


def _outcome(session: Examination) -> ScorePart:
    lost = _ENDINGS[session.ending.ending]
    why = [ENDINGS[session.ending.ending]]
    for one in session.insights:
        if one.detector in _TOLD:
            lost += _WORSE if one.severity == "Critical" else _BAD
            why.append(_TOLD[one.detector])
        elif one.detector == "refused_again" and _REFUSED_SHARE * one.count >= session.calls:
            lost = OUTCOME
            why.append("what it had to do was refused")
    return ScorePart(part="outcome", lost=min(lost, OUTCOME), of=OUTCOME, why="; ".join(dict.fromkeys(why)))


def _checks(session: Examination) -> ScorePart:
    run, failed, failing = session.checks
    why = f"{counted(failed, 'check')} failed, but the last one passed" if failed else "all passed"
    if failing:
        why = "the last check failed"
    lost = CHECKS if failing else 0
    return ScorePart(part="checks", lost=lost, of=CHECKS, why=why if run else "no tests, builds or linters were run")


def _failures(every: Sequence[Examination]) -> ScorePart:
    sums = [sum(of_each) for of_each in zip(*((e.calls, e.failed, e.unanswered, e.probes) for e in every), strict=True)]
    calls, failed, unanswered, probes = sums
    if not calls:
        return ScorePart(part="failures", lost=0, of=FAILURES, why="no tool was called")
    lost = min(FAILURES, round(_DOUBLED * log2(1 + failed + unanswered)))
    phrases = (
        f"{failed:,} of {counted(calls, 'tool call')} failed ({failed / calls:.0%})" if failed else "",
        f"{unanswered:,} of {counted(calls, 'tool call')} never got a result" if unanswered else "",
    )
    why = ", ".join(filter(None, phrases)) or "nothing failed"
    return ScorePart(
        part="failures",
        lost=lost,
        of=FAILURES,
        why=f"{why}, not counting {counted(probes, 'probe')}" if probes else why,
    )


# -- a session with its sub-agents -------------------------------------------------------------------


class Examined(NamedTuple):
    """A session with its examination."""

    row: Session
    session_id: str
    """In the short form of answers."""
    health: Examination

    def insights(self, *, as_agent: bool = False) -> list[Insight]:
        """Return its findings; of a sub-agent those about its deeds, with its id: its parent answers for the end."""
        id = self.session_id
        return [
            replace(
                insight,
                session_id=id if as_agent else None,
                evidence=[replace(one, ref=f"ax://event/{id}/{one.event_index}") for one in insight.evidence],
            )
            for insight in self.health.insights
            if not as_agent or insight.detector in _ROLLED_UP
        ]


def analyze(connection: sqlite3.Connection, session: Session, *, now: float, prices: PriceTable) -> Analysis:
    """Return the health of a session with its sub-agents: all findings, the worst first."""
    agents = sessions.in_rows(connection, histories.sub_agents(connection, session.id))
    found = examinations(connection, [session, *agents], now=now, prices=prices)
    own, *others = (Examined(row, short_id(connection, row.uid), found[row.id]) for row in (session, *agents))
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
        analysis_of(own, others),
        summary={
            "event_counts": {name: types[kind] for name, kind in names.items()},
            "outcomes": dict(outcomes),
        },
    )


def analysis_of(own: Examined, agents: Sequence[Examined]) -> Analysis:
    """Combine a session and its sub-agents; `summary` is left empty, for callers that want it to fill in."""
    whole = score(own.health, [agent.health for agent in agents])
    taken = sorted(((agent.row.total_tokens or 0, agent.session_id) for agent in agents), reverse=True)
    shares = [Share(name=name, tokens=tokens) for tokens, name in taken if tokens]
    return Analysis(
        session_id=own.session_id,
        score=whole.score,
        unscored=whole.unscored,
        parts=whole.parts,
        own_score=score(own.health).score if agents else None,
        ending=own.health.ending,
        insights=sorted(  # of one severity, detectors are already in the order in which they tell most
            [*own.insights(), *(found for agent in agents for found in agent.insights(as_agent=True))],
            key=lambda insight: SEVERITIES.index(insight.severity),
        ),
        time=own.health.time,
        token_shares=replace(own.health.shares, agents=shares[:LARGEST] or None),
        figures=own.health.figures,
        agents=sorted(map(_agent, agents), key=lambda agent: (agent.score is None, agent.score or 0)) or None,
        summary={},
    )


def _agent(agent: Examined) -> AgentHealth:
    own: Score = score(agent.health)
    return AgentHealth(
        session_id=agent.session_id,
        score=own.score,
        findings=len(agent.health.insights),
        tool_calls=agent.row.tool_calls,
        failed_calls=known_failures(agent.row.provider, agent.row.tool_calls, agent.row.failed_calls),
    )
