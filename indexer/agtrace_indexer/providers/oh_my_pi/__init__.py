"""oh-my-pi: a fork of Pi that writes its format (pi/README.md)."""

from __future__ import annotations

from agtrace_schema.patterns import later

from agtrace_indexer.events.tools import Tools
from agtrace_indexer.providers.pi import NOTICES, phase_reader
from agtrace_indexer.providers.provider import Agent, Fork, Home, Parser


def _parser() -> Parser:
    from agtrace_indexer.providers.oh_my_pi import parser

    return parser


OH_MY_PI = Agent(
    name="oh_my_pi",
    title="oh-my-pi",
    parser=_parser,
    home=Home("OMP_CODING_AGENT_DIR", "the home of oh-my-pi's logs; default ~/.omp/agent", ".omp/agent", ("sessions",)),
    fork=Fork("pi", later(r"[/\\]\.omp[/\\]")),
    rewrites=True,  # its first line is the title
    tools=Tools(
        shells=frozenset({"bash"}),
        reading=frozenset({"find", "ls", "lsp", "web_search"}),
        asking=frozenset({"ask"}),
        questioning=frozenset({"ask"}),
        starting=frozenset({"task"}),
        commands=("command",),
        paths=("path", "file_path"),
    ),
    notices=NOTICES,
    phase=phase_reader,
    hidden_reasoning="as signatures only",
    command="omp",
    resumes=("--resume",),
)
"""oh-my-pi: its logs, tools, notifications and settings."""
