"""A log being read: the positions in its file and its sessions, which the index remembers between two runs."""

from __future__ import annotations

import hashlib
from typing import Any

from agtrace_schema.events import Provider
from msgspec import Struct, field

from agtrace_indexer.events.assembly import Thread
from agtrace_indexer.events.drafts import LogState
from agtrace_indexer.events.json_values import by_name
from agtrace_indexer.logs.discovery import LogFile
from agtrace_indexer.logs.files import Pieces


class Log(Struct):
    """A log being read: the row of its file, and the state of its parser."""

    found: LogFile
    file_id: int | None
    status: str = "waiting"
    reason: str | None = None
    provider: Provider | None = None
    read_to: int = 0
    lines: int = 0
    records: int = 0
    unreadable_lines: int = 0
    pending_bytes: int = 0
    head: bytes = b""
    """The digest of the first `head_size` bytes."""
    head_size: int = 0
    anchor: bytes = b""
    """The last bytes before `read_to`."""
    checksum: int = 0
    """CRC-32 of all content before `read_to`."""
    state: LogState = field(default_factory=LogState)
    threads: dict[str, Thread] = field(default_factory=dict)
    document: bool = False
    """Whether the file is one JSON document, of which no records are counted as left out."""
    long_tail: int | None = None
    """The event with the beginning of a last line that is too long and has no end yet."""
    unended: bool = False
    """Whether the last line isn't followed by a newline yet, so that the next run continues it."""
    position: Any = None
    """Where its source continues (`providers.provider.Source`); None for a log that is a file."""
    pieces: Pieces | None = None
    """The files that it is read from, if there are several."""
    record_types: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """(status, type) -> [count, first line] of unknown and left-out records since it was last saved."""
    session_ids: dict[str, int] = field(default_factory=dict)
    """The ids of its sessions by thread."""

    def columns(self) -> dict[str, Any]:
        """Return the columns of `file`."""
        return {
            "status": self.status, "reason": self.reason, "provider": self.provider, "stamp": self.found.stamp,
            "gone": int(bool(self.found.archived)), "size": self.found.size, "read_to": self.read_to,
            "lines": self.lines, "records": self.records, "unreadable_lines": self.unreadable_lines,
            "pending_bytes": self.pending_bytes, "head": self.head, "head_size": self.head_size,
            "anchor": digest(self.anchor), "anchor_size": len(self.anchor),
        }  # fmt: skip

    def remembered(self) -> dict[str, Any]:
        """Return the state that the next run needs in order to continue."""
        threads = {key: by_name(thread) for key, thread in self.threads.items()}
        place = {
            "checksum": self.checksum, "long_tail": self.long_tail, "unended": self.unended, "position": self.position,
            "piece": self.pieces and next(piece for piece in reversed(self.pieces.starts) if piece[1] < self.read_to),
        }  # fmt: skip
        return {"parser": self.state.to_json(), "threads": threads, **place}


def digest(data: bytes) -> bytes:
    """Return a short hash that identifies a piece of a file."""
    return hashlib.sha256(data).digest()[:12]
