"""`agtrace doctor`: what was found, what was not understood, what to do; and the repair of a damaged index."""

from __future__ import annotations

import sqlite3
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agtrace_indexer.index.lock import Busy

from agtrace.commands import TROUBLE, UNREADABLE, fail, print_json, tell, unreadable_index, usable
from agtrace.problems import Problem

if TYPE_CHECKING:
    from agtrace_indexer.repair.repair import Repaired

_PATIENCE = 600
"""Seconds that a repair waits for another process to end writing."""


def run(*, as_json: bool) -> None:
    """Examine, print, and exit 1 if anything is in trouble."""
    from agtrace.upkeep.doctor import examine

    try:
        found = examine(usable())
    except Problem as problem:
        fail(problem.message, UNREADABLE, problem.hint or "")
    except (sqlite3.Error, OSError) as error:
        unreadable_index(error)
    if as_json:
        print_json(found)
    else:
        from agtrace import render

        render.doctor(found)
    sys.exit(TROUBLE if found["trouble"] else 0)


def repair(*, as_json: bool) -> None:
    """Make a damaged index sound, print what was found and done, and exit 1 if anything is lost."""
    from agtrace_indexer.redact import redact_json
    from agtrace_indexer.repair.repair import NotRepaired

    try:
        done = _repaired()
    except FileNotFoundError:
        fail("there is no index yet: run agtrace index", UNREADABLE)
    except (NotRepaired, Busy) as error:
        fail(str(error), UNREADABLE)
    except (sqlite3.Error, OSError) as error:
        unreadable_index(error)
    if as_json:
        value: Any = {
            **asdict(done),
            "found": done.found._asdict(),
            "lost": [one._asdict() for one in done.lost],
            "damaged": None if done.damaged is None else str(done.damaged),
        }
        print_json(redact_json(value))
    else:
        from agtrace import render

        render.repaired(done)
    sys.exit(TROUBLE if done.lost or done.others_lost or "root" in done.unread else 0)


def _repaired() -> Repaired:
    """Repair, and wait for another process that is writing."""
    from agtrace_indexer.repair.repair import repair as made_sound

    from agtrace.index.reader import home_roots

    chosen = usable()
    try:
        return made_sound(chosen.database, home_roots(chosen), patience=1)
    except Busy:
        tell("another agtrace is indexing: waiting for it")
        return made_sound(chosen.database, home_roots(chosen), patience=_PATIENCE)
