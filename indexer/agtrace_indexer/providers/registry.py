"""The agents whose logs are read, and functions that find the agent of a record or file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agtrace_indexer.events.tools import OF_MCP_SERVERS, together
from agtrace_indexer.providers.antigravity import ANTIGRAVITY
from agtrace_indexer.providers.claude_code import CLAUDE_CODE
from agtrace_indexer.providers.codex import CODEX
from agtrace_indexer.providers.copilot import COPILOT, COPILOT_CHAT
from agtrace_indexer.providers.cursor import CURSOR
from agtrace_indexer.providers.gemini import GEMINI
from agtrace_indexer.providers.goose import GOOSE
from agtrace_indexer.providers.kiro import KIRO
from agtrace_indexer.providers.opencode import KILO, MIMO_CODE, OPENCODE
from agtrace_indexer.providers.pi import OH_MY_PI, OPENCLAW, PI
from agtrace_indexer.providers.qwen import QWEN

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agtrace_schema.events import Provider

    from agtrace_indexer.events.drafts import Record
    from agtrace_indexer.providers.provider import Agent, Parser, Source

_AGENTS = (
    CLAUDE_CODE, CODEX, GEMINI, ANTIGRAVITY, QWEN,
    COPILOT, COPILOT_CHAT,
    OPENCODE, KILO, MIMO_CODE,
    PI, OH_MY_PI, OPENCLAW,
    KIRO, GOOSE,
    CURSOR,
)  # fmt: skip

AGENTS: dict[str, Agent] = {agent.name: agent for agent in _AGENTS}
"""The agents by name; to add one, write its package and list it here. Cursor is the last one asked about a record."""


TOOLS = together([*(agent.tools for agent in AGENTS.values()), OF_MCP_SERVERS])
"""The tools that logs may name, by purpose."""

FORMS = tuple({agent.forms: None for agent in AGENTS.values() if agent.forms is not None})
"""The files in which agents keep the same log."""

HOMES = tuple(home for agent in AGENTS.values() for home in (agent.home, *agent.elsewhere))
"""The folders in which agents keep their logs."""

SIDECARS = tuple(dict.fromkeys(pair for agent in AGENTS.values() if agent.sidecar for pair in agent.sidecar.endings))
"""How the paths of logs and of the files that describe them end."""

CONTAINERS = tuple((agent.name, containers) for agent in AGENTS.values() for containers in agent.containers)
"""The containers in which agents keep logs that aren't files."""

_HINTS = tuple((kept.hint, kept) for _, kept in CONTAINERS)

TELLING = frozenset(kind for agent in AGENTS.values() for kind in agent.notices.telling)
"""The kinds of notifications that say what a session was about."""

ERRORS = frozenset(
    kind for agent in AGENTS.values() for kind in (*agent.notices.api_errors, *agent.notices.retried_errors)
)
"""The kinds of notifications that say that the model's API failed."""

_TITLED = 3

TITLES = ", ".join(agent.title for agent in [*AGENTS.values()][:_TITLED]) + " and others"
"""The first agents' names in a sentence: `Claude Code, Codex, Gemini CLI and others`; all of them would be too many."""

SETUPS = {agent.command: agent.setup for agent in AGENTS.values() if agent.setup is not None}
"""The functions that load how our MCP server is added to an agent, by the name of its program."""


def homes(environment: Mapping[str, str], home: Path) -> list[Path]:
    """Return the folders where the agents keep their logs on this machine, whether they exist or not.

    The agents' own variables for other folders are honoured.
    """
    return [root for kept in HOMES for root in kept.roots(environment, home)]


def agent_by_name(text: str) -> Provider | None:
    """Return the agent that a person or a model means by `claude_code`, `Claude Code`, `claude-code` or `claude`.

    None if no agent has that name.
    """
    asked = _bare(text)
    names = {name: map(_bare, (agent.name, agent.title, agent.command)) for name, agent in AGENTS.items()}
    return next((name for name, ways in names.items() if asked and asked in ways), None)


def _bare(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def parser_of(provider: str) -> Parser:
    """Return the parser of an agent's logs."""
    return AGENTS[provider].parser()


def container_of(path: str) -> str | None:
    """Return the path of the container that a file belongs to; None for any other file."""
    for hint, kept in _HINTS:  # called for every file
        if hint in path and (result := kept.of(path)) is not None:
            return result
    return None


def source_of(container: str) -> tuple[Provider, Source]:
    """Return the agent whose container is at a path, and its source."""
    return next((name, kept.source()) for name, kept in CONTAINERS if kept.of(container) == container)


def recognize(record: Record, path: str) -> Provider | None:
    """Return the provider whose record this is, in a log at this path; None if no provider recognises it."""
    for agent in AGENTS.values():
        if agent.parser().recognizes(record):
            return writer_at(path, agent.name)
    return None


def format_of(provider: Provider) -> Provider:
    """Return the agent in whose format a provider's logs are: itself, unless it is a fork."""
    fork = AGENTS[provider].fork
    return provider if fork is None else fork.format


def writer_at(path: str, provider: Provider) -> Provider:
    """Return the agent that wrote the log at a path, which is in the format of this provider: itself, or a fork."""
    forks = (agent for agent in AGENTS.values() if agent.fork is not None and agent.fork.format == provider)
    return next((fork.name for fork in forks if fork.fork is not None and fork.fork.paths.search(path)), provider)


def unroll(document: Any) -> tuple[Provider, list[Record]] | None:
    """Return the provider of a whole-file JSON document and its records; None if no provider recognises it."""
    for agent in AGENTS.values():
        records = agent.parser().unroll(document)
        if records is not None:
            return agent.name, list(records)
    return None
