"""What to call after a search: the newest match, or a search that does find something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from agtrace_indexer.index.questions import sessions
from agtrace_indexer.index.questions.filters import EventFilters
from agtrace_indexer.redact import redact
from agtrace_schema.answers import WordCount
from agtrace_schema.patterns import later
from msgspec.structs import replace

from agtrace.problems import Problem, SearchTimeout
from agtrace.search.deadline import Deadline
from agtrace.search.hits import Hit, Order
from agtrace.search.matching import Contains
from agtrace.search.question import Question, snapshot_of
from agtrace.sessions.query import find_session, short_id
from agtrace.settings.limits import limits
from agtrace.text.lines import one_line
from agtrace.text.next_call import NextCall, call
from agtrace.tools.arguments import arguments_of
from agtrace.tools.search_arguments import SearchEventPreviews, matcher_of
from agtrace.tools.tool import Context, event_kilobytes, kilobytes

_DISPENSABLE = ("until", "since", "failed", "kind", "event_type", "tool", "path", "provider", "project", "session_id")
"""The arguments that only narrow a search, in the order in which one that finds nothing is tried without them."""

_LONGEST_CALL = 300
"""The most characters of a call in a hint."""

_MOST_WORDS = 8
"""The most words of a query that are counted one by one."""

_COUNTED = 100
"""The count of events with a word stops here: how common it is beyond that doesn't matter."""

_SECONDS = 0.5
"""The limit for each search that looks for a better query."""

_SECONDS_IN_ALL = 2.0
"""The limit for all of them together."""

_FOR_LAST_WORD = 1.0
"""Seconds for finding the newest match of all."""

_PREVIEW_BYTES = 600
"""The approximate size of a match in an answer."""

_AROUND = 300
_PART_OF_ID = later(r"(?:agent-)?[0-9a-f][0-9a-f-]{7,}", re.IGNORECASE)


# -- where something was found ---------------------------------------------------------------------


def after_hits(
    context: Context, wanted: SearchEventPreviews, asked: Question, hits: list[Hit], deadline: Deadline, *, first: bool
) -> tuple[NextCall, ...]:
    """Return the call that opens the first match of the page, and one for the newest if later events match too."""
    shows_newest = first and wanted.order != "oldest"
    what = "the newest match" if shows_newest else "the first of these"
    opens = _opens(context, hits[0], f"opens {what}")
    later = None if shows_newest else _last_word(context, asked, deadline)
    if later is None or later.place <= max(hit.place for hit in hits):
        return (opens,)
    return (opens, _opens(context, later, "opens the newest", before=" Later events match too: "))


def _last_word(context: Context, asked: Question, deadline: Deadline) -> Hit | None:
    """Return the newest match of all; None if it isn't found in time."""
    now = replace(asked, order=Order.NEWEST, snapshot=snapshot_of(context.connection))
    with suppress(SearchTimeout):
        return next(iter(now.page(1, None, deadline.at_most(_FOR_LAST_WORD)).hits), None)
    return None


def _opens(context: Context, hit: Hit, says: str, *, before: str = "") -> NextCall:
    connection = context.connection
    session_id = short_id(connection, sessions.id_of(connection, hit.session_row))
    opened = call("get_event_details", session_id=session_id, event_index=hit.event_index)
    return opened.saying(says, event_kilobytes(connection, hit.session_row, hit.event_index), before=before)


# -- where nothing was found -----------------------------------------------------------------------


def after_nothing(
    context: Context, wanted: SearchEventPreviews, asked: Question, left_out: int, deadline: Deadline
) -> tuple[list[WordCount], NextCall]:
    """Return how often each word of an unsuccessful query occurs, and a call that finds something."""
    search = _Alternatives(wanted, asked, deadline)
    words = search.words()
    hint = session_named(context, wanted.query) or search.hint(words)
    if hint is None and left_out:
        hint = search.call(left_out, "finds calls to agtrace itself", include_own=True)
    shorter = "; or try a shorter piece of the text."
    hint = hint or call("list_sessions").saying("lists the sessions", kilobytes(0, limits().usual), after=shorter)
    if left_out:
        also = f" Left out: {left_out} calls to agtrace itself or their results (include_own)."
        hint = replace(hint, after=hint.after + also)
    return words if wanted.words is None else [], hint


def session_named(context: Context, query: str) -> NextCall | None:
    """Return the call that opens a session if the query is its id or a prefix of it."""
    given = query.strip()
    if not _PART_OF_ID.fullmatch(given):
        return None
    try:
        session = find_session(context.connection, given)
    except Problem:
        return None
    opens = call("get_session_details", session_id=short_id(context.connection, session.uid))
    return opens.saying("opens the session with this id", kilobytes(0, limits().usual))


_STORED = {"session_id": "session_row", "project": "projects"}
"""Arguments -> their names as filters, where these differ."""


class _Alternatives:
    """Alternatives to a search that found nothing."""

    def __init__(self, wanted: SearchEventPreviews, asked: Question, deadline: Deadline) -> None:
        self._wanted, self._asked, self._deadline = wanted, asked, deadline.at_most(_SECONDS_IN_ALL)

    def words(self) -> list[WordCount]:
        """Return how many events that pass the filters contain each word; empty for a single word.

        A secret isn't counted: on its own, without the name before it, it might not be recognized as one.
        """
        shown = redact(self._wanted.query)
        words = [word for word in dict.fromkeys(self._wanted.query.split()) if word in shown]
        if self._wanted.regex or len(words) < 2:
            return []
        return [self._count_of(word) for word in words[:_MOST_WORDS]]

    def hint(self, words: list[WordCount]) -> NextCall | None:
        """Return the call closest to the query that finds something; None if there isn't any."""
        return next((hint for hint in self._hints(words) if hint is not None), None)

    def call(self, found: int, says: str, *, argument: str = "", **changed: Any) -> NextCall | None:
        """Return the same call with these arguments changed; None if it is too long for a hint."""
        given = arguments_of(self._wanted)
        given.pop("cursor", None)
        other = call("search_event_previews", **(given | changed))
        size = kilobytes(0, _AROUND + _PREVIEW_BYTES * min(found, self._wanted.limit))
        return other.saying(says, size, argument=argument) if len(other.written) <= _LONGEST_CALL else None

    def _hints(self, words: list[WordCount]) -> Iterator[NextCall | None]:
        if words and all(word.events or not word.exact for word in words):
            yield from self._with_all_words(self._wanted.query.split())
        yield from self._without_filters()
        found = [word for word in words if word.events]
        if 1 < len(found) < len(words):
            yield from self._with_all_words([word.word for word in found])
        if found:
            rarest = min(found, key=lambda word: word.events)
            word = next(word for word in self._wanted.query.split() if one_line(word, 50) == rarest.word)
            yield self.call(rarest.events, "finds the rarest of the words", query=word, words=None)

    def _with_all_words(self, words: list[str]) -> Iterator[NextCall | None]:
        """Yield the search for all of these words in one event, or otherwise in one turn."""
        for within in {None: ("event", "turn"), "event": ("turn",)}.get(self._wanted.words, ()):
            query = " ".join(words)
            other = replace(self._wanted, query=query, words=within)
            if found := self._found(replace(self._asked, matcher=matcher_of(other))):
                which = "all words" if len(words) == len(self._wanted.query.split()) else "the remaining words"
                yield self.call(found, f"finds {which} in one {within}", query=query, words=within)

    def _without_filters(self) -> Iterator[NextCall | None]:
        """Yield the search without each filter that hides matches, then without all of them."""
        given = [name for name in _DISPENSABLE if getattr(self._wanted, name) is not None]
        everything = EventFilters(without_own=self._asked.filters.without_own)
        if not given or not (in_all := self._found(replace(self._asked, filters=everything))):
            return
        for name in given:
            without: dict[str, Any] = {name: None}
            dropped: dict[str, Any] = {_STORED.get(name, name): None}
            left = replace(self._asked.filters, **dropped)
            if found := self._found(replace(self._asked, filters=left)):
                yield self.call(found, "finds matches that {} hides", argument=name, **without)
        without_all: dict[str, Any] = dict.fromkeys(given)
        yield self.call(in_all, "finds matches that the filters together hide", **without_all)

    def _count_of(self, word: str) -> WordCount:
        asked = replace(self._asked, matcher=Contains(word))
        events, exact = asked.count(_COUNTED, self._deadline.at_most(_SECONDS))
        return WordCount(word=one_line(word, 50), events=events, exact=exact)

    def _found(self, asked: Question) -> int:
        """Return about how many hits another search has."""
        return asked.count(self._wanted.limit, self._deadline.at_most(_SECONDS))[0]
