"""The logs that `agtrace forget` would forget, what they hold, and what stays nevertheless."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import datetime
from typing import Any

from agtrace_indexer.families.belonging import Logs
from agtrace_indexer.index.catalog import old_files
from agtrace_indexer.index.opening import one_moment, open_read_only
from agtrace_indexer.index.queries import upkeep
from agtrace_indexer.index.tombstones import Tombstones, digest_of
from agtrace_indexer.logs.archive import Archive
from agtrace_indexer.providers.registry import AGENTS
from agtrace_indexer.redact import redact, redact_json

from agtrace.problems import InvalidParameter
from agtrace.sessions.projects import folders_meant
from agtrace.sessions.query import find_session, session_in
from agtrace.settings.model import Settings
from agtrace.text.lines import USER_MESSAGE, one_line
from agtrace.times import iso, moment

_TITLES = 5


def choose(
    connection: sqlite3.Connection, sessions: Iterable[str] | None, project: str | None, before: str | None
) -> set[int]:
    """Return the files of the logs to forget: those of these sessions, or if None all, that meet all conditions.

    The sub-agents of each go with it. Raises `Problem` for arguments that can't be understood, for a session that isn't
    found, and for a sub-agent that is part of its parent's log.
    """
    logs = Logs(connection)
    files = logs.roots if sessions is None else {_file_of(connection, given) for given in sessions}
    if project is not None:
        files &= _of_project(connection, project)
    if before is not None:
        files &= logs.ended_before(moment("before", before, datetime.now()))
    return logs.with_all_of(files)


def digests(connection: sqlite3.Connection, files: Iterable[int]) -> set[str]:
    """Return the digests for the tombstones of these files."""
    return Logs(connection).digests(files)


def describe(settings: Settings, connection: sqlite3.Connection, files: set[int]) -> dict[str, Any]:
    """Describe what these files hold, ready to show: secrets masked, titles and ids on one line."""
    held = upkeep.held_by(connection, files)
    main = [session for session in held if session["kind"] in ("main", "fork")]
    titles = (session["title"] or session["snippet"] for session in main or held)
    found: dict[str, Any] = {
        "sessions": len(main),
        "sub_agents": len(held) - len(main),
        "events": sum(session["event_count"] for session in held),
        "from": iso(min((session["started_at"] for session in held if session["started_at"]), default=None)),
        "to": iso(max((session["ended_at"] for session in held if session["ended_at"]), default=None)),
        "titles": [one_line(title, USER_MESSAGE) for title in titles if title][:_TITLES],
        "also_in": upkeep.also_in(connection, files),
        "told_in": upkeep.told_in(connection, files),
        "logs": sorted({log["path"] for log in held if not log["gone"] and os.path.exists(log["path"])}),
        "damaged_copies": [str(path) for path in old_files(settings.database)],
    }
    redacted: dict[str, Any] = redact_json(found)  # type: ignore[assignment]  # an object stays an object
    return redacted


def chosen(
    settings: Settings, sessions: Sequence[str], project: str | None, before: str | None
) -> tuple[set[str], dict[str, Any]]:
    """Return the digests and the description of what is chosen, from one snapshot. Raises as `choose` does.

    Sessions given by their full id that were forgotten before are listed as `already`.
    """
    tombstones = Tombstones.of(settings.database)
    with closing(open_read_only(settings.database)) as connection, one_moment(connection):
        already = [given for given in sessions if _is_gone(connection, given, tombstones)]
        left = [given for given in sessions if given not in already] if sessions else None
        files = choose(connection, left, project, before)
        folders = [redact(folder) for folder in _names_of(connection, project)]
        return digests(connection, files), {
            **describe(settings, connection, files),
            "already": already,
            "folders": folders,
        }


def older(settings: Settings) -> dict[str, Any]:
    """Describe what there is of logs as they were before they were edited, ready to show."""
    found = Archive(settings.database).older()
    described = {"older": sorted(found), "damaged_copies": [str(path) for path in old_files(settings.database)]}
    redacted: dict[str, Any] = redact_json(described)  # type: ignore[assignment,arg-type]  # as above
    return redacted


def _is_gone(connection: sqlite3.Connection, given: str, tombstones: Tombstones) -> bool:
    id = session_in(given.strip())
    if not any(tombstones.has(digest_of(agent, id)) for agent in AGENTS):
        return False
    return not upkeep.has_session(connection, id)


def _file_of(connection: sqlite3.Connection, given: str) -> int:
    session = find_session(connection, given)
    if session.thread != "":
        parent = upkeep.head_of(connection, session.file_id) or ""
        raise InvalidParameter(
            "session", f"{session.uid} is a sub-agent in the log of session {parent}: forget that session instead"
        )
    return session.file_id


def _of_project(connection: sqlite3.Connection, project: str) -> set[int]:
    folders = folders_meant(connection, _in_full(project))
    return {file for folder in folders for file in upkeep.files_of_project(connection, folder.id)}


def _names_of(connection: sqlite3.Connection, project: str | None) -> list[str]:
    """Return the folders that are meant, to be shown to who forgets them."""
    folders = folders_meant(connection, _in_full(project)) if project is not None else ()
    return [folder.root_path or folder.hash for folder in folders]


def _in_full(project: str) -> str:
    """Return a path that begins with a dot as the whole path."""
    return os.path.realpath(project) if project.startswith(".") else project
