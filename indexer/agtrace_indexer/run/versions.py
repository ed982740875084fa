"""What an index depends on besides the logs: the versions of the reader and of the rules for secrets that made it."""

from __future__ import annotations

from collections.abc import Iterable

from agtrace_indexer import redact
from agtrace_indexer.index import meta
from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.index.opening import NewerIndex
from agtrace_indexer.reader.plan import KNOWN_AGENTS

_AGAIN = "rereading"

READING_VERSION = 37


def refuse_newer_reading(reading: str | None) -> None:
    """Raise `NewerIndex` if a newer agtrace read the logs, according to the fact 'reading' of the index.

    Such an index can be read but not written: the two would read all logs again in turn.
    """
    if reading is not None and reading.isdecimal() and int(reading) > READING_VERSION:
        raise NewerIndex("reading", int(reading), READING_VERSION)


def is_outdated(catalog: Catalog) -> bool:
    """Whether all logs must be read again: they would be read or masked differently now."""
    return catalog.meta("reading") not in (None, str(READING_VERSION)) or masked_otherwise(catalog)


def is_going_on(catalog: Catalog) -> bool:
    """Whether an earlier run has begun to read all logs again as they are read now: it left those without a stamp that
    it didn't get to.
    """
    return catalog.meta(_AGAIN) == _as_read_now()


def note_going_on(catalog: Catalog, secrets: Iterable[str] | None = None) -> None:
    """Note that all logs, or those with one of these secrets, are read again: they have no stamp until they are."""
    catalog.take_stamps_away(secrets)
    catalog.set_meta(_AGAIN, _as_read_now())


def note_current(catalog: Catalog) -> None:
    """Note that all logs are read as they are read now."""
    catalog.set_meta("reading", str(READING_VERSION))
    catalog.set_meta("redaction", redact.digest())
    meta.drop(catalog.connection, _AGAIN)


def _as_read_now() -> str:
    return f"{READING_VERSION} {redact.digest()}"


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
