"""Pi: `sessions/<folder>/<time>_<id>.jsonl`, a format that oh-my-pi and OpenClaw share (README.md)."""

from __future__ import annotations

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.providers.provider import Agent, Home, Notices, Parser, ReadPhase, Sign


def _parser() -> Parser:
    from agtrace_indexer.providers.pi import parser

    return parser


def phase_reader() -> ReadPhase:
    """Return what tells phases in records of Pi's format."""
    from agtrace_indexer.providers.pi.phases import phase

    return phase


NOTICES = Notices(
    api_errors=frozenset({"error"}),
    interruptions=(Sign("aborted"),),
    compactions=(Sign("compaction"),),
)
"""The notifications of Pi and of the agents that write its format."""

PI = Agent(
    name="pi",
    title="Pi",
    parser=_parser,
    home=Home("PI_CODING_AGENT_DIR", "the home of Pi's logs; default ~/.pi/agent", ".pi/agent", ("sessions",)),
    elsewhere=(Home("PI_CODING_AGENT_SESSION_DIR", "the folder of Pi's logs, if it isn't in its home", None, ("",)),),
    rewrites=True,  # once, when a log of an older format is continued
    tools=Tools(
        shells=frozenset({"bash"}),
        reading=frozenset({"find", "ls"}),
        commands=("command",),
        paths=("path", "file_path"),
        removed=("oldText",),
        added=("newText",),
        contents=("content",),
    ),
    notices=NOTICES,
    phase=phase_reader,
    hidden_reasoning="as signatures only",
    command="pi",
    resumes=("--session",),
)
"""Pi: its logs, tools, notifications and settings."""
