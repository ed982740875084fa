"""The logs that agents are going to write: generated ones, and the sample sessions with new ids."""

from __future__ import annotations

from pathlib import Path

from benchmarks import corpus
from tests.conftest import SAMPLES
from tests.corpus import renewed
from tests.soak.life import ABOUT, logs_of

_AT_FIRST = 6
"""One in this many logs exists from the beginning."""


def make(folder: Path, megabytes: float, samples: int, seed: int) -> None:
    """Write this many megabytes and copies of the sample sessions, below a folder for each agent."""
    corpus.write(folder, megabytes, seed)
    for number in range(seed * samples, (seed + 1) * samples):
        for path in sorted(SAMPLES.glob("*/**/*")):
            if path.is_file() and path.suffix != ".zst":
                place = folder / renewed(path.relative_to(SAMPLES).as_posix().encode(), number).decode()
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(renewed(path.read_bytes(), number))


def put_first(supply: Path, home: Path) -> None:
    """Move some of an agent's logs to their place, with the files that describe them."""
    for path in sorted(logs_of(supply))[::_AT_FIRST]:
        for source in (path.with_suffix(ABOUT), path):
            if source.exists():
                to = home / source.relative_to(supply)
                to.parent.mkdir(parents=True, exist_ok=True)
                source.replace(to)
