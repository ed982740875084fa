"""What was found where, by agent and version; what wasn't understood, with file and line; and what to do about it."""

from __future__ import annotations

import os
import shlex
import sqlite3
import stat
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agtrace_indexer.index.catalog import old_files
from agtrace_indexer.index.maintenance import scrub_is_due
from agtrace_indexer.index.queries import upkeep
from agtrace_indexer.logs.archive import Archive
from agtrace_indexer.logs.decoding import completed, decode
from agtrace_indexer.logs.discovery import found_at
from agtrace_indexer.logs.files import head_of
from agtrace_indexer.providers import unread
from agtrace_indexer.providers.provider import Agent, Retention
from agtrace_indexer.providers.registry import AGENTS, HOMES, recognize
from agtrace_indexer.redact import redact_json
from agtrace_schema.patterns import later

from agtrace.index.reader import Index, home_roots
from agtrace.index.trouble import Freshness
from agtrace.settings.live import Loaded
from agtrace.settings.model import Settings
from agtrace.settings.sources import fault_sentences
from agtrace.text.lines import one_line
from agtrace.text.numbers import counted
from agtrace.upkeep.service import is_installed


def retentions(
    connection: sqlite3.Connection, environment: Mapping[str, str], home: Path, freshness: Freshness
) -> list[dict[str, Any]]:
    """Return, for each agent with sessions that deletes its logs, or whose logs are gone, what is known of that."""
    gone, known = upkeep.sessions_gone(connection), {one["provider"] for one in upkeep.providers(connection)}
    serviced = is_installed(sys.platform, environment, home)
    result = []
    for agent in AGENTS.values():
        read = agent.retention() if agent.retention is not None else None
        kept = read(environment, home) if read is not None else []
        if agent.name in known and (kept or gone.get(agent.name)):
            fresh = bool(kept) and all(serviced or one.refreshed for one in kept)
            result.append(_described(agent, kept, gone.get(agent.name, 0), fresh, freshness))
    return result


def _described(agent: Agent, kept: Sequence[Retention], gone: int, fresh: bool, freshness: Freshness) -> dict[str, Any]:
    ends = [one for one in kept if one.certain and one.days is not None]
    advice = [_advice(agent, one, freshness) for one in ends if not (fresh and freshness.state == "ready")]
    return {
        "agent": agent.title,
        "deleted_sessions": gone,
        "kept_fresh": fresh,
        "settings": [one._asdict() for one in kept],
        "advice": advice,
    }


def _advice(agent: Agent, kept: Retention, freshness: Freshness) -> str:
    behind = f"{counted(freshness.files_behind, 'file')} not indexed yet, and " if freshness.files_behind else ""
    return (
        f"{agent.title} deletes logs {days(kept.days or 0)} after their last change; {behind}nothing indexes them in "
        f"the background: `agtrace service --apply` does, or {kept.to_keep} in {kept.file}"
    )


def days(number: float) -> str:
    """Return a number of days: `30 days`, `36 hours`."""
    return counted(round(number), "day") if number >= 2 else counted(round(number * 24), "hour")


_HEAD_SHOWN = 100

_ADVICE = {  # of all files with this status
    "unreadable": "make each readable, or ignore it; it is tried again when it changes",
    "skipped": "nothing to do; only regular files are read, and not all of a crowded folder",
    "unrecognized": "nothing to do, unless an agent wrote it as a log: CONTRIBUTING.md shows how to add an agent",
    "empty": "nothing to do; each is read as soon as something is written to it",
    "waiting": "nothing to do; each is read as soon as it is completely written",
    "duplicate": "nothing to do; each is a copy or a part of a log that is read",
}


def examine(loaded: Loaded, *, refresh_seconds: float = 10) -> dict[str, Any]:
    """Examine settings, index and the agents' homes. Raises `IndexUnavailable` if the index is damaged or missing."""
    settings = loaded.settings
    index = Index(settings)
    freshness = index.refresh(refresh_seconds)
    if (damage := index.damage()) is not None:
        raise damage
    home = Path(settings.environment.get("HOME") or Path.home())
    usual = [home / kept.folder / logs for kept in HOMES if kept.folder for logs in kept.logs]
    with index.reader() as reader:
        files, roots = upkeep.files(reader.connection), upkeep.roots(reader.connection)
        used = list(unread.unread_stores(settings.environment, home, (file["path"] for file in files["not_read"])))
        indexed = (*home_roots(settings), *roots, *(path for _, path in used))
        found: dict[str, Any] = {
            "index": _index(settings, reader.connection, freshness),
            "homes": [{"path": path, "exists": os.path.exists(path)} for path in home_roots(settings)],
            "retention": retentions(reader.connection, settings.environment, home, freshness),
            "roots": roots,
            "agents": _agents(reader.connection),
            "files": [log | {"gone": bool(log["gone"])} for log in files["files"]],
            "not_read": [file | {"advice": _ADVICE[file["status"]]} for file in files["not_read"]],
            "unrecognized": looks(file["path"] for file in files["not_read"] if file["status"] == "unrecognized"),
            "unread_agents": [{"agent": title, "path": path} for title, path in used],
            "not_indexed": unknown_agents(home, [*map(Path, indexed), *usual, settings.data_dir]),
            "partly_read": files["partly_read"],
            "unreadable_lines": files["unreadable_lines"],
            "unknown_record_types": _record_types(reader.connection, "unknown"),
            "left_out_record_types": _record_types(reader.connection, "skipped"),
        }
    configuration = [*fault_sentences(loaded.faults), *fault_sentences(loaded.unknown)]
    found["trouble"] = [*configuration, *_trouble(found), *exposure(settings.data_dir)]
    redacted: dict[str, Any] = redact_json(found)  # type: ignore[assignment]  # an object stays an object
    return redacted


def _index(settings: Settings, connection: sqlite3.Connection, freshness: Freshness) -> dict[str, Any]:
    totals = upkeep.totals(connection)
    return {
        "path": str(settings.database),
        "bytes": settings.database.stat().st_size,
        "state": freshness.state,
        "problem": freshness.problem,
        **{name: totals[name] for name in ("sessions", "sub_agents", "events", "archived_files", "forgotten_files")},
        "archive": Archive(settings.database).size()._asdict(),
        "traces_left": scrub_is_due(connection),
        "integrity": "ok",
        "tables": upkeep.tables(connection),
        "damaged_copies": [{"path": str(path), "bytes": path.stat().st_size} for path in old_files(settings.database)],
    }


def _agents(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the agents with the versions that wrote the logs, and those that are newer than what was tested."""
    agents = []
    for found in upkeep.providers(connection):
        versions = sorted(filter(None, (found["versions"] or "").split(",")), key=_version_key)
        tested = AGENTS[found["provider"]].tested
        newer = [one for one in versions if tested and _version_key(one) > _version_key(tested.version)]
        agents.append(
            {
                **found,
                "versions": [one_line(version, _HEAD_SHOWN) for version in versions],
                "tested": tested and tested._asdict(),
                "newer_versions": [one_line(version, _HEAD_SHOWN) for version in newer],
            }
        )
    return agents


def _version_key(version: str) -> list[tuple[int, str]]:
    parts = version[:_HEAD_SHOWN].replace("-", ".").split(".")
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def _record_types(connection: sqlite3.Connection, status: str) -> list[dict[str, Any]]:
    return [found | {"type": one_line(found["type"], _HEAD_SHOWN)} for found in upkeep.record_types(connection, status)]


def _trouble(found: dict[str, Any]) -> list[str]:
    trouble = []
    if found["index"]["problem"]:
        trouble.append(found["index"]["problem"])
    if found["index"]["traces_left"]:
        trouble.append("traces of forgotten or masked texts are still on the disk: stop what reads the index, "
                       "then run `agtrace index`")  # fmt: skip
    unreadable = [file for file in found["not_read"] if file["status"] == "unreadable"]
    if unreadable:
        trouble.append(f"{counted(len(unreadable), 'file')} can't be read: see not_read")
    if found["partly_read"]:
        trouble.append(f"{counted(len(found['partly_read']), 'log')} read only in part: see partly_read")
    if found["unreadable_lines"]:
        lines = counted(len(found["unreadable_lines"]), "line")
        trouble.append(f"{lines} can't be read as JSON: kept as found")
    if not found["files"] and not found["index"]["forgotten_files"]:
        trouble.append("no logs found: run an agent first, or index a folder: `agtrace index PATH`")
    return trouble


# -- exposure -----------------------------------------------------------------------------------------

_OURS = ("index.", "cursor.key", "http.token", "forgotten", "redaction.", "telemetry.", "outputs")
"""Beginnings of our files' names: the folder may hold other files."""

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_PASS = stat.S_IXGRP | stat.S_IXOTH


def exposure(folder: Path) -> list[str]:
    """Return what a data folder lets other users do, as sentences with the command that stops it; empty if nothing.

    Only the owner has access to what agtrace creates. Others can have it if the folder existed before, or if files
    were copied into it. Always empty on Windows, whose files have no modes.
    """
    if os.name == "nt" or not folder.is_dir():
        return []
    status = folder.stat()
    result = []
    if status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and status.st_gid != os.getgid()):
        result.append(f"other users can put files into {folder}: set AGTRACE_DATA_DIR to a folder of your own")
    if status.st_mode & _PASS:
        result += [
            f"other users can read {path.name}: chmod {'700' if path.is_dir() else '600'} {shlex.quote(str(path))}"
            for path in sorted(folder.iterdir())
            if path.name.startswith(_OURS) and _is_open(path)
        ]
    return result


def _is_open(path: Path) -> bool:
    status = path.lstat()
    ours = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return ours and bool(status.st_mode & _OTHERS)


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
        result = tuple(f"{field}={value}" for value in values)[:_TYPES]
        if result:
            return result
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


def unknown_agents(home: Path, paths: Collection[Path]) -> list[dict[str, Any]]:
    """Return the folders of programs whose files hold conversations, each with what its files look like.

    `agent` is whose logs they are, if agtrace can tell; None for an agent that it doesn't know. Folders in which a
    known agent keeps something, by these paths, are left out, as is whatever can't be opened.
    """
    result: list[dict[str, Any]] = []
    for folder in _folders(home):
        if any(folder == place or folder in place.parents or place in folder.parents for place in paths):
            continue
        talks = {path: records for path in _lines_in(folder) if _is_conversation(records := _records(path))}
        if talks:
            look, *_ = looks(talks)
            agents = (_agent(path, records) for path, records in talks.items())
            result.append({"folder": str(folder), "agent": next(filter(None, agents), None), **look})
    return result


def _folders(home: Path) -> Iterator[Path]:
    for place in _PLACES:
        for entry in _entries(str(home / place)):
            hidden = entry.name.startswith(".")
            if entry.is_dir(follow_symlinks=False) and (hidden or place) and entry.name not in _NEVER:
                yield Path(entry.path)


def _lines_in(folder: Path) -> list[str]:
    """Return a few files of JSON lines in a folder, the first that are met, level by level."""
    level, seen = [str(folder)], 0
    result: list[str] = []
    for _ in range(_DEPTH):
        below: list[str] = []
        for path in level:
            for entry in _entries(path):
                seen += 1
                if seen > _ENTRIES or len(result) == _OPENED:
                    return result
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
                elif entry.name.endswith(_SUFFIXES) and entry.is_file(follow_symlinks=False):
                    result.append(entry.path)
        level = below
    return result


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
    words = {word for record in records for told in _distinguishing(record) for word in _WORDS.findall(told.lower())}
    return bool(words & _HUMAN and words & _MODEL)


def _agent(path: str, records: list[Any]) -> str | None:
    """Return the title of the known agent that wrote these records, if enough of them are its own."""
    found = (recognize(record, path) for record in records if isinstance(record, dict))
    names = Counter(name for name in found if name is not None)
    for name, count in names.most_common(1):
        if count >= AGENTS[name].records_to_recognize:
            return AGENTS[name].title
    return None


def _distinguishing(record: Any) -> Iterator[str]:
    """Yield by what a record, or an object in it, is told apart from others."""
    if isinstance(record, dict):
        for part in (record, *(value for value in record.values() if isinstance(value, dict))):
            yield from (part[name] for name in TYPED_BY if isinstance(part.get(name), str))
