"""What was spent: tokens and dollars by time, place, session, model, agent or user, and what is left of limits.

A response belongs to the local day of its own event, not to the day on which its session began; a period selects
responses. Sessions are those of a report, each with its sub-agents, so without a period the totals are equal.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date, timedelta
from itertools import islice
from typing import Any, TypeAlias

from agtrace_indexer.events.json_values import fields
from agtrace_indexer.index.queries import sessions, usage
from agtrace_indexer.index.queries.base import is_team
from agtrace_indexer.index.queries.usage import Among, ModelSums
from agtrace_indexer.logs.content import last_records
from agtrace_schema.reports import Costs, Limit, ModelTokens, Spent
from agtrace_schema.requests import CostBy
from msgspec import Struct, field
from msgspec.structs import replace

from agtrace.report.selection import Family, Selection, families, in_period
from agtrace.report.wording import AGENTS
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import labels
from agtrace.sessions.query import short_id
from agtrace.sessions.terms import believable
from agtrace.sessions.usage import Usage
from agtrace.text.lines import LABEL, USER_MESSAGE, one_line
from agtrace.text.numbers import counted, short
from agtrace.times import iso, local, when

UNKNOWN = "unknown"
OVER_TIME: tuple[CostBy, ...] = ("day", "week", "month", "block")
_CACHE_WRITES = ("cache_creation_5m_tokens", "cache_creation_1h_tokens")
_HOUR_MS = 3600 * 1000
_DAY_MS = 24 * _HOUR_MS
_BLOCK = 5
"""The hours of a block, which begins with the hour of the first response after the block before."""

_NEWEST, _RECORDS = 3, 400
"""The newest logs that are asked for limits, and their last records that are looked at."""
_LONGEST_WINDOW = 40 * 24 * 3600
"""Seconds; the longest windows are a month."""
_EPOCH = date(1970, 1, 1).toordinal()

_Label: TypeAlias = Callable[[Family, int, int | None, str], str]
"""Returns the group of a response: from its session and the member of it, its day (or hour, for blocks) and model."""


class _Group(Struct):
    used: Usage = field(default_factory=Usage)
    sessions: set[int] = field(default_factory=set)
    """The rows of sessions of a report."""
    members: set[int] = field(default_factory=set)
    """The rows of these sessions and of their sub-agents."""
    untold: set[int] = field(default_factory=set)
    """The rows of those of these sessions that have no figures, or whose sub-agents don't."""

    def note(self, family: Family, member: int) -> None:
        self.sessions.add(family.row.id)
        self.members.add(member)


def costs(
    connection: sqlite3.Connection,
    selection: Selection,
    by: CostBy,
    *,
    prices: PriceTable,
    dollars: bool = True,
    behind: str | None = None,
    now: float | None = None,
) -> Costs:
    """Return what the selected sessions spent in the selected period, by group.

    With `now`, in seconds since 1970 UTC, the newest logs are asked what is left of limits.
    """
    chosen = families(connection, selection)
    groups = _grouped(connection, selection, by, prices, chosen)
    total = _together(groups.values())
    active = {family.row.id for family in in_period(chosen, selection.since, selection.until)}
    among = Among("session", sessions=tuple(total.members))
    obscure = usage.not_understood(connection, among).keys()
    for group in (*groups.values(), total):
        group.used.obscure = len(group.members & obscure)
    shown = [_spent(name, group, dollars=dollars) for name, group in groups.items()]
    used = total.used.models.items()
    everywhere = selection.projects is None and selection.provider is None
    starts = usage.of_starts(connection, since=selection.since, until=selection.until) if everywhere else (0, 0)
    return Costs(
        selection=selection.sentence(len(total.sessions | active)),
        by=by,
        groups=sorted(shown, key=(lambda one: (one.group == UNKNOWN, one.group)) if by in OVER_TIME else _most_first),
        titles=_titles(connection, chosen, groups) if by == "session" else None,
        total=replace(_spent("total", total, dollars=dollars), sessions=len(total.sessions | active)),
        unpriced=_models({name: one.unpriced for name, one in used if dollars}),
        faster=_models({name: one.faster for name, one in used if dollars}),
        incomplete_responses=total.used.incomplete,
        sessions_without_figures=len(total.untold),
        sessions_not_understood=total.used.obscure,
        starts=starts[0],
        start_tokens=starts[1],
        prices=f"{prices.source}, {prices.dated}" if dollars and total.used.told < total.used.figures else None,
        limits=None if now is None or is_team(connection) else _limits(chosen, now) or None,
        behind=behind,
    )


def _limits(chosen: Iterable[Family], now: float) -> list[Limit]:
    """Return what the newest log of Codex that tells it says is left of limits that haven't begun anew since."""
    logs = [family.row for family in chosen if family.row.provider == "codex" and not family.row.gone]
    for row in sorted(logs, key=lambda row: row.ended_at or 0, reverse=True)[:_NEWEST]:
        for record in islice(last_records(row.path), _RECORDS):
            told = fields(fields(record.get("payload")).get("rate_limits"))
            windows = [fields(window) for name in ("primary", "secondary") if (window := told.get(name))]
            if windows:
                return [limit for window in windows if (limit := _limit(window, now)) is not None]
    return []


def _limit(window: Mapping[str, Any], now: float) -> Limit | None:
    used, minutes, resets = (
        value if isinstance(value := window.get(name), int | float) else None
        for name in ("used_percent", "window_minutes", "resets_at")
    )
    if used is None or not minutes or resets is None or not now < resets < now + _LONGEST_WINDOW:
        return None
    left = min(max(100 - used, 0), 100)
    return Limit(agent="codex", hours=minutes / 60, left_percent=left, resets_at=iso(round(1000 * resets)) or "")


def left_of(limit: Limit) -> str:
    """Return what is left of a limit, in words."""
    window = f"{limit.hours:g} hours" if limit.hours < 48 else f"{limit.hours / 24:g} days"
    return f"{AGENTS[limit.agent]}: {limit.left_percent:.0f}% of {window} left until {when(limit.resets_at)}"


def _titles(connection: sqlite3.Connection, chosen: Iterable[Family], groups: Collection[str]) -> dict[str, str]:
    titles = {short_id(connection, family.row.uid): family.row for family in chosen}
    return {id: one_line(titles[id].title or titles[id].snippet or "", USER_MESSAGE) for id in groups}


def missing_figures(found: Costs) -> Iterator[str]:
    """Yield, in words, which figures the logs lack."""
    if found.incomplete_responses:
        yield f"incomplete token figures in the logs: {counted(found.incomplete_responses, 'response')}"
    if found.sessions_without_figures:
        yield f"no token figures in the logs of {counted(found.sessions_without_figures, 'session')}"
    if found.sessions_not_understood:
        yield f"not everything understood in the logs of {counted(found.sessions_not_understood, 'session')}"
    if found.starts:
        yield f"not counted: {short(found.start_tokens)} tokens of {counted(found.starts, 'mere start')} of an agent"


def _grouped(
    connection: sqlite3.Connection, selection: Selection, by: CostBy, prices: PriceTable, chosen: Iterable[Family]
) -> dict[str, _Group]:
    families_of = {member: family for family in chosen for member in family.members}
    responses = list(_responses(connection, selection, families_of, hours=by == "block"))
    hours = ((families_of[sums.key].row.provider, hour) for hour, sums in responses)
    label = _block(hours) if by == "block" else _label(connection, by, families_of)
    groups: dict[str, _Group] = defaultdict(_Group)
    for day, sums in responses:
        family = families_of[sums.key]
        group = groups[label(family, sums.key, day, sums.model)]
        group.used.add(sums, prices)
        group.note(family, sums.key)
    for member in _without_figures(connection, selection, families_of):
        family = families_of[member]
        group = groups[label(family, member, _day(family.started_at), "")]
        group.used.untold += 1
        group.untold.add(family.row.id)
        group.note(family, member)
    return groups


def _together(groups: Iterable[_Group]) -> _Group:
    total = _Group()
    for group in groups:
        total.used.include(group.used)
        total.sessions |= group.sessions
        total.members |= group.members
        total.untold |= group.untold
    return total


def _responses(
    connection: sqlite3.Connection, selection: Selection, sessions: Iterable[int], *, hours: bool
) -> Iterator[tuple[int | None, ModelSums]]:
    """Yield the usage of the responses in the period with their day, or hour; those without a time only if no period
    is given.
    """
    timeless, unit = selection.since is None and selection.until is None, _HOUR_MS if hours else _DAY_MS
    for day, sums in usage.by_day(connection, sessions, since=selection.since, until=selection.until, hours=hours):
        known = day if day is not None and believable(day * unit) else None
        if timeless or known is not None:
            yield known, sums


def _without_figures(
    connection: sqlite3.Connection, selection: Selection, families_of: Mapping[int, Family]
) -> Iterator[int]:
    """Yield the sessions of the period in which a model answered but whose log has no figures."""
    there = {family.row.id for family in in_period(families_of.values(), selection.since, selection.until)}
    for member in usage.without_figures(connection, Among("session", sessions=tuple(families_of))):
        if families_of[member].row.id in there:
            yield member


def _spent(name: str, group: _Group, *, dollars: bool) -> Spent:
    used = group.used
    writes = [used.tokens[kind] for kind in _CACHE_WRITES if kind in used.tokens]
    return Spent(
        group=name,
        sessions=len(group.sessions),
        input_tokens=used.tokens.get("input_tokens"),
        cache_write_tokens=sum(writes) if writes else None,
        cache_read_tokens=used.tokens.get("cache_read_tokens"),
        output_tokens=used.tokens.get("output_tokens"),
        total_tokens=used.total,
        tokens_made=used.tokens_made,
        cost_usd=used.cost if dollars else None,
        cost_made=used.cost_made if dollars else None,
    )


def _models(tokens: Mapping[str, int]) -> list[ModelTokens] | None:
    """Return models with tokens of some kind, the most first; None if there are none."""
    found = [ModelTokens(model=one_line(name, LABEL), tokens=number) for name, number in tokens.items() if number]
    return sorted(found, key=lambda one: (-one.tokens, one.model)) or None


def _most_first(group: Spent) -> tuple[bool, float, int, str]:
    return group.cost_usd is None, -(group.cost_usd or 0), -(group.total_tokens or 0), group.group


# -- groups ----------------------------------------------------------------------------------------


def _label(connection: sqlite3.Connection, by: CostBy, families: Mapping[int, Family]) -> _Label:
    """Return what tells the group of a response; `families` has that of each session."""
    if by in ("project", "branch"):
        names = labels(connection)
        if by == "project":
            return lambda family, _, __, ___: names.get(family.row.project_id or 0, UNKNOWN)
        return lambda family, _, __, ___: (
            f"{names.get(family.row.project_id or 0, UNKNOWN)} {family.row.branch or UNKNOWN}"
        )
    if by == "session":
        ids = {family.row.id: short_id(connection, family.row.uid) for family in families.values()}
        return lambda family, _, __, ___: ids[family.row.id]
    if by == "agent-type":
        types = {row.id: row.agent_type for row in sessions.in_rows(connection, families)}
        return lambda family, member, _, __: one_line(
            types.get(member) or ("main" if member == family.row.id else "sub-agent"), LABEL
        )
    if by == "model":
        return lambda _, __, ___, model: one_line(model or UNKNOWN, LABEL)
    if by == "agent":
        return lambda family, _, __, ___: family.row.provider
    if by == "user":
        users = sessions.people_of(connection, [family.row.id for family in families.values()])
        return lambda family, _, __, ___: one_line(users.get(family.row.id, "you"), LABEL)
    return lambda _, __, day, ___: UNKNOWN if day is None else calendar(by, day)


def _block(responses: Iterable[tuple[str, int | None]]) -> _Label:
    """Return what tells the block of a response, named by its beginning and the agent, given all by agent and hour."""
    found: dict[tuple[str, int | None], str] = {}
    agent, end = "", 0
    for one, hour in sorted({(one, hour) for one, hour in responses if hour is not None}):
        if one != agent or hour >= end:
            agent, end = one, hour + _BLOCK
        began = (local((end - _BLOCK) * _HOUR_MS) or "")[:16].replace("T", " ")
        found[one, hour] = f"{began} {AGENTS[agent]}"
    return lambda family, _, hour, __: found.get((family.row.provider, hour), UNKNOWN)


def calendar(by: CostBy, day: int) -> str:
    """Return a day, given as local days since 1970-01-01, the Monday of its week, or its month."""
    found = date.fromordinal(_EPOCH + day)
    if by == "week":
        found -= timedelta(days=found.weekday())
    return found.isoformat()[: 7 if by == "month" else 10]


def _day(moment: int) -> int | None:
    """Return the day of a time in milliseconds since 1970 UTC; None if no correct clock can have recorded it."""
    return date.fromisoformat(local(moment)[:10]).toordinal() - _EPOCH if believable(moment) else None
