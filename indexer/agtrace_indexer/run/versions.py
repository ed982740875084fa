"""The versions of the reader and of the rules for secrets that an index was made with: a change has logs read again."""

from __future__ import annotations

from agtrace_indexer import redact
from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.index.opening import NewerIndex
from agtrace_indexer.reader.plan import KNOWN_AGENTS

READING_VERSION = 13
"""Raised whenever the same logs would now yield other rows: logs that still exist are then read again, archived rows
stay as they are."""


def refuse_newer_reading(reading: str | None) -> None:
    """Raise `NewerIndex` if a newer agtrace read the logs, according to the fact 'reading' of the index.

    Such an index can be read but not written: the two would read all logs again in turn.
    """
    if reading is not None and reading.isdecimal() and int(reading) > READING_VERSION:
        raise NewerIndex("reading", int(reading), READING_VERSION)


def is_outdated(catalog: Catalog) -> bool:
    """Whether all logs must be read again: they would be read or masked differently now."""
    return catalog.meta("reading") not in (None, str(READING_VERSION)) or masked_otherwise(catalog)


def knows_more_agents(catalog: Catalog) -> bool:
    """Whether logs of an agent that is new since the index was last complete may have been taken for no logs.

    An older version that knows fewer agents leaves the note as it is, or the two would look at them in turn.
    """
    return catalog.meta("built") == "1" and bool(KNOWN_AGENTS - noted_agents(catalog))


def noted_agents(catalog: Catalog) -> set[str]:
    """Return the agents that were known when the index was last complete."""
    return set(filter(None, (catalog.meta("agents") or "").split(",")))


def masked_otherwise(catalog: Catalog) -> bool:
    """Whether the rules for secrets changed since the index was masked."""
    return catalog.meta("built") is not None and catalog.meta("redaction") != redact.digest()
