"""Examining sessions for a report, each with its sub-agents: one at a time, on all cores if that is faster."""

from __future__ import annotations

import heapq
import os
import pickle
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from subprocess import Popen
from typing import Literal, NamedTuple, TypeAlias

from agtrace_indexer.index.opening import path_of
from agtrace_indexer.index.questions.queries import is_team
from agtrace_indexer.parallel.processes import Crew
from agtrace_schema.analysis import Analysis, ContextPoint, Insight, ReportedSession, Timeline, TimelineEntry
from msgspec import Struct

from agtrace.health.analysis import Examination, agents_of, analysis_of, examine
from agtrace.health.detectors.context import compactions
from agtrace.health.experience import Experience, experiences
from agtrace.health.facts.actions import is_api_error
from agtrace.health.history import Call, History, Notice, Said
from agtrace.problems import TooManyEvents
from agtrace.report import figures
from agtrace.report.figures import Tally
from agtrace.report.selection import Family, Selection, believable
from agtrace.sessions.listing import shown_kind
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import labels
from agtrace.sessions.usage import Usage, usage_of
from agtrace.text.lines import LABEL, USER_MESSAGE, one_line
from agtrace.times import iso

# -- timeline --------------------------------------------------------------------------------------
# The timeline of a session: what happened when, reduced to what a page can show.

Kind = Literal["turn", "step", "tool", "agent", "compaction", "api_error"]

_RANKS: dict[Kind, int] = {"compaction": 0, "api_error": 0, "agent": 1, "turn": 1, "tool": 2, "step": 3}
"""The order in which kinds are kept if there isn't room for all; failures come before all of them."""


class AgentTimes(NamedTuple):
    """A sub-agent that the session itself started; times are milliseconds since 1970 UTC, 0 if unknown."""

    session_id: str
    started_by: int
    """The event of the call that started it."""
    started_at: int
    ended_at: int


class _Piece(NamedTuple):
    """A candidate for an entry; times are milliseconds since 1970 UTC."""

    kind: Kind
    start: int
    end: int
    event_index: int
    name: str | None = None
    """As in the log."""
    failed: bool = False
    turn: int | None = None
    """The turn's index, if it is a turn."""

    @property
    def rank(self) -> tuple[bool, int, int]:
        """The sort key for keeping: failures first, then by kind, then the longest."""
        return not self.failed, _RANKS[self.kind], self.start - self.end


class _Span(Struct):
    """The time from the first to the last of some moments; unknown moments, which are 0, are ignored."""

    event_index: int
    start: int = 0
    end: int = 0

    def take(self, moment: int) -> None:
        if moment:
            self.start, self.end = min(self.start or moment, moment), max(self.end, moment)

    def piece(self, kind: Kind, name: str | None = None, failed: bool = False) -> _Piece:
        return _Piece(kind, self.start, self.end, self.event_index, name, failed)


def timeline(history: History, started_at: int | None, agents: Iterable[AgentTimes], most: int) -> Timeline | None:
    """Return what happened when, in at most `most` entries and half as many points; None if the log has no times."""
    if not started_at:
        return None
    pieces = [*_turns(history), *_within(history), *_agents(history, agents)]
    kept = heapq.nsmallest(most, pieces, key=lambda piece: piece.rank)
    kept.sort(key=lambda piece: (piece.start, piece.event_index, _RANKS[piece.kind]))
    return Timeline(
        entries=[
            TimelineEntry(
                kind=piece.kind,
                start=_seconds(piece.start, started_at),
                end=_seconds(piece.end, started_at),
                event_index=piece.event_index,
                name=None if piece.name is None else one_line(piece.name, LABEL),
                turn_index=piece.turn,
                failed=piece.failed or None,
            )
            for piece in kept
        ],
        context=_context(history, started_at, max(most // 2, 1)),
        context_window=next((usage.context_window for usage in reversed(history.usages) if usage.context_window), None),
        left_out=len(pieces) - len(kept) or None,
    )


def _seconds(moment: int, started_at: int) -> float:
    """Return seconds since the beginning, to a tenth; 0 for an unknown moment or one before the beginning."""
    return round(max(moment - started_at, 0) / 1000, 1)


def _turns(history: History) -> Iterator[_Piece]:
    turns: dict[int, _Span] = {}
    names: dict[int, str] = {}
    for entry in history.entries:
        if entry.turn is None:
            continue
        span = turns.get(entry.turn)
        if span is None:
            span = turns[entry.turn] = _Span(entry.event_index)
        span.take(entry.at)
        if isinstance(entry, Call):
            span.take(entry.answered_at)
        elif isinstance(entry, Said) and entry.opens_turn:
            names.setdefault(entry.turn, entry.text[: LABEL * 4])
    for turn, span in turns.items():
        yield span.piece("turn", names.get(turn))._replace(turn=turn)


def _within(history: History) -> Iterator[_Piece]:
    steps: dict[tuple[int | None, int], _Span] = {}
    for entry in history.entries:
        if isinstance(entry, Notice):
            if is_api_error(entry, history.provider):
                yield _Piece("api_error", entry.at, entry.at, entry.event_index)
            continue
        if isinstance(entry, Said):
            continue
        if entry.step is not None:
            place = entry.turn, entry.step
            span = steps.get(place)
            if span is None:
                span = steps[place] = _Span(entry.event_index)
            span.take(entry.at)
        if isinstance(entry, Call) and entry.event_index not in history.agents:
            span = _Span(entry.event_index)
            span.take(entry.at)
            span.take(entry.answered_at)
            yield span.piece("tool", entry.tool, entry.failed)
    for compacted in compactions(history):
        yield _Piece("compaction", compacted.at, compacted.at, compacted.event_index)
    for span in steps.values():
        yield span.piece("step")


def _agents(history: History, agents: Iterable[AgentTimes]) -> Iterator[_Piece]:
    """Yield sub-agents for as long as they worked, even if the call that started them returned at once."""
    failed = {call.event_index for call in history.calls if call.failed}
    for agent in agents:
        place = agent.started_by
        yield _Piece("agent", agent.started_at, agent.ended_at, place, agent.session_id, place in failed)


def _context(history: History, started_at: int, most: int) -> list[ContextPoint]:
    """Return the tokens in the window after each response; of neighbours only the fullest, if there are too many."""
    points = [(usage.at, usage.whole_input) for usage in history.usages if usage.whole_input]
    together = -(-len(points) // most)
    groups = (points[at : at + together] for at in range(0, len(points), together or 1))
    fullest = (max(group, key=lambda point: point[1] or 0) for group in groups)
    return [ContextPoint(at=_seconds(at, started_at), tokens=tokens or 0) for at, tokens in fullest]


# -- examining ---------------------------------------------------------------------------------------

INSIGHTS = 50
"""The most findings that a report shows of a session."""

ENTRIES_IN_ALL, FEWEST_ENTRIES, MOST_ENTRIES = 200_000, 50, 2_000
"""Limits of timeline entries: sessions share the first number; each gets between the second and the third."""

LEAST_EVENTS = 60_000
"""The number of events from which worker processes are started: a second of work alone, half a second with them."""

_PORTION = 50
_MOST_WORKERS = 8


class Asked(Struct, frozen=True):
    """What a report was asked for."""

    selection: Selection
    now: float
    """Seconds since 1970 UTC."""
    prices: PriceTable
    timelines: bool = False
    behind: str | None = None
    """What the index doesn't have yet, as a sentence."""
    most_events: int | None = None
    """The most events to examine, in this process; None for all, on all cores."""


class Seen(NamedTuple):
    """An examined session."""

    tally: Tally
    shown: ReportedSession
    found: tuple[figures.Found, ...]
    experiences: tuple[Experience, ...]


Note: TypeAlias = Callable[[int, int], None]
"""Is told how many of how many sessions are done."""


def _nobody(_done: int, _total: int) -> None:
    """Tell nobody."""


def examine_all(
    connection: sqlite3.Connection, asked: Asked, chosen: Sequence[Family], note: Note = _nobody
) -> list[Seen]:
    """Examine these sessions, in this process if workers can't be started. Raises `TooManyEvents`.

    `note` is called with how many of them are done, and with their number.
    """
    entries = max(FEWEST_ENTRIES, min(MOST_ENTRIES, ENTRIES_IN_ALL // max(len(chosen), 1)))
    cores = min(os.cpu_count() or 1, _MOST_WORKERS)
    events = sum(family.row.event_count for family in chosen)
    if asked.most_events is not None and events > asked.most_events:
        raise TooManyEvents(len(chosen))
    if asked.most_events is None and cores > 1 and events >= LEAST_EVENTS and not is_team(connection):
        try:
            return _on_all_cores(connection, asked, chosen, entries, cores, note)
        except OSError:
            pass  # no processes here, or one died: this process does the same more slowly
    return Examiner(connection, asked, chosen, entries).all(note)


# -- worker processes ------------------------------------------------------------------------------


def _on_all_cores(
    connection: sqlite3.Connection, asked: Asked, chosen: Sequence[Family], entries: int, cores: int, note: Note
) -> list[Seen]:
    """Examine these sessions in worker processes. Raises `OSError` if they can't be started, or if one died."""
    ids = [family.row.id for family in chosen]
    portions = [tuple(ids[start : start + _PORTION]) for start in range(0, len(ids), _PORTION)]
    arguments = ("agtrace.report.worker", str(path_of(connection)), str(entries))
    with Crew(portions, cores, partial(_examined_by, asked), *arguments) as workers:
        answers: dict[Sequence[int], list[Seen]] = {}
        for portion, answer in workers.answers():
            answers[portion] = answer
            note(sum(map(len, answers)), len(ids))
    if len(answers) < len(portions):
        raise OSError("a worker died")
    return [seen for portion in portions for seen in answers[portion]]


def _examined_by(asked: Asked, worker: Popen[bytes], ids: Sequence[int]) -> list[Seen]:
    assert worker.stdin is not None and worker.stdout is not None
    pickle.dump((asked, ids), worker.stdin)
    worker.stdin.flush()
    try:
        seen: list[Seen] = pickle.load(worker.stdout)
    except (EOFError, pickle.UnpicklingError) as error:
        raise OSError("the worker died") from error
    return seen


# -- one process -----------------------------------------------------------------------------------


class Examiner:
    """An examiner of sessions, one after the other, in this process."""

    def __init__(self, connection: sqlite3.Connection, asked: Asked, chosen: Sequence[Family], entries: int) -> None:
        self._connection, self._asked, self._chosen = connection, asked, chosen
        self._used = usage_of(connection, asked.prices, (member for family in chosen for member in family.members))
        self._entries = entries
        self._projects = labels(connection)

    def all(self, note: Note = _nobody) -> list[Seen]:
        """Return each session as a report shows it; `note` as in `examine_all`."""
        seen = []
        for family in self._chosen:
            own, agents = self._examined(family)
            analysis = analysis_of(own, agents)
            together = Usage()
            for member in family.members:
                if member in self._used:
                    together.include(self._used[member])
            tally = _tally(family, analysis, [own, *agents], together)
            times = self._timeline(family, own, agents)
            pairs = (pair for one in (own, *agents) for pair in one.examined.found)
            found = tuple(figures.Found(detector.name, detector.lens, finding.severity) for detector, finding in pairs)
            learned = tuple(experiences(own.history)) if own.row.failed_calls else ()
            seen.append(Seen(tally, self._shown(family, analysis, tally, times), found, learned))
            note(len(seen), len(self._chosen))
        return seen

    def _examined(self, family: Family) -> tuple[Examination, list[Examination]]:
        now, prices = self._asked.now, self._asked.prices
        own = examine(self._connection, family.row, now=now, prices=prices)
        if len(family.members) == 1:
            return own, []
        return own, agents_of(self._connection, family.row, now=now, prices=prices)

    def _timeline(self, family: Family, own: Examination, agents: Iterable[Examination]) -> Timeline | None:
        if not self._asked.timelines:
            return None
        times = (
            AgentTimes(agent.session_id, row.started_by, believable(row.started_at), believable(row.ended_at))
            for agent in agents
            if (row := agent.row).parent_session == own.row.id and row.started_by is not None
        )
        return timeline(own.history, family.started_at, times, self._entries)

    def _shown(self, family: Family, found: Analysis, tally: Tally, times: Timeline | None) -> ReportedSession:
        row = family.row
        title = one_line(row.title or row.snippet or "(no request)", USER_MESSAGE)
        ended = believable(row.ended_at)
        return ReportedSession(
            session_id=found.session_id,
            provider=row.provider,
            kind=shown_kind(row),
            project=None if row.project_id is None else self._projects[row.project_id],
            title=title,
            start_time=iso(family.started_at),
            duration_seconds=(ended - family.started_at) // 1000 if ended and family.started_at else None,
            active_seconds=row.active_ms // 1000 if family.started_at else None,
            ending=found.ending,
            score=found.score,
            unscored=found.unscored,
            parts=found.parts,
            turns=row.turn_count,
            tool_calls=tally.tool_calls,
            failed_calls=tally.failed_calls,
            total_tokens=tally.usage.total,
            tokens_made=tally.usage.tokens_made,
            cost_usd=tally.usage.cost,
            cost_made=tally.usage.cost_made,
            model=row.model and one_line(row.model, LABEL),
            agents=found.agents,
            insights=_kept(found.insights),
            total_insights=len(found.insights),
            detectors=Counter(insight.detector for insight in found.insights),
            severities=Counter(insight.severity for insight in found.insights),
            time=found.time,
            timeline=times,
        )


def _kept(insights: Sequence[Insight]) -> list[Insight]:
    """Return the findings to show, given the worst first: each detector's worst one, then the worst of the rest."""
    worst: dict[str, int] = {}
    for place, insight in enumerate(insights):
        worst.setdefault(insight.detector, place)
    others = sorted(set(range(len(insights))) - set(worst.values()))
    return [insights[place] for place in sorted([*worst.values(), *others][:INSIGHTS])]


def _tally(family: Family, found: Analysis, every: Sequence[Examination], usage: Usage) -> Tally:
    """Return the tally of a session, from the examinations of it and its sub-agents."""
    return Tally(
        started_at=family.started_at,
        score=found.score,
        ending=found.ending.ending,
        tool_calls=sum(one.row.tool_calls for one in every),
        failed_calls=sum(one.row.failed_calls for one in every),
        corrections=every[0].examined.corrections,
        loops=any(detector.lens == "Loops" for one in every for detector, _ in one.examined.found),
        usage=usage,
    )
