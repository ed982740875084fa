"""Which findings of a session are told: one for one set of events."""

from __future__ import annotations

from agtrace_schema.analysis import Severity

from agtrace.health.detectors import DETECTORS
from agtrace.health.examine import Found, distinct
from agtrace.health.finding import Finding

_BY_NAME = {detector.name: detector for detector in DETECTORS}


def _found(name: str, severity: Severity, *events: int) -> Found:
    return _BY_NAME[name], Finding(severity=severity, message=name, count=len(events), events=events)


def _told(*found: Found) -> list[str]:
    return [detector.name for detector, _ in distinct(found)]


def test_a_finding_about_events_that_were_told_is_left_out() -> None:
    first, second = _found("corrections", "Warning", 1, 2, 3), _found("returning_error", "Warning", 2, 3)
    assert _told(first, second) == ["corrections"]
    assert _told(first, _found("returning_error", "Warning", 3, 7, 9)) == ["corrections", "returning_error"]
