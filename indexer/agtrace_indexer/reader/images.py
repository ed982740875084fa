"""Images in logs: an event has a placeholder for each, and the image is read from its record when somebody asks.

It is read from the log, or from the archive if the log is gone. Nothing in an image is masked, so it is for its user
alone: no answer to an agent may have one.
"""

from __future__ import annotations

import binascii
import os
import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from agtrace_schema.patterns import later

from agtrace_indexer.index.queries.events import Event, StoredEvent
from agtrace_indexer.logs.archive import Archive
from agtrace_indexer.logs.content import Content
from agtrace_indexer.logs.discovery import LogFile, in_pieces, known_as
from agtrace_indexer.logs.files import checksum_to, open_regular, read_up_to
from agtrace_indexer.logs.lines import MAX_LINE
from agtrace_indexer.providers.registry import CONTAINERS, FORMS
from agtrace_indexer.reader.plan import rows_of

_MOST_BYTES, _MOST_IMAGES = 16 * 1024 * 1024, 50
"""The most bytes of an image that is shown, and images of an event."""

_PLACEHOLDER = later(r"\[image: (?:image/[\w.+-]+|unknown type), ([1-9][0-9]{0,9}) bytes\]")
"""What `json_values.image_placeholder` makes of an image, if it may be one of those that are shown."""

_KINDS = {
    "image/png": rb"\x89PNG\r\n\x1a\n", "image/jpeg": rb"\xff\xd8\xff", "image/gif": rb"GIF8[79]a",
    "image/webp": rb"(?s:RIFF....WEBP)",
}  # fmt: skip
"""The types that are shown, by how a file of theirs begins."""

_BASE64 = rb'[",]((?:iVBORw0KGgo|\\?/9j\\?/|R0lGOD|UklGR)[A-Za-z0-9+/\\]*={0,2})\\*"'
"""A string of JSON that ends with what may be a file of these types; slashes may be escaped."""


class Image(NamedTuple):
    """An image as a log has it."""

    kind: str
    """image/png, image/jpeg, image/gif or image/webp, by its content."""
    data: bytes


def sizes_in(text: str) -> list[int]:
    """Return the sizes in bytes, from the base64 in the log, of the images for which a text has placeholders."""
    return [int(found[1]) for found in islice(_PLACEHOLDER.finditer(text), _MOST_IMAGES)]


def images_of(database: Path, log: str, event: StoredEvent) -> list[Image | None]:
    """Return the image for each placeholder in the text of an event; None for one that can't be shown.

    `database` is the index, `log` the path of the event's log in it. An image is one of those in the event's record
    that have the size in the placeholder; if it can't be told which, it isn't shown.
    """
    sizes = sizes_in(event.text)
    for copy in _copies(Archive(database), log) if sizes else ():
        with suppress(OSError):
            result = _images_in(_record(copy, event.row), sizes)
            if any(result):
                return result
    return [None] * len(sizes)


def _copies(archive: Archive, path: str) -> Iterator[LogFile]:
    """Yield a log as its agent has it, as the archive does, the newest first, and with the files that it goes on in."""
    folder = os.path.dirname(path)
    container = folder if any(kept.of(folder) == folder for _, kept in CONTAINERS) else ""
    yield LogFile(path, "", 0, 0, below=len(folder), container=container)
    yield from archive.kept(path)
    if names := known_as(path, FORMS):
        yield from in_pieces((log for log in archive.logs() if names & known_as(log.path, FORMS)), FORMS, [path])


def _record(log: LogFile, event: Event) -> bytes:
    """Return the record that an event is from, as the log has it. Raise `OSError`."""
    if log.container:
        return b"\n".join(row.data for row in rows_of(log, None) if row.number == event.line)
    with open_regular(log) as file:
        content = Content(file)
        if log.pieces:
            checksum_to(content, event.offset)  # it reads all before that
        else:
            content.skip_to(event.offset)
        return read_up_to(content, min(event.length, MAX_LINE))


def _images_in(record: bytes, sizes: list[int]) -> list[Image | None]:
    by_size: dict[int, dict[bytes, None]] = {}
    for match in re.finditer(_BASE64, record):
        encoded = match[1].replace(b"\\", b"")
        by_size.setdefault(len(encoded) * 3 // 4, {})[encoded] = None
    images: list[Image | None] = []
    for number, size in enumerate(sizes):
        several = [*by_size.get(size, ())]
        certain = len(several) in (1, sizes.count(size))
        images.append(_image(several[min(sizes[:number].count(size), len(several) - 1)]) if certain else None)
    return images


def _image(encoded: bytes) -> Image | None:
    try:
        data = b64decode(encoded + b"=" * (-len(encoded) % 4), validate=True)
    except binascii.Error:
        return None
    kind = next((kind for kind, begins in _KINDS.items() if re.match(begins, data)), None)
    return Image(kind, data) if kind and len(data) <= _MOST_BYTES else None
