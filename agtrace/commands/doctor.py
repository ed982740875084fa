"""`agtrace doctor`: what was found, what was not understood, what to do."""

from __future__ import annotations

import sqlite3
import sys

from agtrace.commands import TROUBLE, UNREADABLE, fail, print_json, settings, unreadable_index
from agtrace.problems import Problem


def run(*, as_json: bool) -> None:
    """Examine, print, and exit 1 if anything is in trouble."""
    from agtrace.doctor import examine

    try:
        found = examine(settings())
    except Problem as problem:
        fail(str(problem), UNREADABLE)
    except (sqlite3.Error, OSError) as error:
        unreadable_index(error)
    if as_json:
        print_json(found)
    else:
        from agtrace import render

        render.doctor(found)
    sys.exit(TROUBLE if found["trouble"] else 0)
