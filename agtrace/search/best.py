"""The best sessions of a ranked search as an answer shows them: a clear winner gets the room, the others a line."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from pathlib import PurePath

from agtrace_indexer.index.questions import events as stored_events
from agtrace_indexer.index.questions import sessions
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import StoredEvent, with_texts
from agtrace_indexer.providers.registry import AGENTS
from agtrace_indexer.redact import redact
from agtrace_schema.answers import BestMatches, BestSession
from agtrace_schema.events import EventType, Outcome

from agtrace.search.ranking import FAINT
from agtrace.search.scoring import RankedHit, RankedSession
from agtrace.sessions.query import iso, short_id
from agtrace.text.lines import LABEL, one_line, without_controls

_RIVAL = 0.6
"""Sessions with at least this share of the best score are shown with their hits."""

_HITS = {1: (6,), 2: (4, 2), 3: (3, 2, 1), 4: (3, 1, 1, 1), 5: (3, 1, 1, 1, 1)}
"""By the number of such sessions, how many hits each of them shows."""

_OTHERS = 4
_WEAK = 0.25
"""Hits with a smaller share of the score of their session's best one aren't shown."""

_TEXT = 210
"""Characters of a hit."""

_OF_CALL = 90
_LOOKED_AT = 40_000
"""Characters of a text in which the best part is looked for."""


_NUMBER = re.compile(r"\d+")


def best_matches(connection: sqlite3.Connection, found: Sequence[RankedSession], most: int) -> BestMatches:
    """Show the best of these sessions with their hits, and name a few more: at most so many in all."""
    best = [one for one in found if one.score >= _RIVAL * found[0].score][: min(max(_HITS), most)]
    others = [one for one in found[len(best) : min(len(best) + _OTHERS, most)] if one.share >= FAINT]
    rows = {row.id: row for row in sessions.in_rows(connection, (one.session_row for one in (*best, *others)))}
    return BestMatches(
        sessions=[
            _session(connection, rows[one.session_row], one.hits, hits)
            for one, hits in zip(best, _HITS[len(best)], strict=True)
        ],
        others=[_line(connection, rows[one.session_row]) for one in others],
    )


def _session(connection: sqlite3.Connection, row: Session, hits: Sequence[RankedHit], most: int) -> BestSession:
    return BestSession(
        session_id=short_id(connection, row.uid),
        provider=row.provider,
        project=one_line(PurePath(row.root_path).name, LABEL) if row.root_path else None,
        date=_day(row),
        title=_title(row),
        hits=_shown(connection, row.provider, hits, most),
    )


def _line(connection: sqlite3.Connection, row: Session) -> tuple[str, str, str]:
    return short_id(connection, row.uid), _day(row) or "", one_line(_title(row), LABEL)


def _day(row: Session) -> str | None:
    time = iso(row.started_at)
    return time and time[:10]


def _title(row: Session) -> str:
    return one_line(row.title or row.snippet or "(no request)", 2 * LABEL)


# -- hits ------------------------------------------------------------------------------------------


def _shown(
    connection: sqlite3.Connection, provider: str, hits: Sequence[RankedHit], most: int
) -> list[tuple[int, str, str]]:
    """Up to so many hits that differ: a call and its result are one, the same text is shown once."""
    shown: list[tuple[int, str, str]] = []
    seen: set[int | str] = set()
    for hit in hits:
        if hit.score < _WEAK * hits[0].score:
            break
        event = _event(connection, hit.event.session, hit.event.event_index)
        pair = {event.event_index} if event.row.link is None else {event.event_index, event.row.link}
        who, text = _said(connection, provider, event, hit.words)
        same = _NUMBER.sub("", text)
        if not text or same in seen or pair & seen:
            continue
        seen |= {same, *pair}
        shown.append((event.event_index, who, text))
        if len(shown) == most:
            break
    return shown


def _event(connection: sqlite3.Connection, session: int, event_index: int) -> StoredEvent:
    (event,) = with_texts(connection, [stored_events.one(connection, session, event_index)])
    return event


def _said(connection: sqlite3.Connection, provider: str, event: StoredEvent, words: Sequence[str]) -> tuple[str, str]:
    """Who speaks in an event, and the part of it with the most words of the query; an output follows its call."""
    match event.type:
        case EventType.USER:
            return "human", _part(event.text, words, _TEXT)
        case EventType.MESSAGE:
            return "message", _part(event.text, words, _TEXT)
        case EventType.REASONING:
            return "thought", _part(event.text, words, _TEXT)
        case EventType.TOOL_CALL | EventType.TOOL_RESULT:
            return one_line(event.row.name or "tool", LABEL), _execution(connection, provider, event, words)
        case _:
            return one_line(event.row.name or "notification", LABEL), _part(event.text, words, _TEXT)


def _execution(connection: sqlite3.Connection, provider: str, event: StoredEvent, words: Sequence[str]) -> str:
    """A call, an arrow, and how its output begins or where it has the words; failures say so."""
    other = None if event.row.link is None else _event(connection, event.row.session_row, event.row.link)
    call, result = (event, other) if event.type == EventType.TOOL_CALL else (other, event)
    asked = "" if call is None else _part(call.text.partition("\n")[2], words, _OF_CALL if result else _TEXT)
    if result is None:
        return asked
    failed = "failed: " if result.outcome == Outcome.FAILED else ""
    header = AGENTS[provider].output_header
    said = result.text if header is None else header.sub("", result.text, count=1)
    return f"{asked} -> {failed}{_part(said, words, _TEXT - len(asked))}"


def _part(text: str, words: Sequence[str], most: int) -> str:
    """At most so many characters on one line, where most of the words stand, cut between words."""
    seen = " ".join(without_controls(redact(text[:_LOOKED_AT])).split())
    if len(seen) <= most:
        return seen
    start = max(_best_place(seen, words, most) - most // 5, 0)
    start = 0 if start == 0 else seen.find(" ", start) + 1
    end = seen.rfind(" ", start, start + most)
    end = start + most if end <= start + most // 2 else end
    return f"{'...' if start else ''}{seen[start:end]}{'...' if end < len(seen) else ''}"


def _best_place(text: str, words: Sequence[str], most: int) -> int:
    """Where a part of this length begins that holds the most different words; 0 where none stands."""
    stems = [re.escape(word[: max(len(word) - 2, 3)]) for word in words]
    if not stems:
        return 0
    found = [(match.start(), match[0].casefold()) for match in re.finditer("|".join(stems), text, re.IGNORECASE)]
    counts = (
        (len({word for at, word in found[number:] if at < start + most * 4 // 5}), -start)
        for number, (start, _) in enumerate(found[:200])
    )
    return -max(counts, default=(0, 0))[1]
