"""From drafts to events with coordinates: event, turn and step indices, and links between calls and results.

A turn is opened by a human request (or, in a sub-agent, by its task); a model response before any
of these opens one too. A step is one model response with the tool executions it asked for: a tool
result belongs to the step of its call, wherever it is in the file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import orjson
from agtrace_schema.events import (
    EVENT_TYPES,
    EventType,
    Notification,
    Outcome,
    Payload,
    TokenUsage,
    ToolCall,
    ToolResult,
    User,
    UserKind,
)
from agtrace_schema.patterns import later
from msgspec import Struct, field

from agtrace_indexer.events.commands import SCRIPTING, Command, is_own
from agtrace_indexer.events.drafts import Draft, Retraction, Settlement
from agtrace_indexer.events.json_values import remember
from agtrace_indexer.events.strings import masked
from agtrace_indexer.events.tools import Tools
from agtrace_indexer.logs.lines import Line

REQUESTS = frozenset({UserKind.HUMAN, UserKind.TASK})
"""The kinds of user texts that ask for work: only these open a turn."""

_STEPS_REMEMBERED = 32
_TURNS_REMEMBERED = 256
_RUNNING_REMEMBERED = 64
_AGENTS_REMEMBERED = 64
_EARLY_REMEMBERED = 64
_UNTIMED = (Outcome.REJECTED, Outcome.RUNNING)
_TWINS = 16
_TWIN = "\n"
"""Follows the id of a call that another one of its response has, too; no id contains it."""


class Event(Struct):
    """An event with its coordinates, before it becomes a row."""

    event_index: int
    type: EventType
    payload: Payload
    timestamp: int | None
    turn_index: int | None
    step_index: int | None
    name: str | None
    """The tool's name, or the kind of a user text or notification."""
    outcome: Outcome | None
    link: int | None
    """For a result: the event_index of its call; for a call: that of its result, if it stands before the call."""
    line: Line
    reports: bool = False
    """For a result: whether its outcome is that of another execution, not of its own call."""
    duration_ms: int | None = None
    """For a result: the time since its call, unless a human was waited for."""
    ends: Sequence[Ending] = ()
    """How earlier calls ended, according to this event."""
    own: bool = False
    """Whether it is a call to agtrace itself, or the result of one."""
    program: str | None = None
    """For a call that runs a command: its first program."""
    files: Mapping[str, str] | None = None
    """The paths that a call names, each with `read` or `write`; for a result, those that its call touched instead."""


class Ending(NamedTuple):
    """The eventual end of an earlier tool execution."""

    event_indices: list[int]
    """Of its call, and of its result if there is one."""
    outcome: Outcome
    duration_ms: int | None = None


class Supersession(NamedTuple):
    """An event that a later one replaces or retracts."""

    event_index: int
    by: int
    """The event_index of the later one."""
    rolled_back: bool = False
    """Whether somebody went back to before it."""


class Thread(Struct):
    """The state of assembling one session. JSON values only: it is stored between two runs."""

    next_index: int = 0
    turn: int = -1
    next_step: int = 0
    replayed_to: int = 0
    """The event_index after the last event that the log itself calls a replay."""
    clustered_to: int = 0
    """The event_index after the last event that was written at the instant the log began."""
    started_by: int | None = None
    """The event_index of the call in the main thread that started this one, if the log says so."""
    steps: dict[str, list[int]] = field(default_factory=dict)
    """Key -> [turn, step] of the newest steps: lines of one response can be interleaved with others."""
    calls: dict[str, list[Any]] = field(default_factory=dict)
    """Id -> [event_index, turn, step, tool, time] of the calls that wait for their result, followed by True if a call
    is to agtrace itself."""
    early: dict[str, list[Any]] = field(default_factory=dict)
    """Id of a call -> [event_index, outcome] of its result, of the newest results that stand before their calls."""
    running: dict[str, list[Any]] = field(default_factory=dict)
    """Id -> [event_index, time, event_index of the result] of the newest calls that were left running."""
    keys: dict[str, int] = field(default_factory=dict)
    """Draft key -> event_index of the event that currently has it."""
    lasting: dict[str, int] = field(default_factory=dict)
    """The same for drafts about the session as a whole, whose keys are never forgotten."""
    answered: dict[str, list[Any]] = field(default_factory=dict)
    """Draft key of a result -> the call it answers: a later version of the result answers it again."""
    agents: dict[str, int] = field(default_factory=dict)
    """Id -> event_index of the newest calls that start a sub-agent."""
    attempts: dict[str, list[Any]] = field(default_factory=dict)
    """Id -> what `landmarks` remembers of the calls that may leave landmarks, until their results."""
    clues: dict[str, Any] = field(default_factory=dict)
    """What `events.clues` remembers of the calls whose results tell of the repository."""
    requests: dict[str, int] = field(default_factory=dict)
    """Draft key of a request -> the turn that it opened: a later version of it opens no new turn."""
    turns: list[int] = field(default_factory=list)
    """The newest turns that were not dropped."""

    def place(self, draft: Draft, line: Line, tools: Tools) -> Event:
        """Give the next draft its coordinates; `tools` are the tools that logs may name."""
        payload = draft.payload
        match payload:
            case ToolResult():
                event = self._answer(draft, payload, line, tools)
            case ToolCall():
                event = self._event(draft, line, payload.name)
                event.own = is_own(payload, draft.command, tools)
                event.program = None if draft.command is None else draft.command.first_program
                event.files = touched(payload, tools, draft.command)
                self._note_call(payload, event, tools, revised=draft.key is not None)
            case TokenUsage():
                event = self._event(draft, line, payload.model)
            case User() | Notification():
                event = self._event(draft, line, str(payload.kind))
                if draft.ends_turn or payload.kind is UserKind.INTERRUPTION:
                    event.ends = self._interrupted(event.turn_index)
            case _:
                event = self._event(draft, line, None)
        self.next_index += 1
        return event

    def _event(self, draft: Draft, line: Line, name: str | None, outcome: Outcome | None = None) -> Event:
        """Give a draft the coordinates of its position in the log."""
        payload = draft.payload
        turn: int | None = None
        step: int | None = None
        if isinstance(payload, User) and payload.kind in REQUESTS:
            turn = self._request(draft.key)
        elif draft.step is not None:
            turn, step = self._in_step(draft.step)
        elif self.turns and not draft.of_session:
            turn = self.turns[-1]
        kind = EVENT_TYPES[type(payload)]
        return Event(self.next_index, kind, payload, draft.timestamp, turn, step, name, outcome, None, line)

    def _answer(self, draft: Draft, result: ToolResult, line: Line, tools: Tools) -> Event:
        """Give a result the coordinates of its call, if that is known: of calls with one id, the first that waits."""
        if result.call_id and result.call_id not in self.calls:
            twins = (result.call_id + _TWIN * number for number in range(1, _TWINS))
            result.call_id = next((twin for twin in twins if twin in self.calls), result.call_id)
        call, outcome, at = self._call_of(draft.key, result.call_id), result.outcome, draft.timestamp
        if call is None:
            if result.call_id:
                remember(self.early, result.call_id, [self.next_index, str(outcome)], _EARLY_REMEMBERED)
            return self._event(draft, line, None, outcome)
        link, turn, step, tool, called_at, *own = call
        if outcome is Outcome.RUNNING and result.call_id:
            remember(self.running, result.call_id, [link, called_at, self.next_index], _RUNNING_REMEMBERED)
        duration = _duration(result, at, called_at, paused=tool in tools.asking)
        kind = EventType.TOOL_RESULT
        return Event(
            self.next_index, kind, result, at, turn, step, tool, outcome, link, line, draft.reports, duration,
            own=bool(own), files=draft.files,
        )  # fmt: skip

    def settle(self, settlement: Settlement) -> Ending | None:
        """Return the events of an execution that has now ended, and how; None if it isn't known to be running."""
        started = self.running.pop(settlement.call_id, None)
        if started is None:
            return None
        call, called_at, result = started
        lasted = None
        if settlement.timestamp is not None and called_at is not None:
            lasted = max(settlement.timestamp - called_at, 0)
        return Ending([call, result], settlement.outcome, lasted)

    def roll_back(self, count: int | None) -> list[int | None]:
        """Drop the last `count` remaining turns, or everything; return their indices, None for what is in no turn."""
        if count is None:
            self.turns, self.steps = [], {}
            return [None, *range(self.turn + 1)]
        if count <= 0:
            return []
        dropped = [*self.turns[-count:]] if count <= len(self.turns) else [*range(self.turn + 1)]
        del self.turns[-count:]
        self.steps.clear()
        return dropped

    def supersede(self, key: str, by: int, remembered: int | None, *, of_session: bool) -> Supersession | None:
        """Note that the event `by` now has a draft's key; return the supersession of the event that had it before."""
        keys = self.lasting if of_session else self.keys
        before = keys.pop(key, None)
        keys[key] = by
        if not of_session and remembered is not None and len(keys) > remembered:
            del keys[next(iter(keys))]
        return None if before is None else Supersession(before, by)

    def retract(self, retraction: Retraction) -> list[Supersession]:
        """Forget its keys; return the events that had them as superseded by the newest event."""
        keys, by = retraction.keys, self.next_index - 1
        gone = {self.requests.pop(key) for key in keys if key in self.requests}
        self.turns = [turn for turn in self.turns if turn not in gone]
        held = (self.keys.pop(key, None) for key in keys)
        return [Supersession(index, by, retraction.rolled_back) for index in held if index is not None]

    def _call_of(self, key: str | None, call_id: str | None) -> list[Any] | None:
        """Return the call that a result answers, even if it was answered before."""
        call = self.calls.pop(call_id, None) if call_id else None
        if key is None:
            return call
        call = call or self.answered.get(key)
        if call:
            self.answered[key] = call
        return call

    def _note_call(self, call: ToolCall, event: Event, tools: Tools, *, revised: bool) -> None:
        if not call.call_id:
            return
        while not revised and self.calls.get(call.call_id, ())[1:3] == [event.turn_index, event.step_index]:
            call.call_id += _TWIN
        if call.call_id in self.early:  # Claude Code writes the lines of parallel calls as they come
            event.link, outcome = self.early.pop(call.call_id)
            event.outcome = Outcome(outcome)
        else:
            place = [event.event_index, event.turn_index, event.step_index, event.name, event.timestamp]
            self.calls[call.call_id] = [*place, True] if event.own else place
        if call.name in tools.starting:
            remember(self.agents, call.call_id, event.event_index, _AGENTS_REMEMBERED)

    def _interrupted(self, turn: int | None) -> list[Ending]:
        """Return the open calls of an interrupted turn; a result that arrives later still sets its own outcome."""
        open_calls = [call[0] for call in self.calls.values() if call[1] == turn]
        return [Ending(open_calls, Outcome.INTERRUPTED)] if open_calls else []

    def _request(self, key: str | None) -> int:
        """Return the turn of a request: a new one, or the one that an earlier version of the request opened."""
        if key is not None and key in self.requests:
            return self.requests[key]
        self._open_turn()
        if key is not None:
            self.requests[key] = self.turn
        return self.turn

    def _in_step(self, key: str) -> list[int]:
        if not self.turns or self.turns[-1] != self.turn:  # before the first turn, or after a dropped one
            self._open_turn()
        place = self.steps.get(key)
        if place is None:
            place = self.steps[key] = [self.turn, self.next_step]
            self.next_step += 1
            if len(self.steps) > _STEPS_REMEMBERED:
                del self.steps[next(iter(self.steps))]
        return place

    def _open_turn(self) -> None:
        self.turn += 1
        self.next_step = 0
        self.turns = [*self.turns[-_TURNS_REMEMBERED + 1 :], self.turn]


def _duration(result: ToolResult, at: int | None, called_at: int | None, *, paused: bool) -> int | None:
    """Return an execution's duration: the log's figure, else the time from call to result unless a human was asked."""
    if result.duration_ms is not None:
        return result.duration_ms
    untold = paused or result.outcome in _UNTIMED
    if untold or called_at is None or at is None or at <= called_at:
        return None
    return at - called_at


# -- files -----------------------------------------------------------------------------------------
# Only arguments whose names say that they are paths count, the file headers of patches, and what a shell command shows.

_MOST_PATHS = 200
_LONGEST_PATH = 1000
_WRITERS = later(r"write|edit|patch|replace|create|update|delete|remove|move|rename|insert|save", re.I)
_OF_PATCHES = frozenset({"input", "patch", "patchText"})
"""Arguments that contain a patch; without one of these, the names of arguments may be the changed files."""

_PATCHED = later(r"^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$|^\*\*\* Move to: (.+?)\s*$", re.M)
_PATCHED_IN_SCRIPT = later(
    r"(?:^|([\"'`])|(?<!\\)\\n)\*\*\* (?:(?:Add|Update|Delete) File|Move to): ((?:(?!\1)[^\\\n]|\\[^n])+)", re.M
)
"""The same in a script of Codex's code mode, in which a patch is a string with escapes, or one string a line."""


_SHOWING = frozenset({"bat", "batcat", "cat", "get-content", "head", "less", "more", "nl", "tail", "type"})
_SEARCHING = frozenset({"egrep", "grep", "rg"})
_MAY_SHOW = later(rf"\b(?:{'|'.join(sorted(_SHOWING | _SEARCHING))}|sed)\b", re.I)
_IN_PLACE = later(r"-\w*i|--in-place")
_FILE = later(r"(?=.*[A-Za-z])[\w.@+~/\\:-]*[\w~]")
_NAMED_FILE = later(r"[\w@+~/\\:-][\w.@+~/\\:-]*\.[A-Za-z]\w{0,9}")


def touched(call: ToolCall, tools: Tools, command: Command | None = None) -> dict[str, str]:
    """Return the paths that a call names, or the command that it has a shell run, each with `read` or `write`."""
    found = dict(_patched(call)) if "patch" in call.name or call.name in tools.patching else {}
    if not found and isinstance(call.arguments, dict):
        named = _named(call.arguments, tools.paths)
        found = dict.fromkeys(named, _access(call.name, tools.editing)) if named else {}
    found = found or _shown(command)
    return found if len(found) <= _MOST_PATHS else dict(islice(found.items(), _MOST_PATHS))


def _shown(command: Command | None) -> dict[str, str]:
    """Return the files that a command shows, as `cat` and `sed -n` do, or searches by name, from its folder on.

    A word that isn't in the command once that is masked is no file: alone it doesn't say that it is a secret.
    """
    if command is None or not _MAY_SHOW.search(command.text):
        return {}
    found, folder, safe = dict[str, str](), "", masked(command.text)
    for part in command.parts:
        words = [word for word in part.words[1:] if not word.startswith("-") and word in safe]
        if part.program == "cd":
            folder = posixpath.join(folder, *words[:1])
        elif part.program in _SEARCHING:
            found |= {posixpath.join(folder, word): "read" for word in words[1:] if _NAMED_FILE.fullmatch(word)}
        elif part.program in _SHOWING or (part.program == "sed" and not any(map(_IN_PLACE.match, part.words))):
            files = words[part.program == "sed" :]
            found |= {posixpath.join(folder, word): "read" for word in files if _FILE.fullmatch(word)}
    return {masked(path): access for path, access in found.items() if len(path) <= _LONGEST_PATH}


def _named(arguments: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    given = [arguments[name] for name in names if name in arguments]
    return [path for path in given if isinstance(path, str) and 0 < len(path) <= _LONGEST_PATH and "\n" not in path]


@lru_cache(maxsize=256)
def _access(tool: str, editing: frozenset[str]) -> str:
    """Return whether a tool reads or writes the files that its calls name."""
    return "write" if tool in editing or _WRITERS.search(tool) else "read"


def _patched(call: ToolCall) -> Iterator[tuple[str, str]]:
    """Return the files of a patch in Codex's format; for a `changes` object, its keys."""
    arguments = call.arguments
    if isinstance(arguments, dict) and "patch" in call.name:
        arguments = arguments.get("changes", arguments)
        if isinstance(arguments, dict) and _OF_PATCHES.isdisjoint(arguments):
            yield from ((path, "write") for path in arguments if "/" in path or "." in path)
            return
    for text in _texts(arguments):
        if "*** " in text:
            in_patch = (match[1] or match[2] for match in _PATCHED.finditer(text))
            for path in _in_script(text) if call.name == SCRIPTING else in_patch:
                yield masked(path, _LONGEST_PATH), "write"


def _in_script(text: str) -> Iterator[str]:
    for match in _PATCHED_IN_SCRIPT.finditer(text):
        if "${" in match[2]:
            continue
        try:
            yield str(orjson.loads(f'"{match[2].strip()}"'))
        except orjson.JSONDecodeError:
            yield match[2].strip()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            if isinstance(inner, (str, list)):
                yield from _texts(inner)
