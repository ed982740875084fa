"""Push all of an index in a process of its own, to be killed: `python -m tests.team.pushing INDEX URL`."""

from __future__ import annotations

import sqlite3
import sys

from agtrace_team.connection import connect
from agtrace_team.push import Push, chosen

if __name__ == "__main__":
    index = sqlite3.connect(sys.argv[1])
    projects = {project: "team" for (project,) in index.execute("SELECT DISTINCT project_id FROM session")}
    push = Push(index, connect(sys.argv[2]), "laptop", "laptop", "")
    push.run(chosen(index, projects), lambda _provider, _id: False)  # type: ignore[arg-type]
