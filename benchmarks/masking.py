"""The ground for measuring masking: logs by agent, their unmasked texts, and a way to switch masking off.

The logs are real ones if there are any (`../shared/logs`, or a folder of your own), as generated logs have neither the
texts nor the secrets that people have.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from agtrace_indexer import redact
from agtrace_indexer.events import strings
from agtrace_indexer.index.tombstones import Tombstones
from agtrace_indexer.logs.archive import Archive
from agtrace_indexer.logs.discovery import LogFile, walk
from agtrace_indexer.parallel import worker
from agtrace_indexer.providers.registry import AGENTS
from agtrace_indexer.redact import fields
from agtrace_indexer.texts.blocks import unpack
from agtrace_schema.events import Provider

from benchmarks.corpus import write

REAL = Path(__file__).resolve().parents[2] / "shared" / "logs"
MEGABYTES = 10
"""The size of the corpus that is made if there are no logs."""

_BUFFER = 64 * 1024

Logs = Mapping[Provider, Sequence[LogFile]]


class _Nothing:
    """A redactor that masks nothing, to measure the cost without masking."""

    def redact(self, text: str) -> str:
        return text

    def suspicious(self, text: str) -> bool:
        return False

    def allows(self, secret: str) -> bool:
        return True

    def looked_at(self, texts: Iterable[str]) -> AbstractContextManager[None]:
        return nullcontext()


@contextmanager
def without_masking() -> Iterator[None]:
    """Examine no text, key or value for secrets; the product has no such switch."""
    kept: Any = redact._redactor, fields.redact_json, fields.names_secret
    redact._redactor, fields.redact_json = _Nothing, lambda _, value: value  # type: ignore[assignment]
    fields.names_secret = lambda key: False
    try:
        yield
    finally:
        redact._redactor, fields.redact_json, fields.names_secret = kept


def log_folder(given: Path | None, temporary: Path) -> Path:
    """Return the folder of logs to measure on: the given one, that of real logs, or a corpus made for it."""
    if given or REAL.is_dir():
        return given or REAL
    write(temporary / "logs", MEGABYTES)
    return temporary / "logs"


def by_agent(folder: Path) -> Logs:
    """Return the logs below a folder by the agent that wrote them, recognised by their content."""
    logs: dict[Provider, list[LogFile]] = {}
    with without_masking():
        for found in walk([str(folder)]):
            agent = None if found.oddity else _agent(found)
            if agent:
                logs.setdefault(agent, []).append(found)
    strings.start()
    return {agent: logs[agent] for agent in AGENTS if agent in logs}


def _agent(found: LogFile) -> Provider | None:
    with closing(_read(found)) as connection:
        row = connection.execute("SELECT provider FROM session").fetchone()
    return row[0] if row else None


def texts(logs: Logs, most: int) -> list[str]:
    """Return unmasked texts of events, up to this many characters, in a random order that is always the same."""
    found = [text for files in logs.values() for text in _texts(files)]
    random.Random(1).shuffle(found)
    return up_to(found, most)


def up_to(texts: Iterable[str], most: int) -> list[str]:
    """Return texts in order, skipping those with which there would be more than this many characters."""
    taken = []
    for text in texts:
        if len(text) <= most:
            taken.append(text)
            most -= len(text)
    return taken


def joined(texts: Iterable[str]) -> list[str]:
    """Join the texts to buffers of some 64 KB."""
    buffers: list[list[str]] = []
    size = _BUFFER
    for text in texts:
        if size >= _BUFFER:
            buffers.append([])
            size = 0
        buffers[-1].append(text)
        size += len(text)
    return ["\n".join(buffer) for buffer in buffers]


def _texts(files: Iterable[LogFile]) -> Iterator[str]:
    with without_masking():
        for found in files:
            with closing(_read(found)) as connection:
                for (packed,) in connection.execute("SELECT text FROM block_data ORDER BY block_id"):
                    yield from filter(None, unpack(packed).decode().split("\0")[:-1])
    strings.start()


def _read(found: LogFile) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.deserialize(worker.read([found], Tombstones(), Archive(Path(), enabled=False))[0])
    return connection
