"""How often the detectors are right about the labelled sessions, which are written, indexed, read and judged."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agtrace_indexer.index.queries import sessions
from agtrace_indexer.run import index

from agtrace.health.finding import Detector, Finding
from agtrace.health.history import read_history
from agtrace.index.reader import Reader
from agtrace.sessions import prices
from agtrace.settings.model import Settings
from tests.health.logs import write_logs
from tests.health.notation import read_stories
from tests.health.stories import Story
from tests.health.writing import NOW

LEAST = 0.95
"""The least precision and recall that are good enough."""

ENOUGH = 4
"""The positives, and as many near-misses, that a detector needs."""


@dataclass
class Judged:
    """A story with its findings."""

    story: Story
    found: dict[str, list[Finding]]
    """By detector, for those that found something."""

    def wrong(self) -> Iterator[str]:
        """Yield a line for each difference from the label."""
        for name in sorted(self.story.finds - self.found.keys()):
            yield f"{self.story.place} {self.story.name!r}: {name} is missing"
        for name in sorted(self.found.keys() - self.story.finds):
            told = "; ".join(finding.message for finding in self.found[name])
            yield f"{self.story.place} {self.story.name!r}: {name} is too much: {told}"


@dataclass
class Rates:
    """How often a detector is right."""

    right: int
    too_much: int
    missing: int

    @classmethod
    def of(cls, name: str, judged: Sequence[Judged]) -> Rates:
        """Return the rates of a detector over some stories."""
        pairs = [(name in one.story.finds, name in one.found) for one in judged]
        return cls(pairs.count((True, True)), pairs.count((False, True)), pairs.count((True, False)))

    @property
    def precision(self) -> float:
        """The share of correct findings among those it reported."""
        return self.right / (self.right + self.too_much) if self.right + self.too_much else 1.0

    @property
    def recall(self) -> float:
        """The share of the expected findings that it reported."""
        return self.right / (self.right + self.missing) if self.right + self.missing else 1.0

    @property
    def good(self) -> bool:
        """Whether both are good enough."""
        return min(self.precision, self.recall) >= LEAST


@dataclass
class Score:
    """A detector's row in the table."""

    name: str
    positives: int
    """Sessions written for it in which it must find something."""
    near_misses: int
    """Sessions written for it in which it must not."""
    own: Rates
    """Over the sessions written for it."""
    all: Rates
    """Over all sessions."""
    enough: bool

    @property
    def good(self) -> bool:
        """Whether there are enough sessions, and it is right about them often enough."""
        return self.enough and self.own.good and self.all.good


def evaluate(detectors: Sequence[Detector]) -> tuple[list[Judged], list[Score]]:
    """Judge all stories, and count how often each detector is right. Raises `StoryError`."""
    stories = read_stories([detector.name for detector in detectors])
    with tempfile.TemporaryDirectory() as folder:
        judged = judge(stories, detectors, Path(folder))
    return judged, score(judged, detectors)


def judge(stories: Sequence[Story], detectors: Sequence[Detector], folder: Path) -> list[Judged]:
    """Run the detectors over all stories, through logs and an index below an empty folder."""
    by_session = write_logs(folder / "logs", stories)
    settings = Settings(data_dir=folder / "data", environment={})
    index(settings.database, [str(folder / "logs")])
    connection, table = Reader(settings).connection, prices.load(None)
    judged = {}
    for session in sessions.of_provider(connection, None):
        story = by_session[session.uid]
        history = read_history(connection, session, now=NOW, prices=table)
        given = {detector.name: list(detector.find(history)) for detector in detectors}
        judged[session.uid] = Judged(story, {name: findings for name, findings in given.items() if findings})
    return [judged[uid] for uid in by_session]


def score(judged: Sequence[Judged], detectors: Sequence[Detector]) -> list[Score]:
    """Count how often each detector is right."""
    scores = []
    for detector in detectors:
        own = [one for one in judged if one.story.file == detector.name]
        positives = sum(detector.name in one.story.finds for one in own)
        enough = min(positives, len(own) - positives) >= ENOUGH
        rates = Rates.of(detector.name, own), Rates.of(detector.name, judged)
        scores.append(Score(detector.name, positives, len(own) - positives, *rates, enough))
    return scores


def table(scores: Sequence[Score], sessions: int) -> str:
    """Return the table for the terminal; a row that isn't good enough ends in a mark."""
    head = ("detector", "positives", "near-misses", "precision", "recall", f"in all {sessions}: precision", "recall")
    rows = [head, *(_row(one) for one in scores)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = []
    for row, mark in zip(rows, ["", *("" if one.good else "  <-" for one in scores)], strict=True):
        cells = [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append(f"{row[0]:<{widths[0]}}  {'  '.join(cells)}{mark}")
    return "\n".join(lines)


def _row(one: Score) -> tuple[str, ...]:
    rates = (one.own.precision, one.own.recall, one.all.precision, one.all.recall)
    return one.name, str(one.positives), str(one.near_misses), *(f"{rate:.2f}" for rate in rates)
