"""Claude Code: `projects/<folder>/<sessionId>.jsonl` and the logs of its sub-agents (indexer/README.md)."""

from __future__ import annotations

from agtrace_indexer.providers.provider import Agent, Home, Parser


def _parser() -> Parser:
    from agtrace_indexer.providers.claude_code import parser

    return parser


CLAUDE_CODE = Agent(
    name="claude_code",
    title="Claude Code",
    parser=_parser,
    home=Home(
        "CLAUDE_CONFIG_DIR", "the home of Claude Code's logs; default ~/.claude", ".claude", ("projects",), several=True
    ),
    keys_remembered=64,  # only lines of one response repeat a key, and they stand close together
    repeats_lines=True,
)
"""What is known about Claude Code."""
