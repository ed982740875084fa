"""By what the logs of an index were read and masked: where that changed, they are read again."""

from __future__ import annotations

from agtrace_indexer import redact
from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.index.opening import NewerIndex

READING_VERSION = 6
"""Raised whenever the same logs would now give other rows: logs that are still there are then read again, archived rows
stay as they are."""


def refuse_newer_reading(reading: str | None) -> None:
    """Raise `NewerIndex` where a newer agtrace read the logs, by the fact 'reading' of an index.

    What it stored can be read, but not written: the logs would be read anew by each of the two in turn.
    """
    if reading is not None and reading.isdecimal() and int(reading) > READING_VERSION:
        raise NewerIndex("reading", int(reading), READING_VERSION)


def is_outdated(catalog: Catalog) -> bool:
    """Whether all logs are to be read again: they were read, or masked, in another way than they would be now."""
    return catalog.meta("reading") not in (None, str(READING_VERSION)) or masked_otherwise(catalog)


def masked_otherwise(catalog: Catalog) -> bool:
    """Whether the rules for secrets changed since the index was masked."""
    return catalog.meta("built") is not None and catalog.meta("redaction") != redact.digest()
