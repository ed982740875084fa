"""The history of one session as detectors see it: plain values in file order.

Times are milliseconds since 1970 UTC, 0 if unknown. Superseded events, and events copied from an older log, are left
out, so that a failure in two logs is found once. Of long texts only the beginning and the end are kept (`KEPT`
characters of each): a finding is about what was done, not about every word of it.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias, TypeVar

import orjson
from agtrace_indexer.index.queries import histories
from agtrace_indexer.index.queries.histories import PastEvent
from agtrace_indexer.index.queries.sessions import Session
from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODES
from agtrace_schema.events import EventType, Json, Outcome, Provider, UserKind
from msgspec import Struct

from agtrace.sessions.prices import PriceTable
from agtrace.text.lines import NO_TOOL

T = TypeVar("T")

KEPT = 4_000
"""Characters kept of the beginning, and of the end, of a longer text."""

_CLOCKS_DIFFER_MS, _MANY_AT_ONCE = 60_000, 20


def derived(find: Callable[[History], T]) -> Callable[[History], T]:
    """Make a function of a history keep what it returns in `history.derived`."""

    @wraps(find)
    def kept(history: History) -> T:
        if find.__name__ not in history.derived:
            history.derived[find.__name__] = find(history)
        result: T = history.derived[find.__name__]
        return result

    return kept


@dataclass(slots=True)
class Call:
    """A tool call and its result."""

    event_index: int
    turn: int | None
    step: int | None
    at: int
    tool: str
    arguments: Json
    action: bytes
    """A digest of tool and arguments, equal for equal calls."""
    outcome: Outcome
    """Unknown if there is no result."""
    reports: bool = False
    """Whether what failed is another execution, which it only asked about."""
    result_event: int | None = None
    """The event of the result; None if the log has none."""
    answered_at: int = 0
    result: str = ""
    result_chars: int = 0
    """Characters of the whole result."""
    exit_code: int | None = None
    duration_ms: int | None = None
    """From call to result; None if unknown, or if a human was asked."""
    reads: tuple[str, ...] = ()
    """Files that it reads, as the log names them."""
    writes: tuple[str, ...] = ()
    agent: bool = False
    """Whether it started a sub-agent that is in the index."""
    script: str | None = field(default=None, repr=False, compare=False)
    """The shell command, cached by `actions`, which determines it; empty if there is none."""
    changed: tuple[Any, ...] | None = field(default=None, repr=False, compare=False)
    """What it changes in files, cached by `changes`, which determines it."""

    @property
    def failed(self) -> bool:
        """Whether it failed, according to the log."""
        return self.outcome is Outcome.FAILED

    @property
    def evidence(self) -> int:
        """The event that shows its outcome: the result if there is one, else the call."""
        return self.event_index if self.result_event is None else self.result_event


class UserText(Struct):
    """A text in the user's role, by the human or inserted by the agent's harness."""

    event_index: int
    turn: int | None
    at: int
    kind: UserKind
    text: str
    opens_turn: bool
    """Whether it is a request of a human (or of the parent agent)."""


class Message(Struct):
    """A text of the model to the user."""

    event_index: int
    turn: int | None
    step: int | None
    """None if the agent wrote it itself, without asking a model."""
    at: int
    text: str


class Thought(Struct):
    """A thought of the model; its text doesn't matter here."""

    event_index: int
    turn: int | None
    step: int | None
    at: int


class Usage(Struct):
    """The token usage of one response; None if unknown."""

    event_index: int
    turn: int | None
    step: int | None
    at: int
    model: str | None
    input_tokens: int | None
    cache_creation_tokens: int | None
    cache_read_tokens: int | None
    output_tokens: int | None
    context_window: int | None
    """From the log, else from the price table; None if neither has it."""
    missed_usd: float = 0
    """What it costs to write a token to the cache instead of reading it from there."""

    @property
    def whole_input(self) -> int | None:
        """All input tokens, cached or not: what filled the context window; None for a sum over several responses."""
        known = self._known_input
        return sum(known) if known and self.step is not None else None

    @property
    def total(self) -> int:
        """Input and output."""
        return sum(self._known_input) + (self.output_tokens or 0)

    @property
    def _known_input(self) -> list[int]:
        return [f for f in (self.input_tokens, self.cache_creation_tokens, self.cache_read_tokens) if f is not None]


class Notice(Struct):
    """Any other record: errors of the model's API, compactions, messages of the harness."""

    event_index: int
    turn: int | None
    at: int
    kind: str
    """As in `agtrace_schema.events.Notification`."""
    text: str


Entry: TypeAlias = Call | UserText | Message | Thought | Usage | Notice
"""Each has `event_index`, `turn` and `at`."""


def of_one_response(one: Call | Message | Thought, other: Call | Message | Thought) -> bool:
    """Whether both belong to one response of the model; False if the log doesn't tell responses apart."""
    return one.step is not None and (one.turn, one.step) == (other.turn, other.step)


@dataclass
class History:
    """The history of one session. Detectors only read it."""

    provider: Provider
    entries: list[Entry]
    """In file order; a call is at the place of the call, not of its result."""
    turns: int
    at_work: bool = False
    """Whether the log grew a moment ago, so that how it ends isn't known yet."""
    cwd: str | None = None
    """The folder in which the session began."""
    continued: bool = False
    """Whether another session began with its plan at the moment at which it ended."""
    agents: dict[int, str] = field(default_factory=dict)
    """The sub-agent session started by each call, by the call's event."""
    derived: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """A cache of what detectors derive from the history and share."""

    @cached_property
    def timed(self) -> bool:
        """Whether its times can tell durations: not if time runs backwards, or many entries share one second, as in
        logs that were written anew.
        """
        times = [entry.at for entry in self.entries if entry.at]
        if any(later < earlier - _CLOCKS_DIFFER_MS for earlier, later in pairwise(times)):
            return False
        same = max(Counter(at // 1000 for at in times).values(), default=0)
        return same < _MANY_AT_ONCE or 2 * same < len(times)

    @cached_property
    def calls(self) -> list[Call]:
        """The tool calls."""
        return [entry for entry in self.entries if isinstance(entry, Call)]

    @cached_property
    def said(self) -> list[UserText]:
        """The texts in the user's role."""
        return [entry for entry in self.entries if isinstance(entry, UserText)]

    @cached_property
    def requests(self) -> list[UserText]:
        """The requests that opened the turns, by the human or the parent agent."""
        return [entry for entry in self.said if entry.opens_turn]

    @cached_property
    def messages(self) -> list[Message]:
        """The messages of the model."""
        return [entry for entry in self.entries if isinstance(entry, Message)]

    @cached_property
    def usages(self) -> list[Usage]:
        """The token usage of the responses."""
        return [entry for entry in self.entries if isinstance(entry, Usage)]

    @cached_property
    def notices(self) -> list[Notice]:
        """The other records."""
        return [entry for entry in self.entries if isinstance(entry, Notice)]


# -- history reader --------------------------------------------------------------------------------
# Reading a session's history from the index for the detectors: each block is opened once. Only the beginnings and ends
# of texts are kept, so that long ones take no more memory than others.

AT_WORK_SECONDS = 600
"""A session whose last event is younger than this may still continue."""

_LONGEST_ARGUMENT = 20_000
_LEVELS = 6


def is_at_work(session: Session, now: float) -> bool:
    """Return whether the log of a session grew a moment ago; `now` is seconds since 1970 UTC."""
    return not session.gone and abs(now - (session.ended_at or 0) / 1000) < AT_WORK_SECONDS


def read_history(connection: sqlite3.Connection, session: Session, *, now: float, prices: PriceTable) -> History:
    """Return the history of a session, without copies and superseded events; `now` is seconds since 1970 UTC."""
    reading = _Reading(connection, session.id, prices)
    return History(
        provider=session.provider,
        entries=reading.entries(),
        turns=session.turn_count,
        at_work=is_at_work(session, now),
        cwd=session.cwd,
        continued=histories.is_carried_out(connection, session.id),
        agents=reading.agents,
    )


class _Reading:
    """A reading of one session."""

    def __init__(self, connection: sqlite3.Connection, session_row: int, prices: PriceTable) -> None:
        self._connection, self._row, self._prices = connection, session_row, prices
        self._events = histories.events(connection, session_row)
        self.agents = histories.agents(connection, session_row)
        """The ids of the sub-agents that calls started, by the event of the call."""

    def entries(self) -> list[Entry]:
        """Return everything that happened, in file order."""
        calls = self._calls()
        texts, requests = self._texts(), histories.requests(self._connection, self._row)
        usages = histories.token_figures(self._connection, self._row)
        entries: list[Entry] = []
        for row in self._events:
            match EVENT_TYPE_CODES[row.type]:
                case EventType.TOOL_CALL:
                    entries.append(calls[row.event_index])
                case EventType.TOOL_RESULT:
                    call = calls.get(row.link) if row.link is not None else None
                    if call is None or call.result_event not in (None, row.event_index):
                        call = calls[row.event_index]
                        entries.append(call)
                    call.result, call.result_chars = texts[row.event_index]
                case EventType.USER:
                    kind = UserKind(row.name) if row.name else UserKind.INJECTED
                    opens = row.event_index in requests
                    entries.append(
                        UserText(row.event_index, row.turn, row.ts, kind, texts[row.event_index].kept, opens)
                    )
                case EventType.MESSAGE:
                    said = texts[row.event_index].kept
                    entries.append(Message(row.event_index, row.turn, row.step, row.ts, said))
                case EventType.REASONING:
                    entries.append(Thought(row.event_index, row.turn, row.step, row.ts))
                case EventType.TOKEN_USAGE:
                    if row.event_index in usages:
                        entries.append(self._usage(row, usages[row.event_index]))
                case EventType.NOTIFICATION:
                    said = texts[row.event_index].kept
                    entries.append(Notice(row.event_index, row.turn, row.ts, row.name or "", said))
        return entries

    def _calls(self) -> dict[int, Call]:
        """Return the calls by event, without the results' texts; a result without a call is listed by its own event."""
        reads, writes = self._touched()
        rows = {row.event_index: row for row in self._events}
        calls: dict[int, Call] = {}
        told = [(rows[event], rest) for event, rest in histories.payloads(self._connection, self._row) if event in rows]
        # results may stand before their calls in a log
        for row, rest in sorted(told, key=lambda one: EVENT_TYPE_CODES[one[0].type] is EventType.TOOL_RESULT):
            kind = EVENT_TYPE_CODES[row.type]
            if kind not in (EventType.TOOL_CALL, EventType.TOOL_RESULT):
                continue
            if kind is EventType.TOOL_RESULT:
                call = calls.get(row.link) if row.link is not None else None
                if call is not None and call.result_event is None:
                    call.result_event = row.event_index
                    _end(call, row, rest)
                    continue
            arguments = rest.get("arguments") if kind is EventType.TOOL_CALL else None
            call = Call(
                event_index=row.event_index,
                turn=row.turn,
                step=row.step,
                at=row.ts,
                tool=row.name or NO_TOOL,
                arguments=_short(arguments),
                action=_action(row, arguments),
                outcome=Outcome.UNKNOWN if row.outcome is None else OUTCOME_CODES[row.outcome],
                duration_ms=row.duration_ms,
                reads=tuple(reads.get(row.event_index, ())),
                writes=tuple(writes.get(row.event_index, ())),
                agent=row.event_index in self.agents,
            )
            if kind is EventType.TOOL_RESULT:
                call.result_event = row.event_index
                _end(call, row, rest)
            calls[row.event_index] = call
        return calls

    def _texts(self) -> dict[int, _Text]:
        """Return the texts that detectors read, by event; those of tool calls aren't needed, as they have arguments."""
        wanted = {
            row.event_index
            for row in self._events
            if EVENT_TYPE_CODES[row.type] not in (EventType.TOOL_CALL, EventType.TOKEN_USAGE, EventType.REASONING)
        }
        result = {}
        for first, block in histories.texts(self._connection, self._row):
            for number in range(len(block.ends)):
                if first + number in wanted:
                    result[first + number] = _Text.of(block.text(number))
        return result

    def _touched(self) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
        reads: dict[int, list[str]] = defaultdict(list)
        writes: dict[int, list[str]] = defaultdict(list)
        for event_index, access, path in histories.touched(self._connection, self._row):
            (writes if access == "write" else reads)[event_index].append(path)
        return reads, writes

    def _usage(self, row: PastEvent, figures: Sequence[Any]) -> Usage:
        model, fresh, short_lived, long_lived, cached, output, window = figures
        created = None if short_lived is None and long_lived is None else (short_lived or 0) + (long_lived or 0)
        return Usage(
            event_index=row.event_index,
            turn=row.turn,
            step=row.step,
            at=row.ts,
            model=model,
            input_tokens=fresh,
            cache_creation_tokens=created,
            cache_read_tokens=cached,
            output_tokens=output,
            context_window=window or self._prices.window(model),
            missed_usd=self._prices.missed(model, lasting=(long_lived or 0) > (short_lived or 0)),
        )


class _Text(NamedTuple):
    """The kept beginning and end of a text."""

    kept: str
    chars: int

    @classmethod
    def of(cls, text: str) -> _Text:
        if len(text) <= 2 * KEPT:
            return cls(text, len(text))
        return cls(f"{text[:KEPT]}\n...\n{text[-KEPT:]}", len(text))


def _end(call: Call, row: PastEvent, rest: dict[str, Any]) -> None:
    """Record the outcome of a call; of one that asked about another execution, how that ended."""
    if row.outcome is not None and OUTCOME_CODES[row.outcome] is Outcome.FAILED:
        call.reports, call.outcome = call.outcome is Outcome.OK, Outcome.FAILED
    call.answered_at = row.ts
    call.exit_code = rest.get("exit_code")


def _action(row: PastEvent, arguments: Json) -> bytes:
    """Return a digest, equal for calls of one tool with equal arguments; without arguments, equal to no other."""
    said = row.event_index if arguments is None else [row.name, arguments]
    return blake2b(orjson.dumps(said, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def _short(value: Any, levels: int = _LEVELS) -> Json:
    """Cut the middle out of very long texts in arguments."""
    if isinstance(value, str):
        half = _LONGEST_ARGUMENT // 2
        return value if len(value) <= _LONGEST_ARGUMENT else f"{value[:half]}\n...\n{value[-half:]}"
    if isinstance(value, dict):
        return {key: _short(item, levels - 1) for key, item in value.items()} if levels else None
    if isinstance(value, list):
        return [_short(item, levels - 1) for item in value] if levels else None
    return value  # type: ignore[no-any-return]
