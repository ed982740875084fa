"""Indexes mutated logs, many at once, and checks them against the laws."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from agtrace_indexer.run import index

from tests.contents import contents
from tests.fuzz import laws
from tests.fuzz.mutants import Mutant
from tests.fuzz.ways import differences


class Finding(NamedTuple):
    """A mutant that breaks a law."""

    mutant: Mutant | None
    law: str
    what: str


def judge(mutants: Sequence[Mutant], random: Random, ways: Sequence[str] = ()) -> list[Finding]:
    """Index logs together, once and in other ways, and check them against the laws."""
    with tempfile.TemporaryDirectory(dir=laws.memory()) as folder:
        logs, database = Path(folder) / "logs", Path(folder) / "data" / "index.sqlite3"
        paths = write(mutants, logs)
        index(database, [str(logs)])
        found = contents(database)
        broken = list(_broken(mutants, paths, laws.Reading(found)))
        for way in ways:
            for name, what in differences(way, mutants, paths, logs, Path(folder) / "otherwise", random, found):
                broken.append(Finding(None, f"{way}: {name}", what.replace(str(logs), "")))
        return broken


def _broken(mutants: Sequence[Mutant], paths: Sequence[Path], reading: laws.Reading) -> Iterator[Finding]:
    rows = [reading.files.get(str(path)) for path in paths]
    for number, what in laws.known_status(rows):
        yield Finding(mutants[number], "status", what)
    known = [(made, row) for made, row in zip(mutants, rows, strict=True) if row is not None]
    for law in (laws.counted, laws.kept):
        for number, what in law([made for made, _ in known], [row for _, row in known], reading):
            yield Finding(known[number][0], law.__name__, what)
    yield from (Finding(None, "summed", what) for what in laws.summed(reading))


def write(mutants: Sequence[Mutant], logs: Path) -> list[Path]:
    """Write each log into a folder of its own; return their paths."""
    paths = []
    for number, made in enumerate(mutants):
        path = logs / f"{number:03}" / made.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made.data)
        if made.beside is not None:
            path.with_name(f"{path.name.partition('.')[0]}.meta.json").write_bytes(made.beside)
        paths.append(path)
    return paths
