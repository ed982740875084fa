"""Search: its results compared with a scan, and its times, in process, over MCP and as a command, with ripgrep's."""

from __future__ import annotations

import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio
from agtrace_indexer.index.queries.matches import EventFilters

from agtrace.answers.log import silent
from agtrace.answers.service import Service
from agtrace.search.matching import Contains, Deadline
from agtrace.search.scan import Hits, Place, Question, snapshot_of
from agtrace.sessions.projects import resolved
from agtrace.sessions.query import find_session
from agtrace.times import moment
from benchmarks import queries
from benchmarks.clients import SEARCH, call, connected
from benchmarks.ground import Ground, Machine, size_of, warm
from benchmarks.peers import median, ripgrep
from benchmarks.queries import Query
from benchmarks.scan import scan
from benchmarks.table import number, percentile, ratio, table

LIMIT = 10
"""Hits per page."""
PAGES = 3
"""Pages of each query that are compared with a scan."""
COMMANDS_A_ROUND = 4
"""Queries of each set that are also run as a command, per round: few, as new processes are slow."""
SLOWEST = 8

EXPRESSIONS = (
    r"\d{7}x\d{3}q",
    r"(?:foo|bar)\s+\w+zzq",
    r"[A-Z]{9}\d{9}",
    r"^\s+at \w+:\d{7}$",
)
"""Regular expressions that no word index narrows down, and that next to nothing matches: all texts are read."""

_OPTIONS = {"session_id": "--session", "event_type": "--type", "project_hash": "--project"}
"""Filters whose option on the command line has another name."""

IN_PROCESS, ASKED, MCP, RANKED, COMMAND, RIPGREP = (
    "search in process",
    "check, search, answer in process",
    "the same over MCP stdio",
    "by words, ranked, over MCP stdio",
    "agtrace search",
    "rg -i -F",
)


@dataclass(slots=True)
class Timed:
    """A query with its times in milliseconds, by the way it was run, and the errors of the server."""

    query: Query
    times: dict[str, list[float]] = field(default_factory=dict)
    trouble: list[str] = field(default_factory=list)

    def note(self, way: str, milliseconds: float) -> None:
        """Record a time."""
        self.times.setdefault(way, []).append(milliseconds)


def report(ground: Ground, megabytes: int) -> Iterator[str]:
    """Yield the tables."""
    machine, logs = ground.indexed(megabytes), ground.corpus(megabytes)
    with_rows = machine.connect()
    sets = [queries.chosen(with_rows), queries.held_out(with_rows)]
    warm(logs)
    for name, chosen in zip(("tuned on", "held out"), sets, strict=True):
        ground.say(f"{len(chosen)} queries ({name}), {ground.rounds} rounds")
        timed = [Timed(query) for query in chosen]
        anyio.run(_measure, machine, logs, timed, ground.rounds)
        yield _table(f"{len(chosen)} queries ({name}), ms", timed)
        yield _difference(timed)
        yield from _troubles(timed)
        yield _slowest(timed)
    ground.say(f"{len(EXPRESSIONS)} regular expressions")
    yield _expressions(machine, logs, ground.rounds)
    ground.say("the same queries by a scan")
    truth = scan(with_rows, [query for chosen in sets for query in chosen])
    for name, chosen in zip(("tuned on", "held out"), sets, strict=True):
        found = [_differs(with_rows, query, hits) for query, hits in zip(chosen, truth, strict=False)]
        truth = truth[len(chosen) :]
        differing = [query.text[:60] for query, differs in zip(chosen, found, strict=True) if differs]
        what = f"{len(differing)} differ from a scan in the first {PAGES} pages or the count"
        yield f"{len(chosen)} queries ({name}): {what}."
        yield from (f"Differs: {text!r}" for text in differing)


def in_process(connection: sqlite3.Connection, chosen: Sequence[Query], rounds: int) -> list[float]:
    """Return the median milliseconds of each query, after a round that doesn't count, over rows by name."""
    found = []
    for query in chosen:
        _search(connection, query)
        found.append(statistics.median(_clocked(partial(_search, connection, query)) for _ in range(rounds)))
    return found


async def _measure(machine: Machine, logs: Path, timed: list[Timed], rounds: int) -> None:
    """Run every query in every way, one way after the other, in every round; the first round only warms up."""
    connection = machine.connect()
    answers = Service(machine.settings, log=silent)
    commands = set(range(0, len(timed), max(1, len(timed) // (COMMANDS_A_ROUND * rounds))))
    async with connected(machine) as client:
        for round_number in range(rounds + 1):
            for number_of_query, one in enumerate(timed):
                query = one.query
                grep = ripgrep(logs, query.text)
                times = {IN_PROCESS: _clocked(partial(_search, connection, query))}
                times[ASKED] = _clocked(partial(_ask, answers, query))
                called = await call(client, query)
                times[MCP] = called.milliseconds
                times[RANKED] = (await call(client, query, ranked=True)).milliseconds
                if not grep.note:
                    times[RIPGREP] = 1000 * grep.seconds
                if round_number == rounds and number_of_query in commands:
                    times[COMMAND] = 1000 * machine.agtrace("search", "--newest", *_options(query), "--", query.text)
                one.trouble += [called.error] if called.error else []
                for way, milliseconds in times.items() if round_number else ():
                    one.note(way, milliseconds)


def _clocked(step: Callable[[], object]) -> float:
    began = time.perf_counter()
    step()
    return 1000 * (time.perf_counter() - began)


def _ask(answers: Service, query: Query) -> None:
    given = answers.ask(SEARCH, query.arguments)
    if given.is_error:
        raise AssertionError(f"{query}: {given.text}")


def _search(connection: sqlite3.Connection, query: Query, behind: Place | None = None) -> Hits:
    connection.execute("BEGIN")
    try:
        snapshot = snapshot_of(connection)
        asked = Question(connection, Contains(query.text), _filters(connection, query), snapshot)
        return asked.page(LIMIT, behind, Deadline())
    finally:
        connection.rollback()


def _expressions(machine: Machine, logs: Path, rounds: int) -> str:
    """Return how long regular expressions without a literal take."""
    answers, gigabytes = Service(machine.settings, log=silent), size_of(logs) / 1e9
    rows = []
    for expression in EXPRESSIONS:
        times = [_clocked(partial(_ask_for, answers, expression)) / 1000 for _ in range(rounds)]
        seconds, grep = statistics.median(times), median(partial(ripgrep, logs, expression, regex=True), 1)
        base = None if grep.note else grep.seconds
        shown = f"`{_shown(expression)}`"
        rows.append([shown, number(seconds), number(seconds / gigabytes), number(base), ratio(seconds, base)])
    head = ("expressions without a literal, s", ASKED, "a GB", "rg -i, 2 threads", "of rg")
    return table(head, rows)


def _ask_for(answers: Service, expression: str) -> None:
    given = answers.ask(SEARCH, {"query": expression, "regex": True})
    if given.is_error:
        raise AssertionError(f"{expression}: {given.text}")


def _filters(connection: sqlite3.Connection, query: Query) -> EventFilters:
    now = datetime.now(UTC)
    return EventFilters(
        session_row=find_session(connection, query.session_id).id if query.session_id else None,
        provider=query.provider,
        projects=resolved(connection, query.project_hash) if query.project_hash else None,
        event_type=query.event_type,
        tool=query.tool,
        failed=query.failed,
        since=moment("since", query.since, now) if query.since else None,
        until=moment("until", query.until, now, end=True) if query.until else None,
    )


def _options(query: Query) -> Iterator[str]:
    for name, value in query.filters.items():
        yield _OPTIONS.get(name, f"--{name}")
        if name != "failed":
            yield str(value)


def _differs(connection: sqlite3.Connection, query: Query, truth: list[int]) -> bool:
    """Whether pages or counts differ from those of a scan."""
    seen, behind = 0, None
    for _ in range(PAGES):
        page = _search(connection, query, behind)
        found = [hit.event_id for hit in page.hits]
        left = len(truth) - seen
        exact = page.found == left if page.complete else page.found <= left
        if found != truth[seen : seen + LIMIT] or page.more != (left > LIMIT) or not exact:
            return True
        if not page.more:
            return False
        seen, behind = seen + LIMIT, page.hits[-1].place
    return False


def _medians(timed: list[Timed], way: str) -> list[float]:
    return [statistics.median(one.times[way]) for one in timed if way in one.times]


def _table(title: str, timed: list[Timed]) -> str:
    grep = _medians(timed, RIPGREP)
    base = statistics.median(grep) if grep else None
    best = [min(one.times[IN_PROCESS]) for one in timed]
    rows = {f"{IN_PROCESS}, best": best} | {
        way: _medians(timed, way) for way in (IN_PROCESS, ASKED, MCP, RANKED, COMMAND)
    }
    rows |= {f"{RIPGREP}, 2 threads": grep} if grep else {}
    return table(
        (title, "queries", "p50", "p95", "max", "p50 of rg's p50", "p95 of rg's p50"),
        [
            [way, str(len(times)), *(number(percentile(times, share)) for share in (0.5, 0.95, 1)),
             ratio(percentile(times, 0.5), base), ratio(percentile(times, 0.95), base)]
            for way, times in rows.items()
        ],
    )  # fmt: skip


def _difference(timed: list[Timed]) -> str:
    over, here = _medians(timed, MCP), _medians(timed, ASKED)
    medians = statistics.median(over) - statistics.median(here)
    each = statistics.median(one - other for one, other in zip(over, here, strict=True))
    return f"MCP costs {medians:.1f} ms more (difference of the medians; median of the differences: {each:.1f} ms)."


def _troubles(timed: list[Timed]) -> Iterator[str]:
    without = sum(RIPGREP not in one.times for one in timed)
    if without:
        yield f"rg has no times for {without} queries: it isn't installed, or can't find a text with a line break."
    for trouble in dict.fromkeys(trouble for one in timed for trouble in one.trouble):
        yield f"Error: {trouble}"


def _slowest(timed: list[Timed]) -> str:
    order = sorted(timed, key=lambda one: -statistics.median(one.times[IN_PROCESS]))
    rows = [
        [f"{one.query.kind}: `{_shown(one.query.text)}`", *(_median(one, way) for way in (IN_PROCESS, ASKED, RIPGREP))]
        for one in order[:SLOWEST]
    ]
    return table(("the slowest, ms", IN_PROCESS, ASKED, RIPGREP), rows)


def _median(one: Timed, way: str) -> str:
    return number(statistics.median(one.times[way]) if way in one.times else None)


def _shown(text: str) -> str:
    """Return the beginning of a query, made safe for a table."""
    return " ".join(text[:40].replace("|", "¦").replace("`", "'").split())
