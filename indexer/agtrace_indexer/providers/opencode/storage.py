"""OpenCode's sessions before 1.2: a tree with a small file for each session, message and part, rewritten in place."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from operator import attrgetter
from os.path import basename
from pathlib import PurePath
from typing import Any

from agtrace_indexer.events.drafts import Record
from agtrace_indexer.events.json_values import digest, fields, text
from agtrace_indexer.logs.containers import Container
from agtrace_indexer.logs.discovery import Found, walk
from agtrace_indexer.logs.files import open_regular
from agtrace_indexer.providers.opencode.order import followed
from agtrace_indexer.providers.opencode.records import (
    HEAD,
    LONGEST,
    LONGEST_MESSAGE,
    is_assistant,
    message_record,
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
                heads[PurePath(file.path).stem] = file
            case ("message", session, _):
                messages.setdefault(session, []).append(file)
            case ("part", *above, _):
                parts.setdefault(above[0] if above else "", []).append(file)
    heads = {(stem if stem in messages else _id_in(head)): head for stem, head in heads.items()}
    stems = {PurePath(file.path).stem for files in messages.values() for file in files}
    shared = [file for name, files in parts.items() if name not in stems for file in files]
    for session in sorted(heads.keys() | messages.keys()):
        own = [*messages.get(session, ()), *([heads[session]] if session in heads else [])]
        own += [part for message in messages.get(session, ()) for part in parts.get(PurePath(message.path).stem, ())]
        yield LogInside(session, _stamp([*own, *shared]), 1 + sum(file.size for file in own))


def _id_in(head: Found) -> str:
    """Return the id in the file of a session, which is its name's unless somebody renamed it."""
    stem = PurePath(head.path).stem
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
    gone = sorted({id for name, (_, _, id, _) in known.items() if name not in files})
    if gone:
        known = {name: told for name, told in known.items() if name in files}
        yield Row(0, written({"removed": gone}), (facts, known))
    head = _head(root, session)
    if head is not None and head.stamp != facts:
        facts = head.stamp
        yield Row(0, written({"session": _content(head)}), (facts, known))
    for name, record in _changed(root, files, known):
        yield Row(known[name][0], record, (facts, known))


def _changed(root: str, files: Mapping[str, Found], known: dict[str, list[Any]]) -> Iterator[tuple[str, bytes]]:
    """Yield the messages that changed, by the names of their files, and note them in `known`.

    That has for each its number, its fingerprint, its id, and whether it is the model's.
    """
    flat = _flat_parts(root)
    infos = _infos(files, known)
    roles = [infos[name][1] if name in infos else known[name][3] for name in files]
    number = max((told[0] for told in known.values()), default=0)
    for (name, file), past in zip(files.items(), followed(roles), strict=True):
        id = infos[name][0] if name in infos else known[name][2]
        parts = _listed(os.path.join(root, "part", id)) if _is_name(id) else {}
        held = [*parts.values(), *flat.get(id, ())]
        print = digest(f"{file.stamp}/{_stamp(held)}/{past}")[:12]
        if name in known and known[name][1] == print:
            continue
        if name not in known:
            number += 1
        info = (infos[name][2] if name in infos else None) or _info(file)
        known[name] = [known[name][0] if name in known else number, print, id, is_assistant(info)]
        yield name, message_record({**info, "id": id}, _parts(held), followed=past)


def _infos(files: Mapping[str, Found], known: Mapping[str, Any]) -> dict[str, tuple[str, bool, Record | None]]:
    """Return id, role and content of the messages that are new; of many, the content is read again later."""
    found: dict[str, tuple[str, bool, Record | None]] = {}
    left = _KEPT
    for name, file in files.items():
        if name not in known:
            info = _info(file)
            left -= file.size
            found[name] = (info["id"], is_assistant(info), info if left > 0 else None)
    return found


def _info(file: Found) -> Record:
    info = _content(file)
    return {**info, "id": text(info.get("id")) or PurePath(file.path).stem}


def _parts(files: Iterable[Found]) -> Iterator[Record]:
    left = LONGEST_MESSAGE
    for file in files:
        with suppress(FileNotFoundError):  # deleted just now
            left -= file.size
            part = _content(file, LONGEST if left > 0 else HEAD)
            yield {**part, "id": text(part.get("id")) or PurePath(file.path).stem}


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
    return {basename(file.path): file for file in files if file.oddity is None and file.path.endswith(".json")}


def _is_name(id: str) -> bool:
    """Whether an id may be the name of a folder: what a log says must not lead out of its tree."""
    return id not in (".", "..") and "/" not in id and "\0" not in id and os.sep not in id


def _content(file: Found, most: int = LONGEST) -> Record:
    with open_regular(file) as opened:
        data = opened.read(most + 1)
    return fields(value_of(data, file.size if len(data) > most else None))
