"""MiMo Code: a fork of OpenCode with the same tables under its own name (opencode/README.md)."""

from __future__ import annotations

from agtrace_indexer.providers.opencode import agent
from agtrace_indexer.providers.provider import Parser


def _parser() -> Parser:
    from agtrace_indexer.providers.opencode import fork

    return fork


MIMO_CODE = agent(
    "mimo_code", "MiMo Code", "mimo", folder="mimocode", variable="MIMOCODE_DB", parser=_parser, tree=".*/mimocode"
)
"""MiMo Code: its logs, tools and notifications."""
