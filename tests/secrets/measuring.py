"""The measurement: plants the corpus, indexes it in all the ways that there are, asks everything, and counts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from agtrace_indexer.run import index

from agtrace.settings import load
from tests.agtrace.terminal import agtrace
from tests.secrets.corpus import Case, near_misses, secrets
from tests.secrets.planting import Planted, later, plant, plant_thinly
from tests.secrets.questions import Witness, of_commands, of_prompts
from tests.secrets.serving import of_server
from tests.secrets.sieve import Sieve
from tests.secrets.stored import bytes_of, rows_of, texts_of_sessions

MASK = "[redacted: "
_PATIENCE = 600
"""Seconds that a command may take: thousands of sessions are indexed anew."""


@dataclass
class Score:
    """What came of a corpus."""

    secrets: list[Case]
    near_misses: list[Case]
    leaks: dict[str, dict[str, str]] = field(default_factory=dict)
    """Id of a secret -> where it came out -> what of it."""
    hits: dict[str, str] = field(default_factory=dict)
    """Id of a secret -> a search for it that found something."""
    masked: set[str] = field(default_factory=set)
    """Ids of near-misses."""
    characters: int = 0
    """How much was looked at."""

    def look(self, sieve: Sieve, told: Iterable[tuple[str, str]]) -> None:
        """Note what of the secrets stands in texts, each with the place where it was told."""
        for where, text in told:
            self.characters += len(text)
            self.note(where, sieve.found(text))

    def note(self, where: str, found: Mapping[str, str]) -> None:
        """Note what was found somewhere."""
        for id, run in found.items():
            self.leaks.setdefault(id, {}).setdefault(where, run)


def measure(folder: Path, *, whole: bool) -> Score:
    """Plant and ask below an empty folder, in the data folder of the environment.

    `whole` plants every case wherever the logs of three agents have texts; else each is planted for one agent in some
    places. The questions are shared out among the sessions.
    """
    score = Score(secrets(), near_misses())
    sieve = Sieve(score.secrets, [case.text for case in score.near_misses])
    planter = plant if whole else plant_thinly
    planted = planter(folder / "secrets", score.secrets)
    harmless = planter(folder / "near-misses", score.near_misses)
    _index_in_pieces(folder, planted)
    settings = load()
    for where, content in bytes_of(settings.data_dir):
        score.note(where, sieve.found_in_bytes(content))
    score.look(sieve, rows_of(settings.database))
    score.look(sieve, of_prompts(planted))
    score.look(sieve, of_commands(planted[:: 12 if whole else 200], folder / "report.html", whole=whole))
    score.look(sieve, of_server(planted[:: 100 if whole else 200]))
    score.look(sieve, _index_again(whole=whole))
    _leave_alone(settings.database)
    witness = Witness(settings, planted, every=12 if whole else 400)
    score.look(sieve, witness.everything())
    for number, each in enumerate(planted[: len(score.secrets) : 1 if whole else 2]):
        found = next(witness.found_by(each, None if whole else number), None)
        if found is not None:
            score.hits[each.case.id] = found
    score.masked = set(_masked(harmless, settings.database))
    return score


def _index_in_pieces(folder: Path, planted: Sequence[Planted]) -> None:
    """Index; then let some logs grow, and others go, so that their sessions are archived."""
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
    """Look at no log before each of thousands of answers."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DELETE FROM root")


def _masked(planted: Iterable[Planted], database: Path) -> Iterator[str]:
    """The ids of near-misses of which a piece is gone, or in whose sessions anything is masked."""
    texts = texts_of_sessions(database)
    for each in planted:
        text = texts[each.session]
        if any(piece not in text for piece in each.case.pieces) or MASK in text.replace(_own_mask(each.case), ""):
            yield each.case.id


def _own_mask(case: Case) -> str:
    """A mask that stands in the near-miss itself."""
    return next((piece for piece in case.pieces if MASK in piece), MASK + "none]")
