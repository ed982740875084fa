"""What followed each text of the human's, once the model had changed something: what it redid, and what it looked at.

It goes by the structure of the session alone: turns, edits and pasted failures, not by words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agtrace_schema.events import Outcome, UserKind
from agtrace_schema.patterns import later

from agtrace.health.facts.actions import command_of
from agtrace.health.facts.changes import Change, changes
from agtrace.health.facts.checks import PROSE
from agtrace.health.history import Call, History, UserText, derived
from agtrace.text.failing_lines import failing_lines_in as failures_in

_REVIEW = later(
    r"\bgh pr (?:checks\b|view\b.*(?:comments|reviews|statusCheck))|\bgh run view\b|reviewThreads"
    r"|\bgh api (?!.*-X ?(?:PUT|POST|PATCH|DELETE))\S*/(?:comments|reviews|check-runs|jobs|logs)\b"
    r"|\bglab (?:ci|mr) (?:view|trace|note)"
)
"""Commands that show what a review or the CI found."""
_CI = later(
    r"pr checks|run view|/actions/|check-runs|/jobs|\bci (?:view|trace)|run failed|exit code|##\[error\]|\b(?i:ci)\b"
)
_REVIEW_SENT = later(
    r"(?m)^#* ?(?:Code )?[Rr]eview findings\b|^## Finding \d|/attachments/\S+\.(?:log|md)\b"
    r"|/pull/\d+#(?:discussion|issuecomment)_?r?\d|/actions/runs/\d+|\b[Ww]orkflow run failed\b"
    r"|^Error: Process completed with exit code|##\[error\]"
)
"""What a review or the CI writes, handed on by the human."""
_SHOWS = later(
    r"(?m)^(?:\S+: )?(?:error|fatal)(?:\[\w+\])?: |^(?:\S+ )?\S+\.\w{1,4}:\d+:\d+: |^exit status [1-9]"
    r"|^.*with exit code [1-9]|^.*\b(?:Failed to load resource|Uncaught \w|Unexpected token|Cannot read propert)"
)
"""How a command says in what the human pastes that it failed."""
_LOOKS_FIRST = 1
"""A review is what a turn is about if one of so many first calls looks at it."""


@dataclass
class Again:
    """A text of the human's, after the model had changed something, and the turn that it opened."""

    said: UserText
    shown: bool
    """Whether the text shows a failure."""
    reviewed: int | None
    """The event that shows what a review or the CI found: the text itself, or a command."""
    failed_ci: bool = False
    """Whether it is the CI that found it."""
    calls: int = 0
    changed: bool = False
    """Whether the turn changed something."""
    lines: int = 0
    """The lines that it replaced or deleted of what earlier turns had written."""


@derived
def again(history: History) -> dict[int, Again]:
    """Return each such text by its event, in file order."""
    return {one.said.event_index: one for one in _again(history)}


def _again(history: History) -> Iterator[Again]:
    written: dict[str, dict[str, int | None]] = {}
    now: Again | None = None
    changed = False
    for entry in history.entries:
        if isinstance(entry, UserText) and entry.kind is UserKind.HUMAN:
            if now is not None:
                yield now
            now = None
            if changed:
                told = entry.event_index if _REVIEW_SENT.search(entry.text) else None
                shown = said_to_fail(entry.text) or next(failures_in(entry.text.splitlines()), None)
                now = Again(entry, shown is not None, told, told is not None and _CI.search(entry.text) is not None)
        elif isinstance(entry, Call) and entry.outcome is Outcome.OK:
            command = command_of(entry) or ""
            if now is not None:
                now.calls += 1
                if now.reviewed is None and now.calls <= _LOOKS_FIRST and _REVIEW.search(command):
                    now.reviewed, now.failed_ci = entry.evidence, _CI.search(command) is not None
            if entry.writes or changes(entry):
                changed = True
                if now is not None:
                    now.changed = True
            for change in changes(entry):
                _count(change, entry, written, now)
    if now is not None:
        yield now


def said_to_fail(text: str) -> str | None:
    """Return the line of a pasted text in which a command says that it failed."""
    match = _SHOWS.search(text)
    return None if match is None else text[match.start() :].partition("\n")[0]


def _count(change: Change, call: Call, written: dict[str, dict[str, int | None]], now: Again | None) -> None:
    """Count the lines of earlier turns that a change takes out, and note those that it writes."""
    if PROSE.search(change.path):
        return
    lines = written.setdefault(f"{change.path}#{change.cell}", {})
    gone = lines.keys() - change.added if change.whole else lines.keys() & change.removed
    earlier = sum(lines.pop(line) != call.turn for line in gone)
    if now is not None and now.said.turn == call.turn:
        now.lines += earlier
    lines |= {line: lines.get(line, call.turn) for line in change.added}
