"""The detectors are right about the labelled sessions (docs/health.md)."""

from __future__ import annotations

from agtrace.health.detectors.registry import DETECTORS
from tests.health.evaluation import PAGE, evaluate, table, with_table


def test_every_detector_is_right_about_nineteen_of_twenty_labelled_sessions() -> None:
    """At least 0.95 precision and recall, of enough sessions for each, as docs/health.md tells."""
    judged, scores = evaluate(DETECTORS)
    wrong = [line for one in judged for line in one.wrong()]
    assert all(one.good for one in scores), "\n".join((table(scores, len(judged)), *wrong))
    assert PAGE.read_text(encoding="utf-8") == with_table(scores, len(judged)), "run make docs"
