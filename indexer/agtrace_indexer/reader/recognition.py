"""Recognising the agent that wrote a file: by its first lines, or by all of it if it may be one JSON document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from agtrace_schema.events import Provider

from agtrace_indexer.events.drafts import LogState, Said
from agtrace_indexer.logs.content import Content, Seekable
from agtrace_indexer.logs.decoding import completed, crowded, objects_in
from agtrace_indexer.logs.files import read_up_to
from agtrace_indexer.logs.lines import HEAD_OF_LONG_LINE, LONGEST_LINE, MAX_LINE, Line, Lines
from agtrace_indexer.providers.provider import Parser
from agtrace_indexer.providers.registry import AGENTS, recognize

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
