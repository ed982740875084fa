"""Gemini CLI: JSON sessions, JSONL sessions since 0.39.0, and `/chat save` checkpoints (indexer/README.md)."""

from __future__ import annotations

from agtrace_indexer.providers.provider import Agent, Parser


def _parser() -> Parser:
    from agtrace_indexer.providers.gemini import parser

    return parser


GEMINI = Agent(
    name="gemini",
    title="Gemini CLI",
    parser=_parser,
    keys_remembered=None,  # any message can be replaced or rewound
)
"""What is known about Gemini CLI."""
