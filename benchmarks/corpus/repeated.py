"""Real logs at any size: the logs below a folder again and again, each time as other sessions.

    python -m benchmarks.corpus FOLDER MEGABYTES --logs LOGS

Ids and days are replaced by others of the same shape, so that no copy repeats another's events or has its times;
everything else stays, byte for byte. So lengths, shares and texts are those of the logs, but the vocabulary doesn't
grow with the size.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import date, timedelta
from functools import lru_cache
from hashlib import blake2b
from itertools import cycle
from pathlib import Path, PurePath
from typing import NamedTuple, TypeVar

import zstandard
from agtrace_indexer.run import index

PLACES = {"claude_code": ("claude", "projects"), "codex": ("codex", "sessions"), "gemini": ("gemini", "tmp")}
"""Where a corpus has the logs of an agent, by the agent."""

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_OTHER_IDS = r"\b(?:msg|req|toolu|call|fc|rs|resp)_[A-Za-z0-9]{8,}"
_DAY = re.compile(r"20\d\d-[01]\d-[0-3]\d")
_DAY_OF_A_TIME = rf"\b{_DAY.pattern}(?=T\d\d:)"
_DAYS = 3
"""The days between a copy and the next."""
_COPIES = 10_000
"""More copies than are made with one seed."""
_SUBAGENT = re.compile(r"^agent-([0-9a-z]{6,})\.")
_ID_IN_PATH = re.compile(f"({_UUID}|(?<=agent-)[0-9a-z]{{6,}})")
_VERSION = 14
"""The place of its version in a UUID."""
_ZSTD = ".zst"

Text = TypeVar("Text", str, bytes)


class _Log(NamedTuple):
    agent: str
    path: PurePath
    """Below the agent's place."""
    pieces: list[bytes]
    """Its content, unpacked; every second piece is an id."""
    packed: bool


def write(folder: Path, megabytes: float, logs: Path, seed: int = 1) -> dict[str, int]:
    """Write logs until a folder has this many 10^6 bytes, unpacked; return the bytes by agent.

    Another seed gives other sessions. Raise `ValueError` if there are no logs of these agents.
    """
    found = _found(logs.resolve())
    if not found:
        raise ValueError(f"no logs of {', '.join(PLACES)} below {logs}")
    written: Counter[str] = Counter()
    copy = (seed - 1) * _COPIES
    while written.total() < megabytes * 1e6:
        for log in found:
            written[log.agent] += _write(folder, log, copy)
        copy += 1
    return dict(written)


def _found(logs: Path) -> list[_Log]:
    """Read the logs that agtrace knows: any folder will do, as their contents tell whose they are."""
    with tempfile.TemporaryDirectory() as place:
        database = Path(place) / "index.sqlite3"
        index(database, [str(logs)])
        with closing(sqlite3.connect(database)) as connection:
            known = connection.execute("SELECT path, provider FROM file WHERE status = 'log' ORDER BY path").fetchall()
            sessions = [re.escape(id) for (id,) in connection.execute("SELECT DISTINCT own_id FROM session ORDER BY 1")]
    paths = [(Path(path), provider) for path, provider in known if provider in PLACES]
    agents = sorted({re.escape(told[1]) for path, _ in paths if (told := _SUBAGENT.match(path.name))})
    named = [rf"\b{agent}\b" for agent in agents] + [f'(?<="){session}(?=")' for session in sessions]
    ids = re.compile("|".join([_UUID, _OTHER_IDS, _DAY_OF_A_TIME, *named]).join("()").encode())
    return [_read(path, provider, logs.absolute(), ids) for path, provider in paths]


def _read(path: Path, provider: str, root: Path, ids: re.Pattern[bytes]) -> _Log:
    content, packed = path.read_bytes(), path.suffix == _ZSTD
    if packed:
        content = zstandard.ZstdDecompressor().decompressobj().decompress(content)
    agent, below = PLACES[provider]
    parts = path.relative_to(root).parts if path != root else (path.name,)
    session = next((n for n, part in enumerate(parts[:-1]) if re.fullmatch(_UUID, part)), len(parts) - 1)
    project = "-" + "-".join(parts[:session])
    return _Log(agent, PurePath(agent, below, project, *parts[session:]), ids.split(content), packed)


def _write(folder: Path, log: _Log, copy: int) -> int:
    place = folder / "".join(_renamed(_ID_IN_PATH.split(str(log.path)), copy))
    if place.exists():  # nothing in its name is an id
        place = place.with_name(f"{place.stem}-{copy}{place.suffix}")
    content = b"".join(_renamed(log.pieces, copy))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(zstandard.ZstdCompressor().compress(content) if log.packed else content)
    return len(content)


def _renamed(pieces: list[Text], copy: int) -> Iterator[Text]:
    """Yield the pieces, of which every second one is an id, with other ids."""
    for number, piece in enumerate(pieces):
        yield other_id(piece, copy) if number % 2 else piece


@lru_cache(maxsize=200_000)
def other_id(id: Text, copy: int) -> Text:
    """Return another id of the same shape; letters of one before its `_` or `-` tell what it is of."""
    if isinstance(id, bytes):
        return other_id(id.decode(), copy).encode()  # type: ignore[no-any-return]  # lru_cache has no types of arguments
    if _DAY.fullmatch(id):
        return _later(id, copy * _DAYS)
    kind, separator, own = id.rpartition("_")
    digits = cycle(blake2b(f"{copy}/{own}".encode()).hexdigest())
    return kind + separator + "".join(c if c == "-" or n == _VERSION else next(digits) for n, c in enumerate(own))


def _later(day: str, days: int) -> str:
    with suppress(ValueError):  # it only looks like a day
        return str(date.fromisoformat(day) + timedelta(days))
    return day
