"""`agtrace why`: which session, request and edit wrote a line of a file."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from agtrace_schema.patterns import later

from agtrace.commands.errors import TROUBLE, USAGE, fail, tell
from agtrace.commands.options import plain_json
from agtrace.commands.printing import print_json
from agtrace.commands.selecting import Filters, selected

if TYPE_CHECKING:
    from agtrace_schema.why import Why

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

    from agtrace.report.authorship.why import text
    from agtrace.report.authorship.why import why as asked
    from agtrace.shaping.output import printed

    file, lines = parted(place)
    with selected(Filters()) as (connection, _, _, _, lacking):
        if lacking:
            tell(lacking)
        found = printed(asked(connection, file, lines))
    if as_json:
        print_json(dump(found))
    else:
        sys.stdout.write(text(found))
        sys.stdout.flush()
    if not _known(found):
        sys.exit(TROUBLE)


def parted(place: str) -> tuple[Path, tuple[int, int] | None]:
    """Part FILE:LINE or FILE:FIRST-LAST; a file whose name looks like this is meant itself if it is there."""
    if Path(place).exists():
        return Path(place), None
    found = _PLACE.fullmatch(place)
    if found is None:
        file, colon, line = place.rpartition(":")
        if colon and Path(file).is_file():
            fail(f"expected FILE:10 or FILE:10-20, got {line!r} in place of the line", USAGE)
        return Path(place), None
    first, last = int(found["first"]), int(found["last"] or found["first"])
    if first < 1 or last < first:
        fail("lines are counted from 1, the lower number first: FILE:10 or FILE:10-20", USAGE)
    return Path(found["file"]), (first, last)


def _known(found: Why) -> bool:
    return bool(found.sessions) or any(part.session for part in found.lines or ())
