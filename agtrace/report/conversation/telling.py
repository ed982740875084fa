"""A session told in order, as a person reads it: turns, requests, messages, thoughts, calls with what came of them.

Each item is made when it is asked for, so that a long session takes no more memory than its largest event.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from agtrace_indexer.events.searchable_text import without_preface
from agtrace_indexer.index.questions import events, sessions, turns
from agtrace_indexer.index.questions.events import Placed
from agtrace_indexer.index.questions.sessions import Session
from agtrace_indexer.index.questions.texts import ReadText, StoredEvent, text_reader
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.answers import SessionStats, WithChildren
from agtrace_schema.events import EventType, Outcome, UserKind
from agtrace_schema.model import dump
from agtrace_schema.patterns import later
from msgspec import Struct
from msgspec.structs import replace

from agtrace.problems import SessionNotFound
from agtrace.report.conversation.cleaning import Cleaner, said
from agtrace.sessions.landmarks import said as done_in_words
from agtrace.sessions.listing import session_head
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import labels
from agtrace.sessions.query import last_event_of, short_id
from agtrace.sessions.said import human_words
from agtrace.sessions.turns import check_turn, last_outcome, telling_argument, why_unknown
from agtrace.text.failing_lines import found as failures_in
from agtrace.text.lines import LABEL, NO_TOOL, PATH
from agtrace.text.numbers import counted, dollars, how_made, seconds
from agtrace.times import iso

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
    """The part of a session to tell: its first and last event, and its first and last turn; None for all turns."""

    first_event: int
    last_event: int
    turns: tuple[int, int] | None


class Turn(NamedTuple):
    """The beginning of a turn."""

    number: int
    time: str | None
    copied: bool


class Request(NamedTuple):
    """What the model was asked: `label` is Request, Task or Command."""

    label: str
    text: str
    images: tuple[Image, ...] = ()


class Said(NamedTuple):
    """A text of the model."""

    text: str


class Folded(NamedTuple):
    """A text that is for those who want to know: the model's thinking, the summary after a compaction."""

    label: str
    text: str
    event: int
    """Its index in the session."""


class Execution(NamedTuple):
    """A tool call with what came of it."""

    tool: str
    about: str
    """The most telling argument, on one line; may be empty."""
    outcome: Outcome
    duration_ms: int | None
    exit_code: int | None
    given: Any
    """The arguments as the model gave them, cleaned."""
    result: str | None
    error: str | None
    """Of a failed call, the line that tells why."""
    agent: str | None
    """The id of the sub-agent that it started."""
    event: int
    """The index of the call in the session, or that of the result if there is no call."""
    objection: str | None = None
    """What the human said who refused it."""
    images: tuple[Image, ...] = ()
    """Those in its result."""

    @property
    def arguments(self) -> str:
        """Its arguments as text."""
        return written(self.given)


class Mark(NamedTuple):
    """Something that happened, as a line."""

    text: str


class Passed(NamedTuple):
    """A text that the agent's program added, which is not part of the conversation."""


Item: TypeAlias = Turn | Request | Said | Folded | Execution | Mark | Passed


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


def told(
    connection: sqlite3.Connection, session: Session, part: Part, cleaner: Cleaner, images: ImagesOf | None = None
) -> Iterator[Item]:
    """Yield the items of a part of a session, in file order, all texts cleaned; without `images`, they have none."""
    telling = Telling(connection, session, cleaner, images)
    turn: int | None = None
    for placed in _with_command(connection, session, part):
        if placed.turn_index is not None and placed.turn_index != turn:
            turn = placed.turn_index
            yield Turn(turn, iso(placed.event.ts), placed.copied_turn)
        item = telling.item(placed)
        if item is not None:
            yield item


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


def typed_before(connection: sqlite3.Connection, session: Session, telling: Telling, turn: turns.Turn) -> str:
    """Return the command of the agent that led to a turn without a request: it comes just before; empty if none did."""
    found = _command_before(connection, session, turn)
    item = None if found is None else telling.item(found)
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


class Telling:
    """Makes items of events, and remembers the text opened last for the next one. For one thread."""

    def __init__(
        self, connection: sqlite3.Connection, session: Session, cleaner: Cleaner, images: ImagesOf | None = None
    ) -> None:
        self._connection, self._session, self._cleaner = connection, session, cleaner
        self._images: ImagesOf = images or (lambda event: ())
        self._read, self._read_result = text_reader(connection), text_reader(connection)
        agent = AGENTS[session.provider]
        self._notices, self._header = agent.notices, agent.output_header
        self._folder = cleaner.line(session.cwd or session.root_path or "", _ARGUMENT)

    def item(self, placed: Placed) -> Item | None:
        """Return the item of an event; None if it has nothing to tell."""
        if placed.event.type == EventType.TOKEN_USAGE:
            return None
        event, text = self._read(placed.event), self._cleaner.text
        match event.type:
            case EventType.MESSAGE:
                return Said(text(event.text)) if event.text.strip() else None
            case EventType.REASONING:
                return Folded("Thinking", text(event.text), event.event_index) if event.text.strip() else None
            case EventType.TOOL_CALL:
                return self._execution(event, result_of(self._connection, event, self._read_result))
            case EventType.TOOL_RESULT:
                return self._execution(None, event)
            case EventType.USER:
                return self._user(event, opens=placed.opens_turn)
            case _:
                return self._notice(event)

    def _user(self, event: StoredEvent, *, opens: bool) -> Item | None:
        said = without_preface(event.text).lstrip() if opens else event.text
        if event.row.name == UserKind.INTERRUPTION:
            return Mark("The user interrupted the model")
        if event.row.name == UserKind.COMPACTION_SUMMARY:
            return Folded("Summary of the conversation so far", self._cleaner.text(said), event.event_index)
        label = _REQUESTS.get(UserKind(event.row.name)) if event.row.name in set(UserKind) else None
        label = label or ("Request" if opens else None)
        if label == "Command":
            said = " ".join(filter(None, map(str.strip, _TYPED.findall(said)))) or said
        return Request(label, self._cleaner.text(said), tuple(filter(None, self._images(event)))) if label else Passed()

    def _notice(self, event: StoredEvent) -> Item:
        kind, text = event.row.name or "", event.text
        if any(sign.fits(kind, text) for sign in self._notices.compactions):
            return Mark("The conversation was compacted")
        if any(sign.fits(kind, text) for sign in self._notices.interruptions):
            return Mark("The user interrupted the model")
        if kind in self._notices.api_errors:
            return Mark(f"The model's API failed: {self._cleaner.line(text, _MARK)}")
        return Passed()

    def _execution(self, call: StoredEvent | None, result: StoredEvent | None) -> Execution:
        one = call or result
        assert one is not None
        arguments = None if call is None else self._cleaner.value(call.rest.get("arguments"))
        output = None if result is None else self._cleaner.text(result.text)
        outcome = one.outcome or Outcome.UNKNOWN
        return Execution(
            tool=self._cleaner.line(one.row.name or NO_TOOL, LABEL),
            about=self._from_here(self._cleaner.line(telling_argument(arguments), _ARGUMENT)),
            outcome=outcome,
            duration_ms=one.row.duration_ms,
            exit_code=None if result is None else result.rest.get("exit_code"),
            given=arguments,
            result=output,
            error=self._error(output) if output and outcome is Outcome.FAILED else None,
            agent=self.agent(call, result),
            event=one.event_index,
            objection=human_words(output) if output and outcome is Outcome.REJECTED else None,
            images=() if result is None else tuple(filter(None, self._images(result))),
        )

    def _from_here(self, argument: str) -> str:
        """Return an argument; a path in the session's folder, which the head names, as it is called from there."""
        inside = argument.removeprefix(self._folder)
        return inside[1:] if inside != argument and inside.startswith(("/", "\\")) and inside[1:] else argument

    def _error(self, output: str) -> str | None:
        body = output if self._header is None else self._header.sub("", output)
        told = error_in(body or output)
        return told and self._cleaner.line(told, _ERROR)

    def agent(self, call: StoredEvent | None, result: StoredEvent | None) -> str | None:
        """Return the id of the sub-agent that a call started; None if it started none, or its log isn't known."""
        if call is not None:
            started = sessions.started_by(self._connection, self._session.id, [call.event_index])
            if started:
                return self._cleaner.line(short_id(self._connection, started[call.event_index]), LABEL)
        named = None if result is None else result.rest.get("agent_id")
        return self._cleaner.line(str(named), LABEL) if named else None


def result_of(connection: sqlite3.Connection, call: StoredEvent, read: ReadText) -> StoredEvent | None:
    """Return the result of a call; None while it has none."""
    if call.row.link is None:
        return None
    found = events.at(connection, call.row.session_row, call.row.link)
    return None if found is None else read(found)


def written(arguments: Any) -> str:
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
    told = (lines[number] for number, _ in failures_in(lines))
    if telling := _first(told):
        return telling
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
    """Turns, requests, messages, calls and marks, in file order."""
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
    items = told(connection, session, part, Cleaner((home,)))
    shown = tuple(item for item in items if not isinstance(item, (Passed, Folded)))
    return Followed(short_id(connection, uid), first_event, shown, bool(session.gone))


# -- head ------------------------------------------------------------------------------------------

_ENDED = {
    "success": "the model had the last word",
    "partial": "the model had the last word; calls had failed on the way",
    "failed": "the last thing that happened failed",
    "no turns": "nobody asked for anything",
    "open call": "the last call has no result",
    "no answer": "the last request has no answer",
    "no results in its log": "unknown, as its log has no results of calls",
}
"""How a session ended, by the outcome of its last turn, or by why that is unknown."""


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
    prices: PriceTable,
) -> Head:
    """Return the head of a session of which only some turns may be told."""
    agent = AGENTS[session.provider].title
    title = cleaner.line(session.title or session.snippet or "", LABEL * 2)
    facts = [*_facts(connection, session, turns, cleaner, prices), Fact("Ended", ended(connection, session))]
    return Head(title or "Untitled session", agent, facts, iso(session.started_at))


def masked(found: Mapping[str, int]) -> Fact:
    """Return the line that says what was masked."""
    return Fact("Masked", said(found))


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


def ended(connection: sqlite3.Connection, session: Session) -> str:
    """Return how a session ended, as words."""
    outcome = last_outcome(connection, session)
    return _ENDED[why_unknown(connection, session) if outcome == "unknown" else outcome]


def when(time: str | None) -> str:
    """Return an ISO time in UTC as people read it: `2026-11-03 10:00 UTC`."""
    return f"{time[:16].replace('T', ' ')} UTC" if time else ""


def took(milliseconds: int | None) -> str:
    """Return the duration of a call: `340 ms`, `2.3 s`, `4 min 10 s`; empty if it is unknown or nothing."""
    if not milliseconds:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    return f"{milliseconds / 1000:.1f} s" if milliseconds < 60_000 else seconds(milliseconds // 1000)
