"""Other ways to index the same logs: growing, one by one, read by workers, read again, or rewritten."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from agtrace_indexer.parallel import pool
from agtrace_indexer.run import index

from tests.contents import contents
from tests.fuzz import laws
from tests.fuzz.mutants import Mutant
from tests.fuzz.plain import is_known, values_in

PIECES = 3
"""The number of parts in which a log grows."""

_MOST_AT_ONCE = 60_000
"""The most bytes of logs that a worker gets at once."""


def differences(
    way: str,
    mutants: Sequence[Mutant],
    paths: Sequence[Path],
    logs: Path,
    folder: Path,
    random: Random,
    found: dict[str, Any],
) -> Iterator[tuple[str, str]]:
    """Index the logs at these paths in another way; yield what differs from `found`, and how."""
    database = folder / "index.sqlite3"
    if way == "rewritten":
        _rewritten(mutants, paths, logs, database)
        yield from laws.same_by_file(laws.Reading(found), laws.Reading(contents(database, gone=False)))
    else:
        WAYS[way](mutants, paths, logs, database, random)
        yield from laws.same(found, contents(database), way)
    shutil.rmtree(folder)


def _grown(mutants: Sequence[Mutant], paths: Sequence[Path], logs: Path, database: Path, random: Random) -> None:
    """Append to each log a few times, and index it each time."""
    pieces = [_pieces(made, random) for made in mutants]
    for path in paths:
        path.unlink()
    for stage in range(PIECES):
        for path, parts in zip(paths, pieces, strict=True):
            append(path, parts[stage])
        index(database, [str(logs)])


def append(path: Path, data: bytes) -> None:
    """Append to a file."""
    with path.open("ab") as file:
        file.write(data)


def _pieces(made: Mutant, random: Random) -> list[bytes]:
    """Return the bytes of a log in three parts; only logs of lines grow."""
    data = made.data
    ends = sorted(random.randrange(len(data) + 1) for _ in range(PIECES - 1))
    if made.compressed is not None or not all(may_end(data, end) for end in ends):
        return [data, b"", b""]
    return [data[: ends[0]], data[ends[0] : ends[1]], data[ends[1] :]]


def may_end(data: bytes, end: int) -> bool:
    """Whether a log of lines may be cut at a position, which it may not if the part before could be a whole line."""
    lines_only = any(map(is_known, data.split(b"\n"))) and b"\0" not in data[:1024]
    line = data[data.rfind(b"\n", 0, end) + 1 : end]
    return lines_only and not (line.strip() and values_in(line)[1])


def _one_by_one(mutants: Sequence[Mutant], paths: Sequence[Path], logs: Path, database: Path, random: Random) -> None:
    """Add the logs in another order, a few at a time."""
    aside = logs.with_name("aside")
    shutil.rmtree(aside, ignore_errors=True)
    logs.rename(aside)
    logs.mkdir()
    folders = sorted(folder.name for folder in aside.iterdir())
    random.shuffle(folders)
    for start in range(0, len(folders), len(folders) // 4 + 1):
        for name in folders[start : start + len(folders) // 4 + 1]:
            (aside / name).rename(logs / name)
        index(database, [str(logs)])


def _by_workers(mutants: Sequence[Mutant], paths: Sequence[Path], logs: Path, database: Path, random: Random) -> None:
    """Let worker processes read the logs."""
    before = pool.LEAST, pool._PORTION, pool.cores
    pool.LEAST, pool._PORTION, pool.cores = 1, _MOST_AT_ONCE, lambda: 2
    try:
        index(database, [str(logs)])
    finally:
        pool.LEAST, pool._PORTION, pool.cores = before


def _rebuilt(mutants: Sequence[Mutant], paths: Sequence[Path], logs: Path, database: Path, random: Random) -> None:
    """Read everything again."""
    index(database, [str(logs)])
    index(database, [], rebuild=True)


def _rewritten(mutants: Sequence[Mutant], paths: Sequence[Path], logs: Path, database: Path) -> None:
    """Replace each original log by its mutant."""
    for made, path in zip(mutants, paths, strict=True):
        path.write_bytes(made.source.content)
    index(database, [str(logs)])
    for made, path in zip(mutants, paths, strict=True):
        fresh = path.with_name("fresh")
        fresh.write_bytes(made.data)
        fresh.replace(path)
    index(database, [])


Way = Callable[[Sequence[Mutant], Sequence[Path], Path, Path, Random], None]

WAYS: dict[str, Way] = {"grown": _grown, "one by one": _one_by_one, "workers": _by_workers, "rebuilt": _rebuilt}
NAMES = (*WAYS, "rewritten")
