"""Logs that are shortened in place: an agent takes back what was said, and goes on from there in the same session.

Such a log is read again from its beginning, and what it no longer has is put back at its old place, as superseded. So
everything that is still in the log is as if it had been read for the first time, and nothing that was read is lost.
Until all of it has been put back, nothing is committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import PurePath

from agtrace_indexer.events.drafts import Draft, LogState, Said, SessionFacts
from agtrace_indexer.events.identity import line_identity
from agtrace_indexer.index import taken_back
from agtrace_indexer.index.catalog import KnownFile
from agtrace_indexer.index.store import Store
from agtrace_indexer.index.taken_back import Origin, TakenBack
from agtrace_indexer.logs.content import Content
from agtrace_indexer.logs.discovery import Found
from agtrace_indexer.logs.files import CountedFile
from agtrace_indexer.logs.lines import Line, Lines, records_in
from agtrace_indexer.providers.provider import Parser
from agtrace_indexer.providers.registry import AGENTS
from agtrace_indexer.reader.recognition import said_by
from agtrace_indexer.reader.resumption import where_it_ended


def kept_of(store: Store, found: Found, known: KnownFile, file: CountedFile) -> TakenBack | None:
    """Return what a known log no longer has; None if it is another log now, or its agent takes nothing back."""
    stored = store.state(known.id)
    agent = AGENTS[known.provider or ""]
    if not agent.takes_back or stored is None:
        return None
    earlier: dict[str, list[list[int]]] = stored.get("taken_back") or {}
    gone = {thread: {n for first, last in ranges for n in range(first, last + 1)} for thread, ranges in earlier.items()}
    if where_it_ended(store, found, known, file) is None:
        parser, lines = agent.parser(), Lines(Content(file))
        origins = list(taken_back.origins(store.connection, known.id, earlier))
        lost = _lost(origins, _spoken(lines, parser, parser.begin(PurePath(found.path))))
        if len(lost) == len(origins):
            return None
        for origin in lost:
            gone.setdefault(origin.thread, set()).add(origin.event_index)
    events = taken_back.kept(store.connection, known.id, gone)
    facts = {key: SessionFacts(**told) for key, told in stored["parser"]["sessions"].items() if key in events}
    return TakenBack({key: deque(those) for key, those in events.items()}, facts)


def has_taken_back(store: Store, known: KnownFile) -> bool:
    """Whether a log no longer has some of the events that were read of it."""
    if not AGENTS[known.provider or ""].takes_back:
        return False
    return bool((store.state(known.id) or {}).get("taken_back"))


def note(ranges: dict[str, list[list[int]]], thread: str, event_index: int) -> None:
    """Note that an event was taken back; they come in ascending order."""
    known = ranges.setdefault(thread, [])
    if known and known[-1][1] == event_index - 1:
        known[-1][1] = event_index
    else:
        known.append([event_index, event_index])


def _lost(origins: list[Origin], spoken: Iterator[tuple[Line, Collection[Said]]]) -> list[Origin]:
    """Return the events from the first line on that the log no longer has as it was."""
    done = 0
    for offset, group in groupby(origins, attrgetter("offset")):
        events = list(group)
        line, said = next((pair for pair in spoken if pair[0].offset >= offset), (None, ()))
        if line is None or not _has(line, said, events):
            break
        done += len(events)
    return origins[done:]


def _has(line: Line, said: Iterable[Said], events: Iterable[Origin]) -> bool:
    """Whether a line is the one in which these events were read."""
    drafts = [draft for draft in said if isinstance(draft, Draft)]
    ids = {line_identity(draft.identity) for draft in drafts if draft.identity is not None}
    times = {draft.timestamp for draft in drafts}
    return all(
        (event.offset, event.length) == (line.offset, line.text_length)
        and (event.identity is None or event.line_identity in ids)
        and (not times or None in times or event.ts in times)
        for event in events
    )


def _spoken(lines: Iterable[Line], parser: Parser, state: LogState) -> Iterator[tuple[Line, list[Said]]]:
    """Yield the lines of a log, or parts of them, with what they say."""
    for line, value in records_in(lines):
        yield line, said_by(value, parser, state)
