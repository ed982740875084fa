"""The detectors are right about the labelled sessions (docs/health.md)."""

from __future__ import annotations

import pytest

from agtrace.health.detectors import DETECTORS
from tests.health.evaluation import evaluate, table


@pytest.mark.thorough
def test_every_detector_is_right_about_nineteen_of_twenty_labelled_sessions() -> None:
    """At least 0.95 precision and recall, of enough sessions for each."""
    judged, scores = evaluate(DETECTORS)
    wrong = [line for one in judged for line in one.wrong()]
    assert all(one.good for one in scores), "\n".join((table(scores, len(judged)), *wrong))
