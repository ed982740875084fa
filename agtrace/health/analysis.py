"""The health of a session: findings, score, how it ended, where time and tokens went.

Sub-agents are rolled up into the session that started them: their findings are listed among its own, with their id,
and their tool calls count in its score. The rules are in `agtrace/health/detectors`; the index keeps what they find.

The score is 100 minus what each part of a session's health cost the human. What the human corrected weighs most, then
how it ended, then checks that were left failing, failed calls and loops. Each failure costs less than the one before,
so that a long session isn't lost for being long. What isn't known costs nothing and says so; if nothing can be judged
there is no score at all.
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
from agtrace_indexer.index.questions import histories, sessions
from agtrace_indexer.index.questions.queries import is_team
from agtrace_indexer.index.questions.sessions import Session
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

CORRECTIONS, OUTCOME, CHECKS, FAILURES, LOOPS = 50, 20, 10, 12, 8
"""The most points that each part can cost."""

_KEPT = 0.5
"""The share of what corrections can cost that each of them leaves."""
_HALF = 0.5
"""What counts for that much of a correction: a mild one, and a review that found problems."""

_ENDINGS: dict[Ending, int] = {
    "finished": 0, "question_left": 0, "error_left": 15, "tool_left": 6, "interrupted": 10, "abandoned": 12,
    "unknown": 6,
}  # fmt: skip
"""A log that ends within a call, or with its result, says little: it may be a copy, or the work was never done."""

_DANGERS = {"Critical": 12, "Warning": 6, "Info": 0}
"""Points for each kind of command that can't be taken back, or that others see, and that nobody asked for."""

_DEEDS = {"dangerous_commands": "something was done unasked", "admitted_mistake": "the model admitted a mistake"}

_UNDONE, _STUCK = 8, 12
"""Points for a commit, a push or the like that failed and was never made good, and for an end where it was stuck."""

_REFUSED_SHARE = 3
"""A session of whose calls one in so many was refused again and again couldn't do what it was asked to."""

_A_FAILURE = 3
"""Points for the first call that failed or never got a result, and for each time that their number and one doubles."""

_LOOP, _LOOPS = 4, ("refused_again", "repeated_failure", "returning_error")
"""Points for each loop, and the detectors that find them."""


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
    loops = [insight for insight in found if insight.detector in _LOOPS and insight.severity != "Info"]
    why = counted(len(loops), "loop") if loops else "no loops"
    parts = [
        _corrections(session),
        _outcome(session),
        _checks(every),
        _failures(every),
        ScorePart(part="loops", lost=min(LOOPS, _LOOP * len(loops)), of=LOOPS, why=why),
    ]
    return Score(100 - sum(part.lost for part in parts), None, parts)


def _unscored(session: Examination, calls: int, found: Iterable[Insight]) -> str | None:
    if session.untold:
        return "its log doesn't say how its tool calls ended"
    if calls or session.ending.ending not in ("finished", "question_left", "unknown"):
        return None
    if any(insight.severity != "Info" for insight in found):
        return None
    if session.ending.ending == "unknown":
        return "no tool was called, and how it ended isn't known"
    return "no tool was called: there is nothing to judge except that the model answered"


def _corrections(session: Examination) -> ScorePart:
    times, reviews = session.corrections, session.reviews
    if not times + reviews:
        return ScorePart(part="corrections", lost=0, of=CORRECTIONS, why="the human corrected nothing")
    weight = times - _HALF * session.mild + _HALF * reviews
    lost = round(CORRECTIONS * (1 - _KEPT**weight))
    why = f"the human corrected the work {counted(times, 'time')} in {counted(session.turns, 'turn')}"
    if reviews:
        found = f"{counted(reviews, 'review')} found problems"
        why = f"{why}, and {found}" if times else found
    return ScorePart(part="corrections", lost=lost, of=CORRECTIONS, why=why)


def _outcome(session: Examination) -> ScorePart:
    lost = _ENDINGS[session.ending.ending]
    if session.ending.ending == "error_left" and not session.spoken:
        lost = OUTCOME  # nothing was said after it
    why, ended = [ENDINGS[session.ending.ending]], session.ending.ending
    for one in session.insights:
        if one.detector in _DEEDS:
            lost += _DANGERS[one.severity]
            why.append(_DEEDS[one.detector])
        elif one.detector == "ended_on_failure" and ended != "error_left":
            lost += _UNDONE
            why.append("the last commit, push or the like failed")
        elif one.detector == "left_question":
            lost += _STUCK
            why.append("it couldn't go on without the human")
        elif one.detector == "refused_again" and _REFUSED_SHARE * one.count >= session.calls:
            lost = OUTCOME
            why.append("what it had to do was refused")
    return ScorePart(part="outcome", lost=min(lost, OUTCOME), of=OUTCOME, why="; ".join(dict.fromkeys(why)))


def _checks(every: Sequence[Examination]) -> ScorePart:
    turns, failing, failed = map(sum, zip(*(one.checks for one in every), strict=True))
    if not turns:
        return ScorePart(part="checks", lost=0, of=CHECKS, why="no tests, builds or linters were run")
    why = f"{counted(failed, 'check')} failed, but all passed in the end" if failed else "all passed"
    if failing:
        why = f"{failing} of {counted(turns, 'turn')} with checks ended with a failing check"
    return ScorePart(part="checks", lost=round(CHECKS * failing / turns), of=CHECKS, why=why)


def _failures(every: Sequence[Examination]) -> ScorePart:
    sums = [sum(of_each) for of_each in zip(*((e.calls, e.failed, e.unanswered, e.probes) for e in every), strict=True)]
    calls, failed, unanswered, probes = sums
    if not calls:
        return ScorePart(part="failures", lost=0, of=FAILURES, why="no tool was called")
    lost = min(FAILURES, round(_A_FAILURE * log2(1 + failed + unanswered)))
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
        """Return its findings; those of a sub-agent carry its id."""
        id = self.session_id
        return [
            replace(
                insight,
                session_id=id if as_agent else None,
                evidence=[replace(one, ref=f"ax://event/{id}/{one.event_index}") for one in insight.evidence],
            )
            for insight in self.health.insights
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
