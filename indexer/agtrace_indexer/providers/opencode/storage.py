"""OpenCode's sessions before 1.2: a tree with a small file for each session, message and part, rewritten in place."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from operator import attrgetter
from os.path import basename
from pathlib import PurePath
from typing import Any, NamedTuple

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.json_values import digest, fields, text
from agtrace_indexer.logs.containers import Container
from agtrace_indexer.logs.discovery import Found, walk
from agtrace_indexer.logs.files import open_regular
from agtrace_indexer.providers.opencode.parser import (
    HEAD,
    LONGEST,
    LONGEST_MESSAGE,
    followed,
    is_assistant,
    known_as,
    message_record,
    print_of,
    value_of,
    written,
)
from agtrace_indexer.providers.provider import LogInside, Row

_KEPT = 8 * 1024 * 1024
"""Bytes of messages that are kept in memory between finding out who speaks and passing them on."""


# --- which sessions there are ---


def logs(container: Container) -> Iterable[LogInside]:
    """Yield a log for each session, which has changed if one of its files has, or if there are more or fewer."""
    heads, messages, parts = {}, dict[str, list[Found]](), dict[str, list[Found]]()
    for file in container.files:
        match PurePath(file.path[len(container.path) + 1 :]).parts:
            case ("session", _, _):
                heads[_stem(file)] = file
            case ("message", session, _):
                messages.setdefault(session, []).append(file)
            case ("part", *above, _):
                parts.setdefault(above[0] if above else "", []).append(file)
    heads = {(stem if stem in messages else _id_in(head)): head for stem, head in heads.items()}
    stems = {_stem(file) for files in messages.values() for file in files}
    shared = [file for name, files in parts.items() if name not in stems for file in files]
    for session in sorted(heads.keys() | messages.keys()):
        own = [*messages.get(session, ()), *([heads[session]] if session in heads else [])]
        own += [part for message in messages.get(session, ()) for part in parts.get(_stem(message), ())]
        yield LogInside(session, _stamp([*own, *shared]), 1 + sum(file.size for file in own))


def _id_in(head: Found) -> str:
    """Return the id in the file of a session, which is its name's unless somebody renamed it."""
    stem = _stem(head)
    with suppress(OSError):
        named = text(_content(head).get("id"))
        return named if named and "/" not in named else stem
    return stem


def _stamp(files: Iterable[Found]) -> str:
    return digest("\n".join(sorted(f"{file.path}/{file.stamp}" for file in files)))


# --- what is in one ---


def rows(found: Found, position: Any) -> Iterable[Row]:
    """Yield a record of the messages that vanished, one of the session, then the messages that changed, in order.

    Their numbers count the messages in the order in which they came.
    """
    root, session = found.container, basename(found.path)
    facts: str
    known: dict[str, list[Any]]
    facts, known = position or ("", {})
    files = _listed(os.path.join(root, "message", session))
    present = set(map(known_as, files))
    gone = sorted(known_as(told[2]) if told[2] else name for name, told in known.items() if name not in present)
    if gone:
        known = {name: told for name, told in known.items() if name in present}
        yield Row(0, written({"removed": gone}), (facts, known))
    head = _head(root, session)
    if head is not None and head.stamp != facts:
        facts = head.stamp
        yield Row(0, written({"session": _content(head)}), (facts, known))
    for number, record in _changed(root, files, known):
        yield Row(number, record, (facts, known))


class _Message(NamedTuple):
    """The file of a message."""

    stem: str
    """Its name without `.json`: its id, unless somebody renamed it."""
    file: Found
    id: str
    assistant: bool
    info: Record | None
    """Its content, if it was read."""


def _changed(root: str, files: Mapping[str, Found], known: dict[str, list[Any]]) -> Iterator[tuple[int, bytes]]:
    """Yield the messages that changed, with their numbers, and note them in `known`.

    That has for each its number, its fingerprint, its id if its file has another name, and whether it is the model's.
    """
    flat = _flat_parts(root)
    newest = max((told[0] for told in known.values()), default=0)
    messages = [*_messages(files, known)]
    for message, past in zip(messages, followed(message.assistant for message in messages), strict=True):
        name, before = known_as(message.stem), known.get(known_as(message.stem))
        parts = _listed(os.path.join(root, "part", message.id)) if _is_name(message.id) else {}
        held = [*parts.values(), *flat.get(message.id, ())]
        print = print_of(message.file.stamp, _stamp(held), past)
        if before is not None and before[1] == print:
            continue
        newest += before is None
        info = message.info or _info(message.file)
        number = newest if before is None else before[0]
        known[name] = [number, print, "" if message.id == message.stem else message.id, is_assistant(info)]
        yield number, message_record({**info, "id": message.id}, _parts(held), followed=past)


def _messages(files: Mapping[str, Found], known: Mapping[str, list[Any]]) -> Iterator[_Message]:
    """Yield the messages in order. New ones are read for who speaks; of many, the content is read again later."""
    left = _KEPT
    for stem, file in files.items():
        if (before := known.get(known_as(stem))) is not None:
            yield _Message(stem, file, before[2] or stem, before[3], None)
            continue
        info = _info(file)
        left -= file.size
        yield _Message(stem, file, info["id"], is_assistant(info), info if left > 0 else None)


def _info(file: Found) -> Record:
    info = _content(file)
    return {**info, "id": text(info.get("id")) or _stem(file)}


def _stem(file: Found) -> str:
    return PurePath(file.path).stem


def _parts(files: Iterable[Found]) -> Iterator[Record]:
    left = LONGEST_MESSAGE
    for file in files:
        with suppress(FileNotFoundError):  # deleted just now
            left -= file.size
            part = _content(file, LONGEST if left > 0 else HEAD)
            yield {**part, "id": text(part.get("id")) or _stem(file)}


def _flat_parts(root: str) -> dict[str, list[Found]]:
    """Return the parts that aren't in a folder of their message, by the message that they name."""
    found: dict[str, list[Found]] = {}
    folder = os.path.join(root, "part")
    with suppress(OSError), os.scandir(folder) as listing:
        names = sorted(entry.name for entry in listing if entry.name.endswith(".json") and not entry.is_dir())
        for name in names:
            for file in walk([os.path.join(folder, name)]):
                found.setdefault(str(_content(file).get("messageID")), []).append(file)
    return found


def _head(root: str, session: str) -> Found | None:
    """Return the file of a session: it is in the folder of its project."""
    with suppress(OSError), os.scandir(os.path.join(root, "session")) as projects:
        folders = sorted(project.path for project in projects)
        for folder in folders:
            for file in walk([os.path.join(folder, f"{session}.json")]):
                return file
        for file in walk(folders):
            if file.oddity is None and basename(file.path).startswith("ses_") and _id_in(file) == session:
                return file
    return None


def _listed(folder: str) -> dict[str, Found]:
    """Return the JSON files in a folder in the order of their names, which is that of their ids."""
    files = sorted(walk([folder]), key=attrgetter("path"))
    return {_stem(file): file for file in files if file.oddity is None and file.path.endswith(".json")}


def _is_name(id: str) -> bool:
    """Whether an id may be the name of a folder: what a log says must not lead out of its tree."""
    return id not in (".", "..") and "/" not in id and "\0" not in id and os.sep not in id


def _content(file: Found, most: int = LONGEST) -> Record:
    with open_regular(file) as opened:
        data = opened.read(most + 1)
    return fields(value_of(data, file.size if len(data) > most else None))
