"""The agents whose logs are read, and which of them a record is of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agtrace_indexer.events.tools import OF_MCP_SERVERS, together
from agtrace_indexer.providers.claude_code import CLAUDE_CODE
from agtrace_indexer.providers.codex import CODEX
from agtrace_indexer.providers.gemini import GEMINI

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agtrace_schema.events import Provider

    from agtrace_indexer.events.drafts import Record
    from agtrace_indexer.providers.provider import Agent, Parser, Source

AGENTS: dict[str, Agent] = {agent.name: agent for agent in (CLAUDE_CODE, CODEX, GEMINI)}
"""The agents by name: to add one, write its package and name it here."""


TOOLS = together([*(agent.tools for agent in AGENTS.values()), OF_MCP_SERVERS])
"""The tools that logs may name."""

FORMS = tuple(agent.forms for agent in AGENTS.values() if agent.forms is not None)
"""How agents keep one log in several files."""

CONTAINERS = tuple((agent.name, containers) for agent in AGENTS.values() for containers in agent.containers)
"""Where agents keep logs that aren't files of their own."""

TITLES = " and ".join(", ".join(agent.title for agent in AGENTS.values()).rsplit(", ", 1))
"""What people call the agents, in a sentence: `Claude Code, Codex and Gemini CLI`."""

SETUPS = {agent.command: agent.setup for agent in AGENTS.values() if agent.setup is not None}
"""How our MCP server is added to agents, by the names of their programs."""


def homes(environment: Mapping[str, str], home: Path) -> list[Path]:
    """The folders where the agents keep their logs on this machine, whether they exist or not.

    The variables by which agents are told other folders are honoured.
    """
    return [root for agent in AGENTS.values() for root in agent.home.roots(environment, home)]


def parser_of(provider: str) -> Parser:
    """What reads the logs of an agent."""
    return AGENTS[provider].parser()


def container_of(path: str) -> str | None:
    """The path of the container that a file belongs to; None for any other file."""
    return next((found for _, kept in CONTAINERS if (found := kept.of(path)) is not None), None)


def source_of(container: str) -> tuple[Provider, Source]:
    """Whose container lies at a path, and what reads it."""
    return next((name, kept.source()) for name, kept in CONTAINERS if kept.of(container) == container)


def recognize(record: Record) -> Provider | None:
    """The provider whose record this is; None if no provider claims it."""
    for agent in AGENTS.values():
        if agent.parser().recognizes(record):
            return agent.name
    return None


def unroll(document: Any) -> tuple[Provider, list[Record]] | None:
    """The records of a whole-file JSON document, with its provider."""
    for agent in AGENTS.values():
        records = agent.parser().unroll(document)
        if records is not None:
            return agent.name, list(records)
    return None
