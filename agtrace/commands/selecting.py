"""The sessions that a command is about: its filters, over an index that was just brought up to date."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from agtrace.commands.asking import behind, usable

if TYPE_CHECKING:
    import sqlite3

    from agtrace.report.selection import Selection
    from agtrace.sessions.prices import PriceTable

_REFRESH_SECONDS = 10
"""Seconds that a command waits for changed logs to be indexed."""


class Filters(Struct, frozen=True):
    """The filters of sessions, as typed."""

    project: str | None = None
    provider: str | None = None
    since: str | None = None
    until: str | None = None


class Selected(NamedTuple):
    """A snapshot of the index, and the sessions in it that are meant."""

    connection: sqlite3.Connection
    selection: Selection
    now: float
    """Seconds since 1970 UTC."""
    prices: PriceTable
    lacking: str | None
    """What the index doesn't have yet, as a sentence."""


@contextmanager
def selected(filters: Filters) -> Iterator[Selected]:
    """Bring the index up to date, and yield the sessions that these filters leave, on a snapshot of it."""
    from agtrace_indexer.index.opening import one_moment

    from agtrace.index.chosen import index_of
    from agtrace.report.selection import Selection
    from agtrace.sessions.clones import known_as
    from agtrace.sessions.prices import load as load_prices
    from agtrace.sessions.projects import resolved
    from agtrace.times import period

    now = time.time()
    today = datetime.fromtimestamp(now, UTC)
    settings = usable()
    asked = period(filters.since, filters.until, today)
    prices = load_prices(settings.prices)
    index = index_of(settings)
    fresh = index.refresh(_REFRESH_SECONDS)
    index.note("report")
    lacking = None if fresh.state == "ready" else behind(fresh.state, fresh.files_behind, fresh.problem)
    with index.reader() as reader, one_moment(reader.connection):
        project = None if filters.project is None else known_as(reader.connection, filters.project)
        selection = Selection(
            provider=filters.provider,
            project=project,
            projects=None if project is None else resolved(reader.connection, project),
            since=asked.since,
            until=asked.until,
        )
        yield Selected(reader.connection, selection, now, prices, lacking)
