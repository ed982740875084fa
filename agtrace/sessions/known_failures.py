"""How many calls failed, as far as the logs say: those of some agents have no results of tools."""

from __future__ import annotations

from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.events import Provider


def failures_known(provider: Provider, calls: int = 1) -> bool:
    """Whether a log of this agent with so many tool calls says how many of them failed."""
    return not calls or AGENTS[provider].logs_results


def known_failures(provider: Provider, calls: int, failed: int) -> int | None:
    """Return the number of failed calls; None if it is unknown, which isn't none."""
    return failed if failures_known(provider, calls) else None
