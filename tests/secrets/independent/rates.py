"""The rows of the files, and the rates at which they go wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from agtrace_indexer.redact import redact

_FOLDER = Path(__file__).parent
_MARKS = re.compile("[⟦⟧]")
_PIECE = re.compile("⟦([^⟧]+)⟧")
_WITHOUT_GOAL = ("weak", "policy")


class Row(NamedTuple):
    """A text with secrets, or with something that only looks like a secret."""

    id: str
    group: str
    """The group, which can have a goal: `known forms`, `weak forms`, `policy forms`, `named`, `ordinary`,
    `look-alikes`."""
    kind: str
    """A kind of token or a class of texts."""
    text: str
    pieces: tuple[str, ...]
    """The secrets, or the parts that must be kept."""

    @property
    def harmless(self) -> bool:
        """Whether nothing in it may be masked."""
        return self.group in ("ordinary", "look-alikes")

    @property
    def wrong(self) -> bool:
        """Whether a secret is in the masked text, or a harmless text was changed."""
        masked = redact(self.text)
        return masked != self.text if self.harmless else any(piece in masked for piece in self.pieces)


class Rate(NamedTuple):
    """The rows of a group or a kind, and how many of them went wrong."""

    name: str
    rows: int
    wrong: tuple[Row, ...]

    @property
    def percent(self) -> float:
        """The percentage of wrong rows."""
        return 100 * len(self.wrong) / self.rows


GOALS = {"known forms": 2.0, "named": 5.0, "ordinary": 1.0, "look-alikes": 3.0}
"""The percentage that may go wrong; the other groups have no goal."""


CORPORA = ("first", "second", "third")
"""In the order in which they were made, each by a different author."""


def rows(corpus: str) -> list[Row]:
    """Return all rows of a corpus."""
    return [row for name in ("bare", "named", "negatives") for row in _read(f"{corpus}_{name}.jsonl", name)]


def by_group(measured: Iterable[Row]) -> list[Rate]:
    """Return the rate of each group."""
    return _rates((row.group, row) for row in measured)


def by_kind(measured: Iterable[Row]) -> list[Rate]:
    """Return the rate of each kind within its group."""
    return _rates((f"{row.group}: {row.kind}", row) for row in measured)


def missed(rates: Iterable[Rate]) -> list[Rate]:
    """Return the rates that exceed their goal."""
    return [rate for rate in rates if rate.percent > GOALS.get(rate.name, 100)]


def _rates(named: Iterable[tuple[str, Row]]) -> list[Rate]:
    groups: dict[str, list[Row]] = {}
    for name, row in named:
        groups.setdefault(name, []).append(row)
    return [Rate(name, len(group), _wrong(group)) for name, group in groups.items()]


def _wrong(group: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(row for row in group if row.wrong)


def _read(file: str, name: str) -> Iterator[Row]:
    for line in (_FOLDER / file).read_text("utf-8").splitlines():
        given = json.loads(line.replace("¦", ""))
        marked, kind, strength = given["text"], given["class"], given.get("strength", "")
        group = _group(name, kind, strength)
        yield Row(given["id"], group, kind, _MARKS.sub("", marked), tuple(_PIECE.findall(marked)))


def _group(name: str, kind: str, strength: str) -> str:
    if name == "bare":
        return f"{strength} forms" if strength in _WITHOUT_GOAL else "known forms"
    if name == "negatives":
        return "ordinary" if kind.startswith("ordinary-") else "look-alikes"
    return name
