"""What must be left in the end: a fresh index's rows for existing logs, unchanged rows for those that vanished."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from agtrace_indexer.index.tombstones import FORGOTTEN, hidden

from tests.contents import contents

_OF_OTHERS = {"sessions": (-7, -6, -5, -4), "events": (-1,)}
"""The columns of `contents` that may change with other logs, when a relative vanishes or moves."""


def behind(database: Path, roots: list[Path]) -> list[str]:
    """Return the files on disk that the index doesn't have in their current state, and those it wrongly believes exist.

    For logs of forgotten sessions, it must have nothing except a digest of each path.
    """
    there = {str(path): path.stat().st_size for root in roots for path in root.rglob("*") if path.is_file()}
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        known = dict(connection.execute("SELECT path, size FROM file WHERE NOT gone"))
    differ = {path for path, _ in there.items() ^ known.items() if not path.startswith(f"{FORGOTTEN}:")}
    return sorted(path for path in differ if hidden(path) not in known)


def differences(database: Path, fresh: Path) -> Iterator[str]:
    """Yield how the rows of existing logs differ from those of a fresh index of the same logs, log by log."""
    logs, others = _logs(database), _logs(fresh)
    yield from (f"{path} is not indexed" for path in sorted(others - logs))
    yield from (f"{path} is no longer a log" for path in sorted(logs - others))
    for path in sorted(logs & others):
        found, expected = contents(database, path=path), contents(fresh, path=path)
        yield from (f"{path}: other {part}, {_first(found[part], rows)}"
                    for part, rows in expected.items() if found[part] != rows)  # fmt: skip


def _first(found: list[Any], expected: list[Any]) -> str:
    """Return the first row that differs."""
    pairs = zip([*found, None], [*expected, None], strict=False)
    one, other = next((pair for pair in pairs if pair[0] != pair[1]), (None, None))
    return f"{_short(one)} instead of {_short(other)}"


def _short(row: Any) -> str:
    text = repr(row)
    return text if len(text) < 400 else f"{text[:400]}..."


@dataclass(slots=True)
class Archive:
    """The facts about logs that vanished, from the time when the index says so."""

    database: Path
    _digests: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    _sessions: dict[int, frozenset[str]] = field(default_factory=dict)
    """The ids of the sessions of each file that was archived at any time."""
    _lost: dict[str, frozenset[str]] = field(default_factory=dict)
    """The sessions of archived logs that left nothing behind."""

    def look(self) -> None:
        """Remember the logs that vanished since the last call; one that came back under a new name isn't gone."""
        with closing(sqlite3.connect(self.database, timeout=30)) as connection:
            files = connection.execute("SELECT id, path, status = 'log' AND gone FROM file").fetchall()
        there, gone = {number for number, _, _ in files}, {(number, path) for number, path, is_gone in files if is_gone}
        for number, path in set(self._digests) - gone:
            del self._digests[number, path]
            if number not in there:
                self._lost[path] = self._sessions[number]
        for number, path in gone - set(self._digests):
            self._digests[number, path] = _digests(self.database, path)
            self._sessions[number] = _ids(self.database, number)

    def __len__(self) -> int:
        return len(self._digests)

    def changes(self, forgotten: Collection[str]) -> Iterator[str]:
        """Yield the archived logs that have changed since they vanished; those of forgotten sessions must be gone."""
        yield from (f"{path} was archived and is lost" for path, ids in self._lost.items() if not ids & set(forgotten))
        for (_, path), before in self._digests.items():
            now = _digests(self.database, path)
            changed = [part for part, digest in before.items() if now[part] != digest]
            if changed:
                yield f"{path} is archived and changed: {', '.join(changed)}"


def _logs(database: Path) -> set[str]:
    """Return the paths of the logs that exist."""
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        return {row[0] for row in connection.execute("SELECT path FROM file WHERE status = 'log' AND NOT gone")}


def _ids(database: Path, file: int) -> frozenset[str]:
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        return frozenset(row[0] for row in connection.execute("SELECT own_id FROM session WHERE file_id = ?", (file,)))


def _digests(database: Path, path: str) -> dict[str, str]:
    """Return digests of the stored parts of a log, without its visible ids, which an existing log may take over."""
    found = contents(database, path=path)
    names = sorted({row[0] for row in found["sessions"]})
    plain = {name: str(number) for number, name in enumerate(names)}
    return {
        part: sha256(repr([_own(part, row, plain) for row in rows]).encode()).hexdigest()
        for part, rows in found.items()
    }


def _own(part: str, row: tuple[Any, ...], names: dict[str, str]) -> tuple[Any, ...]:
    """Return a row without the columns that depend on other logs."""
    left_out = [len(row) + position for position in _OF_OTHERS.get(part, ())]
    return tuple(names.get(value, value) if not n else value for n, value in enumerate(row) if n not in left_out)
