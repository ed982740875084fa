"""Folders in a home in which two sides talk, and that agtrace doesn't read: those of agents that it doesn't know, and
logs of others that lie elsewhere.

Only JSON lines are looked at, only by their beginning, and only names of fields and types are told.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from agtrace_indexer.providers.registry import AGENTS, recognize
from agtrace_schema.patterns import later

from agtrace.upkeep.unrecognized import TYPED_BY, looks, records_of

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
