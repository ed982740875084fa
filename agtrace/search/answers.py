"""Search results as answers show them: the best sessions with their hits, or a preview of each event or session.

Of the best sessions of a ranked search, a clear winner gets the room, with what came of it: often that is the answer
already. The others get a line.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from agtrace_indexer.index.queries import calls, events, sessions, turns
from agtrace_indexer.index.queries.events import StoredEvent, with_texts
from agtrace_indexer.index.queries.ranking import RankedEvent
from agtrace_indexer.index.queries.sessions import Session, people_of
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.answers import EventPreview, FoundSession, SearchResult, Worked
from agtrace_schema.events import EventType, Outcome
from agtrace_schema.model import dump
from agtrace_schema.patterns import later
from msgspec import Struct
from msgspec.structs import replace

from agtrace.search.matching import Deadline, Matcher
from agtrace.search.ranking import Ranked
from agtrace.search.scan import Hits, SessionHits
from agtrace.sessions.events import aftermath, name_of, preview
from agtrace.sessions.landmarks import telling_landmarks
from agtrace.sessions.projects import labels
from agtrace.sessions.query import last_event_of, short_id
from agtrace.sessions.quotes import TEXT, Line, excerpt, execution, human_words, last_message, open_call, opened, quote
from agtrace.sessions.turns import telling_argument
from agtrace.text.lines import LABEL, one_line
from agtrace.times import iso, local

_RIVAL = 0.8
"""Sessions with at least this share of the best score are shown with their hits."""

_HITS = {1: (3,), 2: (3, 1), 3: (2, 1, 1), 4: (2, 1, 1, 1), 5: (2, 1, 1, 1, 1)}
"""By the number of such sessions, how many hits each of them shows."""

_ALIKE = 0.6
"""A hit with this share of its words in one that is shown already only says it again."""

_ANSWERS = (420, 250, 200)
"""Characters of the messages among the hits of the best session: often the next sentence is what was asked for."""

_OF_BEST = 220
"""Characters of other hits of the best session."""

_OTHERS = 2
_OTHER = 0.5
"""Further sessions, those with at least this share of the best score, get a line."""

_NAMED = 60
"""Characters of the titles of sessions with hits."""

_DOUBTED = 2
"""The most sessions shown if words of the query are found nowhere and the rest is weak."""

_FIXED = 2
"""In so many of the best sessions, and so many of their hits, failures are looked for that were overcome."""

_WEAK = 0.8
"""Hits with a smaller share of the score of their session's best one aren't shown."""

_WORD = later(r"[^\W\d_]{4,}")
"""The words by which texts are compared: without numbers, and without those that all texts have."""

_LAST, _SHORT = 280, 160
"""The characters of the last message: of a session that is hardly what was wanted, fewer."""

_ABOVE = "(the hit above)"
"""Stands for the text of a last message that is among the hits."""

_TURNS = 3
"""The turn of the best hit, and the next ones."""

_LINES, _LINE = 5, 120
"""So many of their requests, refusals, failures and answers are shown, with so many characters."""

_ELEMENT, _FIRST_PART, _LITTLE = r"<[^<>]*>", 2_000, 12
"""What marks commands and outputs, and how many characters of a text must be more than that."""

_ERROR = 120
"""Characters of a call that failed, with its error."""

_TELLING = ("failed", "error", "passed")
"""What is looked for in what the human ran last: it stands behind the last message of the model."""

_ILL_ENDED, _FAILURES = 20, 2
"""So many calls that didn't end well are looked at; of failures in the turn of the best hit so many, if there is room.
"""


# -- the best sessions ------------------------------------------------------------------------


class _SessionMatches(Struct, frozen=True):
    """One of the best sessions, with its matches."""

    row: Session
    about: FoundSession
    matches: Sequence[tuple[RankedEvent, EventPreview]]


class Best(Struct, frozen=True):
    """What a ranked search found, in the order in which it is listed."""

    matches: list[EventPreview]
    """Of the best sessions, those with the whole query first."""
    rest: list[RankedEvent]
    """All other events, the best first."""
    around: dict[str, Any]
    """What the first page says beside its matches: the other fields of `SearchResult`."""
    first: int
    """How many of all of these are on the first page."""
    opened: Session
    """The best session."""


def best_matches(
    connection: sqlite3.Connection, ranked: Ranked, query: str, sent: Mapping[tuple[str, int], str]
) -> Best:
    """Show the best of these sessions with their hits, and name a few more.

    What else is told of a session leaves out the events that were `sent` before.

    If words of the query are found nowhere and the rest is weak, the answer is short: it is hardly what was wanted.
    """
    found = ranked.sessions
    doubted = bool(ranked.nowhere) and not ranked.sure
    most = _DOUBTED if doubted else max(_HITS)
    best = [one for one in found if one.score >= _RIVAL * found[0].score][:most]
    others = [one for one in found[len(best) : most + _OTHERS] if one.score >= _OTHER * found[0].score]
    others = others[: 0 if doubted else _OTHERS]
    names = labels(connection)
    rows = {row.id: row for row in sessions.in_rows(connection, (one.session_row for one in (*best, *others)))}
    shown = [
        _SessionMatches(
            rows[one.session_row],
            about(connection, rows[one.session_row], names),
            _matches(connection, rows[one.session_row], ranked, query, one.hits, hits, best=one is best[0]),
        )
        for one, hits in zip(best, (1,) * len(best) if doubted else _HITS[len(best)], strict=True)
    ]
    told = SearchResult(
        worked=_worked(connection, shown),
        nowhere=list(ranked.nowhere) or None,
        lacking=list(ranked.lacking) or None,
        matches=[],
        sessions=[
            _unsent(_with_course(connection, shown[0], doubted=doubted), shown[0].row, sent),
            *(one.about for one in shown[1:]),
        ],
        others=[
            (short_id(connection, row.uid), local(row.started_at)[:10], _title(row, LABEL))
            for row in (rows[one.session_row] for one in others)
        ]
        or None,
    )
    listed = sorted((pair for one in shown for pair in one.matches), key=lambda pair: pair[0].id not in ranked.literal)
    ids = {event.id for event, _ in listed}
    rest = [event for event in ranked.events if event.id not in ids]
    literal = sum(event.id in ranked.literal for event in rest) if ranked.is_part else 0
    return Best([match for _, match in listed], rest, dump(told), len(listed) + literal, shown[0].row)


def about(connection: sqlite3.Connection, row: Session, names: Mapping[int, str]) -> FoundSession:
    """Return what tells a session from others."""
    return FoundSession(
        session_id=short_id(connection, row.uid),
        user=people_of(connection, [row.id]).get(row.id),
        provider=row.provider,
        project=names.get(row.project_id or 0),
        title=_title(row, _NAMED),
    )


def further_matches(
    connection: sqlite3.Connection, ranked: Ranked, query: str, found: Sequence[RankedEvent]
) -> tuple[list[EventPreview], list[FoundSession]]:
    """Return matches beyond those of the best sessions, and their sessions."""
    rows = {row.id: row for row in sessions.in_rows(connection, dict.fromkeys(event.session for event in found))}
    names = labels(connection)
    matches = [
        _match(
            connection,
            rows[one.session],
            opened(connection, one.session, one.event_index),
            ranked,
            query if one.id in ranked.literal else "",
            TEXT,
        )
        for one in found
    ]
    return matches, [about(connection, row, names) for row in rows.values()]


def _worked(connection: sqlite3.Connection, found: Sequence[_SessionMatches]) -> Worked | None:
    for one in found[:_FIXED]:
        for _, match in one.matches[:_FIXED]:
            event = opened(connection, one.row.id, match.event_index)
            told = aftermath(connection, one.row, event) if event.outcome is Outcome.FAILED else None
            if told is not None:
                return Worked(
                    session_id=one.about.session_id,
                    failed=match.event_index,
                    succeeded=told.succeeded,
                    text=_did(connection, one.row.id, told.succeeded),
                    command=None
                    if told.command is None
                    else (told.command, _did(connection, one.row.id, told.command)),
                    changes=told.changes,
                    last_change=told.last_change,
                )
    return None


def _did(connection: sqlite3.Connection, session_row: int, call: int) -> str:
    """Return what a call did; of a long command both ends, as the last part of it is often what matters."""
    said = " ".join(telling_argument(opened(connection, session_row, call).rest.get("arguments")).split())
    return one_line(said if len(said) <= TEXT else f"{said[: TEXT * 2 // 3]} ... {said[-TEXT // 4 :]}", TEXT)


def _title(row: Session, most: int = 2 * LABEL) -> str:
    return one_line(row.title or row.snippet or "(no request)", most)


def _matches(
    connection: sqlite3.Connection,
    session: Session,
    ranked: Ranked,
    query: str,
    hits: Sequence[RankedEvent],
    most: int,
    *,
    best: bool,
) -> list[tuple[RankedEvent, EventPreview]]:
    """Return the best hits of a session, each text once, a call and its result as one."""
    result: list[tuple[RankedEvent, EventPreview]] = []
    seen: set[int] = set()
    told: list[frozenset[str]] = []
    for hit in hits:
        if hit.score < _WEAK * hits[0].score:
            break
        event = opened(connection, hit.session, hit.event_index)
        pair = {event.event_index} if event.row.link is None else {event.event_index, event.row.link}
        answers = sum(match.event_type == EventType.MESSAGE for _, match in result)
        room = _ANSWERS[min(answers, len(_ANSWERS) - 1)] if event.type == EventType.MESSAGE else _OF_BEST
        match = _match(
            connection, session, event, ranked, query if hit.id in ranked.literal else "", room if best else TEXT
        )
        text = _text(match)
        content = frozenset(_WORD.findall(text.lower()) or [text])
        if not text or pair & seen or any(len(content & other) >= _ALIKE * len(content) for other in told):
            continue
        seen |= pair
        told.append(content)
        result.append((hit, match))
        if len(result) == most:
            break
    return result


def _match(
    connection: sqlite3.Connection, session: Session, event: StoredEvent, ranked: Ranked, literal: str, most: int
) -> EventPreview:
    """Return an event as a match, with at most so many characters of its text, where most words of the query are.

    If the event contains the whole query, given as `literal`, that is shown.
    """
    match = EventPreview(
        session_id=short_id(connection, session.uid),
        event_index=event.event_index,
        timestamp=iso(event.row.ts),
        event_type=event.type,
        outcome=None if event.outcome is Outcome.OK else event.outcome,
        rolled_back=True if event.row.rolled_back else None,
        preview={},
    )
    if event.type not in (EventType.TOOL_CALL, EventType.TOOL_RESULT):
        named = {} if event.type in (EventType.MESSAGE, EventType.REASONING) else {"kind": name_of(event) or "human"}
        match = replace(match, preview=named | {"text": excerpt(event.text, ranked.words, most)})
    else:
        asked, failed, output = execution(connection, session.provider, event, ranked.words, most)
        shown = {"tool": name_of(event) or "tool"} | ({"arguments": asked} if asked else {})
        if event.type == EventType.TOOL_RESULT:
            match = replace(match, preview=shown | {"preview": output or ""})
        else:
            match = replace(match, preview=shown, error=output if failed else None, result=None if failed else output)
    is_shown = " ".join(literal.lower().split()) in _text(match).lower()
    return match if is_shown else preview(connection, session, event, literal.strip())


def _text(match: EventPreview) -> str:
    return " ".join(str(part) for part in (*match.preview.values(), match.error, match.result) if part)


# -- what came of the best one ----------------------------------------------------------------


def _with_course(connection: sqlite3.Connection, shown: _SessionMatches, *, doubted: bool) -> FoundSession:
    row, hit, last_event = shown.row, shown.matches[0][1].event_index, last_event_of(connection, shown.row)
    last = last_message(connection, row, last_event, _SHORT if doubted else _LAST)
    known = {match.event_index for _, match in shown.matches}
    last = last if last is None or last[0] not in known else (last[0], _ABOVE)
    if doubted:
        return replace(shown.about, last_message=last)
    landmarks = telling_landmarks(connection, row.id, last_event, near=hit)
    course = _course(connection, row, hit, last_event, {*known, last[0] if last else -1})
    left = open_call(connection, row, last_event)
    told = {"landmarks": landmarks.items or None, "course": course or None, "last_message": last, "open_call": left}
    return replace(shown.about, **told)


def _unsent(found: FoundSession, row: Session, sent: Mapping[tuple[str, int], str]) -> FoundSession:
    """Return what is told of a session without what its reader has, and with a call that has it."""
    has = {event: by for (session, event), by in sent.items() if session in (row.uid, found.session_id)}
    last, told = found.last_message, [one.event_index for one in found.landmarks or ()]
    told += [*(one[0] for one in found.course or ()), *((last[0],) if last and last[1] != _ABOVE else ())]
    return replace(
        found,
        landmarks=[one for one in found.landmarks or () if one.event_index not in has] or None,
        course=[one for one in found.course or () if one[0] not in has] or None,
        last_message=None if last and last[1] != _ABOVE and last[0] in has else last,
        seen=next((has[event] for event in told if event in has), None),
    )


def _course(
    connection: sqlite3.Connection, row: Session, hit: int, last_event: int, known: Collection[int]
) -> list[Line]:
    """What was asked, refused and answered in the turn of a hit and the next ones, what failed in it, the last request.

    What is known already is left out.
    """
    turn = opened(connection, row.id, hit).row.turn_index or 0
    found = turns.page(connection, row.id, from_turn=turn, last_event=last_event, most=_TURNS)
    last = [one for one in _last_turn(connection, row, last_event) if one not in found]
    endings = _endings(connection, row, found) | _endings(connection, row, last)  # there may be much in between
    asked = {one.request_event: endings.get(one.turn_index) for one in (*found, *last) if one.request_event is not None}
    said_last = {endings[one.turn_index].last_message for one in found if one.turn_index in endings}
    ill_ended = {event: kind for event, kind in _ill_ended(connection, row, found, last_event) if event not in known}
    refused = {event for event, kind in ill_ended.items() if kind is Outcome.REJECTED}
    behind = _behind(connection, row, last_event)
    meant = {*asked, *said_last, *refused, behind}
    wanted = sorted({event for event in meant if event is not None and event not in known})
    some = [*wanted[: _LINES - 1], *wanted[_LINES - 1 :][-1:]]
    some += sorted(ill_ended.keys() - refused)[: min(_FAILURES, _LINES - len(some))]
    texts = with_texts(connection, events.several(connection, row.id, some))
    return [
        _course_line(connection, row.provider, event, ill_ended.get(event.event_index), asked.get(event.event_index))
        for event in texts
        if event.event_index != behind
        or event.event_index in asked
        or len(re.sub(_ELEMENT, "", event.text[:_FIRST_PART]).strip()) >= _LITTLE
    ]


def _endings(
    connection: sqlite3.Connection, row: Session, found: Sequence[turns.Turn]
) -> dict[int | None, turns.Ending]:
    return turns.endings(connection, row.id, found, api_errors=AGENTS[row.provider].notices.api_errors)


def _course_line(
    connection: sqlite3.Connection, provider: str, event: StoredEvent, ill: Outcome | None, ending: turns.Ending | None
) -> Line:
    words = () if ending or event.type != EventType.USER else _TELLING
    who, text = quote(connection, provider, event, words, _ERROR if ill is Outcome.FAILED else _LINE)
    if ill is Outcome.REJECTED:
        return event.event_index, "human", f"refused: {text}"
    return event.event_index, who, f"{text}{_unanswered(ending) if ending else ''}"


def _behind(connection: sqlite3.Connection, row: Session, last_event: int) -> int | None:
    said_last = events.last_of_type(connection, row.id, EventType.MESSAGE, last_event)
    written = events.last_of_type(connection, row.id, EventType.USER, last_event)
    return written if written is not None and written > (-1 if said_last is None else said_last) else None


def _unanswered(ending: turns.Ending) -> str:
    if ending.last_message is not None:
        return ""
    return " -> (interrupted)" if ending.stopped else "" if ending.responses else " -> (no answer)"


def _ill_ended(
    connection: sqlite3.Connection, row: Session, found: Sequence[turns.Turn], last_event: int
) -> Iterator[tuple[int, Outcome]]:
    """Yield the calls in some turns that the human refused, saying why, and those that failed in the first one."""
    if not found:
        return
    meant, then = {turn.turn_index for turn in found}, events.Snapshot(last_event, events.NOW.newest_row)
    ended = calls.failures(connection, row.id, then, behind=found[0].first_event - 1, most=_ILL_ENDED)
    for one in ended:
        if one.outcome is Outcome.REJECTED and one.turn_index in meant:
            if human_words(opened(connection, row.id, one.shown).text):
                yield one.call_event, Outcome.REJECTED
        elif one.outcome is Outcome.FAILED and one.turn_index == found[0].turn_index:
            yield one.call_event, Outcome.FAILED


def _last_turn(connection: sqlite3.Connection, row: Session, last_event: int) -> list[turns.Turn]:
    last = turns.last(connection, row.id)
    found = [] if last is None else turns.several(connection, row.id, [last])
    return [turn for turn in found if turn.first_event <= last_event]


# -- events and sessions of a list -----------------------------------------------------------------


def previews(
    connection: sqlite3.Connection, found: Hits | SessionHits, matcher: Matcher, deadline: Deadline
) -> list[EventPreview]:
    """Return previews of hits, centred on the match, each with its project; of sessions, with what they are.

    Raises `SearchTimeout`.
    """
    names, hits = labels(connection), found.hits
    listed = {(hit.session_row, hit.event_index) for hit in hits}
    events_found = [events.one(connection, hit.session_row, hit.event_index) for hit in hits]
    rows = {session.id: session for session in sessions.in_rows(connection, {hit.session_row for hit in hits})}
    result = []
    for event in with_texts(connection, events_found):
        session = rows[event.row.session_row]
        hit = preview(connection, session, event, matcher.matched(event.text, deadline))
        if (session.id, hit.result_event) in listed:
            hit = replace(hit, error=None, result=None)
        result.append(replace(hit, project=names.get(session.project_id or 0)))
    if not isinstance(found, SessionHits):
        return result
    users = people_of(connection, [*rows])
    return [
        replace(
            match,
            user=users.get(hit.session_row),
            provider=rows[hit.session_row].provider,
            title=_title(rows[hit.session_row]),
            start_time=iso(rows[hit.session_row].started_at),
            hits=found.counts[hit.session_row],
        )
        for hit, match in zip(hits, result, strict=True)
    ]
