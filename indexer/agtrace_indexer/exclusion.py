"""Whether a log is a forgotten session's: told before anything of it is written, and only where something is forgotten.

A log tells its id in its name or its first records. Should one tell it later, what was read until then goes again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import PurePath
from typing import Any

from agtrace_schema.events import Provider

from agtrace_indexer.discovery import Found
from agtrace_indexer.drafts import LogState
from agtrace_indexer.files import CountedFile
from agtrace_indexer.formats import FORMATS, Content, decode, unroll
from agtrace_indexer.gathering import visible
from agtrace_indexer.kept_together import STARTED, known_as
from agtrace_indexer.lines import Line, Lines
from agtrace_indexer.recognition import rest_of_document, until_recognized
from agtrace_indexer.tombstones import Tombstones

_SURE = 64
"""Records after which an id is taken to be final: Claude Code's side lines may name another one at first."""


class KeptOut(Exception):
    """A log turned out to be a forgotten session's."""


def is_kept_out(found: Found, file: CountedFile, forgotten: Tombstones) -> bool:
    """Whether a file holds the log of a forgotten session, or of a sub-agent that one started."""
    lines = iter(Lines(Content(file)))
    first = list(until_recognized(lines))
    read, provider = [line for line, _ in first], first[-1][1] if first else None
    if provider is not None:
        return _tells(found, provider, _records(chain(read, lines)), forgotten)
    data = rest_of_document(read, lines)
    values = None if data is None else decode(data)
    unrolled = unroll(values[0]) if values is not None and len(values) == 1 else None
    return unrolled is not None and _tells(found, unrolled[0], iter(unrolled[1]), forgotten)


def keeps_out(forgotten: Tombstones, found: Found, provider: Provider | None, state: LogState) -> bool:
    """Whether what is known so far of a log's session makes it a forgotten one, or a sub-agent of one."""
    if provider is None:
        return False
    facts, written = state.sessions[""], found.mtime_ns / 1e9
    own_id = visible(facts.id or PurePath(found.path).name.partition(".")[0])
    if forgotten.keep_out(provider, known_as(own_id, found.path), written):
        return True
    parent = facts.parent_id if facts.kind in STARTED else None
    return parent is not None and forgotten.keep_out(provider, visible(parent), written)


def _records(lines: Iterator[Line]) -> Iterator[Any]:
    for line in lines:
        yield from (decode(line.data) or ()) if line.whole else ()


def _tells(found: Found, provider: Provider, records: Iterator[Any], forgotten: Tombstones) -> bool:
    form = FORMATS[provider]
    state = form.begin(PurePath(found.path))
    named = state.sessions[""].id is not None
    for number, record in enumerate(records):
        facts = state.sessions[""]
        has_parent = facts.kind not in STARTED or facts.parent_id is not None
        if facts.id is not None and has_parent and (named or number >= _SURE):
            break
        if isinstance(record, dict):
            with suppress(Exception):  # as when it is read: one record never costs the others
                list(form.drafts(record, state))
    return keeps_out(forgotten, found, provider, state)
