"""From the lines of a log to events in the store.

Everything is kept: a line that isn't JSON becomes an event of its own, as does an unknown record, and both are counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from agtrace_schema.events import (
    EventType,
    Notification,
    Outcome,
    OutcomeSource,
    TokenUsage,
    ToolCall,
    ToolResult,
)
from agtrace_schema.landmarks import Landmark

from agtrace_indexer.events import clues
from agtrace_indexer.events.assembly import Event, Supersession, Thread
from agtrace_indexer.events.clues import Clue
from agtrace_indexer.events.commands import shell_command
from agtrace_indexer.events.drafts import Draft, Retraction, Said, Settlement
from agtrace_indexer.events.identity import identity
from agtrace_indexer.events.json_values import compact_json
from agtrace_indexer.events.searchable_text import stored, unmasked
from agtrace_indexer.events.strings import masked
from agtrace_indexer.index.session_buffer import SessionBuffer
from agtrace_indexer.index.store import Store
from agtrace_indexer.landmarks import following
from agtrace_indexer.landmarks.following import Marks
from agtrace_indexer.logs.decoding import crowded, pieces
from agtrace_indexer.logs.files import Progress
from agtrace_indexer.logs.lines import BROKEN, HEAD_OF_LONG_LINE, LONGEST_LINE, Line
from agtrace_indexer.providers.registry import AGENTS, TOOLS
from agtrace_indexer.reader.log import Log
from agtrace_indexer.redact import looked_at
from agtrace_indexer.redact.engine import Noted, looking
from agtrace_indexer.redact.printing import Prints, mask_output, prints

_UNREADABLE_SHOWN = 64 * 1024
_LONGEST_TYPE = 200
_LONGEST_WORD = 4096
_BETWEEN_WORDS = (b" ", b"\t", b"\r", b'"', b"'", b",", b";")


class _Open(NamedTuple):
    """A thread with the rows of its session."""

    thread: Thread
    rows: SessionBuffer


class _Record(NamedTuple):
    """The drafts of one record, before its texts are examined for secrets."""

    line: Line
    drafts: list[Said]
    texts: list[str | Prints]
    """The text of each draft that is to be examined; how a command printed a secret, for what it printed."""
    unknown: tuple[str, ...]
    """Unknown types of records in it."""
    skipped: tuple[str, ...]
    starts: dict[str, str | None]
    """The threads that begin with it, with the calls that started them."""


_MOST_PRINTING = 50
"""The calls that are remembered because their results print a secret."""
_TOGETHER, _MOST_TOGETHER = 128 * 1024, 1000
"""Characters of texts, and records, that are examined together: one by one, each would find the caches cold."""


_MARKING = (ToolCall, ToolResult, Notification)
"""The events that may tell of landmarks."""


class Transcript:
    """Writes what a log says into the store; some lines wait until `settle`."""

    def __init__(self, store: Store, progress: Progress, log: Log) -> None:
        assert log.provider is not None
        self.store, self.progress, self.log = store, progress, log
        self._agent = AGENTS[log.provider]
        self._parser = self._agent.parser()
        self._waiting: list[_Record] = []
        self._noted: list[Noted] = []
        """What was found in the texts of the draft that is being stored."""
        self._size = 0
        self._opened: dict[str, _Open] = {}
        """The threads that were opened since anything was committed."""

    def read_line(self, line: Line, value: Any) -> bool:
        """Read a line that has this value (`values_in`); return False if it is incomplete and must wait."""
        if value is BROKEN:
            self.settle()
            return self._read_broken(line)
        if not line.ended and not isinstance(value, dict):
            return False
        self.read_record(value, line)
        return True

    def _read_broken(self, line: Line) -> bool:
        """Read what is readable in a line that isn't one plain value; return False if it must wait."""
        if not line.whole or crowded(line.data):
            self._keep_head(line)
            return line.ended
        found = pieces(line.data)
        if not line.ended and not (found and all(piece.readable and isinstance(piece.value, dict) for piece in found)):
            return False
        for piece in found:
            part = line.part(piece.start, piece.end)
            if piece.readable:
                self.read_record(piece.value, part)
            else:
                self.settle()
                self._unreadable_record(part)
        return True

    def _keep_head(self, line: Line) -> None:
        """Keep the beginning, the length and the origin of a line that is too long to be parsed.

        While it has no end, it is read again when the file grows, and what is kept then replaces what was kept before.
        """
        head = _beginning(line.data, HEAD_OF_LONG_LINE - (not line.whole))
        note = f"{head.decode('utf-8', 'replace')}\n... (a line of {line.length} bytes, the first {len(head)} are kept)"
        before, thread = self.log.long_tail, self.log.threads.setdefault("", Thread())
        self.log.long_tail = None if line.ended else thread.next_index
        self._note(Notification("oversized_line", note), line)
        if before is not None:
            self._open("").rows.superseded.append(Supersession(before, thread.next_index - 1))
        if line.ended:
            self.log.unreadable_lines += 1
            self.progress.unreadable_lines += 1
        elif line.length > LONGEST_LINE:
            self.log.reason = (
                f"line {line.number} has more than {LONGEST_LINE} bytes: its beginning is kept, the rest isn't read"
            )
        else:
            self.log.reason = f"its last line has {line.length} bytes and no end yet: its beginning is kept"

    def read_record(self, value: Any, line: Line) -> None:
        """Turn one record into drafts, which wait for others, as their texts are examined together."""
        state = self.log.state
        try:
            drafts = list(self._drafts(value))
            texts = [self._text(draft) for draft in drafts]
        except Exception:  # noqa: BLE001  # formats change faster than we do: one record never costs the others
            state.unknown.clear()
            state.skipped.clear()
            self.settle()
            self._unreadable_record(line)
            return
        begun = self.log.threads
        starts = {draft.thread: self._started_by(draft.thread) for draft in drafts if draft.thread not in begun}
        self._waiting.append(_Record(line, drafts, texts, tuple(state.unknown), tuple(state.skipped), starts))
        self._size += sum(len(text) for text in texts if isinstance(text, str))
        state.unknown.clear()
        state.skipped.clear()
        if self._size >= _TOGETHER or len(self._waiting) >= _MOST_TOGETHER:
            self.settle()

    def _text(self, draft: Said) -> str | Prints:
        """Return the text of a draft before it is examined for secrets, or that a command prints one in it.

        Raises an error if it isn't a string.
        """
        if not isinstance(draft, Draft):
            return ""
        payload, printing = draft.payload, self.log.state.printing
        if isinstance(payload, ToolCall):
            command = draft.command = shell_command(payload.name, payload.arguments, TOOLS)
            if command and payload.call_id and (said := prints(command.text)):
                printing[payload.call_id] = said
                for earliest in list(printing)[:-_MOST_PRINTING]:
                    del printing[earliest]
        elif isinstance(payload, ToolResult) and payload.call_id in printing:
            return Prints(printing[payload.call_id])
        return unmasked(payload)

    def settle(self) -> None:
        """Store the events of all waiting records, in order. Nothing may be saved before that."""
        waiting, self._waiting, self._size = self._waiting, [], 0
        texts = (text for record in waiting for text in record.texts if text and isinstance(text, str))
        with looked_at(texts), looking(self._noted):
            for record in waiting:
                try:
                    for draft, examined in zip(record.drafts, record.texts, strict=True):
                        if isinstance(draft, Draft):
                            self._mask(draft, examined)
                except Exception:  # noqa: BLE001  # formats change faster than we do, as above
                    self._unreadable_record(record.line)
                else:
                    self._store(record)
        self._opened.clear()

    def _mask(self, draft: Draft, examined: str | Prints) -> None:
        """Mask the names and texts in a draft, which is then as it is stored; `examined` is what `_text` returned."""
        payload = draft.payload
        self._noted.clear()
        if isinstance(examined, Prints) and isinstance(payload, ToolResult):
            payload.text = mask_output(payload.text, examined, failed=payload.outcome is Outcome.FAILED)
        if isinstance(payload, ToolCall):
            payload.name = masked(payload.name)
        elif isinstance(payload, TokenUsage):
            payload.model = payload.model and masked(payload.model)
            payload.speed = payload.speed and masked(payload.speed)
        elif isinstance(payload, Notification):
            payload.kind = masked(payload.kind)
        draft.text, draft.rest = stored(payload, examined if isinstance(examined, str) else unmasked(payload))
        draft.secrets = self._noted.copy()
        if draft.identity is not None:
            number = identity(draft.identity, draft.text)
            between_two = self._agent.replays_items and not isinstance(payload, TokenUsage)
            draft.number = -number if between_two else number

    def _started_by(self, thread: str) -> str | None:
        """Return the call that started a thread, if known when the thread begins."""
        facts = self.log.state.sessions.get(thread)
        return None if facts is None else facts.started_call

    def _drafts(self, value: Any) -> Iterable[Said]:
        """Return the drafts of a record; JSON that isn't an object counts as a record of an unknown type."""
        if isinstance(value, dict):
            return self._parser.drafts(value, self.log.state)
        self.log.state.unknown.append("a value that is no object")
        return [Draft(Notification("unknown/value", compact_json(value)), None)]

    def _is_repeated(self, said: Iterable[Said]) -> bool:
        """Whether this log already has all of this from the same line: some agents append their history again."""
        repeated = False
        for one in said:
            if not isinstance(one, Draft) or one.number is None or isinstance(one.payload, TokenUsage):
                continue
            if one.thread in self.log.threads:
                repeated = self._open(one.thread).rows.has_identity(one.number)
                if not repeated:
                    return False
        return repeated

    def _is_counted(self, draft: Draft) -> bool:
        """Whether this log already has the figures, too far back for their key to be remembered."""
        if draft.key is None or draft.number is None or not self._agent.repeats_lines:
            return False
        thread, rows = self._open(draft.thread)
        return draft.key not in thread.keys and rows.has_identity(draft.number)

    def _store(self, record: _Record) -> None:
        said, skipped, threads = record.drafts, record.skipped, self.log.threads
        if self._agent.repeats_lines and self._is_repeated(said):
            said, skipped = [], (*skipped, "repeated line")
        if record.unknown or skipped:
            self._count_types(record.line, record.unknown, skipped)
        self.log.records += 1
        self.progress.records += 1
        retracted: list[tuple[str, Supersession]] = []
        dropped: list[tuple[str, int | None, bool]] = []
        for one in said:
            if isinstance(one, Draft):
                if one.thread not in threads:
                    self._begin(one.thread, record)
                    self._place(one, record.line)
                elif not self._is_counted(one):
                    self._place(one, record.line)
                continue
            if one.thread not in threads:
                continue
            thread, rows = self._open(one.thread)
            if isinstance(one, Retraction):
                retracted += ((one.thread, superseded) for superseded in thread.retract(one))
            elif isinstance(one, Settlement):
                ending = thread.settle(one)
                marks = following.of_ending(*one[:2], _printed(said), thread.attempts)
                if ending is not None:
                    if ending.outcome is Outcome.OK and following.tell_of_failure(marks):
                        ending = ending._replace(outcome=Outcome.FAILED)
                    rows.endings.append((thread.next_index, ending))
                if marks is not None:
                    rows.landmarks[marks.event_index] = marks.landmarks
            else:
                rolled_back = one.turns is not None
                dropped += ((one.thread, turn, rolled_back) for turn in thread.roll_back(one.turns))
        for name, superseded in retracted:
            thread, rows = self._open(name)
            rows.superseded.append(superseded._replace(by=thread.next_index - 1))
        for name, turn, rolled_back in dropped:
            thread, rows = self._open(name)
            rows.dropped.append((turn, thread.next_index - 1, rolled_back))

    def _place(self, draft: Draft, line: Line) -> None:
        thread, rows = self._open(draft.thread)
        event = thread.place(draft, line, TOOLS)
        marking = isinstance(draft.payload, _MARKING) and not event.own
        if draft.within is not None:
            thread.attempts.pop(draft.within, None)
        marks = self._marks(draft, event, thread) if marking else None
        if event.outcome is Outcome.OK and event.type is EventType.TOOL_RESULT and following.tell_of_failure(marks):
            event.outcome, draft.rest = Outcome.FAILED, {**(draft.rest or {}), "outcome_source": OutcomeSource.TEXT}
        rows.add(event, draft.text, draft.rest, draft.number)
        if draft.secrets:
            rows.note_secrets(event.event_index, draft.secrets)
        if marking:
            if marks is not None:
                rows.landmarks[marks.event_index] = marks.landmarks
            if told := self._clues(draft, thread):
                rows.note_clues(event.event_index, told)
        for ending in event.ends:
            rows.endings.append((thread.next_index, ending))
        if draft.replayed:
            thread.replayed_to = thread.next_index
        if draft.clustered:
            thread.clustered_to = thread.next_index
        if draft.key is not None:
            most = self._agent.keys_remembered
            superseded = thread.supersede(draft.key, event.event_index, most, of_session=draft.of_session)
            if superseded:
                rows.superseded.append(superseded)
        self.progress.events += 1

    def _marks(self, draft: Draft, event: Event, thread: Thread) -> Marks | None:
        """The landmarks that an event tells of, or completes."""
        payload, text = draft.payload, draft.text
        if isinstance(payload, ToolCall):
            given = (draft.rest or {}).get("arguments")
            if given is not payload.arguments:  # without secrets
                draft.command = shell_command(payload.name, given, TOOLS)
            return following.of_call(payload, draft.command, given, event.event_index, TOOLS, thread.attempts)
        told = list(map(_masked, draft.landmarks)) if draft.landmarks else []
        if isinstance(payload, ToolResult):
            if not (told or thread.attempts):
                return None
            changes = draft.key is not None
            return following.of_result(payload, text, told, event.link, thread.attempts, may_change=changes)
        if isinstance(payload, Notification) and any(
            sign.fits(payload.kind, text) for sign in self._agent.notices.compactions
        ):
            told.append(following.COMPACTION)
        return Marks(event.event_index, told) if told else None

    def _clues(self, draft: Draft, thread: Thread) -> list[Clue]:
        """What an event tells about the repository."""
        payload, text, told = draft.payload, draft.text, list(draft.clues)
        facts = self.log.state.sessions[draft.thread]
        if isinstance(payload, ToolCall):
            clues.of_call(payload, draft.command, (draft.rest or {}).get("arguments"), facts.cwd, thread.clues)
        elif isinstance(payload, ToolResult):
            if thread.clues:
                told += clues.of_result(payload.call_id, text, thread.clues)
            if facts.cwd is None:
                told += clues.of_hash(facts.project_hash, text, thread.clues)
        elif draft.landmarks:
            told += clues.linked(landmark.detail for landmark in draft.landmarks)
        return told

    def _begin(self, key: str, record: _Record) -> None:
        """Begin a thread; the call that started it is in the log's own thread."""
        thread, main = Thread(), self.log.threads.get("")
        started_call = record.starts.get(key)
        if started_call is not None and main is not None:
            thread.started_by = main.agents.get(started_call)
        self.log.threads[key] = thread

    def _open(self, key: str) -> _Open:
        opened = self._opened.get(key)
        if opened is None:
            thread, session = self.log.threads[key], session_of(self.store, self.log, key)
            opened = self._opened[key] = _Open(thread, self.store.rows(session, thread.next_index))
        return opened

    def _unreadable_record(self, line: Line) -> None:
        shown = _beginning(line.data.replace(b"\0", b""), _UNREADABLE_SHOWN)
        self._unreadable(line, "unreadable_line", shown.decode("utf-8", "replace"))

    def _unreadable(self, line: Line, kind: str, text: str) -> None:
        self.log.unreadable_lines += 1
        self.progress.unreadable_lines += 1
        self._note(Notification(kind, text), line)

    def _note(self, notification: Notification, line: Line) -> None:
        self.log.threads.setdefault("", Thread())
        draft = Draft(notification, None)
        with looking(self._noted):
            self._mask(draft, unmasked(notification))
        self._place(draft, line)

    def _count_types(self, line: Line, unknown: Iterable[str], skipped: Iterable[str]) -> None:
        counts = self.log.record_types
        for kind in map(_type, unknown):
            self.progress.unknown_record_types[kind] = self.progress.unknown_record_types.get(kind, 0) + 1
            counts.setdefault(("unknown", kind), [0, line.number])[0] += 1
        for kind in () if self.log.document else map(_type, skipped):
            counts.setdefault(("skipped", kind), [0, line.number])[0] += 1


def session_of(store: Store, log: Log, thread: str) -> int:
    """Return the id of the session of a log's thread."""
    if thread not in log.session_ids:
        assert log.provider is not None and log.file_id is not None
        log.session_ids[thread] = store.session(log.file_id, thread, log.provider)
    return log.session_ids[thread]


def _type(told: str) -> str:
    return masked(told, _LONGEST_TYPE)


def _beginning(data: bytes, most: int) -> bytes:
    """Return at most this many bytes of a line, without a cut word: half a secret isn't recognised as one."""
    if len(data) <= most:
        return data
    last = max(data.rfind(mark, most - _LONGEST_WORD, most) for mark in _BETWEEN_WORDS)
    return data[: last + 1 if last >= 0 else most - _LONGEST_WORD]


def _printed(said: Iterable[Said]) -> str:
    """Return what the execution printed whose result is among the items of a record."""
    printed = [one.text for one in said if isinstance(one, Draft) and isinstance(one.payload, ToolResult)]
    return printed[-1] if printed else ""


def _masked(landmark: Landmark) -> Landmark:
    name, detail = landmark.name, landmark.detail
    return landmark._replace(name=name and masked(name), detail=detail and masked(detail))
