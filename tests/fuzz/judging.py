"""Indexes mutated logs, many at once, and checks them against the laws."""

from __future__ import annotations

import signal
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType
from typing import NamedTuple

from agtrace_indexer.run import index

from tests.contents import contents
from tests.fuzz import laws
from tests.fuzz.mutants import Mutant
from tests.fuzz.questions import questions
from tests.fuzz.ways import differences

SECONDS = 10.0
"""Seconds of processor time after which one small log counts as hanging; a batch gets a tenth more for each log."""

SLOW = 2.0
"""Seconds of processor time that no log of a few kilobytes may take."""


class Finding(NamedTuple):
    """A mutant that breaks a law."""

    mutant: Mutant | None
    law: str
    what: str


class Hung(BaseException):
    """Reading took too long; nothing in between catches this."""


def judge(mutants: Sequence[Mutant], random: Random, ways: Sequence[str] = (), asked: int = 0) -> list[Finding]:
    """Index logs together and check them against the laws; if that fails as a whole, one by one."""
    try:
        return list(_judged(mutants, random, ways, asked))
    except Hung:
        reason = ("hang", f"more than {_limit(mutants):.0f} s")
    except Exception:  # noqa: BLE001  # what is looked for
        reason = ("exception", traceback.format_exc()[-2_000:])
    if len(mutants) == 1:
        return [Finding(mutants[0], *reason)]
    alone = [finding for made in mutants for finding in judge([made], random, ways, asked)]
    return alone or [Finding(None, *reason)]


def _judged(mutants: Sequence[Mutant], random: Random, ways: Sequence[str], asked: int) -> Iterator[Finding]:
    with tempfile.TemporaryDirectory(dir=laws.memory()) as folder, _limited(_limit(mutants)):
        logs, database = Path(folder) / "logs", Path(folder) / "data" / "index.sqlite3"
        paths = write(mutants, logs)
        started = time.process_time()
        index(database, [str(logs)])
        took = time.process_time() - started
        if took > SLOW and len(mutants) == 1:
            yield Finding(mutants[0], "slow", f"{took:.1f} s for {len(mutants[0].data)} bytes")
        elif took > SLOW + 0.02 * len(mutants):
            yield from _slow_ones(mutants)
        found = contents(database)
        yield from _broken(mutants, paths, laws.Reading(found))
        for way in ways:
            for name, what in differences(way, mutants, paths, logs, Path(folder) / "otherwise", random, found):
                yield Finding(None, f"{way}: {name}", what.replace(str(logs), ""))
        yield from (Finding(None, "answer", what) for what in questions(database.parent, logs, random, asked))


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


def _slow_ones(mutants: Sequence[Mutant]) -> Iterator[Finding]:
    for made in mutants:
        with tempfile.TemporaryDirectory(dir=laws.memory()) as folder:
            write([made], Path(folder) / "logs")
            started = time.process_time()
            index(Path(folder) / "index.sqlite3", [folder + "/logs"])
            took = time.process_time() - started
        if took > SLOW:
            yield Finding(made, "slow", f"{took:.1f} s for {len(made.data)} bytes")


# -- time ------------------------------------------------------------------------------------------


def _limit(mutants: Sequence[Mutant]) -> float:
    return SECONDS + SECONDS / 10 * len(mutants)


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise `Hung` if the block takes more processor time; only in the main thread."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hung

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
