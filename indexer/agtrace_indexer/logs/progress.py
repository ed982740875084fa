"""The progress of a run of the indexer."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field


class Progress(Struct):
    """The work that a run has done so far."""

    files_total: int = 0
    files_done: int = 0
    bytes_total: int = 0
    bytes_done: int = 0
    files_opened: int = 0
    bytes_read: int = 0
    """Bytes requested from the file system, including those checked before an append."""
    records: int = 0
    events: int = 0
    unreadable_lines: int = 0
    unknown_record_types: dict[str, int] = field(default_factory=dict)
    kept_out: list[str] = field(default_factory=list)
    """Digests of sub-agents that were left unread because the session that started them is forgotten."""

    def add(self, read: dict[str, Any]) -> None:
        """Add what another process has read: its progress, except for the files and bytes that are done."""
        for name in ("files_opened", "bytes_read", "records", "events", "unreadable_lines"):
            setattr(self, name, getattr(self, name) + read[name])
        self.kept_out += read["kept_out"]
        for kind, count in read["unknown_record_types"].items():
            self.unknown_record_types[kind] = self.unknown_record_types.get(kind, 0) + count
