"""How much generated logs are like real ones: the figures on which the speed of indexing depends, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import zstandard

from benchmarks.ground import Ground, files_of
from benchmarks.table import number, percentile, ratio, table

_LONG = 100_000
"""Bytes of a line from which on it is a long one."""
_OPAQUE = frozenset({"encrypted_content", "signature", "thoughtSignature"})
"""Fields with encrypted texts."""
_OUTPUTS = frozenset({"tool_result", "function_call_output", "custom_tool_call_output"})
"""Types of what holds a tool's output."""
_BASE64 = 4_096
"""Characters from which on a string without a space counts as data."""


@dataclass(slots=True)
class Figures:
    """What was counted in the logs of a corpus."""

    bytes: Counter[str] = field(default_factory=Counter)
    """By agent."""
    lines: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    opaque: int = 0
    outputs: list[int] = field(default_factory=list)
    data: int = 0
    strings: int = 0
    """Characters in all strings."""
    events: int = 0
    sessions: int = 0
    masks: int = 0


def report(ground: Ground, other: Ground, megabytes: int) -> Iterator[str]:
    """Yield the table: real logs, generated ones, and how many times as much these have."""
    found = [_figures(one, megabytes) for one in (ground, other)]
    rows = [[name, *(number(value, 2) for value in values)] for name, values in _rows(found).items()]
    yield table(
        (f"{megabytes} MB", "real", "generated", "generated of real"),
        [[*row, ratio(values[1], values[0])] for row, values in zip(rows, _rows(found).values(), strict=True)],
    )


def _rows(found: list[Figures]) -> dict[str, list[float]]:
    return {name: [count(one) for one in found] for name, count in _MEASURES.items()}


def _per_megabyte(count: float, figures: Figures) -> float:
    return count / (figures.bytes.total() / 1e6)


def _share(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0


_MEASURES: dict[str, Callable[[Figures], float]] = {
    "Claude Code, % of bytes": lambda one: _share(one.bytes["claude"], one.bytes.total()),
    "Codex, %": lambda one: _share(one.bytes["codex"], one.bytes.total()),
    "Gemini CLI, %": lambda one: _share(one.bytes["gemini"], one.bytes.total()),
    "sessions a MB": lambda one: _per_megabyte(one.sessions, one),
    "events a MB": lambda one: _per_megabyte(one.events, one),
    "KB of a file, median": lambda one: percentile(one.files, 0.5) / 1e3,
    "KB of a file, p95": lambda one: percentile(one.files, 0.95) / 1e3,
    "bytes of a line, median": lambda one: percentile(one.lines, 0.5),
    "bytes of a line, p95": lambda one: percentile(one.lines, 0.95),
    "KB of the longest line": lambda one: max(one.lines) / 1e3,
    "in lines of 100 KB or more, %": lambda one: _share(sum(n for n in one.lines if n >= _LONG), sum(one.lines)),
    "in strings, %": lambda one: _share(one.strings, one.bytes.total()),
    "encrypted or signed, %": lambda one: _share(one.opaque, one.bytes.total()),
    "data without spaces, %": lambda one: _share(one.data, one.bytes.total()),
    "tool outputs, %": lambda one: _share(sum(one.outputs), one.bytes.total()),
    "bytes of a tool output, median": lambda one: percentile(one.outputs or [0], 0.5),
    "bytes of a tool output, p95": lambda one: percentile(one.outputs or [0], 0.95),
    "masked secrets a MB": lambda one: _per_megabyte(one.masks, one),
}


def _figures(ground: Ground, megabytes: int) -> Figures:
    figures, logs = Figures(), ground.corpus(megabytes)
    for path in files_of(logs):
        _count(figures, path, path.relative_to(logs).parts[0])
    machine = ground.indexed(megabytes)
    connection = machine.connect()
    figures.events, figures.sessions = connection.execute("SELECT sum(event_count), count(*) FROM session").fetchone()
    texts = connection.execute("SELECT text FROM block_data")
    figures.masks = sum(zstandard.decompress(packed).count(b"[redacted: ") for (packed,) in texts)
    return figures


def _count(figures: Figures, path: Path, agent: str) -> None:
    content = path.read_bytes()
    if path.suffix == ".zst":
        content = zstandard.ZstdDecompressor().decompressobj().decompress(content)
    figures.bytes[agent] += len(content)
    figures.files.append(len(content))
    lines = [content] if path.suffix == ".json" else content.splitlines()
    figures.lines += map(len, lines)
    for line in lines:
        try:
            _look_at(figures, orjson.loads(line), "")
        except orjson.JSONDecodeError:
            continue


def _look_at(figures: Figures, value: Any, name: str) -> None:
    if isinstance(value, str):
        figures.strings += len(value)
        figures.opaque += len(value) * (name in _OPAQUE)
        figures.data += len(value) * (len(value) >= _BASE64 and " " not in value and name not in _OPAQUE)
    elif isinstance(value, Mapping):
        if str(value.get("type")) in _OUTPUTS:
            figures.outputs.append(len(orjson.dumps(value.get("content", value.get("output")))))
        for key, below in value.items():
            _look_at(figures, below, key)
    elif isinstance(value, list):
        for below in value:
            _look_at(figures, below, name)
