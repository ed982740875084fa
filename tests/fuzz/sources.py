"""Logs to mutate: small logs of all agents, taken from the samples, from authored stories and from real logs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import zstandard
from agtrace_indexer.providers.registry import container_of

from agtrace.health.detectors.registry import DETECTORS
from tests.conftest import SAMPLES
from tests.health.logs import write_logs
from tests.health.notation import read_stories

HEAD, WINDOW = 3, 9
"""The number of lines at the beginning of a log that show whose it is, and of lines taken from further on."""

LONGEST_LINE = 6_000
WINDOWS = 3
STORIES = 60

LISTS = ("messages", "items", "history")
"""The keys under which a document has its records."""


class Source(NamedTuple):
    """A small log."""

    path: str
    """Its path below its agent's home, as names matter for sub-agents and for the forms of a log."""
    content: bytes
    document: bool
    """Whether it is one JSON document."""

    @property
    def lines(self) -> list[bytes]:
        """Its lines without their ends."""
        return self.content.removesuffix(b"\n").split(b"\n")


@cache
def authored() -> tuple[Source, ...]:
    """Return logs that are always available: the sample sessions, and the stories of `tests/health`."""
    with tempfile.TemporaryDirectory() as folder:
        stories = read_stories({detector.name for detector in DETECTORS})
        write_logs(Path(folder), stories[:: max(1, len(stories) // STORIES)])
        return (*_below(SAMPLES), *_below(Path(folder)))


@cache
def below(root: Path) -> tuple[Source, ...]:
    """Return small logs taken from those of a folder; none if it is absent."""
    return tuple(_below(root))


def _below(root: Path) -> Iterator[Source]:
    for path in sorted(root.rglob("*")) if root.is_dir() else ():
        if container_of(str(path)) is None and path.is_file() and path.name.endswith((".jsonl", ".jsonl.zst", ".json")):
            name = path.relative_to(root).as_posix().removesuffix(".zst")
            yield from (Source(name, *found) for found in islice(_cut(_content(path)), WINDOWS))


def _content(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".zst":
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    return data


def _cut(content: bytes) -> Iterator[tuple[bytes, bool]]:
    """Small logs out of a large one, each with whether it is one JSON document."""
    document = _decoded(content)
    if isinstance(document, dict) and any(isinstance(document.get(name), list) for name in LISTS):
        yield from ((data, True) for data in _cut_document(document))
        return
    lines = content.removesuffix(b"\n").split(b"\n")
    head, rest = lines[:HEAD], [line for line in lines[HEAD:] if len(line) <= LONGEST_LINE]
    for start in sorted({0, len(rest) // 2, max(len(rest) - WINDOW, 0)}):
        yield b"".join(line + b"\n" for line in [*head, *rest[start : start + WINDOW]]), False


def _cut_document(document: dict[str, Any]) -> Iterator[bytes]:
    name = next(name for name in LISTS if isinstance(document.get(name), list))
    records = [record for record in document[name] if len(json.dumps(record)) <= LONGEST_LINE]
    for start in sorted({0, len(records) // 2, max(len(records) - WINDOW, 0)}):
        yield json.dumps({**document, name: records[start : start + WINDOW]}, indent=2, ensure_ascii=False).encode()


def _decoded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None
