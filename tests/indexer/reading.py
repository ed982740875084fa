"""Real logs for the tests of the providers: their paths, their records, and what is expected of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

import pytest
import zstandard
from agtrace_indexer.events.drafts import LogState, Record
from agtrace_indexer.providers.provider import Parser

from tests.conftest import LOGS

needs_logs = pytest.mark.skipif(not LOGS.is_dir(), reason="the folder of real logs (shared/logs) is not here")


def log_files(folder: str = "") -> list[Path]:
    """Return the files below a folder of the real logs, in order; none if they are absent."""
    return sorted(path for path in (LOGS / folder).rglob("*") if path.is_file()) if LOGS.is_dir() else []


def records_of(path: Path, log_format: Parser) -> list[Record]:
    """Return the records of a log as its provider receives them: of a document that it unrolls, or else of lines."""
    content = _content(path)
    unrolled = log_format.unroll(_decoded(content))
    return _lines(content) if unrolled is None else list(unrolled)


def claims(path: Path, parsers: Mapping[str, Parser]) -> set[str]:
    """Return the agents whose parsers recognise a file, or anything that may be in it, as their own."""
    content = _content(path)
    document = _decoded(content)
    inner = document.get("messages") if isinstance(document, dict) else document
    parts = [part for part in (document, *(inner if isinstance(inner, list) else ())) if isinstance(part, dict)]
    records = [*_lines(content), *parts]
    return {
        agent
        for agent, parser in parsers.items()
        if parser.unroll(document) is not None or any(map(parser.recognizes, records))
    }


def stored(state: LogState) -> LogState:
    """Return the state as the next run of the indexer finds it."""
    return LogState.from_json(json.loads(json.dumps(state.to_json())))


def check_stops(log_format: Parser, records: Iterable[Record], path: PurePath) -> None:
    """Read a log in one go and with a stop between any two records: drafts and state must be the same."""
    through, stopping = log_format.begin(path), log_format.begin(path)
    for record in records:
        stopping = stored(stopping)
        assert list(log_format.drafts(record, stopping)) == list(log_format.drafts(record, through))
    assert stopping.to_json() == through.to_json()


def _content(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix == ".zst":
        data = zstandard.ZstdDecompressor().stream_reader(data).read()
    return data.decode("utf-8", "replace")


def _lines(content: str) -> list[Record]:
    return [record for record in map(_decoded, content.split("\n")) if isinstance(record, dict)]


def _decoded(content: str) -> Any:
    """Return the JSON value of a text; None if it isn't JSON."""
    try:
        return json.loads(content)
    except ValueError:
        return None
