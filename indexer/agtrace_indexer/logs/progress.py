"""How far a run of the indexer has come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Progress:
    """What a run has done so far."""

    files_total: int = 0
    files_done: int = 0
    bytes_total: int = 0
    bytes_done: int = 0
    files_opened: int = 0
    bytes_read: int = 0
    """Bytes asked of the file system, the check of the place before an append included."""
    records: int = 0
    events: int = 0
    unreadable_lines: int = 0
    unknown_record_types: dict[str, int] = field(default_factory=dict)
    kept_out: list[str] = field(default_factory=list)
    """Digests of sub-agents that were left unread because the session that started them is forgotten."""

    def add(self, read: dict[str, Any]) -> None:
        """Count what another process has read: its progress, but for how many files and bytes are done."""
        for name in ("files_opened", "bytes_read", "records", "events", "unreadable_lines"):
            setattr(self, name, getattr(self, name) + read[name])
        self.kept_out += read["kept_out"]
        for kind, count in read["unknown_record_types"].items():
            self.unknown_record_types[kind] = self.unknown_record_types.get(kind, 0) + count
