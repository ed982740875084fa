"""Failures: counts are exact however many there are, with a few events as evidence."""

from __future__ import annotations

import pytest
from agtrace_schema.events import Outcome, Provider, UserKind

from agtrace.health.detectors.failures import find_refused_again, find_returning_error
from agtrace.health.detectors.outcome import find_ended_on_failure
from agtrace.health.facts.causes import cause_of
from agtrace.health.facts.ending import unanswered
from agtrace.health.finding import EVIDENCE
from tests.detecting.histories import Telling

_ERROR = "Exit code 2\nerror: no rule for this"


@pytest.mark.parametrize("failures", [6, 60, 4_000])
def test_counts_are_exact_and_the_evidence_is_small(failures: int) -> None:
    told = Telling().human()
    for number in range(failures):
        told.run(f"make part{number}", f"Exit code 2\nerror: no rule for part {number}", code=2)
    (finding,) = find_returning_error(told.history)
    assert finding.count == failures
    assert f"{failures:,}" in finding.message
    assert 0 < len(finding.events) <= EVIDENCE
    assert list(finding.events) == sorted(finding.events)


def test_failures_of_one_response_are_one_attempt() -> None:
    told = Telling().human()
    for together in (False, True, True, True):
        told.run("make", _ERROR, code=2, together=together)
    assert not list(find_returning_error(told.history))


def test_an_error_that_never_went_away_says_so() -> None:
    told = Telling().human()
    for _ in range(4):
        told.run("make", _ERROR, code=2).run("make clean")
    (never,) = find_returning_error(told.history)
    assert (never.severity, "and it never worked: `error: no rule for this`" in never.message) == ("Warning", True)
    assert not list(find_returning_error(told.run("make").history))
    (solved,) = find_returning_error(told.run("make", _ERROR, code=2).run("make").history)
    assert (solved.severity, "never" in solved.message) == ("Warning", False)


def test_the_cause_is_no_line_that_also_stands_in_runs_that_went_well() -> None:
    warning = "warning: unable to access '/home/x/.gitignore': Permission denied"
    told = Telling().human().run("git commit -m ebb", f"{warning}\n[main 1a2b3c4] ebb")
    told.run("git push", f"{warning}\n! [rejected] main -> main (fetch first)\nerror: failed to push some refs", code=1)
    cause = cause_of(told.history.calls[-1], told.history)
    assert cause is not None and cause.line == "! [rejected] main -> main (fetch first)"


def test_the_cause_within_json_is_read_from_it() -> None:
    told = Telling().run("npm test", '{"exit_code":1,"output":"$ vitest run\\nError: no such tide as ebb"}', code=1)
    cause = cause_of(told.history.calls[-1], told.history)
    assert cause is not None and cause.line == "Error: no such tide as ebb"


def test_what_a_guard_refuses_again_and_again_is_told_with_its_words() -> None:
    told = Telling().human()
    for number in range(6):
        told.run(f"git commit -m {number}", "Blocked by hook: a ticket is missing", code=1)
    (finding,) = find_refused_again(told.history)
    assert finding.message.startswith("6 attempts were refused within 11 s: `Blocked by hook: a ticket is missing`")
    assert not list(find_returning_error(told.history))


def test_a_call_is_unanswered_once_the_session_went_on() -> None:
    def called(tool: str = "Read", provider: Provider = "codex") -> Telling:
        return Telling(provider).human().call(tool, {}, answered=False, outcome=Outcome.UNKNOWN)

    assert not list(unanswered(called().history))
    assert len(list(unanswered(called().say().history))) == 1
    assert len(list(unanswered(called().human().history))) == 1
    interrupted = called().inject("<turn_aborted>", UserKind.INTERRUPTION).human().say()
    assert not list(unanswered(interrupted.history))
    assert not list(unanswered(called("web_search").say().history))


def test_an_end_on_a_failed_push_is_critical_where_the_model_said_nothing() -> None:
    told = Telling().human().run("git push", "Exit code 1\n! [rejected] main -> main (fetch first)", code=1)
    assert [finding.severity for finding in find_ended_on_failure(told.history)] == ["Critical"]
    assert [finding.severity for finding in find_ended_on_failure(told.say("Sorry.").history)] == ["Warning"]
    (undone,) = find_ended_on_failure(told.run("make").say().history)
    assert (undone.severity, "The last push failed, and was never made good" in undone.message) == ("Warning", True)
    assert not list(find_ended_on_failure(told.run("git push", "   1a2b3c4..5d6e7f8  main -> main").history))
