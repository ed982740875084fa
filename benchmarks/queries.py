"""Queries for the search benchmarks: of mixed kinds, drawn at random from the contents of an index.

`chosen(connection, seed)` returns 59, `held_out(connection, seed)` 60 others on which nothing was tuned. The same seed
and the same logs yield the same queries, whatever the order in which the logs were indexed: words, paths, code and
periods come from some thousand events spread evenly over all sessions.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any, TypeVar

from agtrace_indexer.index.queries import events
from agtrace_indexer.index.queries.events import StoredEvent, with_texts
from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType

T = TypeVar("T")

SEED = 1
HELD_OUT_SEED = 2

_SAMPLED_EVENTS = 6_000
_COMMON_SHARE, _MEDIUM_SHARE = 0.04, 0.008
"""The least share of the sampled events that have a common word, or one of medium frequency."""
_LONG = 1_000

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,30}")
_SPOKEN = re.compile(r"[A-Za-z]+(?: [A-Za-z]+){4,}")
_PATH = re.compile(r"(?:[A-Za-z0-9_-]+/){2,}[A-Za-z0-9_-]+\.[a-z]{1,4}\b")
_CODE = re.compile(
    r"def [a-z_]+\(|class [A-Z]\w+\(|\b[a-z_]+ = \[|-> [A-Za-z]+|\b[a-z_]+\.[a-z_]+\(|if not [a-z_]+:"
    r"|\b\w+\[['\"]\w+['\"]\]|return [a-z_]+\.[a-z_]+|except \w+ as \w+:|[a-z]+ != [a-z]+"
)
_CJK = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]{4,}")
_CJK_OTHERWISE = ("错误日志", "索引文件", "検索結果", "設定画面")

_SHORT = (("q", "z", "7", "#", "x", "0", "~", "k"), ("->", "if", "::", "+=", "zq", "io", "=>", "42"))
_PLAUSIBLE = ("retry", "backlog", "tenant", "quorum", "ledger", "lantern", "throttle", "voucher", "cohort", "beacon")


@dataclass(frozen=True, slots=True)
class Query:
    """A search, with filters named as in the tool `search_event_previews`."""

    kind: str
    """Its kind, such as `rare` or `in a session`."""
    text: str
    session_id: str | None = None
    provider: str | None = None
    project_hash: str | None = None
    event_type: EventType | None = None
    tool: str | None = None
    failed: bool | None = None
    since: str | None = None
    until: str | None = None

    @property
    def filters(self) -> dict[str, Any]:
        """The filters that are set."""
        named = asdict(self)
        return {name: value for name, value in named.items() if name not in ("kind", "text") and value is not None}

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the tool, to find the text itself, newest first."""
        return {**self.ranked, "order": "newest"}

    @property
    def ranked(self) -> dict[str, Any]:
        """The arguments of the tool, to find by words the sessions that the text is about."""
        return {"query": self.text, **self.filters}


def chosen(connection: sqlite3.Connection, seed: int = SEED) -> list[Query]:
    """Return the 59 queries of this seed. `connection` reads an index, with rows by name (`agtrace.index.reader`)."""
    return list(_queries(_Sample.of(connection, Random(seed)), _COUNTS, set()))


def held_out(connection: sqlite3.Connection, seed: int = HELD_OUT_SEED) -> list[Query]:
    """Return 60 others, none of them in `chosen(connection)`, to see whether tuning on those holds in general."""
    counts = {**_COUNTS, "case": _COUNTS["case"] + 1}
    return list(_queries(_Sample.of(connection, Random(seed)), counts, set(chosen(connection))))


@dataclass(slots=True)
class _Session:
    row_id: int
    uid: str
    provider: str
    project_hash: str | None
    event_count: int


@dataclass(frozen=True, slots=True)
class _Event:
    stored: StoredEvent
    session: _Session

    @property
    def text(self) -> str:
        return self.stored.text


@dataclass(slots=True)
class _Sample:
    """Events spread over all sessions, and the number of them that have each word (whole, in lower case)."""

    connection: sqlite3.Connection
    rng: Random
    events: list[_Event]
    words: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, connection: sqlite3.Connection, rng: Random) -> _Sample:
        sample = cls(connection, rng, list(_spread(connection, rng)))
        for event in sample.events:
            sample.words.update({word.lower() for word in _WORD.findall(event.text)})
        return sample

    def event(self) -> _Event:
        return self.rng.choice(self.events)

    def found(self, pattern: re.Pattern[str], wanted: Callable[[str], bool] = bool) -> str:
        """Return a match of a pattern, all events being equally likely. Raises `LookupError` if there is none."""
        for _ in self.events:
            event = self.event()
            matches = [match for match in pattern.findall(event.text) if wanted(match)]
            if matches:
                return str(self.rng.choice(matches))
        raise LookupError(pattern.pattern)

    def word(self, event: _Event, least: int, most: int) -> str | None:
        """Return a word of an event that `least` to `most` of the sampled events have; None if there is none."""
        words = sorted(set(_WORD.findall(event.text)))
        return self._one([word for word in words if least <= self.words[word.lower()] <= most])

    def rare(self) -> str:
        """Return a word that only one of the sampled events has, its longest, as long words are the rarest."""
        for _ in self.events:
            event = self.event()
            words = {str(word) for word in _WORD.findall(event.text) if len(word) > 6 and self.words[word.lower()] == 1}
            if words:
                return max(words, key=lambda word: (len(word), word))
        return "zymurgy"

    def common(self) -> str:
        """Return a word that many events have."""
        return self._one(sorted(word for word, count in self.words.items() if count >= self._common)) or "error"

    def medium(self, event: _Event) -> str:
        """Return a word of an event that a few others have too, or else a more common one."""
        return self.word(event, self._medium, self._common) or self.word(event, 2, len(self.events)) or "error"

    def is_common(self, word: str) -> bool:
        return self.words[word.lower()] >= self._medium

    @property
    def _common(self) -> int:
        return max(3, round(len(self.events) * _COMMON_SHARE))

    @property
    def _medium(self) -> int:
        return max(2, round(len(self.events) * _MEDIUM_SHARE))

    def _one(self, items: list[T]) -> T | None:
        return self.rng.choice(items) if items else None


_SEARCHED = (EventType.USER, EventType.MESSAGE, EventType.TOOL_CALL, EventType.TOOL_RESULT)

_SESSIONS = """
SELECT s.id, s.uid, s.provider, p.hash, (SELECT count(*) FROM event e WHERE e.session_id = s.id)
FROM session s LEFT JOIN project p ON p.id = s.project_id ORDER BY s.uid
"""


def _spread(connection: sqlite3.Connection, rng: Random) -> Iterator[_Event]:
    """Yield events at regular intervals, in order of the sessions' ids, if their text is worth a query."""
    sessions = [_Session(*row) for row in connection.execute(_SESSIONS)]
    total = sum(session.event_count for session in sessions)
    step = max(1, total // _SAMPLED_EVENTS)
    position = rng.randrange(step)
    for session in sessions:
        numbers = list(range(position, session.event_count, step))
        position += len(numbers) * step - session.event_count
        for event in _events_of(connection, session, numbers):
            if event.stored.type in _SEARCHED and event.text:
                yield event


def _events_of(connection: sqlite3.Connection, session: _Session, numbers: list[int]) -> list[_Event]:
    found = [event for event in events.several(connection, session.row_id, numbers) if not event.superseded]
    return [_Event(stored, session) for stored in with_texts(connection, found)]


_RAREST_TOOLS = """
SELECT n.text FROM event e JOIN name n ON n.id = e.name_id WHERE e.type = :call
GROUP BY n.id ORDER BY count(*), n.text LIMIT 2
"""

_CALLS_OF = """
SELECT e.session_id, e.event_index
FROM event e JOIN name n ON n.id = e.name_id JOIN session s ON s.id = e.session_id
WHERE e.type = :call AND n.text = :tool ORDER BY s.uid, e.event_index LIMIT 20
"""


def _queries(sample: _Sample, counts: dict[str, int], seen: set[Query]) -> Iterator[Query]:
    """Yield the given number of each kind, all different, and none in `seen`."""
    for kind, count in counts.items():
        for number in range(count):
            query = next(query for query in _drawn(sample, kind, number) if query not in seen)
            seen.add(query)
            yield query


def _drawn(sample: _Sample, kind: str, number: int) -> Iterator[Query]:
    """Yield queries of a kind, from which the first new one is taken; after 50, a made-up one for a small index."""
    for _ in range(50):
        yield _KINDS[kind](sample, kind, number)
    yield Query(kind, f"{kind} {number}")


def _rare(sample: _Sample, kind: str, number: int) -> Query:
    return Query(kind, sample.rare())


def _common(sample: _Sample, kind: str, number: int) -> Query:
    return Query(kind, sample.common())


def _phrase(sample: _Sample, kind: str, number: int) -> Query:
    words = sample.found(_SPOKEN).split(" ")
    count = sample.rng.randrange(2, 5)
    first = sample.rng.randrange(len(words) - count)
    return Query(kind, " ".join(words[first : first + count]))


def _common_phrase(sample: _Sample, kind: str, number: int) -> Query:
    """Draw three words in a row that are each common, but not together."""
    for spoken in (sample.found(_SPOKEN) for _ in range(200)):
        words = spoken.split(" ")
        first = sample.rng.randrange(len(words) - 2)
        text = " ".join(words[first : first + 3])
        usual = all(map(sample.is_common, words[first : first + 3]))
        if usual and sum(text in event.text for event in sample.events) == 1:
            return Query(kind, text)
    return Query(kind, "the end of the")


def _path(sample: _Sample, kind: str, number: int) -> Query:
    parts = sample.found(_PATH).split("/")
    return Query(kind, "/".join(parts[-sample.rng.randrange(2, 5) :]))


def _file(sample: _Sample, kind: str, number: int) -> Query:
    return Query(kind, sample.found(_PATH).rpartition("/")[2])


def _code(sample: _Sample, kind: str, number: int) -> Query:
    return Query(kind, sample.found(_CODE))


def _middle_of_a_word(sample: _Sample, kind: str, number: int) -> Query:
    """Draw a piece of any word, every second time of a rare one."""
    word = sample.rare() if number % 2 else sample.found(_WORD, lambda word: len(word) > 6)
    size = sample.rng.randrange(4, min(7, len(word) - 1))
    first = sample.rng.randrange(1, len(word) - size)
    return Query(kind, word[first : first + size])


def _short(sample: _Sample, kind: str, number: int) -> Query:
    return Query(kind, sample.rng.choice(_SHORT[number % 2]))


def _cjk(sample: _Sample, kind: str, number: int) -> Query:
    """Draw two or four characters in a row."""
    try:
        run = sample.found(_CJK)
    except LookupError:
        run = sample.rng.choice(_CJK_OTHERWISE)
    size = 2 + 2 * (number % 2)
    first = sample.rng.randrange(len(run) - size + 1)
    return Query(kind, run[first : first + size])


def _no_hit(sample: _Sample, kind: str, number: int) -> Query:
    """Join ordinary words to a name or a phrase that nobody has written."""
    return Query(kind, ("_" if number % 2 else " ").join(sample.rng.sample(_PLAUSIBLE, 4)))


def _long(sample: _Sample, kind: str, number: int) -> Query:
    """Draw 1,000 characters of an event, every second time with a change in the middle, so that no event has them."""
    text = sample.rng.choice([event.text for event in sample.events if len(event.text) > _LONG] or ["x" * _LONG])
    first = sample.rng.randrange(len(text) - _LONG + 1)
    half = first + _LONG // 2
    if number % 2:
        return Query(kind, f"{text[first:half]}\u2260{text[half + 1 : first + _LONG]}")
    return Query(kind, text[first : first + _LONG])


def _case(sample: _Sample, kind: str, number: int) -> Query:
    return Query(kind, sample.rare().swapcase())


def _in_a_session(sample: _Sample, kind: str, number: int) -> Query:
    event = sample.event()
    return Query(kind, sample.medium(event), session_id=event.session.uid)


def _event_type(sample: _Sample, kind: str, number: int) -> Query:
    event = sample.event()
    return Query(kind, sample.common(), event_type=event.stored.type)


def _tool(sample: _Sample, kind: str, number: int) -> Query:
    """Draw a tool with a probability proportional to its use."""
    event = sample.rng.choice([event for event in sample.events if event.stored.type == EventType.TOOL_CALL])
    return Query(kind, sample.common(), tool=event.stored.row.name)


def _rare_tool(sample: _Sample, kind: str, number: int) -> Query:
    """Draw a word from a call of one of the two least used tools that many other events have too."""
    call = TYPE_CODE[EventType.TOOL_CALL]
    tools = [row[0] for row in sample.connection.execute(_RAREST_TOOLS, {"call": call})]
    tool = sample.rng.choice(tools)
    places = sample.connection.execute(_CALLS_OF, {"call": call, "tool": tool})
    calls = with_texts(sample.connection, [events.one(sample.connection, *place) for place in places])
    words = {word for stored in calls for word in _WORD.findall(stored.text)}
    usual = sorted(words, key=lambda word: (-sample.words[word.lower()], word))[:8]
    return Query(kind, sample.rng.choice(usual), tool=tool)


def _failed(sample: _Sample, kind: str, number: int) -> Query:
    return Query(kind, sample.medium(sample.event()), failed=True)


def _day(sample: _Sample, kind: str, number: int) -> Query:
    """Filter by the day of an event that has the word."""
    event = sample.event()
    day = datetime.fromtimestamp(event.stored.row.ts / 1000, UTC).strftime("%Y-%m-%d")
    return Query(kind, sample.medium(event), since=f"{day}T00:00:00Z", until=f"{day}T23:59:59Z")


def _project(sample: _Sample, kind: str, number: int) -> Query:
    event = sample.event()
    return Query(kind, sample.medium(event), project_hash=event.session.project_hash)


def _provider(sample: _Sample, kind: str, number: int) -> Query:
    sessions: dict[str, list[_Event]] = defaultdict(list)
    for event in sample.events:
        sessions[event.session.provider].append(event)
    provider = sample.rng.choice(sorted(sessions))
    return Query(kind, sample.medium(sample.rng.choice(sessions[provider])), provider=provider)


_KINDS: dict[str, Callable[[_Sample, str, int], Query]] = {
    "rare": _rare,
    "common": _common,
    "phrase": _phrase,
    "phrase of common words": _common_phrase,
    "path": _path,
    "file": _file,
    "code": _code,
    "middle of a word": _middle_of_a_word,
    "short": _short,
    "CJK": _cjk,
    "no hit": _no_hit,
    "long": _long,
    "case": _case,
    "in a session": _in_a_session,
    "event type": _event_type,
    "tool": _tool,
    "rare tool": _rare_tool,
    "failed": _failed,
    "day": _day,
    "project": _project,
    "provider": _provider,
}

_COUNTS = dict.fromkeys(_KINDS, 1) | {
    "rare": 7,
    "common": 4,
    "phrase": 5,
    "phrase of common words": 3,
    "path": 4,
    "file": 3,
    "code": 5,
    "middle of a word": 5,
    "short": 4,
    "CJK": 4,
    "no hit": 4,
    "long": 2,
}
