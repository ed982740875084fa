"""All detectors of docs/health.md, the most telling first: of two findings about the same events one is shown."""

from __future__ import annotations

from agtrace.health.detectors import dangers, failures, outcome
from agtrace.health.finding import Detector

DETECTORS: tuple[Detector, ...] = (
    outcome.find_corrections,
    outcome.find_review_problems,
    dangers.find_dangerous_commands,
    failures.find_failing_check,
    failures.find_refused_again,
    failures.find_returning_error,
    outcome.find_ended_on_failure,
    outcome.find_abandoned,
    outcome.find_left_question,
)
