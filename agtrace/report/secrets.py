"""Secrets in logs: what was masked where, what may be one, and what is new among them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import Any

from agtrace_indexer.index.queries import events, upkeep
from agtrace_indexer.index.queries.events import text_reader
from agtrace_indexer.redact import redact
from agtrace_indexer.redact.engine import looking

from agtrace.report.selection import Selection
from agtrace.text.lines import one_line
from agtrace.text.numbers import counted
from agtrace.times import iso

_DOTS, _AROUND = "\u2022" * 8, 60
"""What stands for a secret, and the characters of a text on either side of it."""
_NEW = 7 * 24 * 3600 * 1000
"""Milliseconds for which a secret is new in a report on all times."""


def found_in(connection: sqlite3.Connection, selection: Selection, session: int | None, limit: int) -> dict[str, Any]:
    """Return the secrets in these sessions as JSON: how many of each tier, at most `limit` masked and possible ones."""
    found = _selected(connection, selection, session)
    tiers = {tier: {one["id"] for one in found if one["tier"] == tier} for tier in ("definite", "likely", "possible")}
    lists: dict[str, list[dict[str, Any]]] = {"secrets": [], "possible_secrets": []}
    for one in found:
        some = lists["possible_secrets" if one["tier"] == "possible" else "secrets"]
        if len(some) < limit:
            told = {name: one[name] for name in ("id", "kind", "tier", "session_id", "event_index", "events")}
            some.append({**told, "time": iso(one["last"] or None), "text": _around(connection, one)})
    return {**{tier: len(ids) for tier, ids in tiers.items()}, **lists}


def _selected(connection: sqlite3.Connection, chosen: Selection, session: int | None = None) -> list[dict[str, Any]]:
    where = {name: getattr(chosen, name) for name in ("provider", "projects", "since", "until")}
    return upkeep.secrets(connection, session=session, **where)


def _around(connection: sqlite3.Connection, found: dict[str, Any]) -> str | None:
    """Return the text around a secret, with dots in its place and all others masked; None if only a name told it."""
    place = found["session_row"], found["event_index"]
    event = text_reader(connection)(events.one(connection, *place))
    with looking(possible=True):
        text = redact(event.text)
    masks = [mask.span() for mask in re.finditer(re.escape(f"[redacted: {found['kind']}]"), text)]
    number = upkeep.secrets_of(connection, *place, found["kind"]).index(found["id"])
    if number >= len(masks):
        return None
    start, end = masks[number]
    return one_line(f"{text[max(start - _AROUND, 0) : start]}{_DOTS}{text[end : end + _AROUND]}", 4 * _AROUND)


def new_secrets(connection: sqlite3.Connection, selection: Selection, now: float) -> str | None:
    """Say how many definite secrets are in these sessions that weren't anywhere before; None if there are none."""
    since = int(now * 1000) - _NEW if selection.since is None else selection.since
    old = {one["id"] for one in upkeep.secrets(connection) if one["first"] < since}
    there = {one["id"] for one in _selected(connection, selection) if one["tier"] == "definite"} - old
    were, them = ("were", "them") if len(there) > 1 else ("was", "it")
    told = f"{counted(len(there), 'token')} {were} printed in a session: rotate {them}; agtrace secrets says where"
    return told if there else None


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines for a terminal."""
    yield f"{found['definite']:,} definite, {found['likely']:,} likely, {found['possible']:,} possible"
    for name, title in (("secrets", ""), ("possible_secrets", "possible, and masked only in what leaves the machine")):
        yield from ("", title) if found[name] and title else ()
        for one in found[name]:
            more = f", {one['events']:,} events" if one["events"] > 1 else ""
            yield f"{one['id']}  {one['tier']:8}  {one['kind']}  {one['session_id']}:{one['event_index']}{more}"
            yield f"  {one['text'] or '(its name tells it)'}"
