"""Examining sessions: every detector runs over a session's history; also in worker processes, on all cores.

`python -m agtrace.health.examine INDEX` answers each pickle on its input (the ids of sessions, and how they are
examined) with a pickle of their examinations. It ends when its input does. Only agtrace itself is at the other end.
"""

from __future__ import annotations

import heapq
import pickle
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import Any, BinaryIO, Literal, NamedTuple

from agtrace_indexer import redact
from agtrace_indexer.index.opening import open_read_only, path_of
from agtrace_indexer.index.queries import histories, sessions
from agtrace_indexer.index.queries.sessions import Session
from agtrace_indexer.parallel.processes import Crew, end_with_input
from agtrace_schema.analysis import ContextPoint, Evidence, Insight, Share, Timeline, TimelineEntry, TokenShares
from agtrace_schema.events import Outcome
from msgspec import Struct

from agtrace.health.analysis import LARGEST, Note
from agtrace.health.detectors import DETECTORS
from agtrace.health.examination import Examination
from agtrace.health.experience import experiences
from agtrace.health.facts.actions import is_api_error, is_passed_over, is_probe
from agtrace.health.facts.causes import cause_of
from agtrace.health.facts.changes import files_read
from agtrace.health.facts.checks import checks, problems_in
from agtrace.health.facts.context import CHARS_PER_TOKEN, compactions, figures
from agtrace.health.facts.corrections import corrections, requests
from agtrace.health.facts.ending import ending_of, unanswered
from agtrace.health.facts.time_spent import time_spent
from agtrace.health.finding import Detector, Finding
from agtrace.health.history import Call, Entry, History, Message, Notice, UserText, read_history
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.query import short_id
from agtrace.sessions.quotes import human_words
from agtrace.sessions.terms import believable, failures_known
from agtrace.sessions.turns import telling_argument
from agtrace.text.lines import LABEL, one_line, shown_path
from agtrace.text.signatures import telling_text

Found = tuple[Detector, Finding]

# -- many sessions -----------------------------------------------------------------------------------

_PORTION = 50
"""The sessions that a worker process is asked about at a time."""


def examine_all(
    connection: sqlite3.Connection, chosen: Sequence[Session], cores: int, note: Note, **how: Any
) -> dict[int, Examination]:
    """Examine sessions on so many cores; in this process if workers can't be started, or one died.

    `how` has the further arguments of `examine`. `note` is called with how many sessions are done, and their number.
    """
    result: dict[int, Examination] = {}
    if cores > 1:
        ids = [one.id for one in chosen]
        portions = [tuple(ids[start : start + _PORTION]) for start in range(0, len(ids), _PORTION)]
        with Crew(portions, cores, partial(_examined_by, how), __name__, str(path_of(connection))) as workers:
            for _, answer in workers.answers():
                result |= answer
                note(len(result), len(chosen))
    for one in chosen:
        if one.id not in result:
            result[one.id] = examine(connection, one, **how)
            note(len(result), len(chosen))
    return result


def _examined_by(how: dict[str, Any], worker: Popen[bytes], ids: Sequence[int]) -> dict[int, Examination]:
    assert worker.stdin is not None and worker.stdout is not None
    pickle.dump((ids, how), worker.stdin)
    worker.stdin.flush()
    try:
        result: dict[int, Examination] = pickle.load(worker.stdout)
    except (EOFError, pickle.UnpicklingError) as error:
        raise OSError("the worker died") from error
    return result


def serve(database: Path, portions: BinaryIO, answers: BinaryIO) -> None:
    """Examine one portion after the other, using the rules for secrets in the index's folder."""
    redact.use(database.parent)
    with closing(open_read_only(database)) as connection:
        while True:
            ids, how = pickle.load(portions)
            found = {one.id: examine(connection, one, **how) for one in sessions.in_rows(connection, ids)}
            pickle.dump(found, answers)
            answers.flush()


# -- one session -------------------------------------------------------------------------------------

_QUOTE = 80
_TOLD_BEFORE = 0.6
_MESSAGE = 240


def examine(
    connection: sqlite3.Connection, session: Session, *, now: float, prices: PriceTable, entries: int = 0
) -> Examination:
    """Run every detector over a session; `now` is seconds since 1970 UTC.

    With `entries`, it comes with a timeline of at most so many of them.
    """
    history = read_history(connection, session, now=now, prices=prices)
    quoted: dict[int, Entry] = {call.result_event: call for call in history.calls if call.result_event is not None}
    quoted |= {entry.event_index: entry for entry in history.entries}
    found = distinct((detector, finding) for detector in DETECTORS for finding in _findings(detector, history))
    calls = [call for call in history.calls if not is_probe(call)]
    return Examination(
        calls=len(calls),
        failed=sum(call.failed and not (call.reports or is_passed_over(call)) for call in calls),
        unanswered=sum(1 for _ in unanswered(history)),
        probes=len(history.calls) - len(calls),
        turns=history.turns,
        requests=requests(history),
        corrections=sum(one.how != "silent" for one in corrections(history)),
        checks=checks(history),
        ending=ending_of(history),
        insights=[_insight(detector, finding, history, quoted) for detector, finding in found],
        untold=not failures_known(session.provider, session.tool_calls),
        time=time_spent(history),
        shares=token_shares(history),
        figures=figures(history),
        experiences=experiences(history) if session.failed_calls else [],
        timeline=timeline_of(connection, session, history, entries) if entries else None,
    )


def _insight(detector: Detector, finding: Finding, history: History, quoted: dict[int, Entry]) -> Insight:
    """Return a finding with quotes."""
    return Insight(
        turn_index=finding.turn,
        severity=finding.severity,
        lens=detector.lens,
        detector=detector.name,
        version=detector.version,
        message=one_line(finding.message, _MESSAGE),
        count=finding.count,
        evidence=[
            Evidence(event_index=event, ref="", quote=one_line(_quote(quoted.get(event), event, history), _QUOTE))
            for event in finding.events
        ],
    )


def distinct(found: Iterable[Found]) -> tuple[Found, ...]:
    """Leave out findings whose events are mostly covered by an earlier, more telling one."""
    told: set[int] = set()
    kept: list[Found] = []
    for detector, finding in found:
        events = set(finding.events)
        if not events or len(events & told) <= _TOLD_BEFORE * len(events):
            told |= events
            kept.append((detector, finding))
    return tuple(kept)


def _findings(detector: Detector, history: History) -> list[Finding]:
    """Run a detector. If it breaks on a strange log, only its own findings are missing, and a finding says so."""
    try:
        return list(detector.find(history))
    except Exception as error:  # noqa: BLE001
        broken = f"The detector {detector.name} broke on this session ({type(error).__name__}): a bug in agtrace"
        return [Finding(severity="Info", message=broken, count=1, events=())]


def _quote(entry: Entry | None, event: int, history: History) -> str:
    """Return the text of an event to quote; of a failed result the line that names the cause."""
    match entry:
        case Call() if entry.outcome is Outcome.REJECTED:
            return human_words(entry.result) or f"{entry.tool} {telling_argument(entry.arguments)}"
        case Call() if event == entry.result_event and entry.failed:
            cause = cause_of(entry, history)
            return (cause.line if cause else telling_text(entry.result)) or "(no output)"
        case Call() if event == entry.result_event:
            return entry.result or "(no output)"
        case Call():
            return f"{entry.tool} {telling_argument(entry.arguments)}"
        case Notice() if titles := problems_in(entry.text):
            return "; ".join(titles)
        case UserText() | Message() | Notice():
            return entry.text
        case _:
            return ""


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


# -- timeline --------------------------------------------------------------------------------------
# What happened when, reduced to what a page can show.

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
        span = turns.setdefault(entry.turn, _Span(entry.event_index))
        span.take(entry.at)
        if isinstance(entry, Call):
            span.take(entry.answered_at)
        elif isinstance(entry, UserText) and entry.opens_turn:
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
        if isinstance(entry, UserText):
            continue
        if entry.step is not None:
            steps.setdefault((entry.turn, entry.step), _Span(entry.event_index)).take(entry.at)
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


def timeline_of(connection: sqlite3.Connection, session: Session, history: History, most: int) -> Timeline | None:
    """Return the `timeline` of a session with the sub-agents that it started itself."""
    return timeline(history, believable(session.started_at), _agents_of(connection, session), most)


def _agents_of(connection: sqlite3.Connection, session: Session) -> Iterator[AgentTimes]:
    """Yield the sub-agents that the session itself started."""
    for row in sessions.in_rows(connection, histories.sub_agents(connection, session.id)):
        if row.parent_session == session.id and row.started_by is not None:
            id = short_id(connection, row.uid)
            yield AgentTimes(id, row.started_by, believable(row.started_at), believable(row.ended_at))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal: the parent decides
    end_with_input()
    with suppress(EOFError, BrokenPipeError):
        serve(Path(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)
