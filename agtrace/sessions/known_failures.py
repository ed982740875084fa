"""How many calls failed, as far as the logs say: those of some agents have no results of tools."""

from __future__ import annotations

from collections.abc import Iterable

from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.events import Provider


def failures_known(provider: Provider, calls: int) -> bool:
    """Whether a log of this agent with so many tool calls says how many of them failed."""
    return not calls or AGENTS[provider].logs_results


def known_failures(provider: Provider, calls: int, failed: int) -> int | None:
    """Return the number of failed calls; None if it is unknown, which isn't none."""
    return failed if failures_known(provider, calls) else None


def known_failures_of_all(providers: Iterable[Provider], failed: int) -> int | None:
    """Return the number of failed calls in sessions of these agents; None if no log of theirs tells it."""
    return failed if any(AGENTS[provider].logs_results for provider in providers) else None
