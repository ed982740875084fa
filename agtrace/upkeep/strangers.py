"""Folders in a home in which two sides talk, and that agtrace doesn't read: those of agents that it doesn't know, and
logs of others that lie elsewhere.

Only JSON lines are looked at, only by their beginning, and only names of fields and types are told.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agtrace_indexer.logs.decoding import completed, decode
from agtrace_indexer.logs.discovery import found_at
from agtrace_indexer.logs.files import head_of
from agtrace_indexer.providers.registry import AGENTS, recognize
from agtrace_schema.patterns import later

# -- unrecognized ----------------------------------------------------------------------------------
# What files that no agent's parser recognizes look like, so that a person can say which agent wrote them. Only names
# of fields and short names of types are told, never a text.

_HEAD_OF_ANY = 65_536
_RECORDS = 20
_FIELDS, _TYPES = 12, 8
_FILES = 500
"""Files that are opened, at most; those of one folder mostly look the same."""

_NAME = later(r"[A-Za-z_$][\w.$-]{0,39}")
TYPED_BY = ("type", "role", "kind", "event")
"""Fields by whose value agents tell kinds of records apart, the most telling first."""

_SQLITE = b"SQLite format 3\0"
_OPENING = (b"{", b"[")


class Look(NamedTuple):
    """What a file looks like."""

    form: str
    """`JSON lines`, `a JSON document`, `an SQLite database`, `text` or `binary data`."""
    fields: tuple[str, ...] = ()
    """Names of fields of its first records, in the order of their first appearance."""
    types: tuple[str, ...] = ()
    """Values of the field that tells its records apart, as `type=message`."""


def looks(paths: Iterable[str]) -> list[dict[str, Any]]:
    """Return the formats of some files, the most frequent first: form, fields, types, number of files, an example.

    Files of one form whose first records are of one type, or have the same first field, are taken for one format. A
    file that can't be opened now is left out.
    """
    seen: dict[tuple[str, ...], list[tuple[Look, str]]] = {}
    for path in list(paths)[:_FILES]:
        look = _look(path)
        if look is not None:
            seen.setdefault((look.form, *(look.types or look.fields)[:1]), []).append((look, path))
    return [_together(found) for found in sorted(seen.values(), key=len, reverse=True)]


def _together(found: list[tuple[Look, str]]) -> dict[str, Any]:
    fields = dict.fromkeys(field for look, _ in found for field in look.fields)
    types = dict.fromkeys(value for look, _ in found for value in look.types)
    look, path = found[0]
    return {
        "form": look.form,
        "fields": [*fields][:_FIELDS],
        "types": [*types][:_TYPES],
        "files": len(found),
        "path": path,
    }


def _look(path: str) -> Look | None:
    try:
        listed = found_at(path, os.path.dirname(path))
        head = head_of(listed, _HEAD_OF_ANY) if listed is not None else b""
    except OSError:
        return None
    if not head:
        return None
    if head.startswith(_SQLITE):
        return Look("an SQLite database")
    if head.lstrip().startswith(_OPENING):
        records = records_of(head)
        if records and isinstance(records[0], dict):
            return Look("JSON lines" if len(records) > 1 else "one line of JSON", _fields(records), _types(records))
        document = (decode(head) or [completed(head)])[0]
        values = document.values() if isinstance(document, dict) else [document]
        inner = max((value for value in values if isinstance(value, list)), key=len, default=[])
        return Look("a JSON document", _fields([document]) or _fields(inner), _types(inner) or _types([document]))
    return Look("binary data" if b"\0" in head else "text")


def records_of(head: bytes) -> list[Any]:
    """Return the first records of JSON lines, whose last may have been cut off; lines that are none are left out."""
    return [record for line in head.splitlines()[:_RECORDS] for record in decode(line) or ()]


def _fields(records: list[Any]) -> tuple[str, ...]:
    return tuple(_names(name for record in records if isinstance(record, dict) for name in record))[:_FIELDS]


def _types(records: list[Any]) -> tuple[str, ...]:
    for field in TYPED_BY:
        values = _names(record.get(field) for record in records if isinstance(record, dict))
        found = tuple(f"{field}={value}" for value in values)[:_TYPES]
        if found:
            return found
    return ()


def _names(values: Iterable[Any]) -> Iterator[str]:
    """Return what can be the name of a field or a type, each once, in order."""
    yield from dict.fromkeys(value for value in values if isinstance(value, str) and _NAME.fullmatch(value))


_PLACES = ("", ".config", ".local/share", ".local/state", "Library/Application Support")
"""The folders in a home in which programs have folders of their own; in the home itself these are hidden."""
_NEVER = frozenset({".cache", ".config", ".local", ".ssh", ".gnupg", ".Trash"})
_DEPTH = 5
_ENTRIES = 300
"""Entries of a program's folder that are looked at, at most."""
_OPENED = 3
"""Files of a program's folder that are opened, at most: one that isn't an agent's may have many."""
_HEAD = 32_768
_SUFFIXES = (".jsonl", ".ndjson")

_WORDS = later(r"[a-z]+")
_HUMAN = frozenset({"user", "human", "prompt", "request", "ask"})
_MODEL = frozenset({"assistant", "model", "agent", "ai", "bot", "reply", "answer", "response", "tool", "function"})


def strangers(home: Path, known: Collection[Path]) -> list[dict[str, Any]]:
    """Return the folders of programs whose files hold conversations, each with what its files look like.

    `agent` is whose logs they are, if agtrace can tell; None for an agent that it doesn't know. Folders in which a
    known agent keeps something, by these paths, are left out, as is whatever can't be opened.
    """
    found: list[dict[str, Any]] = []
    for folder in _folders(home):
        if any(folder == place or folder in place.parents or place in folder.parents for place in known):
            continue
        talks = {path: records for path in _lines_in(folder) if _is_conversation(records := _records(path))}
        if talks:
            look, *_ = looks(talks)
            agents = (_agent(path, records) for path, records in talks.items())
            found.append({"folder": str(folder), "agent": next(filter(None, agents), None), **look})
    return found


def _folders(home: Path) -> Iterator[Path]:
    for place in _PLACES:
        for entry in _entries(str(home / place)):
            hidden = entry.name.startswith(".")
            if entry.is_dir(follow_symlinks=False) and (hidden or place) and entry.name not in _NEVER:
                yield Path(entry.path)


def _lines_in(folder: Path) -> list[str]:
    """Return a few files of JSON lines in a folder, the first that are met, level by level."""
    level, seen = [str(folder)], 0
    found: list[str] = []
    for _ in range(_DEPTH):
        below: list[str] = []
        for path in level:
            for entry in _entries(path):
                seen += 1
                if seen > _ENTRIES or len(found) == _OPENED:
                    return found
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
                elif entry.name.endswith(_SUFFIXES) and entry.is_file(follow_symlinks=False):
                    found.append(entry.path)
        level = below
    return found


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _records(path: str) -> list[Any]:
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return []
    return records_of(head)


def _is_conversation(records: list[Any]) -> bool:
    """Whether records are a human's and a model's, or a tool's."""
    words = {word for record in records for told in _told(record) for word in _WORDS.findall(told.lower())}
    return bool(words & _HUMAN and words & _MODEL)


def _agent(path: str, records: list[Any]) -> str | None:
    """Return the title of the known agent that wrote these records, if enough of them are its own."""
    found = (recognize(record, path) for record in records if isinstance(record, dict))
    names = Counter(name for name in found if name is not None)
    for name, count in names.most_common(1):
        if count >= AGENTS[name].records_to_recognize:
            return AGENTS[name].title
    return None


def _told(record: Any) -> Iterator[str]:
    """Yield by what a record, or an object in it, is told apart from others."""
    if isinstance(record, dict):
        for part in (record, *(value for value in record.values() if isinstance(value, dict))):
            yield from (part[name] for name in TYPED_BY if isinstance(part.get(name), str))
