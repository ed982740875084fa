"""What an index depends on besides the logs."""

from __future__ import annotations

from msgspec import Struct

from agtrace_indexer import redact
from agtrace_indexer.index.catalog import Catalog
from agtrace_indexer.index.tombstones import stamp


class Circumstances(Struct, frozen=True):
    """If neither these nor the logs have changed since a run that found nothing to do, neither does the next one."""

    state: int
    """The state of the database, as this catalog sees it."""
    forgotten: str
    """The stamp of the tombstones."""
    rules: str
    """The digest of the rules for secrets."""


def circumstances_of(catalog: Catalog) -> Circumstances:
    """Return the present circumstances of an index."""
    return Circumstances(catalog.state, stamp(catalog.path), redact.digest())
