"""`agtrace report`: the health of many sessions, for a terminal, a browser, a CI summary or a program."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from agtrace.commands.errors import TROUBLE, USAGE, fail, tell
from agtrace.commands.options import plain_json, project, provider
from agtrace.commands.printing import print_json
from agtrace.commands.progress import sessions_bar
from agtrace.commands.selecting import Filters, selected
from agtrace.commands.writing import write

if TYPE_CHECKING:
    from agtrace_schema.analysis import Report, ReportedSession

_NAMED = 5
"""The most sessions below the limit that are named."""

STDOUT = "-"


class Ways(Struct, frozen=True):
    """The forms in which a report is written."""

    html: str | None = None
    """The path of the page, or `-` for stdout; None for no page."""
    as_json: bool = False
    markdown: bool = False

    @property
    def on_stdout(self) -> list[str]:
        """The given options that write to stdout, of which only one may be given."""
        taken = {"--html -": self.html == STDOUT, "--json": self.as_json, "--markdown": self.markdown}
        return [option for option, wanted in taken.items() if wanted]


@click.command()
@project
@provider
@click.option("--since", metavar="TIME", help="Only sessions begun from this time on: 2026-11-03, 12h, 7d, yesterday.")
@click.option("--until", metavar="TIME", help="Only sessions begun up to this time, written as for --since.")
@click.option("--html", metavar="FILE", help="Write a page for a browser, one file that works offline; - is stdout.")
@click.option("--transcripts", is_flag=True, help="With --html: the conversations of the worst sessions, too.")
@click.option("--no-dollars", is_flag=True, help="Only tokens, for those who pay by subscription.")
@plain_json
@click.option("--markdown", is_flag=True, help="Print Markdown, for the summary of a CI run.")
@click.option("--fail-under", type=click.IntRange(0, 100), metavar="N", help="Exit 1 if any session scores below N.")
@click.option("--mean", "by_mean", is_flag=True, help="With --fail-under: only if the mean score is below N.")
def report(
    html: str | None,
    as_json: bool,
    markdown: bool,
    fail_under: int | None,
    by_mean: bool,
    transcripts: bool,
    no_dollars: bool,
    **filters: str | None,
) -> None:
    """Report the health of all sessions, or those of a project, period or agent: scores, how they ended, what failed,
    what it cost, the worst ones; and what got better or worse since the period before.

    A session belongs to the period in which it began. Its sub-agents are rolled up into it.

    \b
      agtrace report --since 7d
      agtrace report --project tidepool --html report.html
      agtrace report --since 1d --markdown --fail-under 60
    """
    ways = Ways(html, as_json, markdown)
    if len(ways.on_stdout) > 1:
        fail(f"{' and '.join(ways.on_stdout)} can't be combined", USAGE)
    if by_mean and fail_under is None:
        fail("--mean needs --fail-under", USAGE)
    if transcripts and html is None:
        fail("--transcripts needs --html FILE", USAGE)
    found, talks = made(Filters(**filters), timelines=html is not None, dollars=not no_dollars, transcripts=transcripts)
    if found.behind:
        tell(found.behind)
    _leave(found, ways, talks)
    if fail_under is not None and _below(found.sessions, fail_under, by_mean=by_mean):
        sys.exit(TROUBLE)


def made(
    filters: Filters, *, timelines: bool, dollars: bool = True, transcripts: bool = False
) -> tuple[Report, dict[str, str]]:
    """Make the report, with secrets masked as in every answer, and the markup of its worst sessions' conversations."""
    from agtrace.report.report import report as survey
    from agtrace.report.report import without_dollars
    from agtrace.report.survey import Asked
    from agtrace.shaping.output import printed

    with selected(filters) as (connection, selection, now, prices, lacking):
        with sessions_bar("examining") as note:
            found = survey(connection, Asked(selection, now, prices, timelines, lacking), note)
        talks = {}
        if transcripts:
            from agtrace.report.conversation.as_page import conversations

            talks = conversations(connection, found.sessions, str(Path.home()))
    return printed(found if dollars else without_dollars(found)), talks


def _leave(found: Report, ways: Ways, conversations: dict[str, str]) -> None:
    """Write and print the forms that were asked for; by default, the report for a terminal."""
    if ways.html is not None:
        from agtrace.report.page.page import html

        page = html(found, conversations)
        if ways.html == STDOUT:
            sys.stdout.write(page)
            sys.stdout.flush()
        else:
            tell(f"page written to {write(Path(ways.html), [page], replace=True)}")
    if ways.as_json:
        from agtrace_schema.model import dump
        from msgspec.structs import replace

        sessions = [replace(session, timeline=None) for session in found.sessions]
        print_json(dump(replace(found, sessions=sessions)))
    elif ways.markdown:
        from agtrace.report.wording import markdown

        sys.stdout.write(markdown(found))
    elif ways.html != STDOUT:
        from agtrace.render.report import report as print_report

        print_report(found)


def _below(sessions: list[ReportedSession], limit: int, *, by_mean: bool) -> bool:
    """Whether the sessions, or their mean, score below the limit; says on stderr which ones do."""
    scores = {session.session_id: session.score for session in sessions if session.score is not None}
    if not scores:
        tell("none of these sessions has a score, so none is below the limit")
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
