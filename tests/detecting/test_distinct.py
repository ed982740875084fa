"""Which findings of a session are told: one for one set of events, and of loops at the same time the worst."""

from __future__ import annotations

from agtrace_schema.analysis import Severity

from agtrace.health.detectors.registry import DETECTORS
from agtrace.health.examine import Found, distinct
from agtrace.health.finding import Finding

_BY_NAME = {detector.name: detector for detector in DETECTORS}


def _found(name: str, severity: Severity, *events: int) -> Found:
    return _BY_NAME[name], Finding(severity=severity, message=name, count=len(events), events=events)


def _told(*found: Found) -> list[str]:
    return [detector.name for detector, _ in distinct(found)]


def test_a_finding_about_events_that_were_told_is_left_out() -> None:
    first, second = _found("corrections", "Warning", 1, 2, 3), _found("failed_calls", "Warning", 2, 3)
    assert _told(first, second) == ["corrections"]
    assert _told(first, _found("failed_calls", "Warning", 3, 7, 9)) == ["corrections", "failed_calls"]


def test_of_loops_at_the_same_time_the_worst_is_told_and_one_of_another_time_is_too() -> None:
    check = _found("command_without_success", "Info", 10, 14, 18, 22)
    edits = _found("edit_churn", "Warning", 12, 16, 20, 24)
    later = _found("command_without_success", "Info", 40, 44, 48)
    assert _told(check, edits, later) == ["edit_churn", "command_without_success"]
    assert _told(edits, check) == ["edit_churn"]


def test_a_short_loop_within_a_long_one_is_another_story() -> None:
    long, short = _found("returning_error", "Warning", 10, 200, 900), _found("edit_churn", "Warning", 300, 310, 320)
    assert _told(long, short) == ["returning_error", "edit_churn"]


def test_a_loop_among_other_findings_is_told() -> None:
    failed, edits = _found("failed_calls", "Critical", 10, 24), _found("edit_churn", "Warning", 12, 16, 20)
    assert _told(failed, edits) == ["failed_calls", "edit_churn"]
