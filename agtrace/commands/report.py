"""Commands over many sessions: `report`, `cost`, `lessons` on what keeps failing, `secrets`, `why` a line exists."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from agtrace_schema.patterns import later
from agtrace_schema.requests import CostBy

from agtrace.commands.asking import Filters, selected, usable, with_index
from agtrace.commands.errors import TROUBLE, USAGE, fail, patiently, tell
from agtrace.commands.options import Groups, list_options, plain_json, project, provider
from agtrace.commands.printing import leave_lines, print_json, sessions_bar, write

if TYPE_CHECKING:
    from agtrace_schema.analysis import Report, ReportedSession


@click.command()
@click.option("--by", type=Groups(get_args(CostBy)), default="day", show_default=True, help="The groups.")
@click.option("--since", metavar="TIME", help="Only what was spent from this time on: 2026-11-03, 12h, 7d, yesterday.")
@click.option("--until", metavar="TIME", help="Only what was spent up to this time, written as for --since.")
@project
@provider
@click.option("--no-dollars", is_flag=True, help="Only tokens, for those who pay by subscription.")
@plain_json
def cost(by: CostBy, no_dollars: bool, as_json: bool, **filters: str | None) -> None:
    """Show what was spent, in tokens and dollars.

    What is in time (days, weeks, months, blocks of five hours) is in its order, all others by cost. Tokens belong to
    the day on which they were spent, whenever the session began. Days are local (TZ), weeks begin on Monday. What a
    session copied from another counts once. Sub-agents are rolled up into the session that started them; a session
    counts once in each row, and once in the total. Codex writes what is left of its limits, which is shown.

    \b
      agtrace cost --by session --since today
      agtrace cost --by project --since 30d
      agtrace cost --by model --project . --no-dollars
    """
    from agtrace_schema.model import dump

    from agtrace.report.costs import costs
    from agtrace.shaping.replies import printed

    with selected(Filters(**filters)) as (connection, selection, now, prices, lacking):
        dollars = not no_dollars
        found = printed(costs(connection, selection, by, prices=prices, dollars=dollars, behind=lacking, now=now))
    if as_json:
        print_json(dump(found))
    else:
        from agtrace.render.figures import costs as shown

        shown(found)


@click.command()
@project
@provider
@click.option("--since", metavar="TIME", help="Only sessions active from this time on: 2026-11-03, 12h, 7d, yesterday.")
@click.option("--until", metavar="TIME", help="Only sessions active up to this time, written as for --since.")
@plain_json
def lessons(as_json: bool, **filters: str | None) -> None:
    """Show what keeps failing across sessions and what worked in the end: sentences to put into CLAUDE.md or AGENTS.md.

    A lesson failed with the same error in two sessions, or three times in one. Each has the commands that show the call
    that failed and the one that worked.

    \b
      agtrace lessons --project .
      agtrace lessons --since 30d
    """
    from agtrace_schema.model import dump

    from agtrace.report.lessons import lessons as learned
    from agtrace.report.lessons import text
    from agtrace.shaping.replies import printed
    from agtrace.text.next_call import showing

    with selected(Filters(**filters)) as (connection, selection, now, prices, _):
        found = printed(learned(connection, selection, now=now, prices=prices))
    leave_lines(dump(found), as_json, text(found, showing)[:-1].split("\n"))


@click.command()
@click.option("--allow", multiple=True, metavar="ID", help="Show this one from now on: it is no secret.")
@click.option("--mask", multiple=True, metavar="ID", help="Mask this one from now on: it is a secret.")
@click.option("--session", metavar="SESSION", help="Only one session: its id or the beginning of it.")
@list_options
def secrets(allow: tuple[str, ...], mask: tuple[str, ...], limit: int | None, as_json: bool, **filters: Any) -> None:
    """Show which secrets were masked and where, the surest first; then what may be one: `export` and `push` mask it.

    A secret is shown as dots; its id says where else it is. --allow and --mask take ids, and can be repeated: what you
    decide is kept in `redaction.json`, and the logs are read again. Exit code 1: a definite one is among them.

    \b
      agtrace secrets --since 7d
      agtrace secrets --session last --json
      agtrace secrets --allow 92e157d559bcc60a
    """
    from agtrace_indexer.redact import redact_json
    from agtrace_indexer.run import decide

    from agtrace.commands.index import PATIENCE, index_once
    from agtrace.render.terminal import plain
    from agtrace.report.secrets import found_in, lines
    from agtrace.sessions.query import find_session

    settings = usable()
    if settings.asked is not None:
        fail("secrets are known to one's own index alone: leave out --index", USAGE)
    decisions = {**dict.fromkeys(allow, "allow"), **dict.fromkeys(mask, "mask")}
    if decisions:
        if not all(re.fullmatch("[0-9a-f]{16}", id) for id in decisions):
            fail("an id has 16 digits and letters: `agtrace secrets` lists them", USAGE)
        patiently(lambda seconds: decide(with_index().database, decisions, patience=seconds), PATIENCE)
        index_once((), rebuild=False, as_json=as_json)
        return
    session = filters.pop("session")
    with selected(Filters(**filters)) as (connection, selection, *_):
        row = None if session is None else find_session(connection, session).id
        found = found_in(connection, selection, row, limit or settings.default_page_size)
    told: Any = redact_json(found)
    leave_lines(told, as_json, map(plain, lines(told)))
    if found["definite"]:
        sys.exit(TROUBLE)


def _worklog(name: str, usual: str) -> click.Command:
    """Return the command that shows the worklog of a period, `usual` if none is given."""

    @click.command(
        name,
        help=f"""Show what was asked, done, spent and left open {usual}.

    PERIOD is another one: a day, `last week`, a month. Done are commits, pull requests, releases and the last test run,
    by project. Days are local; sub-agents are rolled up.

    \b
      agtrace {name}
      agtrace {name} 2026-07-10 --project . --markdown
    """,
    )
    @click.argument("period", default=usual)
    @project
    @provider
    @plain_json
    @click.option("--markdown", is_flag=True, help="Print Markdown.")
    def command(period: str, as_json: bool, markdown: bool, **filters: str | None) -> None:
        from agtrace_schema.model import dump

        from agtrace.report.worklog import lines, worklog
        from agtrace.shaping.replies import printed

        if as_json and markdown:
            fail("--json and --markdown can't be combined", USAGE)
        asked = Filters(since=period, until=period, **filters)
        with selected(asked) as (connection, selection, now, prices, lacking), sessions_bar("examining") as note:
            found = printed(worklog(connection, selection, now=now, prices=prices, behind=lacking, note=note))
        leave_lines(dump(found), as_json, lines(found, name if period == usual else period, markdown=markdown))

    return command


today = _worklog("today", "today")
yesterday = _worklog("yesterday", "yesterday")
week = _worklog("week", "this week")


_PLACE = later(r"(?P<file>.+?):(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?", re.DOTALL)


@click.command()
@click.argument("place", metavar="FILE[:LINE]")
@plain_json
def why(place: str, as_json: bool) -> None:
    """Show which session wrote a line of a file, for which request and with which edit.

    It says how sure that is: `edit matches` if an edit put the line there, found by repeating all edits in the index;
    `edit may match` if an edit replaced a text everywhere, and the line has the new one, but may have had it before;
    `commit made by session` if git says that the line is from a commit that a session made; `only touched` if none of
    these is known, but a session wrote or read the file. Without LINE: the sessions that wrote the file, newest first.
    Exit code 1: no session is known.

    \b
      agtrace why src/store.py:42
      agtrace why src/store.py:40-60
      agtrace why src/store.py
    """
    from agtrace_schema.model import dump

    from agtrace.report.why import text
    from agtrace.report.why import why as asked
    from agtrace.shaping.replies import printed

    file, lines = parted(place)
    with selected(Filters()) as (connection, *_):
        found = printed(asked(connection, file, lines))
    leave_lines(dump(found), as_json, text(found)[:-1].split("\n"))
    if not found.sessions and not any(part.session for part in found.lines or ()):
        sys.exit(TROUBLE)


def parted(place: str) -> tuple[Path, tuple[int, int] | None]:
    """Part FILE:LINE or FILE:FIRST-LAST; a file whose name looks like this is meant itself if it is there."""
    if Path(place).exists():
        return Path(place), None
    match = _PLACE.fullmatch(place)
    if match is None:
        file, colon, line = place.rpartition(":")
        if colon and Path(file).is_file():
            fail(f"expected FILE:10 or FILE:10-20, got {line!r} in place of the line", USAGE)
        return Path(place), None
    first, last = int(match["first"]), int(match["last"] or match["first"])
    if first < 1 or last < first:
        fail("lines are counted from 1, the lower number first: FILE:10 or FILE:10-20", USAGE)
    return Path(match["file"]), (first, last)


_NAMED = 5
"""The most sessions below the limit that are named."""

STDOUT = "-"


@click.command()
@project
@provider
@click.option("--since", metavar="TIME", help="Only sessions active from this time on: 2026-11-03, 12h, 7d, yesterday.")
@click.option("--until", metavar="TIME", help="Only sessions active up to this time, written as for --since.")
@click.option("--html", metavar="FILE", help="Write a page for a browser, one file that works offline; - is stdout.")
@click.option("--transcripts", is_flag=True, help="With --html: the conversations of the worst sessions, too.")
@click.option("--no-dollars", is_flag=True, help="Only tokens, for those who pay by subscription.")
@plain_json
@click.option("--markdown", is_flag=True, help="Print Markdown, for the summary of a CI run.")
@click.option("--fail-under", type=click.IntRange(0, 100), metavar="N", help="Exit 1 if any session scores below N.")
def report(
    html: str | None,
    as_json: bool,
    markdown: bool,
    fail_under: int | None,
    transcripts: bool,
    no_dollars: bool,
    **filters: str | None,
) -> None:
    """Report the health of all sessions, or those of a project, period or agent.

    It has scores, how sessions ended, what failed, what it cost, the worst ones; and what got better or worse since the
    period before. Its sub-agents are rolled up into a session.

    \b
      agtrace report --since 7d
      agtrace report --project tidepool --html report.html
      agtrace report --since 1d --markdown --fail-under 60
    """
    on_stdout = {"--html -": html == STDOUT, "--json": as_json, "--markdown": markdown}
    if sum(on_stdout.values()) > 1:
        fail(f"{' and '.join(option for option, given in on_stdout.items() if given)} can't be combined", USAGE)
    if transcripts and html is None:
        fail("--transcripts needs --html FILE", USAGE)
    found, talks = made(Filters(**filters), timelines=html is not None, dollars=not no_dollars, transcripts=transcripts)
    if html == STDOUT:
        sys.stdout.write(_page(found, talks))
        sys.stdout.flush()
    elif html is not None:
        tell(f"page written to {write(Path(html), [_page(found, talks)], replace=True)}")
    if as_json:
        from agtrace_schema.model import dump
        from msgspec.structs import replace

        print_json(dump(replace(found, sessions=[replace(session, timeline=None) for session in found.sessions])))
    elif markdown:
        from agtrace.report.wording import markdown as as_markdown

        sys.stdout.write(as_markdown(found))
    elif html != STDOUT:
        from agtrace.render.report import report as print_report

        print_report(found)
    if fail_under is not None and _below(found.sessions, fail_under):
        sys.exit(TROUBLE)


def made(
    filters: Filters, *, timelines: bool, dollars: bool = True, transcripts: bool = False
) -> tuple[Report, dict[str, str]]:
    """Make the report, with secrets masked as in every answer, and the markup of its worst sessions' conversations."""
    from agtrace.report.report import ReportQuery, without_dollars
    from agtrace.report.report import report as survey
    from agtrace.shaping.replies import printed

    with selected(filters) as (connection, selection, now, prices, lacking):
        with sessions_bar("examining") as note:
            found = survey(connection, ReportQuery(selection, now, prices, timelines, lacking), note)
        talks = {}
        if transcripts:
            from agtrace.conversation.html import conversations

            talks = conversations(connection, found.sessions, str(Path.home()))
    return printed(found if dollars else without_dollars(found)), talks


def _page(found: Report, conversations: dict[str, str]) -> str:
    from agtrace.report.page.page import html

    return html(found, conversations)


def _below(sessions: list[ReportedSession], limit: int) -> bool:
    """Whether a session scores below the limit; says on stderr which ones do."""
    scores = {session.session_id: session.score for session in sessions if session.score is not None}
    if not scores:
        tell("none of these sessions has a score, so none is below the limit")
        return False
    low = [f"{session_id} ({score})" for session_id, score in scores.items() if score < limit]
    if low:
        more = f" and {len(low) - _NAMED} more" if len(low) > _NAMED else ""
        named = ", ".join(low[:_NAMED])
        tell(f"{len(low)} of {len(scores)} scored sessions are below {limit}: {named}{more}")
    return bool(low)
