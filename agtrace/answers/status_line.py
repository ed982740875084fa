"""The status line of Claude Code: one line about the session that it shows, and how many others wait for the human.

It runs every few hundred milliseconds, so it loads next to nothing, indexes nothing, and reads only what it is given,
the index, and the ends of a few logs. The fields of what it is given are described at
code.claude.com/docs/en/statusline; any of them may be absent or null.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path, PurePath
from typing import Any, NamedTuple

_NAME = 40
_WITHIN_MS = 30 * 60_000
"""How long ago a session was active last that may wait for the human."""
_MOST_OTHERS = 20
_SECONDS = 0.05
"""Time for looking at other sessions; those that are left then aren't counted."""

NOTHING = "agtrace: no session was given (Claude Code runs this as its statusLine command)"


class _SessionFacts(NamedTuple):
    failed_calls: int | None = None
    """Of the session and its sub-agents; None for a session that isn't indexed."""
    context_tokens: int | None = None
    waiting: int = 0
    """Other sessions that wait for the human."""


def status_line(given: bytes, database: Path) -> str:
    """Return the line for what Claude Code gives on stdin; never raises, whatever that is."""
    session = _object(given)
    if not session:
        return NOTHING
    known = _session_facts(session, database)
    cost = _number(_in(session, "cost").get("total_cost_usd"))
    parts = (
        _project(session),
        _text(_in(session, "model"), "display_name") or _text(_in(session, "model"), "id"),
        _context(_in(session, "context_window"), known.context_tokens),
        "" if cost is None else f"${cost:,.2f}",
        *_limits(_in(session, "rate_limits")),
        f"{known.failed_calls} failed" if known.failed_calls else "",
        f"{known.waiting} waiting for you" if known.waiting else "",
    )
    return " · ".join(filter(None, parts)) or NOTHING


def _object(given: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(given)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _in(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: Mapping[str, Any], name: str) -> str:
    """Return a text without secrets, line breaks and what a terminal would obey."""
    found = value.get(name)
    shown = "".join(filter(str.isprintable, found)) if isinstance(found, str) else ""
    if re.search(r"(?=[A-Za-z]*[0-9])[A-Za-z0-9]{10}", shown):  # else there is no secret, and no need to load the rules
        from agtrace_indexer.redact import UnusableRules, redact, use

        from agtrace.settings.environment import data_dir

        with suppress(UnusableRules, OSError):
            use(data_dir())
        shown = redact(shown)
    return shown if len(shown) <= _NAME else shown[: _NAME - 1] + "…"


def _project(session: Mapping[str, Any]) -> str:
    place = _in(session, "workspace")
    for folder in (place.get("project_dir"), place.get("current_dir"), session.get("cwd")):
        if isinstance(folder, str) and folder:
            return _text({"name": PurePath(folder).name or folder}, "name")
    return ""


def _number(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and 0 <= value < 1e12 else None


def _context(window: Mapping[str, Any], tokens: int | None) -> str:
    """Return how full the context is: as Claude Code says, by the figures of its last request, or by the index."""
    size, used = _number(window.get("context_window_size")), _number(window.get("used_percentage"))
    if used is None:
        usage = _in(window, "current_usage")
        kinds = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        tokens = round(sum(_number(usage.get(kind)) or 0 for kind in kinds)) or tokens
        used = 100 * tokens / size if tokens and size else None
    of = f" of {_short(size)}" if size else ""
    if used is not None:
        return f"{used:.0f}%{of}"
    return f"{_short(tokens)} tokens" if tokens else ""


def _limits(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is left of the limits of a subscription."""
    for name, window in (("five_hour", "5 h"), ("seven_day", "week")):
        used = _number(_in(given, name).get("used_percentage"))
        if used is not None:
            yield f"{max(100 - used, 0):.0f}% of {window} left"


def _short(tokens: float) -> str:
    return f"{tokens / 1e6:g}M" if tokens >= 1e6 else f"{tokens / 1e3:.0f}k" if tokens >= 1e3 else f"{tokens:.0f}"


def _session_facts(session: Mapping[str, Any], database: Path) -> _SessionFacts:
    """Return what the index knows; nothing without an index that can be read."""
    from agtrace_indexer.index.opening import open_read_only

    if not database.is_file():
        return _SessionFacts()
    try:
        with closing(open_read_only(database)) as connection:
            return _read(connection, session.get("session_id"))
    except (sqlite3.Error, OSError, LookupError, ValueError, TypeError):  # a damaged index has anything in it
        return _SessionFacts()


def _read(connection: sqlite3.Connection, uid: Any) -> _SessionFacts:
    from agtrace_indexer.index.queries import sessions, usage

    here = sessions.with_id(connection, uid) if isinstance(uid, str) else None
    waiting = sum(_waiting(connection, None if here is None else here.id))
    if here is None:
        return _SessionFacts(waiting=waiting)
    filled = usage.filled(connection, here.id)
    failed = sessions.with_agents(connection, here.id).failed_calls
    return _SessionFacts(failed, None if filled is None else filled.tokens, waiting)


def _waiting(connection: sqlite3.Connection, here: int | None) -> Iterator[bool]:
    from agtrace_indexer.index.queries import sessions

    from agtrace.answers.doing import doing

    now, end = round(1000 * time.time()), time.monotonic() + _SECONDS
    active = sessions.active(connection, now - _WITHIN_MS, _MOST_OTHERS)
    for session in sessions.in_rows(connection, active.keys() - {here}):
        if time.monotonic() > end:
            return
        if not session.gone:
            yield doing(connection, session, active[session.id], now, by_words=False).state == "waiting"
