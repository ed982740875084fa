"""What followed each text of the human's, once the model had changed something: what it redid, and what it looked at.

It goes by the structure of the session alone: turns, edits, commits, interruptions and pasted failures, not by words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from agtrace_indexer.landmarks.attempts import attempts
from agtrace_schema.events import Outcome, UserKind
from agtrace_schema.landmarks import LandmarkKind
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import command_of, is_interruption, refused_by_human
from agtrace.health.facts.changes import Change, changes
from agtrace.health.facts.corrections import goes_ahead
from agtrace.health.history import Call, History, Notice, Said, derived
from agtrace.text.failing_lines import found as failures_in

_LEFT = (LandmarkKind.COMMIT, LandmarkKind.PUSH, LandmarkKind.PULL_REQUEST)
_PROSE = later(r"(?i)\.(?:adoc|md|mdx|org|rst|txt)$|[\\/]\.?(?:plans?|specs?|memory)[\\/]")
"""Files that are rewritten as the talk goes on: plans, notes, documentation."""
_REVIEW = later(
    r"\bgh pr (?:checks\b|view\b.*(?:comments|reviews|statusCheck))|\bgh run view\b|reviewThreads"
    r"|\bgh api (?!.*-X ?(?:PUT|POST|PATCH|DELETE))\S*/(?:comments|reviews|check-runs|jobs|logs)\b"
    r"|\bglab (?:ci|mr) (?:view|trace|note)"
)
"""Commands that show what a review or the CI found."""
_REVIEW_SENT = later(
    r"(?m)^#* ?(?:Code )?[Rr]eview findings\b|^## Finding \d|/attachments/\S+\.(?:log|md)\b"
    r"|/pull/\d+#(?:discussion|issuecomment)_?r?\d|/actions/runs/\d+|\b[Ww]orkflow run failed\b"
    r"|^Error: Process completed with exit code|##\[error\]"
)
"""What a review or the CI writes, handed on by the human."""
_LOOKS_FIRST = 1
"""A review is what a turn is about if one of so many first calls looks at it."""


@dataclass
class Again:
    """A text of the human's, after the model had changed something, and the turn that it opened."""

    said: Said
    stopped: bool
    """Whether the human had interrupted the model, or refused a call, since it last changed something."""
    left: bool
    """Whether the model had committed or pushed something before."""
    shown: bool
    """Whether the text shows a failure."""
    reviewed: int | None
    """The event that shows what a review or the CI found: the text itself, or a command."""
    calls: int = 0
    changed: bool = False
    """Whether the turn changed something."""
    lines: dict[str, int] = field(default_factory=dict)
    """The lines that it replaced or deleted of what earlier turns had written, by file."""
    edits: list[int] = field(default_factory=list)
    """The edits that did."""

    @property
    def redone(self) -> int:
        """The number of these lines."""
        return sum(self.lines.values())


@derived
def again(history: History) -> list[Again]:
    """Return each such text, in file order."""
    return list(_again(history))


def _again(history: History) -> Iterator[Again]:
    written: dict[str, dict[str, int | None]] = {}
    now: Again | None = None
    worked = changed = left = stopped = False
    for entry in history.entries:
        if isinstance(entry, (Said, Notice)) and is_interruption(entry, history.provider):
            stopped |= worked
        elif isinstance(entry, Said) and entry.kind is UserKind.HUMAN:
            if now is not None:
                yield now
            now = None
            if changed:
                told = entry.event_index if _REVIEW_SENT.search(entry.text) else None
                shown = next(failures_in(entry.text.splitlines()), None) is not None
                halted = stopped and not goes_ahead(entry.text)
                now = Again(entry, halted, left, shown, told)
            worked = stopped = False
        elif isinstance(entry, Call):
            stopped |= worked and refused_by_human(entry)
            if entry.outcome is not Outcome.OK:
                continue
            command = command_of(entry)
            if now is not None:
                now.calls += 1
                if now.reviewed is None and now.calls <= _LOOKS_FIRST and command and _REVIEW.search(command):
                    now.reviewed = entry.evidence
            if entry.writes or changes(entry):
                worked = changed = True
                if now is not None:
                    now.changed = True
            left |= command is not None and any(attempt.kind in _LEFT for attempt in attempts(command))
            for change in changes(entry):
                _count(change, entry, written, now)
    if now is not None:
        yield now


def _count(change: Change, call: Call, written: dict[str, dict[str, int | None]], now: Again | None) -> None:
    """Count the lines of earlier turns that a change takes out, and note those that it writes."""
    if _PROSE.search(change.path):
        return
    lines = written.setdefault(f"{change.path}#{change.cell}", {})
    gone = lines.keys() - change.added if change.whole else lines.keys() & change.removed
    earlier = sum(lines.pop(line) != call.turn for line in gone)
    if earlier and now is not None and now.said.turn == call.turn:
        now.lines[change.path] = now.lines.get(change.path, 0) + earlier
        now.edits.append(call.event_index)
    lines |= {line: lines.get(line, call.turn) for line in change.added}
