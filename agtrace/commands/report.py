"""`agtrace report`: the health of many sessions, for a person, a browser, a CI summary or a program."""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from agtrace_schema.analysis import Report, ReportedSession

from agtrace.commands import TROUBLE, UNREADABLE, USAGE, behind, fail, print_json, tell, unreadable_index, usable
from agtrace.problems import IndexUnavailable, Problem, SettingError

if TYPE_CHECKING:
    from agtrace.usage.prices import PriceTable

_REFRESH_SECONDS = 10
"""How long a report waits for changed logs to be indexed."""

_NAMED = 5
"""Sessions below the limit that are named."""

STDOUT = "-"


@dataclass(frozen=True, slots=True)
class Filters:
    """What the sessions of a report have in common, as it was typed."""

    project: str | None = None
    provider: str | None = None
    since: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class Ways:
    """How a report leaves."""

    html: str | None = None
    """A path, or `-` for stdout."""
    as_json: bool = False
    markdown: bool = False

    @property
    def on_stdout(self) -> list[str]:
        """The options that take stdout for themselves."""
        taken = {"--html -": self.html == STDOUT, "--json": self.as_json, "--markdown": self.markdown}
        return [option for option, wanted in taken.items() if wanted]


def run(filters: Filters, ways: Ways, *, fail_under: int | None, by_mean: bool) -> None:
    """Make the report, print and write it; exit 1 if its sessions are below what they should have."""
    if len(ways.on_stdout) > 1:
        fail(f"{' and '.join(ways.on_stdout)} don't go together", USAGE)
    if by_mean and fail_under is None:
        fail("--mean goes with --fail-under", USAGE)
    found = made(filters, timelines=ways.html is not None)
    if found.behind:
        tell(found.behind)
    _leave(found, ways)
    if fail_under is not None and _below(found.sessions, fail_under, by_mean=by_mean):
        sys.exit(TROUBLE)


def made(filters: Filters, *, timelines: bool) -> Report:
    """The report as it may leave."""
    from agtrace.report.report import report
    from agtrace.report.selection import Selection, projects_named
    from agtrace.report.survey import Asked
    from agtrace.shaping.printed import printed
    from agtrace.times import moment

    now = time.time()
    today = datetime.fromtimestamp(now, UTC)
    prices = _prices()
    try:
        with _index() as (connection, lacking):
            selection = Selection(
                provider=filters.provider,
                project=filters.project,
                projects=None if filters.project is None else projects_named(connection, filters.project),
                since=None if filters.since is None else moment("since", filters.since, today),
                until=None if filters.until is None else moment("until", filters.until, today, end=True),
            )
            return printed(report(connection, Asked(selection, now, prices, timelines, lacking)))
    except IndexUnavailable as problem:
        fail(problem.message, UNREADABLE, problem.hint or "")
    except Problem as problem:
        fail(str(problem), USAGE)
    except (sqlite3.Error, OSError) as error:
        unreadable_index(error)


def _prices() -> PriceTable:
    from agtrace.usage.prices import load

    try:
        return load(usable().prices)
    except SettingError as unusable:
        fail(str(unusable), USAGE)


@contextmanager
def _index() -> Iterator[tuple[sqlite3.Connection, str | None]]:
    """The index as it is at one moment, brought up to date; and what it lacks, as a sentence."""
    from agtrace_indexer.index.opening import one_moment

    from agtrace.index.reader import Index

    index = Index(usable())
    fresh = index.refresh(_REFRESH_SECONDS)
    with index.reader() as reader:
        connection = reader.connection
        with one_moment(connection):
            yield connection, None if fresh.state == "ready" else behind(fresh.state, fresh.files_behind, fresh.problem)


def _leave(found: Report, ways: Ways) -> None:
    """Write and print what was asked for; without another way, the page for the terminal."""
    if ways.html is not None:
        from agtrace.report.page.page import html

        page = html(found)
        if ways.html == STDOUT:
            sys.stdout.write(page)
            sys.stdout.flush()
        else:
            _write(Path(ways.html), page)
    if ways.as_json:
        print_json(found.model_dump(mode="json", exclude_none=True, exclude={"sessions": {"__all__": {"timeline"}}}))
    elif ways.markdown:
        from agtrace.report.markdown import markdown

        sys.stdout.write(markdown(found))
    elif ways.html != STDOUT:
        from agtrace import render

        render.report(found)


def _write(path: Path, page: str) -> None:
    """Write the page, whole or not at all, for its owner only: it quotes logs."""
    from agtrace.serving.interruption import together

    target = path.expanduser().resolve()
    try:
        if target.exists() and not target.is_file():
            target.write_text(page, encoding="utf-8")  # a device or a pipe: never replaced by a file
        else:
            with together:
                _replace(target, page)
    except OSError as error:
        fail(f"can't write {path}: {error.strerror or error}", USAGE)
    tell(f"the page is {target}")


def _replace(target: Path, page: str) -> None:
    handle, written = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(page)
        Path(written).replace(target)
    except BaseException:
        Path(written).unlink(missing_ok=True)
        raise


def _below(sessions: list[ReportedSession], limit: int, *, by_mean: bool) -> bool:
    """Whether the sessions fail the limit; says which, on stderr."""
    scores = {session.session_id: session.score for session in sessions if session.score is not None}
    if not scores:
        tell("no session of the selection has a score, so none is below the limit")
        return False
    if by_mean:
        average = mean(scores.values())
        if average < limit:
            tell(f"the mean score, {average:.2f}, is below {limit}")
        return average < limit
    low = [f"{session_id} ({score})" for session_id, score in scores.items() if score < limit]
    if low:
        more = f" and {len(low) - _NAMED} more" if len(low) > _NAMED else ""
        named = ", ".join(low[:_NAMED])
        tell(f"{len(low)} of {len(scores)} scored sessions are below {limit}: {named}{more}")
    return bool(low)
