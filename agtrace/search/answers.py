"""Search results as answers show them: the best sessions with their hits, or a preview of each event or session.

Of the best sessions of a ranked search, a clear winner gets the room, with what came of it: often that is the answer
already. The others get a line.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from agtrace_indexer.index.questions import calls, events, sessions, turns
from agtrace_indexer.index.questions.ranking import RankedEvent
from agtrace_indexer.index.questions.sessions import Session, people_of
from agtrace_indexer.index.questions.texts import StoredEvent, with_texts
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.answers import BestMatches, BestSession, EventPreview, SessionMatches, Worked
from agtrace_schema.events import EventType, Outcome
from agtrace_schema.patterns import later
from msgspec.structs import replace

from agtrace.search.matching import Deadline, Matcher
from agtrace.search.ranking import Ranked
from agtrace.search.scan import Hit, SessionHits
from agtrace.sessions.events import aftermath, preview
from agtrace.sessions.landmarks import telling_landmarks
from agtrace.sessions.projects import labels
from agtrace.sessions.query import last_event_of, short_id
from agtrace.sessions.said import TEXT, Line, human_words, last_message, open_call, opened, said
from agtrace.sessions.turns import telling_argument
from agtrace.text.lines import LABEL, USER_MESSAGE, one_line
from agtrace.times import iso

_RIVAL = 0.7
"""Sessions with at least this share of the best score are shown with their hits."""

_HITS = {1: (4,), 2: (4, 2), 3: (3, 2, 1), 4: (3, 1, 1, 1), 5: (3, 1, 1, 1, 1)}
"""By the number of such sessions, how many hits each of them shows."""

_ALIKE = 0.6
"""A hit with this share of its words in one that is shown already only says it again."""

_ANSWERS = (490, 350, 260)
"""Characters of the messages among the hits of the best session: often the next sentence is what was asked for."""

_MESSAGE = "message"

_OF_BEST = 260
"""Characters of other hits of the best session."""

_OTHERS = 4
_OTHER = 0.4
"""Further sessions, those with at least this share of the best score, get a line."""

_DOUBTED = 2
"""The most sessions shown if words of the query are found nowhere and the rest is weak."""

_FIXED = 2
"""In so many of the best sessions, and so many of their hits, failures are looked for that were overcome."""

_WEAK = 0.25
"""Hits with a smaller share of the score of their session's best one aren't shown."""

_WORD = later(r"[^\W\d_]{4,}")
"""The words by which texts are compared: without numbers, and without those that all texts have."""

_LANDMARKS, _LAST, _SHORT = 6, 320, 160
"""The most landmarks, and the characters of the last message: of a session that is hardly what was wanted, fewer."""

_ABOVE = "(the hit above)"
"""Stands for the text of a last message that is among the hits."""

_TURNS = 3
"""The turn of the best hit, and the next ones."""

_LINES, _LINE = 6, 150
"""So many of their requests, refusals, failures and answers are shown, with so many characters."""

_ELEMENT, _FIRST_PART, _LITTLE = r"<[^<>]*>", 2_000, 12
"""What marks commands and outputs, and how many characters of a text must be more than that."""

_ERROR = 240
"""Characters of a call that failed, with its error."""

_TELLING = ("failed", "error", "passed")
"""What is looked for in what the human ran last: it stands behind the last message of the model."""

_ILL_ENDED, _FAILURES = 20, 2
"""So many calls that didn't end well are looked at; of failures in the turn of the best hit so many, if there is room.
"""


# -- the best sessions ------------------------------------------------------------------------


def best_matches(connection: sqlite3.Connection, ranked: Ranked, most: int) -> BestMatches:
    """Show the best of these sessions with their hits, and name a few more: at most so many in all.

    If words of the query are found nowhere and the rest is weak, the answer is short: it is hardly what was wanted.
    """
    found = ranked.sessions
    doubted = bool(ranked.nowhere) and not ranked.sure
    most = min(most, _DOUBTED) if doubted else most
    best = [one for one in found if one.score >= _RIVAL * found[0].score][: min(max(_HITS), most)]
    others = [one for one in found[len(best) : min(len(best) + _OTHERS, most)] if one.score >= _OTHER * found[0].score]
    names = labels(connection)
    rows = {row.id: row for row in sessions.in_rows(connection, (one.session_row for one in (*best, *others)))}
    users = people_of(connection, [one.session_row for one in best])
    shown = [
        replace(
            _session(connection, rows[one.session_row], names, one.hits, ranked.words, hits, best=one is best[0]),
            user=users.get(one.session_row),
        )
        for one, hits in zip(best, (1,) * len(best) if doubted else _HITS[len(best)], strict=True)
    ]
    completed = _with_ending if doubted else _with_course
    shown[0] = completed(connection, rows[best[0].session_row], shown[0])
    return BestMatches(
        worked=_worked(connection, [(rows[one.session_row], told) for one, told in zip(best, shown, strict=True)]),
        sessions=shown,
        nowhere=list(ranked.nowhere) or None,
        lacking=list(ranked.lacking) or None,
        others=[_line(connection, rows[one.session_row]) for one in others],
    )


def _session(
    connection: sqlite3.Connection,
    row: Session,
    names: Mapping[int, str],
    hits: Sequence[RankedEvent],
    words: Sequence[str],
    most: int,
    *,
    best: bool,
) -> BestSession:
    return BestSession(
        session_id=short_id(connection, row.uid),
        provider=row.provider,
        project=names.get(row.project_id or 0),
        date=_day(row),
        title=_title(row),
        hits=_shown(connection, row.provider, hits, words, most, best=best),
    )


def _worked(connection: sqlite3.Connection, found: Sequence[tuple[Session, BestSession]]) -> Worked | None:
    for row, shown in found[:_FIXED]:
        for event_index, _, _ in shown.hits[:_FIXED]:
            event = opened(connection, row.id, event_index)
            told = aftermath(connection, row, event) if event.outcome is Outcome.FAILED else None
            if told is not None:
                return Worked(
                    session_id=shown.session_id,
                    failed=event_index,
                    succeeded=told.succeeded,
                    text=_did(connection, row.id, told.succeeded),
                    command=None if told.command is None else (told.command, _did(connection, row.id, told.command)),
                    changes=told.changes,
                )
    return None


def _did(connection: sqlite3.Connection, session_row: int, call: int) -> str:
    return one_line(telling_argument(opened(connection, session_row, call).rest.get("arguments")), TEXT)


def _line(connection: sqlite3.Connection, row: Session) -> tuple[str, str, str]:
    return short_id(connection, row.uid), _day(row) or "", one_line(_title(row), LABEL)


def _day(row: Session) -> str | None:
    time = iso(row.started_at)
    return time and time[:10]


def _title(row: Session) -> str:
    return one_line(row.title or row.snippet or "(no request)", 2 * LABEL)


def _shown(
    connection: sqlite3.Connection,
    provider: str,
    hits: Sequence[RankedEvent],
    words: Sequence[str],
    most: int,
    *,
    best: bool,
) -> list[tuple[int, str, str]]:
    shown: list[tuple[int, str, str]] = []
    seen: set[int] = set()
    told: list[frozenset[str]] = []
    for hit in hits:
        if hit.score < _WEAK * hits[0].score:
            break
        event = opened(connection, hit.session, hit.event_index)
        pair = {event.event_index} if event.row.link is None else {event.event_index, event.row.link}
        answers = sum(kind == _MESSAGE for _, kind, _ in shown)
        room = _ANSWERS[min(answers, len(_ANSWERS) - 1)] if event.type == EventType.MESSAGE else _OF_BEST
        who, text = said(connection, provider, event, words, room if best else TEXT)
        content = frozenset(_WORD.findall(text.lower()) or [text])
        if not text or pair & seen or any(len(content & other) >= _ALIKE * len(content) for other in told):
            continue
        seen |= pair
        told.append(content)
        shown.append((event.event_index, who, text))
        if len(shown) == most:
            break
    return shown


# -- what came of the best one ----------------------------------------------------------------


def _with_ending(connection: sqlite3.Connection, row: Session, shown: BestSession) -> BestSession:
    return replace(shown, last_message=_last(connection, row, last_event_of(connection, row), shown, _SHORT))


def _with_course(connection: sqlite3.Connection, row: Session, shown: BestSession) -> BestSession:
    last_event, known = last_event_of(connection, row), {hit[0] for hit in shown.hits}
    last, left_open = _last(connection, row, last_event, shown, _LAST), open_call(connection, row, last_event)
    landmarks = telling_landmarks(connection, row.id, last_event, brief=True)
    course = _course(connection, row, shown.hits[0][0], last_event, {*known, last[0] if last else -1})
    told: dict[str, Any] = {
        "landmarks": landmarks.items[-_LANDMARKS:] or None,
        "course": course or None,
        "last_message": last,
        "open_call": left_open,
    }
    return replace(shown, **told)


def _last(
    connection: sqlite3.Connection, row: Session, last_event: int, shown: BestSession, most: int
) -> tuple[int, str] | None:
    last = last_message(connection, row, last_event, most)
    return last if last is None or last[0] not in {hit[0] for hit in shown.hits} else (last[0], _ABOVE)


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
    who, text = said(connection, provider, event, words, _ERROR if ill is Outcome.FAILED else _LINE)
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
    connection: sqlite3.Connection, hits: list[Hit], matcher: Matcher, deadline: Deadline
) -> list[EventPreview]:
    """Return previews of hits, centred on the match, each with its project. Raises `SearchTimeout`."""
    names = labels(connection)
    return [
        replace(shown, project=names.get(session.project_id or 0))
        for session, shown in _previews(connection, hits, matcher, deadline)
    ]


def _previews(
    connection: sqlite3.Connection, hits: list[Hit], matcher: Matcher, deadline: Deadline
) -> Iterator[tuple[Session, EventPreview]]:
    found = [events.one(connection, hit.session_row, hit.event_index) for hit in hits]
    rows = {session.id: session for session in sessions.in_rows(connection, {hit.session_row for hit in hits})}
    for event in with_texts(connection, found):
        session = rows[event.row.session_row]
        yield session, preview(connection, session, event, matcher.matched(event.text, deadline))


def session_matches(
    connection: sqlite3.Connection, found: SessionHits, matcher: Matcher, deadline: Deadline
) -> list[SessionMatches]:
    """Return the sessions of a page, each with one of its hits. Raises `SearchTimeout`."""
    rows = {session.id: session for session in sessions.in_rows(connection, (hit.session_row for hit in found.hits))}
    names, users = labels(connection), people_of(connection, [*rows])
    shown = (preview for _, preview in _previews(connection, found.hits, matcher, deadline))
    return [
        _session_match(
            rows[hit.session_row],
            names,
            users,
            preview,
            matches=found.counts[hit.session_row],
        )
        for hit, preview in zip(found.hits, shown, strict=True)
    ]


def _session_match(
    session: Session,
    names: Mapping[int, str],
    users: Mapping[int, str],
    preview: EventPreview,
    *,
    matches: int,
) -> SessionMatches:
    title, snippet = session.title, session.snippet
    return SessionMatches(
        session_id=preview.session_id,
        user=users.get(session.id),
        provider=session.provider,
        title=title and one_line(title, 2 * LABEL),
        snippet=None if title else snippet and one_line(snippet, USER_MESSAGE // 2),
        project=names.get(session.project_id or 0),
        start_time=iso(session.started_at),
        matches=matches,
        match=preview,
    )
