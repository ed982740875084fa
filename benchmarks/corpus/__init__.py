"""Logs of coding agents at any size: generated, seeded, and shaped as Claude Code, Codex and Gemini CLI write them.

    python -m benchmarks.corpus FOLDER MEGABYTES [--seed N]

About two sessions and 400 events per megabyte, over 180 days: 80 % Claude Code, 14 % Codex and 6 % Gemini CLI
by bytes. The same seed yields the same bytes with the same Python and packages, whose sources are the text that
the invented agents read and edit (`pool.py`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.corpus import claude, codex, gemini, pool
from benchmarks.corpus.plan import Planned, planned_sessions, project_shares
from benchmarks.corpus.project import PROJECT_NAMES, Project

__all__ = ["Corpus", "write"]

WRITERS = {"claude": claude.write, "codex": codex.write, "gemini": gemini.write}

_FILES_OF_A_PROJECT = 60
_FILES_PER_MEGABYTE = 3


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus that was written."""

    folder: Path
    seed: int
    sessions: int
    bytes_by_agent: dict[str, int]
    """Bytes of the logs of claude, codex and gemini."""

    @property
    def size(self) -> int:
        """Bytes of all logs."""
        return sum(self.bytes_by_agent.values())


def write(folder: Path, megabytes: float, seed: int = 1) -> Corpus:
    """Write a corpus of about this many megabytes (10^6 bytes) into a folder, which must be new or empty."""
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: give a new folder")
    files = pool.source_files()
    sessions = planned_sessions(Random(f"{seed}/plan"), megabytes)
    written: Counter[str] = Counter()
    for number, share in enumerate(project_shares(megabytes)):
        rng = Random(f"{seed}/{number}")
        size = round(_FILES_OF_A_PROJECT + share * megabytes * _FILES_PER_MEGABYTE)
        project = Project(rng, _name(number), files, size)
        for session in (s for s in sessions if s.project == number):
            written[session.agent] += _write(folder, session, project, rng)
    return Corpus(folder, seed, len(sessions), dict(written))


def _write(folder: Path, session: Planned, project: Project, rng: Random) -> int:
    return WRITERS[session.agent](folder / session.agent, session, project, rng)


def _name(number: int) -> str:
    name = PROJECT_NAMES[number % len(PROJECT_NAMES)]
    return name if number < len(PROJECT_NAMES) else f"{name}-{number // len(PROJECT_NAMES) + 1}"
