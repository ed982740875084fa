"""Tern, a made-up agent with every kind of source: logs of JSON lines, finished sessions as one JSON
document, sessions in a database, and sessions as folders of small files. The folder is copied next to the packages of
the other agents.
"""

from __future__ import annotations

import re

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.providers.provider import Agent, Containers, Home, Notices, Sign, loader

TERN = Agent(
    name="tern",
    title="Tern",
    parser=loader("tern.parser"),
    home=Home("TERN_NEST", "the home of Tern's logs; default ~/.tern", ".tern", ("flights",)),
    containers=(
        Containers(re.compile(r"(.*/nest\.db)(?:-wal|-shm|-journal)?"), loader("tern.database"), "nest.db"),
        Containers(re.compile(r"(.*/feathers)(?:/[^/]+/[0-9]+\.json)?"), loader("tern.feathers"), "feathers"),
    ),
    tools=Tools(
        shells=frozenset({"dive"}),
        editing=frozenset({"preen"}),
        showing=frozenset({"peer"}),
        asking=frozenset({"call_out"}),
        waiting=frozenset({"hover"}),
        starting=frozenset({"hatch"}),
        servers=("agtrace/",),
        commands=("line",),
        paths=("target",),
        removed=("was",),
        added=("becomes",),
    ),
    notices=Notices(
        api_errors=frozenset({"storm"}),
        retried_errors=frozenset({"gust"}),
        interruptions=(Sign("landed", r"\Aby hand"),),
        compactions=(Sign("moult"),),
    ),
    hidden_reasoning="as birdsong",
    command="tern",
    setup=loader("tern.setup:SETUP"),
    keys_remembered=None,
)
"""Tern: its logs, tools, notifications and settings."""
