"""What files that no agent's parser recognizes look like, so that a person can say which agent wrote them.

Only names of fields and short names of types are told, never a text.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from agtrace_indexer.logs.decoding import completed, decode
from agtrace_indexer.logs.discovery import found_at
from agtrace_indexer.logs.files import head_of
from agtrace_schema.patterns import later

_HEAD = 65_536
_RECORDS = 20
_FIELDS, _TYPES = 12, 8
_FILES = 500
"""Files that are opened, at most; those of one folder mostly look the same."""

_NAME = later(r"[A-Za-z_$][\w.$-]{0,39}")
TYPED_BY = ("type", "role", "kind", "event")
"""Fields by whose value agents tell kinds of records apart, the most telling first."""

_SQLITE = b"SQLite format 3\0"
_OPENING = (b"{", b"[")


class Look(NamedTuple):
    """What a file looks like."""

    form: str
    """`JSON lines`, `a JSON document`, `an SQLite database`, `text` or `binary data`."""
    fields: tuple[str, ...] = ()
    """Names of fields of its first records, in the order of their first appearance."""
    types: tuple[str, ...] = ()
    """Values of the field that tells its records apart, as `type=message`."""


def looks(paths: Iterable[str]) -> list[dict[str, Any]]:
    """Return the formats of some files, the most frequent first: form, fields, types, number of files, an example.

    Files of one form whose first records are of one type, or have the same first field, are taken for one format. A
    file that can't be opened now is left out.
    """
    seen: dict[tuple[str, ...], list[tuple[Look, str]]] = {}
    for path in list(paths)[:_FILES]:
        look = _look(path)
        if look is not None:
            seen.setdefault((look.form, *(look.types or look.fields)[:1]), []).append((look, path))
    return [_together(found) for found in sorted(seen.values(), key=len, reverse=True)]


def _together(found: list[tuple[Look, str]]) -> dict[str, Any]:
    fields = dict.fromkeys(field for look, _ in found for field in look.fields)
    types = dict.fromkeys(value for look, _ in found for value in look.types)
    look, path = found[0]
    return {
        "form": look.form,
        "fields": [*fields][:_FIELDS],
        "types": [*types][:_TYPES],
        "files": len(found),
        "path": path,
    }


def _look(path: str) -> Look | None:
    try:
        listed = found_at(path, os.path.dirname(path))
        head = head_of(listed, _HEAD) if listed is not None else b""
    except OSError:
        return None
    if not head:
        return None
    if head.startswith(_SQLITE):
        return Look("an SQLite database")
    if head.lstrip().startswith(_OPENING):
        return _json(head)
    return Look("binary data" if b"\0" in head else "text")


def records_of(head: bytes) -> list[Any]:
    """Return the first records of JSON lines, whose last may have been cut off; lines that are none are left out."""
    return [record for line in head.splitlines()[:_RECORDS] for record in decode(line) or ()]


def _json(head: bytes) -> Look:
    records = records_of(head)
    if records and isinstance(records[0], dict):
        return Look("JSON lines" if len(records) > 1 else "one line of JSON", _fields(records), _types(records))
    document = (decode(head) or [completed(head)])[0]
    values = document.values() if isinstance(document, dict) else [document]
    inner = max((value for value in values if isinstance(value, list)), key=len, default=[])
    return Look("a JSON document", _fields([document]) or _fields(inner), _types(inner) or _types([document]))


def _fields(records: list[Any]) -> tuple[str, ...]:
    return tuple(_names(name for record in records if isinstance(record, dict) for name in record))[:_FIELDS]


def _types(records: list[Any]) -> tuple[str, ...]:
    for field in TYPED_BY:
        values = _names(record.get(field) for record in records if isinstance(record, dict))
        found = tuple(f"{field}={value}" for value in values)[:_TYPES]
        if found:
            return found
    return ()


def _names(values: Iterable[Any]) -> Iterator[str]:
    """Return what can be the name of a field or a type, each once, in order."""
    yield from dict.fromkeys(value for value in values if isinstance(value, str) and _NAME.fullmatch(value))
