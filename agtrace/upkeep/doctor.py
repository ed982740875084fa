"""What was found where, per agent and version; what was not understood, with file and line; what to do."""

from __future__ import annotations

import os
import sqlite3
from typing import Any

from agtrace_indexer.index.maintenance import scrub_is_due
from agtrace_indexer.redact import redact_json
from agtrace_indexer.repair.damage import Damage
from agtrace_indexer.repair.repair import damaged_copies
from agtrace_indexer.repair.repair import examine as look_for_damage
from agtrace_schema.codes import TYPE_CODE
from agtrace_schema.events import EventType

from agtrace.index.freshness import Freshness
from agtrace.index.reader import Index, home_roots
from agtrace.index.trouble import REPAIR
from agtrace.settings import Settings
from agtrace.text.lines import counted, one_line
from agtrace.upkeep.exposure import exposure

_HEAD_SHOWN = 100

_ADVICE = {
    "unreadable": "make it readable, or ignore it: it is looked at again when it changes",
    "skipped": "nothing to do: only regular files are read",
    "unrecognized": "nothing to do if it is no log; if an agent wrote it, its format is not supported yet",
    "empty": "nothing to do: it is read as soon as something is written to it",
    "waiting": "nothing to do: it is read as soon as its writer finishes it",
    "duplicate": "nothing to do: the log it repeats is read",
}


def examine(settings: Settings, *, refresh_seconds: float = 10) -> dict[str, Any]:
    """Look at the index and the agents' homes. Raises `IndexUnavailable` when the index can't be opened."""
    index = Index(settings)
    freshness = index.refresh(refresh_seconds)
    with index.reader() as reader:
        connection, damage = reader.connection, look_for_damage(settings.database)
        try:
            found = _found(settings, connection, freshness)
        except (sqlite3.Error, ValueError, TypeError, KeyError):
            if not damage:
                raise
            found = _what_can_be_read(settings, freshness)
    found["index"] |= _soundness(settings, damage)
    found["trouble"] = [*_trouble(found), *exposure(settings.data_dir)]
    redacted: dict[str, Any] = redact_json(found)  # type: ignore[assignment]  # an object stays an object
    return redacted


def _found(settings: Settings, connection: sqlite3.Connection, freshness: Freshness) -> dict[str, Any]:
    return {
        "index": _index(settings, connection, freshness),
        "homes": _homes(settings),
        "roots": [row[0] for row in connection.execute("SELECT path FROM root ORDER BY path")],
        "agents": _agents(connection),
        "files": _files(connection),
        "not_read": _not_read(connection),
        "partly_read": _partly_read(connection),
        "unreadable_lines": _unreadable_lines(connection),
        "unknown_record_types": _record_types(connection, "unknown"),
        "left_out_record_types": _record_types(connection, "skipped"),
    }


def _what_can_be_read(settings: Settings, freshness: Freshness) -> dict[str, Any]:
    """The same of an index of which little can be read."""
    empty = ("roots", "agents", "files", "not_read", "partly_read", "unreadable_lines", "unknown_record_types",
             "left_out_record_types")  # fmt: skip
    return {
        "index": _file_of(settings, freshness)
        | {"sessions": None, "events": None, "archived_files": None, "forgotten_files": None, "traces_left": None},
        "homes": _homes(settings),
        **{name: [] for name in empty},
    }


def _homes(settings: Settings) -> list[dict[str, Any]]:
    return [{"path": path, "exists": os.path.isdir(path)} for path in home_roots(settings)]


def _soundness(settings: Settings, damage: Damage) -> dict[str, Any]:
    """What of the index is damaged, and which damaged files repairs have left."""
    kept = [{"path": str(path), "bytes": path.stat().st_size} for path in damaged_copies(settings.database)]
    return {
        "integrity": "damaged" if damage else "ok",
        "damage": {"tables": list(damage.tables), "made_of_tables": list(damage.derived)},
        "damaged_copies": kept,
    }


def _file_of(settings: Settings, freshness: Freshness) -> dict[str, Any]:
    return {
        "path": str(settings.database),
        "bytes": settings.database.stat().st_size,
        "state": freshness.state,
        "problem": freshness.problem,
    }


def _index(settings: Settings, connection: sqlite3.Connection, freshness: Freshness) -> dict[str, Any]:
    sessions, events = connection.execute("SELECT count(*), coalesce(sum(event_count), 0) FROM session").fetchone()
    return {
        **_file_of(settings, freshness),
        "sessions": sessions,
        "events": events,
        "archived_files": connection.execute("SELECT count(*) FROM file WHERE gone").fetchone()[0],
        "forgotten_files": connection.execute("SELECT count(*) FROM file WHERE status = 'forgotten'").fetchone()[0],
        "traces_left": scrub_is_due(connection),
    }


def _agents(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    rows = connection.execute(
        """
        SELECT s.provider, count(DISTINCT s.file_id) AS files, count(*) AS sessions,
          group_concat(DISTINCT s.version) AS versions, min(s.started_at) AS first, max(s.ended_at) AS last
        FROM session s GROUP BY s.provider ORDER BY s.provider
        """
    ).fetchall()
    return [
        {
            "provider": row["provider"],
            "files": row["files"],
            "sessions": row["sessions"],
            "versions": [
                one_line(version, _HEAD_SHOWN)
                for version in sorted(filter(None, (row["versions"] or "").split(",")), key=_version_key)
            ],
        }
        for row in rows
    ]


def _version_key(version: str) -> list[tuple[int, str]]:
    parts = version[:_HEAD_SHOWN].replace("-", ".").split(".")
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def _files(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Every log, with what was read of it."""
    rows = connection.execute(
        """
        SELECT f.path, f.provider, f.gone, f.size, f.lines, f.records, f.unreadable_lines, f.pending_bytes,
          count(s.id) AS sessions, coalesce(sum(s.event_count), 0) AS events,
          coalesce(sum(s.tool_calls), 0) AS tool_calls, coalesce(sum(s.failed_calls), 0) AS failed_calls
        FROM file f LEFT JOIN session s ON s.file_id = f.id WHERE f.status = 'log' GROUP BY f.id ORDER BY f.path
        """
    ).fetchall()
    return [dict(row) | {"gone": bool(row["gone"])} for row in rows]


def _not_read(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    rows = connection.execute(
        "SELECT path, status, reason, size FROM file WHERE status NOT IN ('log', 'forgotten') ORDER BY status, path"
    ).fetchall()
    return [dict(row) | {"advice": _ADVICE[row["status"]]} for row in rows]


def _partly_read(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    rows = connection.execute(
        "SELECT path, reason, pending_bytes FROM file WHERE status = 'log' AND reason IS NOT NULL ORDER BY path"
    ).fetchall()
    return [dict(row) for row in rows]


def _unreadable_lines(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    rows = connection.execute(
        """
        SELECT f.path, e.line, e.offset, e.length, n.text AS kind, s.uid, e.event_index
        FROM name n JOIN event e ON e.name_id = n.id
          JOIN session s ON s.id = e.session_id JOIN file f ON f.id = s.file_id
        WHERE n.text IN ('unreadable_line', 'oversized_line') AND e.type = ? AND e.superseded_by IS NULL
        ORDER BY f.path, e.line
        """,
        (TYPE_CODE[EventType.NOTIFICATION],),
    ).fetchall()
    reasons = {"unreadable_line": "no JSON", "oversized_line": "longer than is parsed: its head is kept"}
    return [
        {
            "path": row["path"],
            "line": row["line"],
            "byte_offset": row["offset"],
            "byte_length": row["length"],
            "reason": reasons[row["kind"]],
            "event": f"{row['uid']}:{row['event_index']}",
        }
        for row in rows
    ]


def _record_types(connection: sqlite3.Connection, status: str) -> list[dict[str, Any]]:
    rows = connection.execute(
        """
        SELECT t.type, f.provider, sum(t.count) AS count, count(*) AS files, f.path, t.first_line AS line
        FROM record_type t JOIN file f ON f.id = t.file_id WHERE t.status = ?
        GROUP BY f.provider, t.type ORDER BY count DESC, t.type
        """,
        (status,),
    ).fetchall()
    return [dict(row) | {"type": one_line(row["type"], _HEAD_SHOWN)} for row in rows]


def _trouble(found: dict[str, Any]) -> list[str]:
    """What a person should know or do, as sentences; empty when all is well."""
    trouble = []
    damage = found["index"]["damage"]
    if found["index"]["integrity"] != "ok":
        what = "; ".join((*damage["tables"], *damage["made_of_tables"]))
        trouble.append(f"the index is damaged ({what}): {REPAIR} reads the logs again and keeps what is archived")
    elif found["index"]["problem"]:
        trouble.append(found["index"]["problem"])
    if found["index"]["traces_left"]:
        trouble.append("bytes of forgotten or masked texts are still on the disk: end what reads the index, "
                       "then run `agtrace index`")  # fmt: skip
    unreadable = [file for file in found["not_read"] if file["status"] == "unreadable"]
    if unreadable:
        trouble.append(f"{counted(len(unreadable), 'file')} can't be read: see not_read")
    if found["partly_read"]:
        trouble.append(f"read in part: {counted(len(found['partly_read']), 'log')}: see partly_read")
    if found["unreadable_lines"]:
        lines = counted(len(found["unreadable_lines"]), "line")
        trouble.append(f"{lines} can't be read as JSON, and kept as found")
    if not found["files"] and not damage["tables"] and not found["index"]["forgotten_files"]:
        trouble.append("no log was found: run an agent first, or give a folder: agtrace index PATH")
    return trouble
