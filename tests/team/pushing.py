"""Push all of an index in a process of its own: `python -m tests.team.pushing INDEX URL`."""

from __future__ import annotations

import sqlite3
import sys

from agtrace_team.connection import connect
from agtrace_team.push import Audience, Push, chosen

if __name__ == "__main__":
    index = sqlite3.connect(sys.argv[1])
    audiences: dict[int, Audience] = {
        row: "team" for (row,) in index.execute("SELECT DISTINCT project_id FROM session")
    }
    push = Push(index, connect(sys.argv[2]), "laptop", "laptop", "")
    push.run(chosen(index, audiences), lambda _provider, _id: False)
