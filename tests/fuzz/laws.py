"""The laws that hold for the index of any log, whatever is in it.

Each function yields the mutants that break its law, with a sentence about how.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from agtrace_indexer.providers.registry import AGENTS
from agtrace_indexer.run import index
from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType

from tests.contents import contents
from tests.fuzz.mutants import Mutant
from tests.fuzz.plain import (
    has_commands,
    is_blank,
    is_known,
    lines_of,
    may_be_binary,
    records_of,
    strings_in,
    values_in,
)
from tests.fuzz.sources import Source

Broken = Iterator[tuple[int, str]]
"""(number of the mutant, what is wrong with it)"""

Said = list[tuple[bytes, list[str]]]
"""Lines with the texts of their events."""

STATUSES = frozenset({"log", "empty", "unrecognized", "unreadable", "skipped", "duplicate", "waiting"})
COMPARED = 2_048
"""Characters of a text by which a line is recognised (`agtrace_indexer.events.identity`)."""

_FIRST = 64
"""The number of lines of which one must be recognised for a file to be a log."""


class Row(NamedTuple):
    """The row of a file in the index."""

    path: str
    status: str
    reason: str | None
    provider: str | None
    gone: int
    size: int
    read_to: int
    lines: int
    records: int
    unreadable: int
    pending: int


class Reading:
    """The content of an index by file; `said` is what `tests.contents` returns."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.files = {row[0]: Row(*row) for row in said["files"]}
        of = {row[0]: row[-2] for row in said["sessions"]}
        self.texts: dict[str, Counter[str]] = {path: Counter() for path in self.files}
        self.lines: dict[str, set[int]] = {path: set() for path in self.files}
        self.by_line: dict[str, dict[int, list[tuple[int, str]]]] = {path: {} for path in self.files}
        self.counts = {row[0]: row[15] for row in said["sessions"]}
        self.standing: Counter[str] = Counter()
        texts = {(uid, number): text for uid, number, text, _ in said["texts"]}
        for uid, number, kind, *rest in said["events"]:
            path, line, text = of[uid], rest[6], texts[uid, number]
            self.texts[path][text] += 1
            self.lines[path].add(line)
            self.by_line[path].setdefault(line, []).append((kind, text))
            self.standing[uid] += rest[9] is None and rest[14] == 1
        self.skipped: Counter[str] = Counter()
        for path, status, _, count, _ in said["record_types"]:
            self.skipped[path] += count if status == "skipped" else 0


def known_status(rows: Sequence[Row | None]) -> Broken:
    """Check that every file has a row with its status."""
    for number, row in enumerate(rows):
        if row is None or row.status not in STATUSES or row.gone:
            yield number, f"its row: {row}"


def counted(mutants: Sequence[Mutant], rows: Sequence[Row], reading: Reading) -> Broken:
    """Check that every line is counted: as records, unreadable or waiting; without an event only if that is counted."""
    for number, (made, row) in enumerate(zip(mutants, rows, strict=True)):
        if row.status == "log" and made.intact and _has_known_line(made):
            yield from ((number, what) for what in _miscounted(lines_of(made.content), row, reading))


def _miscounted(lines: list[bytes], row: Row, reading: Reading) -> Iterator[str]:
    read = lines[:-1] if row.pending else lines
    if row.lines != len(read):
        yield f"{row.lines} lines of {len(read)} ({len(lines)}) read: {row}"
        return
    values = [values_in(line) for line in read if not is_blank(line)]
    least, most = sum(few for few, _ in values), sum(many for _, many in values)
    unreadable = sum(few == 0 for few, _ in values)
    if not least <= row.records <= most or row.unreadable > unreadable:
        yield f"{row.records} records of {least} to {most}, {row.unreadable} of {unreadable} unreadable lines"
    if row.records + row.unreadable < len(values):
        yield f"{row.records} + {row.unreadable} of {len(values)} lines are counted"
    silent = len(values) - len(reading.lines[row.path])
    if silent > reading.skipped[row.path]:
        yield f"{silent} lines without an event, {reading.skipped[row.path]} counted as left out"


def kept(mutants: Sequence[Mutant], rows: Sequence[Row], reading: Reading) -> Broken:
    """Check that a mutant has everything that the intact lines of its log, or records of its document, say."""
    for number, (made, row) in enumerate(zip(mutants, rows, strict=True)):
        if not made.intact:
            continue
        if row.status not in ("log", "duplicate") and _has_known_line(made) and not may_be_binary(made.content):
            yield number, f"not read as a log: {row.status}, {row.reason}"
        provider, said = _said(made.source)
        if row.status != "log" or row.provider != provider:
            continue
        due = _due_of_document(made, said) if made.source.document else _due_of_lines(made, said, row)
        lost = [text for text in due if not _is_said(text, reading.texts[row.path])]
        if lost:
            yield number, f"{len(lost)} texts of what is intact are lost, the first: {lost[0][:300]!r}"


def _due_of_lines(made: Mutant, said: Said, row: Row) -> list[str]:
    """Return the texts of lines that are unchanged in a mutant, except for one that waits."""
    lines = [line.removesuffix(b"\r") for line in lines_of(made.content)]
    left = set(lines[:-1] if row.pending else lines)
    return [text for line, texts in said for text in texts if line in left]


def _due_of_document(made: Mutant, said: Said) -> list[str]:
    """Return the texts that occur literally in records that are unchanged in a mutant."""
    if has_commands(made.content):
        return []
    before, after = records_of(made.source.content), records_of(made.content)
    words = {text for record in before if record in after for text in strings_in(record)}
    return [text for _, texts in said for text in texts if text in words]


def _is_said(text: str, texts: Counter[str]) -> bool:
    """Whether an event has this text, alone or within the JSON of something unknown.

    For a line that is repeated under its id, only the length and the beginning are compared.
    """
    if text in texts:
        return True
    written, start = json.dumps(text, ensure_ascii=False)[1:-1], text[:COMPARED]
    return any(written in said or (len(said) == len(text) > COMPARED and said.startswith(start)) for said in texts)


def summed(reading: Reading) -> Iterator[str]:
    """Check that a session's count of events is right."""
    for uid, count in reading.counts.items():
        if count != reading.standing[uid]:
            yield f"session {uid!r} counts {count} events and has {reading.standing[uid]}"


def same(one: dict[str, Any], other: dict[str, Any], way: str) -> Iterator[tuple[str, str]]:
    """Check that two indexes of the same logs are the same; yield (what differs, how)."""
    for name in one:
        if one[name] != other[name]:
            here = [row for row in one[name] if row not in other[name]]
            there = [row for row in other[name] if row not in one[name]]
            yield name, f"{way}: {name}: at once {str(here[:2])[:600]}, {way} {str(there[:2])[:600]}"


def same_by_file(one: Reading, other: Reading) -> Iterator[tuple[str, str]]:
    """Check that logs are the same in two indexes, whatever else was archived; yield (what differs, how).

    Not Gemini's: a rewritten document is a change of its earlier content. What is missing in a log of an agent that
    takes back what was said is kept, as superseded.
    """
    for path, row in one.files.items():
        there = other.files.get(path)
        if row.status != "log" or row.provider == "gemini":
            continue
        if there != row:
            yield "files", f"at once {row}, rewritten {there}"
        elif one.texts[path] != other.texts[path]:
            lost, more = one.texts[path] - other.texts[path], other.texts[path] - one.texts[path]
            if lost or not AGENTS[row.provider or ""].takes_back:
                yield "texts", f"{path}: lost {str(lost)[:600]}, more {str(more)[:600]}"


# -- what a log says before it is changed ----------------------------------------------------------


def _has_known_line(made: Mutant) -> bool:
    """Whether a log, if it is one, is read line by line and not as one JSON document."""
    return any(map(is_known, lines_of(made.content)[:_FIRST]))


_SCREENED = re.compile(rb'_(?:begin|end|completed)"')
_STARTED = b'"tool.execution_start"'
_EXECUTIONS = {TYPE_CODE[EventType.TOOL_CALL], TYPE_CODE[EventType.TOOL_RESULT]}
_TOLD = {TYPE_CODE[kind] for kind in EventType if kind is not EventType.TOKEN_USAGE}


def _told(lines: list[bytes]) -> set[int]:
    """Return the types of a log's events that no other line can report as well.

    Codex may also write an event about an execution for its screen, and Copilot CLI one about its start: which of the
    two counts depends on their order.
    """
    twice = any((b'"event_msg"' in line and _SCREENED.search(line)) or _STARTED in line for line in lines)
    return _TOLD - _EXECUTIONS if twice else _TOLD


@cache
def _said(source: Source) -> tuple[str | None, Said]:
    """Return the provider of a log, and the texts of its events by line, from an index of only this log."""
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        path = Path(folder) / "logs" / source.path
        path.parent.mkdir(parents=True)
        path.write_bytes(source.content)
        index(Path(folder) / "index.sqlite3", [str(path.parent)])
        reading = Reading(contents(Path(folder) / "index.sqlite3"))
        lines = lines_of(source.content)
        told = _told(lines)
        texts = [
            (lines[number - 1], [text for kind, text in events if kind in told])
            for number, events in reading.by_line[str(path)].items()
        ]
        return reading.files[str(path)].provider, texts


def memory() -> Path | None:
    """Return a folder in memory if there is one; None for the usual temporary folder."""
    shared = Path("/dev/shm")
    return shared if shared.is_dir() else None
