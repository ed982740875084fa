"""An entry for our server in a client's settings, and what becomes of one that is there already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_REMOTE = {"url", "httpUrl", "serverUrl", "uri"}


def is_remote(entry: Mapping[str, Any]) -> bool:
    """Whether an entry names a server on the network, with whose settings ours can't be mixed."""
    return not _REMOTE.isdisjoint(entry)


def merged(present: Any, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with what else is set in the present one: variables, a time limit, that it is switched off."""
    return dict(entry) if isinstance(present, Mapping) and is_remote(present) else _over(present, entry)


def _over(present: Any, entry: Mapping[str, Any]) -> dict[str, Any]:
    known = dict(present) if isinstance(present, Mapping) else {}
    for name, value in entry.items():
        known[name] = _over(known.get(name), value) if isinstance(value, Mapping) else value
    return known
