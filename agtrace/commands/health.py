"""`agtrace health`: how the index is."""

from __future__ import annotations

import sqlite3
import sys

from agtrace.commands import TROUBLE, UNREADABLE, fail, print_json, unreadable_index, usable
from agtrace.problems import Problem


def run(*, as_json: bool) -> None:
    """Look, print, and exit 1 if the index is in trouble."""
    from agtrace.answers.status import look

    try:
        found = look(usable())
    except Problem as problem:
        fail(str(problem), UNREADABLE)
    except (sqlite3.Error, OSError) as error:
        unreadable_index(error)
    if as_json:
        print_json(found.model_dump(mode="json", exclude_none=True))
    else:
        from agtrace import render

        render.health(found)
    sys.exit(TROUBLE if found.index.problem or found.configuration.problem else 0)
