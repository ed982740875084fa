"""A session as one stream of items, as a person reads it: turns, requests, answers, thoughts, calls with results.

Each item is made when it is asked for, so that a long session takes no more memory than its largest event.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from agtrace_indexer.events.searchable_text import without_preface
from agtrace_indexer.index.queries import events, sessions, turns
from agtrace_indexer.index.queries.events import Event, Placed, StoredEvent, text_reader
from agtrace_indexer.index.queries.sessions import Session
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.answers import SessionStats, WithChildren
from agtrace_schema.events import EventType, Outcome, UserKind
from agtrace_schema.model import dump
from agtrace_schema.patterns import later
from msgspec import Struct
from msgspec.structs import replace

from agtrace.conversation.cleaning import Cleaner, in_words
from agtrace.health.analysis import examinations
from agtrace.problems import SessionNotFound
from agtrace.sessions.landmarks import deeds_phrase as done_in_words
from agtrace.sessions.listing import session_head
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import labels
from agtrace.sessions.query import last_event_of, short_id
from agtrace.sessions.quotes import human_words
from agtrace.sessions.terms import ENDINGS
from agtrace.sessions.turns import check_turn, telling_argument
from agtrace.text.failing_lines import failing_lines_in as failures_in
from agtrace.text.lines import LABEL, NO_TOOL, PATH
from agtrace.text.numbers import counted, dollars, how_made, seconds
from agtrace.times import iso
from agtrace.times import when as minute

if TYPE_CHECKING:
    from agtrace_indexer.reader.images import Image

_ARGUMENT, _ERROR, _MARK = 120, 240, 200
_LOOKED_AT = 2_000
"""The first lines of a result, and as many of its last, in which the line that tells of a failure is sought."""

_CODE_ALONE = later(r"(?i)\s*(?:exit code:?|exited with code) -?\d+\s*|traceback \(most recent call last\):")
"""Lines that tell of a failure but not of why."""

_COMMENT = later(r"\s*(?:#{1,6} |//|/\*|<!--)")
"""How headings and comments begin."""

_TYPED = later(r"<command-(?:name|args)>([^<]*)</command-(?:name|args)>")
"""What the user typed, in the text that an agent makes of a command."""

_ALL = 1 << 62
_BEFORE = 12
"""The events before a turn among which the command is that it follows from."""

_REQUESTS = {UserKind.HUMAN: "Request", UserKind.TASK: "Task", UserKind.COMMAND: "Command"}


class Part(NamedTuple):
    """A part of a session: its first and last event, and its first and last turn; None for all turns."""

    first_event: int
    last_event: int
    turns: tuple[int, int] | None


# Every item has the index of its event in the session, and its time in milliseconds since 1970 UTC, 0 if unknown.


class Origin(NamedTuple):
    """An event of another session, by the id of that as addresses have it."""

    session: str
    event: int


class Turn(NamedTuple):
    """The beginning of a turn."""

    event: int
    time: int
    number: int
    copied: bool
    """Whether all of it is copied from another session."""
    original: Origin | None = None
    """Where it is copied from, if that is known."""


class Request(NamedTuple):
    """What the model was asked: `label` is Request, Task or Command."""

    event: int
    time: int
    label: str
    text: str
    images: tuple[Image, ...] = ()


class Answer(NamedTuple):
    """A text of the model."""

    event: int
    time: int
    text: str


class Thought(NamedTuple):
    """A text for those who want to know: the model's reasoning, or the summary after a compaction."""

    event: int
    time: int
    label: str
    text: str


class Call(NamedTuple):
    """A tool call with its result, or a result whose call isn't known."""

    event: int
    """The index of the call, or that of the result if there is no call."""
    time: int
    tool: str
    about: str
    """The most telling argument, on one line; may be empty."""
    outcome: Outcome
    duration_ms: int | None
    exit_code: int | None
    given: Any
    """The arguments as the model gave them, cleaned."""
    result: str | None
    """None if there is none, or if it wasn't read."""
    error: str | None
    """Of a failed call, the line that tells why."""
    objection: str | None
    """What the human said who refused it."""
    agent: str | None
    """The id of the sub-agent that it started."""
    agent_is_here: bool
    """Whether the index has that sub-agent."""
    result_event: int | None
    images: tuple[Image, ...] = ()
    """Those in its result."""

    @property
    def arguments(self) -> str:
        """Its arguments as text."""
        return arguments_text(self.given)


class Mark(NamedTuple):
    """Something that happened, as a line."""

    event: int
    time: int
    text: str


class Added(NamedTuple):
    """A text that the agent's program added, which is not part of the conversation."""

    event: int
    time: int
    label: str


Item: TypeAlias = Turn | Request | Answer | Thought | Call | Mark | Added


def part_of(connection: sqlite3.Connection, session: Session, asked: tuple[int | None, int | None]) -> Part:
    """Return the part of a session that some turns are, given the first and the last one, or None for either end.

    Raises `InvalidRange` for turns that the session doesn't have.
    """
    last = last_event_of(connection, session)
    if asked == (None, None):
        return Part(0, last, None)
    first_turn, last_turn = asked[0] or 0, asked[1]
    newest = turns.last(connection, session.id)
    for turn in (first_turn if asked[0] is not None else None, last_turn):
        if turn is not None:
            check_turn(connection, session, turn)
    found = turns.page(connection, session.id, from_turn=first_turn, last_event=last, most=1)
    begins = found[0].first_event if found else 0
    return Part(begins, last, (first_turn, newest or 0 if last_turn is None else last_turn))


ImagesOf: TypeAlias = Callable[[StoredEvent], "Iterable[Image | None]"]
"""Returns the images of an event, in which nothing is masked; None for one that can't be shown."""


def items(
    connection: sqlite3.Connection, session: Session, part: Part, cleaner: Cleaner, images: ImagesOf | None = None
) -> Iterator[Item]:
    """Yield the items of a part of a session, in file order, all texts cleaned; without `images`, they have none."""
    reader = ItemReader(connection, session, cleaner, images)
    turn: int | None = None
    for placed in _with_command(connection, session, part):
        if placed.turn_index is not None and placed.turn_index != turn:
            turn = placed.turn_index
            yield turn_of(connection, placed, turn)
        item = reader.item(placed)
        if item is not None:
            yield item


def turn_of(connection: sqlite3.Connection, placed: Placed, number: int) -> Turn:
    """Return the beginning of a turn, given its first event."""
    event = placed.event
    found = events.address(connection, event.copy_of) if event.copy_of and placed.copied_turn else None
    origin = None if found is None else Origin(short_id(connection, found[0]), found[1])
    return Turn(event.event_index, event.ts or 0, number, placed.copied_turn, origin)


def placed_in(connection: sqlite3.Connection, session: Session, part: Part, *, answers: bool) -> Iterator[Placed]:
    """Yield the events of a part; results that their calls link to only if `answers`."""
    then = events.snapshot(connection, session.id, part.last_event)
    for placed in events.of_session(connection, session.id, then, from_event=part.first_event, answers=answers):
        if part.turns is not None:
            if placed.turn_index is None or placed.turn_index < part.turns[0]:
                continue
            if placed.turn_index > part.turns[1]:
                return
        yield placed


def typed_before(connection: sqlite3.Connection, session: Session, reader: ItemReader, turn: turns.Turn) -> str:
    """Return the command of the agent that led to a turn without a request: it comes just before; empty if none did."""
    found = _command_before(connection, session, turn)
    item = None if found is None else reader.item(found)
    return item.text if isinstance(item, Request) else ""


def _command_before(connection: sqlite3.Connection, session: Session, turn: turns.Turn) -> Placed | None:
    part = Part(max(turn.first_event - _BEFORE, 0), turn.first_event, None)
    typed = [
        placed
        for placed in placed_in(connection, session, part, answers=False)
        if placed.event.type is EventType.USER
        and placed.event.name in _REQUESTS
        and placed.turn_index in (None, turn.turn_index)
    ]
    return typed[-1] if typed else None


def _with_command(connection: sqlite3.Connection, session: Session, part: Part) -> Iterator[Placed]:
    """Yield the events of a part; the command that led to the first turn, if that has no request, as one of that."""
    command = _first_command(connection, session)
    if command is not None and part.turns is not None and part.turns[0] == command.turn_index:
        yield command  # it is in no turn, and so in no part of turns
    for placed in placed_in(connection, session, part, answers=False):
        yield command if command is not None and placed.event.event_index == command.event.event_index else placed


def _first_command(connection: sqlite3.Connection, session: Session) -> Placed | None:
    """Return the command before the first turn that led to it, as an event of that turn; None if none did."""
    found = turns.page(connection, session.id, from_turn=0, last_event=_ALL, most=1)
    command = _command_before(connection, session, found[0]) if found and not found[0].request else None
    if command is None or command.turn_index is not None:
        return None
    return replace(command, turn_index=found[0].turn_index, copied_turn=bool(found[0].copied))


class ItemReader:
    """Makes items of events, and remembers the text opened last for the next one. For one thread.

    A result of a call that went well, whose line in the log has more than `longest` bytes, isn't read.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        session: Session,
        cleaner: Cleaner,
        images: ImagesOf | None = None,
        *,
        longest: float = float("inf"),
    ) -> None:
        self._connection, self._session, self._cleaner, self._longest = connection, session, cleaner, longest
        self._images: ImagesOf = images or (lambda event: ())
        self._read, self._read_result = text_reader(connection), text_reader(connection)
        agent = AGENTS[session.provider]
        self._notices, self._header = agent.notices, agent.output_header
        self._folder = cleaner.line(session.cwd or session.root_path or "", _ARGUMENT)

    def item(self, placed: Placed) -> Item | None:
        """Return the item of an event; None if it has nothing to tell."""
        row = placed.event
        if row.type in (EventType.TOOL_CALL, EventType.TOOL_RESULT):
            return self.call(row)
        if row.type == EventType.TOKEN_USAGE:
            return None
        event, text, place = self._read(row), self._cleaner.text, (row.event_index, row.ts or 0)
        match row.type:
            case EventType.MESSAGE:
                return Answer(*place, text(event.text)) if event.text.strip() else None
            case EventType.REASONING:
                return Thought(*place, "Thinking", text(event.text)) if event.text.strip() else None
            case EventType.USER:
                return self._user(event, place, opens=placed.opens_turn)
            case _:
                return self._notice(event, place)

    def added(self, row: Event) -> str:
        """Return the text of an event that the agent's program added."""
        return self._cleaner.text(self._read(row).text).strip("\n")

    def _user(self, event: StoredEvent, place: tuple[int, int], *, opens: bool) -> Item | None:
        said = without_preface(event.text).lstrip() if opens else event.text
        if event.row.name == UserKind.INTERRUPTION:
            return Mark(*place, "The user interrupted the model")
        if event.row.name == UserKind.COMPACTION_SUMMARY:
            return Thought(*place, "Summary of the conversation so far", self._cleaner.text(said))
        label = _REQUESTS.get(UserKind(event.row.name)) if event.row.name in set(UserKind) else None
        label = label or ("Request" if opens else None)
        if label is None:
            return self._by_program(event, place)
        if label == "Command":
            said = " ".join(filter(None, map(str.strip, _TYPED.findall(said)))) or said
        return Request(*place, label, self._cleaner.text(said), tuple(filter(None, self._images(event))))

    def _notice(self, event: StoredEvent, place: tuple[int, int]) -> Item:
        kind, text = event.row.name or "", event.text
        if any(sign.fits(kind, text) for sign in self._notices.compactions):
            return Mark(*place, "The conversation was compacted")
        if any(sign.fits(kind, text) for sign in self._notices.interruptions):
            return Mark(*place, "The user interrupted the model")
        if kind in self._notices.api_errors:
            return Mark(*place, f"The model's API failed: {self._cleaner.line(text, _MARK)}")
        return self._by_program(event, place)

    def _by_program(self, event: StoredEvent, place: tuple[int, int]) -> Added:
        return Added(*place, self._cleaner.line(event.row.name or "notification", LABEL))

    def call(self, row: Event) -> Call:
        """Return the call of an event, which is a tool call, or a result without one."""
        is_result = row.type == EventType.TOOL_RESULT
        linked = row if is_result else None if row.link is None else events.at(
            self._connection, row.session_row, row.link
        )  # fmt: skip
        outcome = row.outcome or Outcome.UNKNOWN
        is_read = linked is not None and (linked.length <= self._longest or outcome is not Outcome.OK)
        call = None if is_result else self._read(row)
        result = self._read_result(linked) if linked is not None and is_read else None
        arguments = None if call is None else self._cleaner.value(call.rest.get("arguments"))
        output = None if result is None else self._cleaner.text(result.text)
        agent = self._agent(call, result)
        return Call(
            event=row.event_index,
            time=row.ts or 0,
            tool=self._cleaner.line(row.name or NO_TOOL, LABEL),
            about=self._from_here(self._cleaner.line(telling_argument(arguments), _ARGUMENT)),
            outcome=outcome,
            duration_ms=row.duration_ms,
            exit_code=None if result is None else result.rest.get("exit_code"),
            given=arguments,
            result=output,
            error=self._error(output) if output and outcome is Outcome.FAILED else None,
            objection=human_words(output) if output and outcome is Outcome.REJECTED else None,
            agent=agent,
            agent_is_here=agent is not None and bool(sessions.with_prefix(self._connection, agent, 1)),
            result_event=None if linked is None else linked.event_index,
            images=() if result is None else tuple(filter(None, self._images(result))),
        )

    def _from_here(self, argument: str) -> str:
        """Return an argument; a path in the session's folder, which the head names, as it is called from there."""
        inside = argument.removeprefix(self._folder)
        return inside[1:] if inside != argument and inside.startswith(("/", "\\")) and inside[1:] else argument

    def _error(self, output: str) -> str | None:
        body = output if self._header is None else self._header.sub("", output)
        line = error_in(body or output)
        return line and self._cleaner.line(line, _ERROR)

    def _agent(self, call: StoredEvent | None, result: StoredEvent | None) -> str | None:
        """Return the id of the sub-agent that a call started; None if it started none, or its log isn't known."""
        if call is not None:
            started = sessions.started_by(self._connection, self._session.id, [call.event_index])
            if started:
                return self._cleaner.line(short_id(self._connection, started[call.event_index]), LABEL)
        named = None if result is None else result.rest.get("agent_id")
        return self._cleaner.line(str(named), LABEL) if named else None


def arguments_text(arguments: Any) -> str:
    """Return arguments as text: a line for each, longer ones below their names."""
    if not isinstance(arguments, dict):
        return arguments if isinstance(arguments, str) else "" if arguments is None else _json(arguments)
    return "\n".join(_argument(name, value) for name, value in arguments.items())


def _argument(name: str, value: Any) -> str:
    text = value if isinstance(value, str) else _json(value)
    text = text.strip("\n")
    return f"{name}:\n{text}" if "\n" in text else f"{name}: {text}"


def _json(value: Any) -> str:
    plain = not isinstance(value, (dict, list)) or len(str(value)) < _ARGUMENT
    return json.dumps(value, ensure_ascii=False, indent=None if plain else 2)


def error_in(output: str) -> str | None:
    """Return the line of an output that tells of the failure, else its first line with a text.

    None if nothing tells of it and the output begins with a heading or a comment: it is what was printed of a file.
    """
    lines = output.split("\n")
    lines = lines if len(lines) <= 2 * _LOOKED_AT else lines[:_LOOKED_AT] + lines[-_LOOKED_AT:]
    if line := _first(lines[number] for number, _ in failures_in(lines)):
        return line
    begins = _first(lines) or lines[0]
    return None if _COMMENT.match(begins) else begins


def _first(lines: Iterable[str]) -> str | None:
    return next((line for line in lines if line.strip() and not _CODE_ALONE.fullmatch(line)), None)


# -- following -------------------------------------------------------------------------------------
# The end of a session, and what comes after it, for somebody who follows it as it goes.

_EVENTS = 400
"""The events at the end of a session with which following begins."""

_KEPT = 1_500
"""The most events that are told; the first of them are then left out."""


class Followed(NamedTuple):
    """The end of a session."""

    session_id: str
    first_event: int
    """The first event that is told."""
    items: tuple[Item, ...]
    """Turns, requests, answers, calls and marks, in file order."""
    log_gone: bool


def followed(connection: sqlite3.Connection, uid: str, first_event: int | None, *, home: str) -> Followed:
    """Return a session from an event on; None begins some hundred events before its end. `home` is
    the user's home folder.

    What the agent's program added, and the model's thinking, is left out. Raises `SessionNotFound`.
    """
    session = sessions.with_id(connection, uid)
    if session is None:
        raise SessionNotFound(uid, [])
    last = events.last(connection, session.id)
    last = -1 if last is None else last
    if first_event is None or last - first_event > _KEPT:
        first_event = max(last + 1 - _EVENTS, 0)
    part = Part(first_event, last, None)
    every = items(connection, session, part, Cleaner((home,)))
    shown = tuple(item for item in every if not isinstance(item, (Added, Thought)))
    return Followed(short_id(connection, uid), first_event, shown, bool(session.gone))


# -- head ------------------------------------------------------------------------------------------

_REASON = 200
"""The most characters of why a session counts as ended like this."""


class Fact(Struct, frozen=True):
    """A line of the head: what it is about, a sentence, and a name from the log, either of which may be empty."""

    name: str
    says: str
    quoted: str = ""


class Head(Struct, frozen=True):
    """The head of a conversation."""

    title: str
    agent: str
    """The agent's display name."""
    facts: list[Fact]
    began: str | None
    """The time in ISO form."""


def head(
    connection: sqlite3.Connection,
    session: Session,
    turns: tuple[int, int] | None,
    cleaner: Cleaner,
    *,
    now: float,
    prices: PriceTable,
) -> Head:
    """Return the head of a session of which only some turns may be told; `now` is seconds since 1970 UTC."""
    agent = AGENTS[session.provider].title
    title = cleaner.line(session.title or session.snippet or "", LABEL * 2)
    ending = examinations(connection, [session], now=now, prices=prices)[session.id].ending
    ended = Fact("Ended", f"{ENDINGS[ending.ending].removeprefix('ended ')},", cleaner.line(ending.reason, _REASON))
    facts = [*_facts(connection, session, turns, cleaner, prices), ended]
    return Head(title or "Untitled session", agent, facts, iso(session.started_at))


def masked(found: Mapping[str, int]) -> Fact:
    """Return the line that says what was masked."""
    return Fact("Masked", in_words(found))


def _facts(
    connection: sqlite3.Connection,
    session: Session,
    turns: tuple[int, int] | None,
    cleaner: Cleaner,
    prices: PriceTable,
) -> Iterator[Fact]:
    about = session_head(connection, session, prices)
    stats = about.stats
    project = labels(connection).get(session.project_id or 0)
    folder = session.cwd or session.root_path
    if about.user:
        yield Fact("User", "", cleaner.line(about.user, LABEL))
    if project:
        yield Fact("Project", "", cleaner.line(project, LABEL * 2))
    if folder:
        yield Fact("Folder", "", cleaner.line(folder, PATH))
    if about.parent_id:
        yield Fact("Part of", f"{about.kind} of", cleaner.line(about.parent_id, LABEL))
    yield Fact("Agent", AGENTS[session.provider].title, cleaner.line(about.version or "", LABEL))
    if about.model:
        yield Fact("Model", "", cleaner.line(about.model, LABEL))
    yield Fact("Session", "", cleaner.line(about.session_id, LABEL * 2))
    if about.start_time:
        yield Fact("Began", when(about.start_time))
    lasted, active = seconds(stats.duration_seconds), seconds(stats.active_seconds)
    if lasted:
        yield Fact("Lasted", f"{lasted}, active {active}" if active and active != lasted else lasted)
    if cost := _cost(stats):
        yield Fact("Cost", cost)
    yield Fact("Size", f"{counted(stats.total_turns, 'turn')}, {_calls(stats)}")
    if stats.done:
        yield Fact("Done", done_in_words(dump(stats.done)))
    if turns is not None:
        shown = f"only turn {turns[0]}" if turns[0] == turns[1] else f"only turns {turns[0]} to {turns[1]}"
        yield Fact("Shown", shown)


def _cost(stats: SessionStats) -> str:
    whole, cost = stats.with_children, _priced(stats)
    if whole is None or whole.cost_usd is None:
        return cost
    return ", ".join(filter(None, (cost, f"{with_agents(whole)} {_priced(whole)}")))


def _priced(sums: SessionStats | WithChildren) -> str:
    return how_made(dollars(sums.cost_usd), sums.cost_made)


def _calls(stats: SessionStats) -> str:
    whole, calls = stats.with_children, counted(stats.tool_calls, "tool call") + _failed(stats.failed_calls)
    return f"{calls}, {with_agents(whole)} {whole.tool_calls:,}{_failed(whole.failed_calls)}" if whole else calls


def _failed(calls: int | None) -> str:
    return f", {calls:,} failed" if calls else ""


def with_agents(whole: WithChildren) -> str:
    """Return what stands before a sum that includes sub-agents: `with 6 sub-agents`."""
    return f"with {counted(whole.sessions - 1, 'sub-agent')}" if whole.sessions > 1 else "with warm-ups"


def when(time: str | None) -> str:
    """Return an ISO time as people read it, with the machine's zone: `2026-11-03 10:00 UTC`."""
    return minute(time, with_zone=True)


def took(milliseconds: int | None) -> str:
    """Return the duration of a call: `340 ms`, `2.3 s`, `4 min 10 s`; empty if it is unknown or nothing."""
    if not milliseconds:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    return f"{milliseconds / 1000:.1f} s" if milliseconds < 60_000 else seconds(milliseconds // 1000)
