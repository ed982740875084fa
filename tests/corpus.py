"""A corpus of any size: the sample sessions and, if present, the published logs, copied with new ids.

`python -m tests.corpus FOLDER MEGABYTES` makes one. The same arguments yield the same bytes.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path

LARGE = 17_000_000

_SAMPLES = Path(__file__).resolve().parents[1] / "sample_sessions"
_SHARED = Path(__file__).resolve().parents[2] / "shared"
_PUBLISHED = (
    *(_SHARED / "logs" / agent for agent in ("claude", "codex", "gemini", "copilot", "cursor")),
    *(_SHARED / "logs_more" / agent for agent in ("copilot", "kiro", "goose")),
)
_LARGE_SOURCE = "d41f7a52-6c0e-4b8e-9a37-2f5e81c0b944"
_UUID = re.compile(rb"\b([0-9a-f]{8})(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b")

_AGENT = re.compile(rb"""(\bagent-a?|"agentId": ?"a?|\bagentId: a?)([0-9a-f]{8})([0-9a-f]{8})?\b""")
"""The ids of Claude Code's sub-agents: 8 hexadecimal digits, or `a` and 16 of them."""


def make(folder: Path, megabytes: float, largest: float = 1000) -> int:
    """Write logs of at least this many megabytes, each of at most `largest`, below a folder; return their bytes."""
    size, copies = 0, _copies(folder, largest * 1_000_000)
    while size < megabytes * 1_000_000:
        size += next(copies)
    return size


def _copies(folder: Path, largest: float) -> Iterator[int]:
    """Copy every log of at most so many bytes again and again, each time into a new folder."""
    logs = sorted(log for log in _logs() if log[1].stat().st_size <= largest)
    for number in count(1):
        for root, path in logs:
            name = renewed(path.relative_to(root).as_posix().encode(), number).decode()
            yield _write(folder / f"{number:04}" / root.name / name, renewed(path.read_bytes(), number))


def _logs() -> Iterator[tuple[Path, Path]]:
    for root in (_SAMPLES, *_PUBLISHED):
        for pattern in ("*.jsonl", "session-*.json", "transcript.json", "sessions.db"):
            yield from ((root, path) for path in root.rglob(pattern))


def large_log(folder: Path) -> None:
    """Write one session of `LARGE` bytes: the turns of the large sample over and over, with new message ids."""
    source = next(_SAMPLES.rglob(f"{_LARGE_SOURCE}.jsonl"))
    content = source.read_bytes()
    session = _LARGE_SOURCE.encode()
    repeats = range(LARGE // len(content) + 1)
    pieces = (renewed(content, n).replace(renewed(session, n), session) for n in repeats)
    _write(folder / "large" / source.name, b"".join(pieces))


def renewed(content: bytes, number: int) -> bytes:
    """Give every id in a text another beginning, the same for the same id and number."""
    salt = zlib.crc32(str(number).encode())
    content = _AGENT.sub(lambda found: b"%b%08x%b" % (found[1], int(found[2], 16) ^ salt, found[3] or b""), content)
    return _UUID.sub(lambda found: b"%08x%b" % (int(found[1], 16) ^ salt, found[2]), content)


def _write(path: Path, content: bytes) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return len(content)


if __name__ == "__main__":
    sys.stdout.write(f"{make(Path(sys.argv[1]), int(sys.argv[2])):,} bytes\n")
