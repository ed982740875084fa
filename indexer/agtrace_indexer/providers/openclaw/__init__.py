"""OpenClaw, formerly Clawdbot and Moltbot: an assistant in messengers that writes Pi's format (pi/README.md)."""

from __future__ import annotations

import re

from agtrace_schema.patterns import later

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.providers.pi import NOTICES, phase_reader
from agtrace_indexer.providers.provider import Agent, Fork, Home, Parser


def _parser() -> Parser:
    from agtrace_indexer.providers.openclaw import parser

    return parser


OPENCLAW = Agent(
    name="openclaw",
    title="OpenClaw",
    parser=_parser,
    home=Home("OPENCLAW_STATE_DIR", "the home of OpenClaw's logs; default ~/.openclaw", ".openclaw", ("agents",)),
    elsewhere=(Home("", "", ".clawdbot", ("agents",)), Home("", "", ".moltbot", ("agents",))),
    fork=Fork(
        "pi",
        later(
            r"(?!.*[/\\]\.(?:pi|omp)[/\\])"
            r".*[/\\](?:agents[/\\][^/\\]+[/\\]sessions|\.?(?:openclaw|clawdbot|moltbot))[/\\]",
            re.DOTALL,
        ),
    ),
    rewrites=True,
    tools=Tools(
        shells=frozenset({"exec"}),
        waiting=frozenset({"process"}),
        starting=frozenset({"sessions_spawn"}),
        commands=("command",),
        paths=("path", "file_path"),
    ),
    notices=NOTICES,
    phase=phase_reader,
    hidden_reasoning="as signatures only",
    no_messages=frozenset({"HEARTBEAT_OK", "NO_REPLY"}),
)
"""OpenClaw: its logs, tools and notifications."""
