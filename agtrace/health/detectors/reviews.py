"""Findings about reviews of what the model had changed."""

from __future__ import annotations

from collections.abc import Iterator

from agtrace_schema.events import Outcome

from agtrace.health.facts.changes import changed_files
from agtrace.health.facts.labels import quoted
from agtrace.health.facts.reviews import reviews
from agtrace.health.finding import Finding, detector, evidence
from agtrace.health.history import History
from agtrace.text.numbers import counted

_SHOWN = 100


@detector(
    "Outcome",
    "A review by another model, such as one started by Codex's `/review`, found problems in what the model had made.",
)
def find_review_problems(history: History) -> Iterator[Finding]:
    """Find what reviews had to say about the work of the session."""
    found = reviews(history)
    if not found:
        return
    problems = [problem for review in found for problem in review.problems]
    where = "A review" if len(found) == 1 else f"{len(found)} reviews"
    after = (call for call in history.calls if call.event_index > found[-1].event_index)
    went_on = any(call.outcome is Outcome.OK and changed_files(call) for call in after)
    yield Finding(
        severity="Info" if went_on else "Warning",
        message=f"{where} found {counted(len(problems), 'problem')} in what the model had made"
        f"{', and files were changed afterwards' if went_on else ''}: {quoted(problems[-1], _SHOWN)}",
        count=len(problems),
        events=evidence([review.event_index for review in found]),
        turn=found[0].turn,
    )
