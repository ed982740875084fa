"""Recognising the agent that wrote a file: by its first lines, or by all of it if it may be one JSON document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import PurePath
from typing import Any, NamedTuple

from agtrace_schema.events import Provider

from agtrace_indexer.events.drafts import LogState, Said
from agtrace_indexer.events.strings import plain_id
from agtrace_indexer.families.belonging import STARTED, known_as
from agtrace_indexer.index.tombstones import Tombstones, digest_of
from agtrace_indexer.logs.content import Content, Seekable
from agtrace_indexer.logs.decoding import completed, crowded, objects_in, single
from agtrace_indexer.logs.discovery import LogFile
from agtrace_indexer.logs.files import CountedFile, read_up_to
from agtrace_indexer.logs.lines import BROKEN, HEAD_OF_LONG_LINE, LONGEST_LINE, MAX_LINE, Line, Lines, records_in
from agtrace_indexer.providers.provider import Parser
from agtrace_indexer.providers.registry import AGENTS, parser_of, recognize, unroll

MAX_DOCUMENT = MAX_LINE
"""Bytes. A larger whole-file JSON document isn't parsed."""

HEAD = 1024
"""Bytes at the beginning of a file by which a log is identified, wherever it is."""

BLANK = b"\xef\xbb\xbf \t\r\n\0"
"""Bytes that say nothing before or after JSON: a byte order mark, blanks, what a loss of power left."""

_SNIFFED_LINES = 64


def said_by(record: Any, parser: Parser, state: LogState) -> list[Said]:
    """Return what a value of a log says, where it isn't stored; nothing if its parser fails, as when it is read."""
    if isinstance(record, dict):
        with suppress(Exception):  # formats change faster than we do: one record never costs the others
            return list(parser.drafts(record, state))
    return []


class Beginning(NamedTuple):
    """The beginning of a file, as much as had to be read to recognise it."""

    provider: Provider | None
    """The agent that wrote it; None if no line shows it."""
    read: list[Line]
    lines: Iterator[Line]
    """The lines after those that were read."""
    content: Content


def begin(file: Seekable, path: str) -> Beginning:
    """Read the file at a path until it is recognised. Until then, no line is read beyond `MAX_LINE` bytes."""
    content = Content(file)
    lines = Lines(content, longest=MAX_LINE)
    following = iter(lines)
    first = list(_until_recognized(following, path))
    provider, read = first[-1][1] if first else None, [line for line, _ in first]
    if provider is not None and not read[-1].whole:
        content = Content(file)
        return Beginning(provider, [], iter(Lines(content)), content)
    if provider is not None:
        lines.longest = LONGEST_LINE
    return Beginning(provider, read, following, content)


def _until_recognized(lines: Iterator[Line], path: str) -> Iterator[tuple[Line, Provider | None]]:
    """Yield lines with the provider that recognises them, up to the first one recognised or the sniffing limits."""
    size = 0
    claims: Counter[Provider] = Counter()
    for _, line in zip(range(_SNIFFED_LINES), lines, strict=False):
        provider = _recognized(line, path)
        if provider is not None:
            claims[provider] += 1
            provider = provider if claims[provider] >= AGENTS[provider].records_to_recognize else None
        yield line, provider
        size += len(line.data)
        if provider is not None or size > MAX_LINE:
            return


def _recognized(line: Line, path: str) -> Provider | None:
    """Return the provider of a line, recognised by its beginning if it is too long to be parsed."""
    if line.data.lstrip(BLANK)[:1] != b"{":
        return None
    parsable = line.whole and not crowded(line.data)
    values = objects_in(line.data) if parsable else [completed(line.data[:HEAD_OF_LONG_LINE])]
    return recognize(values[0], path) if values and isinstance(values[0], dict) else None


def document_in(file: Seekable, read: list[Line]) -> tuple[bytes | None, Content]:
    """Return all bytes of a file that may be one JSON document; None if it begins otherwise or is too long."""
    content = Content(file)
    if not read or read[0].data.lstrip(BLANK)[:1] not in (b"{", b"[") or not read[-1].whole:
        return None, content
    data = read_up_to(content, MAX_DOCUMENT + 1)
    return (data if len(data) <= MAX_DOCUMENT else None), content


def why_no_log(read: list[Line], data: bytes | None, values: list[Any] | None, content: Content) -> tuple[str, str]:
    """Return the status and the reason for a file that no provider recognises."""
    if content.damage:
        return "unreadable", content.damage
    if data is not None and b"\0" in data[:HEAD]:
        return "unrecognized", "a binary file"
    if any(not line.whole for line in read):
        return "unreadable", f"begins with a line of more than {MAX_LINE} bytes, longer than any agent writes"
    if data is not None and values is None and not data.rstrip().endswith((b"}", b"]")):
        return "waiting", "incomplete: waiting for the rest"
    return "unrecognized", "not a log format that agtrace knows"


# -- exclusion -------------------------------------------------------------------------------------
# The logs of forgotten sessions are kept out before anything in them is stored; only if any session is forgotten. The
# id is in a log's name or its first records. If it comes later, what was read until then is deleted.

_SURE = 64
"""Records after which an id is considered final: Claude Code's side lines may name another one at first."""


class KeptOut(Exception):
    """A log belongs to a forgotten session, or to a sub-agent that one started."""

    def __init__(self, sub_agent: str | None = None) -> None:
        super().__init__("the log of a forgotten session")
        self.sub_agent = sub_agent
        """The digest of a sub-agent that has no tombstone yet, but needs one to keep out those that it starts."""


def kept_out(found: LogFile, file: CountedFile, forgotten: Tombstones) -> KeptOut | None:
    """Return why a file isn't read: it is the log of a forgotten session, or of a sub-agent that one started."""
    provider, read, lines, _ = begin(file, found.path)
    if provider is not None:
        return _told(found, provider, _records(chain(read, lines)), forgotten)
    data, _ = document_in(file, read)
    unrolled = None if data is None else unroll(single(data))
    return None if unrolled is None else _told(found, unrolled[0], iter(unrolled[1]), forgotten)


def kept_out_inside(file: LogFile, provider: Provider, lines: Iterator[Line], forgotten: Tombstones) -> KeptOut | None:
    """Return the same for a log in a container, by its lines."""
    return _told(file, provider, _records(lines), forgotten)


def kept_out_so_far(forgotten: Tombstones, file: LogFile, provider: Provider | None, state: LogState) -> KeptOut | None:
    """Return the same by what is known so far about a log's session."""
    if provider is None:
        return None
    facts, written = state.sessions[""], file.mtime_ns / 1e9
    own_id = known_as(plain_id(facts.id or PurePath(file.path).name.partition(".")[0]), file.path)
    if forgotten.keep_out(provider, own_id, written):
        return KeptOut()
    if facts.kind not in STARTED or facts.parent_id is None:
        return None
    parent = plain_id(facts.parent_id)
    if forgotten.keep_out(provider, parent):
        return KeptOut(digest_of(provider, own_id))
    return KeptOut() if forgotten.keep_out(provider, parent, written) else None


def _records(lines: Iterator[Line]) -> Iterator[Any]:
    return (value for _, value in records_in(lines) if value is not BROKEN)


def _told(file: LogFile, provider: Provider, records: Iterator[Any], forgotten: Tombstones) -> KeptOut | None:
    parser = parser_of(provider)
    state = parser.begin(PurePath(file.place))
    named = state.sessions[""].id is not None
    for number, record in enumerate(records):
        facts = state.sessions[""]
        has_parent = facts.kind not in STARTED or facts.parent_id is not None
        if facts.id is not None and has_parent and (named or number >= _SURE):
            break
        said_by(record, parser, state)
    return kept_out_so_far(forgotten, file, provider, state)
