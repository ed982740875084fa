"""A worklog: by project, what a period's sessions were asked, what they did, spent and left open."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from agtrace_indexer.index.queries import landmarks, turns
from agtrace_schema.analysis import Deed, WorkedProject, WorkedSession, Worklog, WorkRequest
from agtrace_schema.landmarks import LandmarkKind
from agtrace_schema.reports import Spent

from agtrace.health.analysis import Note, examinations, nobody
from agtrace.report.costs import UNKNOWN, costs, missing_figures
from agtrace.report.selection import Family, Selection, families, in_period
from agtrace.report.wording import AGENTS, quoted
from agtrace.sessions.landmarks import titled_landmarks
from agtrace.sessions.prices import PriceTable
from agtrace.sessions.projects import labels
from agtrace.sessions.query import short_id
from agtrace.sessions.terms import ENDINGS, believable
from agtrace.text.lines import one_line
from agtrace.text.numbers import counted, dollars, short
from agtrace.times import iso

_ALL = 1 << 62
_LONGEST = 120
"""The most characters of a request or a title."""
_REQUESTS, _DEEDS = 12, 8
"""The most requests and deeds of a session that its text names."""
_DONE = {"finished", "unknown"}
_MADE = {"exact": "exact", "partial": "partial: at least so much", "estimated": "estimated"}


def worklog(
    connection: sqlite3.Connection,
    selection: Selection,
    *,
    now: float,
    prices: PriceTable,
    behind: str | None = None,
    note: Note = nobody,
) -> Worklog:
    """Return what the selected sessions did in the selected period; `now` is in seconds, `note` as in a report."""
    since, until = selection.since or 0, _ALL if selection.until is None else selection.until
    active = in_period(families(connection, selection), selection.since, selection.until)
    spent = costs(connection, selection, "project", prices=prices)
    top_of = {member: family.row.id for family in active for member in family.members}
    done = defaultdict(list)
    for member, landmark in landmarks.within(connection, top_of, since, until):
        (item,) = titled_landmarks(connection, member, [landmark])
        done[top_of[member]].append(Deed(kind=item.kind, name=item.name, verdict=item.verdict, detail=item.detail))
    rows = [family.row for family in active]
    endings = examinations(connection, rows, now=now, prices=prices, workers=True, note=note)
    names = labels(connection)
    projects: dict[str, list[WorkedSession]] = {group.group: [] for group in spent.groups}
    for family in active:
        row, deeds = family.row, done[family.row.id]
        ending = endings[row.id].ending
        is_open = ending.ending not in _DONE and believable(row.ended_at) <= until
        tests = [deed for deed in deeds if deed.kind is LandmarkKind.TEST_RUN]
        session = WorkedSession(
            session_id=short_id(connection, row.uid),
            provider=row.provider,
            title=one_line(row.title or row.snippet or "(no request)", _LONGEST),
            sub_agents=len(family.members) - 1,
            requests=list(_requests(connection, family, since, until)),
            done=[deed for deed in deeds if deed.kind is not LandmarkKind.TEST_RUN],
            last_tests=tests[-1].verdict if tests else None,
            left_open=ending if is_open else None,
        )
        projects.setdefault(UNKNOWN if row.project_id is None else names[row.project_id], []).append(session)
    by_project = {group.group: group for group in spent.groups}
    return Worklog(
        selection=spent.selection,
        projects=[
            WorkedProject(project=name, sessions=sessions, spent=by_project.get(name))
            for name, sessions in projects.items()
        ],
        spent=spent.total,
        lacking=[*missing_figures(spent), *([f"dollars are estimates ({spent.prices})"] if spent.prices else [])],
        behind=behind,
    )


def _requests(connection: sqlite3.Connection, family: Family, since: int, until: int) -> Iterator[WorkRequest]:
    """Yield what the session itself was asked in the period: the first line of each request."""
    for turn in turns.page(connection, family.row.id, from_turn=0, last_event=_ALL, most=_ALL):
        lines = (turn.request or "").strip().splitlines()
        if lines and not turn.copied and since <= (turn.started_at or -1) <= until:
            text = one_line(lines[0], _LONGEST)
            yield WorkRequest(at=iso(turn.started_at), turn_index=turn.turn_index, text=text)


# -- text ------------------------------------------------------------------------------------------


def lines(found: Worklog, period: str, *, markdown: bool = False) -> Iterator[str]:
    """Yield a worklog's lines, for a terminal or as Markdown, in which texts of logs are in code spans only."""
    text: Callable[[str], str] = quoted if markdown else str
    yield f"{'## ' * markdown}{period[:1].upper()}{period[1:]}: {text(found.selection)}"
    yield from [""] * markdown
    yield f"Spent: {_spent(found.spent)}"
    for project in found.projects:
        yield ""
        spent = f" {_spent(project.spent)}" if project.spent else " nothing known to be spent"
        yield f"{'### ' * markdown}{text(project.project)}: {counted(len(project.sessions), 'session')},{spent}"
        for session in project.sessions:
            yield from _session(session, text, "- " if markdown else "  ")
    if found.lacking:
        yield from ("", *(f"{line[0].upper()}{line[1:]}." for line in found.lacking))


def _session(session: WorkedSession, text: Callable[[str], str], mark: str) -> Iterator[str]:
    agents = f", {counted(session.sub_agents, 'sub-agent')}" if session.sub_agents else ""
    yield f"{mark}{session.session_id}  {AGENTS[session.provider]}{agents}: {text(session.title)}"
    below = f"  {mark}"
    for request in session.requests[:_REQUESTS]:
        yield f"{below}{_clock(request)}{text(request.text)}"
    yield from _more(session.requests[_REQUESTS:], "request", below)
    for deed in session.done[-_DEEDS:]:
        told = filter(None, (deed.name, deed.verdict, deed.detail))
        yield f"{below}{deed.kind.replace('_', ' ')}: {text(' '.join(told))}"
    yield from _more(session.done[:-_DEEDS], "earlier one", below)
    if session.last_tests is not None:
        yield f"{below}last tests {session.last_tests}"
    if session.left_open is not None:
        yield f"{below}left open, {ENDINGS[session.left_open.ending]}: {text(session.left_open.reason)}"


def _more(left: Iterable[object], noun: str, mark: str) -> Iterator[str]:
    if number := len(list(left)):
        yield f"{mark}and {counted(number, f'more {noun}')}"


def _clock(request: WorkRequest) -> str:
    return f"{datetime.fromisoformat(request.at).astimezone():%a %H:%M}  " if request.at else ""


def _spent(spent: Spent) -> str:
    """Return what was spent, with how it is known in words: `1.2M tokens (exact), $3.10 (estimated)`."""
    told = [(f"{short(spent.total_tokens)} tokens", spent.tokens_made)] if spent.total_tokens is not None else []
    told += [(dollars(spent.cost_usd), spent.cost_made)] if spent.cost_usd is not None else []
    return ", ".join(f"{figure} ({_MADE[made or 'exact']})" for figure, made in told) or "no figures in the logs"
