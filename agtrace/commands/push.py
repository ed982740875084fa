"""`agtrace push`: send what is shared to the team's database, after showing what that is if one asks."""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import closing
from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from agtrace.commands.asking import refreshed, with_index
from agtrace.commands.errors import USAGE, fail, tell
from agtrace.commands.options import plain_json
from agtrace.commands.printing import leave_lines, print_lines

if TYPE_CHECKING:
    from agtrace_team.push import Pushed

    from agtrace.settings.model import Settings

_REFRESH_SECONDS = 10
_ABOUT = 100
"""Characters of what a session is about."""


@click.command()
@click.option("--dry-run", is_flag=True, help="Only show what would leave this machine.")
@click.option("--to", "url", metavar="URL", help="The team's database, instead of the setting `team`.")
@plain_json
def push(dry_run: bool, url: str | None, as_json: bool) -> None:
    """Send the sessions of the projects that you share to your team's database, and nothing else.

    `agtrace team share PROJECT` says what is shared. Secrets are masked once more on the way. What the server has
    already isn't sent again; what you forgot, or no longer share, is removed there. A push that is interrupted goes on
    where it was.

    \b
      agtrace push --dry-run
      agtrace push
    """
    from agtrace.commands.progress import sessions_bar
    from agtrace.upkeep import sharing

    settings = with_index()
    to = url or settings.team
    if to is None:
        fail("say where the team's database is: the setting `team` (AGTRACE_TEAM), or --to URL", USAGE)
    shared = sharing.load(settings.data_dir)
    if not shared.projects:
        tell("nothing is shared: agtrace team share PROJECT")
    refreshed(settings, _REFRESH_SECONDS)
    if not dry_run:
        sharing.save(settings.data_dir, shared)  # keeps the number of this machine
    with sessions_bar("looking" if dry_run else "pushing") as note:
        done, unknown = sharing.push(settings, to, shared, dry=dry_run, report=note)
    told = {**asdict(done), "masked": dict(done.masked), "unknown_projects": unknown, "dry_run": dry_run}
    leave_lines(told, as_json, _lines(done, unknown, dry=dry_run))
    if dry_run and not as_json:
        print_lines(_sessions(settings, done))


def _sessions(settings: Settings, done: Pushed) -> Iterator[str]:
    """Yield a line for each session that would go: its id, its project, who would see it, and what it is about.

    Then one for each that would be removed.
    """
    from agtrace_indexer.index.opening import open_read_only
    from agtrace_indexer.index.questions import sessions

    from agtrace.render.terminal import plain_line
    from agtrace.sessions.projects import labels

    with closing(open_read_only(settings.database)) as index:
        names = labels(index)
        for uid, audience in done.seen_by.items():
            session = sessions.with_id(index, uid)
            if session is not None:
                project = names.get(session.project_id or 0, "")
                about = (session.title or session.snippet or "")[:_ABOUT]
                yield plain_line(f"  {uid}  {project}  {audience}  {about}".rstrip())
    yield from (f"  {uid}  would be removed" for uid in done.removed)


def _audiences(done: Pushed, uids: Set[str], sentence: str) -> Iterator[str]:
    """Yield this sentence with the number of these sessions, for each audience that some have."""
    from agtrace.upkeep.sharing import SEEN_BY

    for audience, shown in SEEN_BY.items():
        if number := sum(done.seen_by[uid] == audience for uid in uids):
            yield sentence.format(f"{number:,}", shown)


def _lines(done: Pushed, unknown: list[str], *, dry: bool) -> Iterator[str]:
    """Yield what a person reads of a push."""
    from agtrace.text.numbers import counted, size

    would, would_be = ("would go", "would be") if dry else ("went", "were")
    yield f"{counted(len(done.new), 'new session')} and {len(done.changed):,} changed {would} to the team's database"
    gone = {*done.new, *done.changed}
    if gone:
        yield from _audiences(done, gone, "  {} seen by {}")
        yield f"  {counted(done.events, 'event')}, {size(done.bytes)} of text"
        masks = ", ".join(f"{number:,} {kind}" for kind, number in done.masked.most_common())
        yield f"  secrets masked in it: {masks or 'none found'}"
    if done.masked_again:
        yield f"  {counted(done.masked_again, 'block')} of text had something that only today's rules mask"
    if done.replaced:
        yield f"  {counted(done.replaced, 'text')} couldn't be stored whole: characters replaced, or the end cut off"
    yield f"{done.same:,} are there already"
    becoming = "  {} of them would then be seen by {}" if dry else "  {} of them are now seen by {}"
    yield from _audiences(done, done.seen_by.keys() - gone, becoming)
    if done.older:
        yield f"{len(done.older):,} stay as another machine of yours pushed them: it has more of them"
    if done.removed:
        yield f"{len(done.removed):,} {would_be} removed there: forgotten here, or no longer shared"
    for name in unknown:
        yield f"no project here is called {name!r} any more: agtrace team unshare {name!r}"
