"""The laws that hold for the index of any log, whatever stands in it.

Each function names the mutants that break its law, with a sentence about how.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from agtrace_indexer.formats import recognize
from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType

from tests.fuzz.mutants import Mutant
from tests.fuzz.sources import LISTS, Source

Broken = Iterator[tuple[int, str]]
"""(which mutant, what is wrong with it)"""

STATUSES = frozenset({"log", "empty", "unrecognized", "unreadable", "skipped", "duplicate", "waiting"})
DEEP = 300
"""How deep JSON may be nested for all decoders to agree that it is JSON."""

_HEAD = 1024
_FIRST = 64
"""Lines among which one must be known for a file to be a log."""


class Row(NamedTuple):
    """What the index says of a file."""

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
    """What an index says, by file; `contents` is that of `tests.contents`."""

    def __init__(self, contents: dict[str, Any]) -> None:
        self.files = {row[0]: Row(*row) for row in contents["files"]}
        of = {row[0]: row[-2] for row in contents["sessions"]}
        self.texts: dict[str, Counter[str]] = {path: Counter() for path in self.files}
        self.lines: dict[str, set[int]] = {path: set() for path in self.files}
        self.by_line: dict[str, dict[int, list[tuple[int, str]]]] = {path: {} for path in self.files}
        self.counts = {row[0]: row[15] for row in contents["sessions"]}
        self.standing: Counter[str] = Counter()
        texts = {(uid, index): text for uid, index, text, _ in contents["texts"]}
        for uid, index, kind, *rest in contents["events"]:
            path, line, text = of[uid], rest[6], texts[uid, index]
            self.texts[path][text] += 1
            self.lines[path].add(line)
            self.by_line[path].setdefault(line, []).append((kind, text))
            self.standing[uid] += rest[9] is None and rest[13] == 1
        self.skipped: Counter[str] = Counter()
        for path, status, _, count, _ in contents["record_types"]:
            self.skipped[path] += count if status == "skipped" else 0


def known_status(rows: Sequence[Row | None]) -> Broken:
    """Every file has a row that says what became of it."""
    for number, row in enumerate(rows):
        if row is None or row.status not in STATUSES or row.gone:
            yield number, f"its row: {row}"


def counted(mutants: Sequence[Mutant], rows: Sequence[Row], reading: Reading) -> Broken:
    """Every line is accounted for: as records, as unreadable, as waiting; without an event only if that is counted."""
    for number, (made, row) in enumerate(zip(mutants, rows, strict=True)):
        if row.status != "log" or not made.intact or _was_document(made, row):
            continue
        lines = _lines(made.content)
        read = lines[:-1] if row.pending else lines
        if row.lines != len(read):
            yield number, f"{row.lines} lines of {len(read)} ({len(lines)}) read: {row}"
            continue
        least, most, unreadable, blank = 0, 0, 0, 0
        for line in read:
            few, many = values_in(line)
            least, most = least + few, most + many
            unreadable += few == 0 and not _is_blank(line)
            blank += _is_blank(line)
        if not least <= row.records <= most or not row.unreadable <= unreadable:
            yield (
                number,
                f"{row.records} records of {least} to {most}, {row.unreadable} of {unreadable} unreadable lines",
            )
        if row.records + row.unreadable < len(read) - blank:
            yield number, f"{row.records} + {row.unreadable} of {len(read) - blank} lines are counted"
        silent = len(read) - blank - len(reading.lines[row.path])
        if silent > reading.skipped[row.path]:
            yield number, f"{silent} lines without an event, {reading.skipped[row.path]} counted as left out"


def kept(mutants: Sequence[Mutant], rows: Sequence[Row], reading: Reading) -> Broken:
    """What the intact lines of a log say is said by its mutant, too."""
    for number, (made, row) in enumerate(zip(mutants, rows, strict=True)):
        if not made.intact:
            continue
        if made.source.document:
            yield from ((number, what) for what in _kept_in_document(made, row, reading))
            continue
        left = {line.removesuffix(b"\r") for line in _lines(made.content)}
        if row.status != "log":
            if (
                row.status != "duplicate"
                and not _hidden(made.content)
                and any(map(is_known, _lines(made.content)[:_FIRST]))
            ):
                yield number, f"not read as a log: {row.status}, {row.reason}"
            continue
        provider, said = _said(made.source)
        if row.provider != provider:
            continue
        waiting = _lines(made.content)[-1].removesuffix(b"\r") if row.pending else None
        due = [text for line, texts in said for text in texts if line in left and line != waiting]
        lost = [text for text in due if not _is_said(text, reading.texts[row.path])]
        if lost:
            yield number, f"{len(lost)} texts of intact lines are lost, the first: {lost[0][:300]!r}"


def _kept_in_document(made: Mutant, row: Row, reading: Reading) -> Iterator[str]:
    """What intact records of a document say in so many words is said by its mutant."""
    provider, said = _said(made.source)
    if row.status != "log" or row.provider != provider:
        return
    if _has_commands(made.content):
        return
    before, after = _records(made.source.content), _records(made.content)
    words = {text for record in before if record in after for text in _strings(record)}
    due = [text for _, texts in said for text in texts if text in words]
    lost = [text for text in due if not _is_said(text, reading.texts[row.path])]
    if lost:
        yield f"{len(lost)} texts of intact records are lost, the first: {lost[0][:300]!r}"


def _is_said(text: str, texts: Counter[str]) -> bool:
    """Whether an event says this, alone or within the JSON of something unknown."""
    return text in texts or any(json.dumps(text, ensure_ascii=False)[1:-1] in said for said in texts)


def summed(reading: Reading) -> Iterator[str]:
    """A session's count of events is that of its events."""
    for uid, count in reading.counts.items():
        if count != reading.standing[uid]:
            yield f"session {uid!r} counts {count} events and has {reading.standing[uid]}"


def same(one: dict[str, Any], other: dict[str, Any], way: str) -> Iterator[tuple[str, str]]:
    """Two indexes of the same logs say the same; else (what differs, how)."""
    for name in one:
        if one[name] != other[name]:
            here = [row for row in one[name] if row not in other[name]]
            there = [row for row in other[name] if row not in one[name]]
            yield name, f"{way}: {name}: at once {str(here[:2])[:600]}, {way} {str(there[:2])[:600]}"


def same_by_file(one: Reading, other: Reading) -> Iterator[tuple[str, str]]:
    """Logs of lines say the same in two indexes, whatever was archived beside them; else (what differs, how)."""
    for path, row in one.files.items():
        there = other.files.get(path)
        if row.status != "log" or row.path.endswith(".json"):
            continue
        if there != row:
            yield "files", f"at once {row}, rewritten {there}"
        elif one.texts[path] != other.texts[path]:
            lost, more = one.texts[path] - other.texts[path], other.texts[path] - one.texts[path]
            yield "texts", f"{path}: lost {str(lost)[:600]}, more {str(more)[:600]}"


# -- what a log says, told without the indexer -----------------------------------------------------


def _lines(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def _records(content: bytes) -> list[Any]:
    """The records of a document."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return []
    lists = (document.get(name) for name in LISTS) if isinstance(document, dict) else ()
    return [record for records in lists if isinstance(records, list) for record in records]


def _has_commands(content: bytes) -> bool:
    """Whether a document became a record of Gemini's that commands something, and nothing else is read of it."""
    return b'"$set"' in content or b'"$rewindTo"' in content


def _strings(value: Any) -> Iterator[str]:
    """All texts within a value."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _strings(inner)


def _is_blank(line: bytes) -> bool:
    return not line.replace(b"\xef\xbb\xbf", b"").strip()


def values_in(line: bytes) -> tuple[int, int]:
    """How many JSON values stand on a line, at least and at most; none where it isn't JSON as a whole."""
    text = line.decode("utf-8", "replace").lstrip("\ufeff \t\r\n").rstrip()
    decoder, position, count = json.JSONDecoder(), 0, 0
    depth = _depth(text)
    try:
        while position < len(text):
            _, position = decoder.raw_decode(text, position)
            count += 1
            while position < len(text) and text[position].isspace():
                position += 1
    except (ValueError, RecursionError):
        return 0, (1 if depth > DEEP else 0)
    return (0 if depth > DEEP else count), count


def _depth(text: str) -> int:
    """At most how deep JSON is nested."""
    return min(text.count("[") + text.count("{"), text.count("]") + text.count("}") + 1)


def is_known(line: bytes) -> bool:
    """Whether a line is a record by which a log is known for one."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return (
        isinstance(record, dict) and _depth(line.decode("utf-8", "replace")) <= DEEP and recognize(record) is not None
    )


def _hidden(content: bytes) -> bool:
    """Whether a file may be taken for a binary one: it has a NUL among its first bytes."""
    return b"\0" in content[:_HEAD]


def _was_document(made: Mutant, row: Row) -> bool:
    """Whether a file was read as one JSON document, not line by line."""
    return row.status == "log" and not any(map(is_known, _lines(made.content)[:_FIRST]))


_EXECUTIONS = (TYPE_CODE[EventType.TOOL_CALL], TYPE_CODE[EventType.TOOL_RESULT])
_TOLD = {TYPE_CODE[kind] for kind in EventType if kind is not EventType.TOKEN_USAGE}


def _is_hint(kind: int, line: bytes) -> bool:
    """Whether an event is one only as long as no other line of its log tells the same: what Codex tells its screen."""
    return kind in _EXECUTIONS and b'"event_msg"' in line


@cache
def _said(source: Source) -> tuple[str | None, list[tuple[bytes, list[str]]]]:
    """The provider of a log, and the texts of its events by line, from an index of it alone."""
    import tempfile

    from agtrace_indexer.run import index

    from tests.contents import contents

    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        path = Path(folder) / "logs" / source.path
        path.parent.mkdir(parents=True)
        path.write_bytes(source.content)
        index(Path(folder) / "index.sqlite3", [str(path.parent)])
        reading = Reading(contents(Path(folder) / "index.sqlite3"))
        lines = _lines(source.content)
        texts = [
            (lines[line - 1], [text for kind, text in events if kind in _TOLD and not _is_hint(kind, lines[line - 1])])
            for line, events in reading.by_line[str(path)].items()
        ]
        return reading.files[str(path)].provider, texts


def memory() -> Path | None:
    """A folder in memory, where there is one; else the usual one for temporary files."""
    shared = Path("/dev/shm")
    return shared if shared.is_dir() else None
