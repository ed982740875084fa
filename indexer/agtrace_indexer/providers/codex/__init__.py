"""OpenAI Codex: rollout files of three eras (indexer/README.md)."""

from __future__ import annotations

from agtrace_indexer.providers.provider import Agent, Parser


def _parser() -> Parser:
    from agtrace_indexer.providers.codex import parser

    return parser


CODEX = Agent(
    name="codex",
    title="Codex",
    parser=_parser,
    replays_items=True,
)
"""What is known about Codex."""
