"""`agtrace team` shares projects and looks after a team's database, `agtrace push` sends to it what is shared."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Set
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from agtrace.commands.asking import refreshed, usable, with_index
from agtrace.commands.errors import TROUBLE, USAGE, fail, tell
from agtrace.commands.options import plain_json, without_secret
from agtrace.commands.printing import leave_lines, print_lines

if TYPE_CHECKING:
    from agtrace_team.push import Pushed

    from agtrace.settings.model import Settings
    from agtrace.upkeep.sharing import Audience


_TO = "The team's database, instead of the setting `team`."
_URL = click.option("--url", metavar="URL", callback=without_secret, help=_TO)


@click.group()
def team() -> None:
    """Ask the sessions of a whole team, kept in a PostgreSQL database.

    You choose the projects that you share (`share`), and send them with `agtrace push`. Then `agtrace --index team`
    before any other command, as in `agtrace --index team search ...`, asks everybody's sessions instead of your own.
    """


# -- what one shares -------------------------------------------------------------------------------


@team.command(short_help="Share a project, or list what is shared.")
@click.argument("project", required=False)
@click.option(
    "--with", "audience", type=click.Choice(["self", "project", "team"]), default="self", show_default=True,
    help="Who sees its sessions: you alone, those who may read the project, or everybody of the team.",
)  # fmt: skip
@plain_json
def share(project: str | None, audience: Any, as_json: bool) -> None:
    """Share a project from now on: `agtrace push` sends its sessions. Without one, list what is shared."""
    from agtrace_indexer.index.opening import open_read_only

    from agtrace.sessions.projects import hashes_of, paths_of, resolved, with_hashes
    from agtrace.upkeep import sharing

    settings = with_index()
    found = sharing.load(settings.data_dir)
    with closing(open_read_only(settings.database)) as index:
        if project is not None:
            hashes = hashes_of(index, resolved(index, project, roughly=False))
            shared = sharing.Shared(audience, tuple(sorted(hashes)))
            found = sharing.Sharing(found.machine, {**found.projects, project: shared})
            sharing.save(settings.data_dir, found)
        folders = {name: paths_of(index, with_hashes(index, one.folders)) for name, one in found.projects.items()}
    projects = {name: one.audience for name, one in found.projects.items()}
    leave_lines({"projects": projects, "folders": folders}, as_json, _shared_lines(projects, folders))


def _shared_lines(projects: Mapping[str, Audience], folders: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield what is shared: each project with who sees it, and the folders that belong to it."""
    from agtrace.render.terminal import plain_line
    from agtrace.upkeep.sharing import SEEN_BY

    for name, audience in sorted(projects.items()):
        yield f"{plain_line(name)}  {audience} (seen by {SEEN_BY[audience]})"
        yield from (f"  {plain_line(path)}" for path in folders.get(name, ()))
    if not projects:
        yield "nothing is shared: agtrace team share PROJECT"


@team.command(short_help="Stop sharing a project.")
@click.argument("project")
@plain_json
def unshare(project: str, as_json: bool) -> None:
    """Stop sharing a project: the next `agtrace push` removes from the server what this machine sent of it."""
    from agtrace.upkeep import sharing

    settings = with_index()
    found = sharing.load(settings.data_dir)
    if project not in found.projects:
        fail(f"{project!r} isn't shared: `agtrace team share` lists what is", USAGE)
    others = {name: shared for name, shared in found.projects.items() if name != project}
    sharing.save(settings.data_dir, sharing.Sharing(found.machine, others))
    leave_lines(
        {"unshared": project}, as_json, [f"{project} is no longer shared; `agtrace push` removes what was sent"]
    )


# -- for the owner of the database -----------------------------------------------------------------


@team.command(short_help="Make the tables in a database.")
@_URL
@plain_json
def init(url: str | None, as_json: bool) -> None:
    """Make the tables and roles of a team in a database, as its owner. A second time changes nothing."""
    _migrate(url, as_json, "the tables are there already")


@team.command(short_help="Bring the tables up to date.")
@_URL
@plain_json
def migrate(url: str | None, as_json: bool) -> None:
    """Bring the tables up to date after an update of agtrace, as the owner of the database: everything or nothing."""
    _migrate(url, as_json, "the tables are up to date")


def _migrate(url: str | None, as_json: bool, otherwise: str) -> None:
    with _connected(url) as connection:
        from agtrace_team.migrations import migrate as apply

        done = apply(connection)
    leave_lines({"applied": done}, as_json, [f"applied: {', '.join(done)}" if done else otherwise])


@team.command(short_help="Add a person, or let one push.")
@click.argument("login")
@click.option("--name", "shown", help="How the others see this person; by default the login.")
@click.option(
    "--push/--read-only", "may_push", default=True, help="Whether the person may also push.", show_default=True
)
@click.option("--password-stdin", is_flag=True, help="Read the login's password from stdin.")
@_URL
def add(login: str, shown: str | None, may_push: bool, password_stdin: bool, url: str | None) -> None:
    """Make a login of the database server a person of the team; it is created if it doesn't exist."""
    password = sys.stdin.readline().rstrip("\n") if password_stdin else None
    with _connected(url) as connection:
        from agtrace_team import people

        people.add(connection, login, shown, password, push=may_push)
    leave_lines({}, False, [f"{login} may read{' and push' if may_push else ''}"])


@team.command(short_help="Remove a person, with all they pushed.")
@click.argument("login")
@click.option("--yes", is_flag=True, help="Don't ask.")
@_URL
def remove(login: str, yes: bool, url: str | None) -> None:
    """Remove a person with all sessions that they pushed. The login stays on the server, without rights here."""
    if not yes and not (sys.stdin.isatty() and click.confirm(f"Remove {login} and all their sessions?", err=True)):
        fail("nothing was removed", TROUBLE)
    with _connected(url) as connection:
        from agtrace_team import people

        gone = people.remove(connection, login)
    from agtrace.text.numbers import counted

    leave_lines({}, False, [f"{login} is gone, with {counted(gone, 'session')}"])


@team.command(short_help="Let a person read a project.")
@click.argument("login")
@click.argument("project")
@click.option("--take-back", is_flag=True, help="Take that right back.")
@_URL
def grant(login: str, project: str, take_back: bool, url: str | None) -> None:
    """Let a person read what is shared with a project, named as `agtrace projects` names it, or by its remote."""
    with _connected(url) as connection:
        from agtrace_team import people

        found = people.grant(connection, login, project, take_back=take_back)
    if not found:
        fail(f"nobody has pushed a project called {project!r}", TROUBLE)
    which = f" ({found:,} repositories are called so)" if found > 1 else ""
    leave_lines({}, False, [f"{login} may {'no longer ' if take_back else ''}read {project}{which}"])


@team.command(short_help="Show people, sizes and what waits.")
@_URL
@plain_json
def status(url: str | None, as_json: bool) -> None:
    """Show, to the owner of the database, its people, what they pushed, its size, and whether it needs something."""
    with _connected(url) as connection:
        from agtrace_team import people

        found = people.status(connection)
    leave_lines(found, as_json, _status_lines(found))


def _status_lines(found: dict[str, Any]) -> Iterator[str]:
    from agtrace.text.numbers import counted, size

    sessions, events = counted(found["sessions"], "session"), counted(found["events"], "event")
    yield f"{sessions}, {events}, {size(found['bytes'])} on the disk"
    for person in found["people"]:
        pushed = f"last push {person['last_push']}" if person["last_push"] else "has pushed nothing"
        yield f"  {person['login']}  {counted(person['sessions'], 'session')}, {pushed}"
    for grant in found["grants"]:
        where = grant["remote"] or "no remote"
        yield f"  {grant['login']} may read {grant['project']} ({where}{', by its name' if grant['by_name'] else ''})"
    for what, number in found["asked_today"].items():
        yield f"asked today: {number:,} {what}"
    yield (
        f"waiting for `agtrace team migrate`: {', '.join(found['waiting'])}"
        if found["waiting"]
        else "tables up to date"
    )
    yield f"waiting for `agtrace team tend`: {size(found['pending_bytes'])} of the search indexes"


@team.command(short_help="Empty the lists of the search indexes.")
@click.option("--every", type=click.IntRange(5), metavar="SECONDS", help="Go on doing it, until interrupted.")
@_URL
def tend(every: int | None, url: str | None) -> None:
    """Take what was pushed up into the search indexes, which otherwise a push has to do: run it beside the server."""
    import time

    with _connected(url) as connection:
        from agtrace_team import people

        while True:
            leave_lines({}, False, [f"{people.tend(connection):,} pages taken up"])
            if every is None:
                return
            time.sleep(every)


@team.command(short_help="Start a server to try it with.")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--stop", is_flag=True, help="Stop the server in that folder.")
def trial(folder: Path, stop: bool) -> None:
    """Start a PostgreSQL server in a new folder, with a team's database in it, to try all of this on one machine.

    It takes PostgreSQL's programs (Debian: postgresql) and no root. It listens on a socket in the folder, which
    only you and root can open, and lets you in as any login without a password.
    """
    from agtrace.index.team import check_installed

    check_installed()
    from agtrace_team.server import Server

    server = Server(folder.absolute())
    if stop:
        server.stop()
        leave_lines({}, False, ["stopped; delete the folder to remove everything"])
        return
    server.start()
    server.make("agtrace")
    owner, person = server.url("agtrace"), server.url("agtrace", "LOGIN")
    lines = [f"owner:   {owner}", f"people:  {person}", f"next:    agtrace team add ann --url '{owner}'"]
    leave_lines({}, False, lines)


@contextmanager
def _connected(url: str | None) -> Iterator[Any]:
    """Connect to the team's database. What PostgreSQL refuses within this context ends the process with a sentence."""
    from agtrace.index.team import check_installed

    to = url or usable().team
    if to is None:
        fail("say where the team's database is: the setting `team` (AGTRACE_TEAM), or --url URL", USAGE)
    check_installed()
    from agtrace_team.connection import connect
    from agtrace_team.push import refused

    with closing(connect(to)) as connection, refused():
        yield connection


_REFRESH_SECONDS = 10
_ABOUT = 100
"""Characters of what a session is about."""


@click.command()
@click.option("--dry-run", is_flag=True, help="Only show what would leave this machine.")
@click.option("--to", "url", metavar="URL", callback=without_secret, help=_TO)
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
    from agtrace_indexer.redact.engine import looking

    from agtrace.commands.printing import sessions_bar
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
    with looking(possible=True), sessions_bar("looking" if dry_run else "pushing") as note:
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
    from agtrace_indexer.index.queries import sessions

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
