"""Kilo CLI: a fork of OpenCode with the same tables under its own name (opencode/README.md)."""

from __future__ import annotations

from agtrace_indexer.providers.opencode import agent
from agtrace_indexer.providers.provider import Parser


def _parser() -> Parser:
    from agtrace_indexer.providers.opencode import fork

    return fork


KILO = agent("kilo", "Kilo CLI", "kilo", folder="kilo", variable="KILO_DB", parser=_parser, tree=".*/kilo")
"""Kilo CLI: its logs, tools and notifications."""
