"""The measurement: plants the corpus, indexes it in every possible way, asks everything, and counts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from agtrace_indexer.run import index

from agtrace.settings import load
from tests.agtrace.asking import YEAR
from tests.agtrace.terminal import agtrace
from tests.depth import depth, part
from tests.secrets.corpus import Case, near_misses, secrets
from tests.secrets.planting import Planted, later, plant, plant_thinly
from tests.secrets.questions import Witness, of_commands, of_prompts
from tests.secrets.serving import of_server
from tests.secrets.sieve import Sieve
from tests.secrets.stored import bytes_of, rows_of, texts_of_sessions

MASK = "[redacted: "
_PATIENCE = 600
"""The most seconds for a command, as thousands of sessions are indexed again."""

_LONG_AGO = 10 * YEAR
"""Seconds since the sessions with near-misses, which reports then don't examine."""


@dataclass
class Score:
    """The result for a corpus."""

    secrets: list[Case]
    near_misses: list[Case]
    leaks: dict[str, dict[str, str]] = field(default_factory=dict)
    """Id of a secret -> where it leaked -> what leaked."""
    hits: dict[str, str] = field(default_factory=dict)
    """Id of a secret -> a search for it that found something."""
    masked: set[str] = field(default_factory=set)
    """Ids of near-misses."""
    characters: int = 0
    """The number of characters examined."""

    def look(self, sieve: Sieve, told: Iterable[tuple[str, str]]) -> None:
        """Note the parts of secrets in texts, each given with the place where it was said."""
        for where, text in told:
            self.characters += len(text)
            self.note(where, sieve.found(text))

    def note(self, where: str, found: Mapping[str, str]) -> None:
        """Note what was found somewhere."""
        for id, run in found.items():
            self.leaks.setdefault(id, {}).setdefault(where, run)


def measure(folder: Path, *, whole: bool) -> Score:
    """Plant the corpus below an empty folder, index it in the environment's data folder, and ask.

    `whole` plants every case wherever the logs of three agents have texts; otherwise each is planted for one agent in
    some places, of the near-misses every second, and the questions are divided among the sessions.
    """
    score = Score(secrets(), near_misses() if whole else list(part(near_misses(), 0, 2)))
    sieve = Sieve(score.secrets, [case.text for case in score.near_misses])
    planter = plant if whole else plant_thinly
    planted = planter(folder / "secrets", score.secrets)
    harmless = planter(folder / "near-misses", score.near_misses, _LONG_AGO)
    _index_in_pieces(folder, planted)
    settings = load()
    for where, content in bytes_of(settings.data_dir):
        score.note(where, sieve.found_in_bytes(content))
    score.look(sieve, rows_of(settings.database))
    score.look(sieve, of_prompts(planted))
    score.look(sieve, of_commands(planted[:: 12 if whole else depth(400, 200)], folder / "report.html", whole=whole))
    score.look(sieve, of_server(planted[:: 100 if whole else 200], whole=whole))
    score.look(sieve, _index_again(whole=whole))
    _leave_alone(settings.database)
    witness = Witness(settings, planted, every=12 if whole else 400)
    score.look(sieve, witness.everything())
    for number, each in enumerate(planted[: len(score.secrets) : 1 if whole else depth(4, 2)]):
        found = next(witness.found_by(each, None if whole else number), None)
        if found is not None:
            score.hits[each.case.id] = found
    score.masked = set(_masked(harmless, settings.database))
    return score


def _index_in_pieces(folder: Path, planted: Sequence[Planted]) -> None:
    """Index; then let some logs grow and others vanish, so that their sessions are archived."""
    database = load().database
    roots = [str(folder / "secrets"), str(folder / "near-misses")]
    index(database, roots, otherwise=[])
    for each in planted[::3]:
        later(each)
    index(database, roots, otherwise=[])
    for each in planted[1::5]:
        each.path.unlink()
    index(database, roots, otherwise=[])


def _index_again(*, whole: bool) -> Iterator[tuple[str, str]]:
    rebuilt = [["index", "--rebuild"]] if whole else []
    for arguments in (["index"], ["index", "--json", "/nowhere"], *rebuilt):
        said = agtrace(*arguments, patience=_PATIENCE)
        yield f"agtrace {' '.join(arguments)}", said.out + said.err


def _leave_alone(database: Path) -> None:
    """Remove the roots, so that no logs are checked before each of thousands of answers."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DELETE FROM root")


def _masked(planted: Iterable[Planted], database: Path) -> Iterator[str]:
    """Yield the ids of near-misses that lost a piece, or in whose sessions anything is masked."""
    texts = texts_of_sessions(database)
    for each in planted:
        text = texts[each.session]
        if any(piece not in text for piece in each.case.pieces) or MASK in text.replace(_own_mask(each.case), ""):
            yield each.case.id


def _own_mask(case: Case) -> str:
    """Return a mask that is part of the near-miss itself."""
    return next((piece for piece in case.pieces if MASK in piece), MASK + "none]")
