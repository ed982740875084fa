"""Push all of an index in a process of its own: `python -m tests.team.pushing INDEX URL [MACHINE]`."""

from __future__ import annotations

import sqlite3
import sys

from agtrace_team.connection import connect
from agtrace_team.push import Push, chosen

if __name__ == "__main__":
    index = sqlite3.connect(sys.argv[1])
    projects = {project: "team" for (project,) in index.execute("SELECT DISTINCT project_id FROM session")}
    machine = sys.argv[3] if len(sys.argv) > 3 else "laptop"
    push = Push(index, connect(sys.argv[2]), machine, machine, "")
    push.run(chosen(index, projects), lambda _provider, _id: False)  # type: ignore[arg-type]
