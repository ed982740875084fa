"""Failures: counts are exact however many there are, with a few events as evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from agtrace_schema.events import Outcome, Provider, UserKind

from agtrace.health.detectors.failures import (
    find_api_errors,
    find_ended_on_failure,
    find_failed_calls,
    find_failure_streak,
    find_returning_error,
    find_unanswered_calls,
)
from agtrace.health.finding import EVIDENCE, Finding
from agtrace.health.history import History
from tests.detecting.histories import Telling

_ERROR = "Exit code 2\nerror: no rule for this"


def _many(failures: int) -> History:
    told = Telling().human()
    for number in range(failures):
        told.run(f"make part{number}", f"Exit code 2\nerror: no rule for part {number}", code=2)
    return told.history


@pytest.mark.parametrize("find", [find_failed_calls, find_failure_streak, find_returning_error])
@pytest.mark.parametrize("failures", [4, 6, 4_000])
def test_counts_are_exact_and_the_evidence_is_small(
    find: Callable[[History], Iterable[Finding]], failures: int
) -> None:
    (finding,) = find(_many(failures))
    assert finding.count == failures
    assert f"{failures:,}" in finding.message
    assert 0 < len(finding.events) <= EVIDENCE
    assert list(finding.events) == sorted(finding.events)


def test_failed_calls_name_the_rate_and_the_probes() -> None:
    told = Telling().human()
    for _ in range(4):
        told.run("./deploy", _ERROR, code=2).run("make clean")
    for _ in range(2):
        told.run("grep -r x src", "Exit code 1", code=1)
    (finding,) = find_failed_calls(told.history)
    assert finding.message == "6 of 10 Bash calls failed (60%), including 2 probes that answered “no”"
    assert (finding.count, finding.severity) == (6, "Warning")


def test_failed_tests_are_no_failed_calls() -> None:
    told = Telling().human()
    for _ in range(4):
        told.run("pytest", "1 failed", code=1).run("ls")
    assert not list(find_failed_calls(told.history))
    for _ in range(4):
        told.run("./deploy", _ERROR, code=2)
    (finding,) = find_failed_calls(told.history)
    assert finding.message == "8 of 12 Bash calls failed (67%), including 4 checks"


def test_a_few_failures_among_many_calls_are_no_news() -> None:
    told = Telling().human()
    for number in range(30):
        told.run(f"make part{number}", _ERROR if number % 8 == 0 else "done", code=2 if number % 8 == 0 else 0)
    assert not list(find_failed_calls(told.history))


def test_a_tool_of_which_only_probes_failed_is_left_out() -> None:
    assert not list(find_failed_calls(Telling().human().run("grep x y", "Exit code 1", code=1).history))


def test_a_streak_passes_over_probes_and_ends_with_a_success_or_a_human() -> None:
    def streaks(between: Callable[[Telling], object]) -> int:
        told = Telling().human().run("make", _ERROR, code=2).run("make -j", _ERROR, code=2)
        between(told)
        return len(list(find_failure_streak(told.run("make -k", _ERROR, code=2).history)))

    assert streaks(lambda told: None) == 1
    assert streaks(lambda told: told.run("grep x y", "Exit code 1", code=1)) == 1
    assert streaks(lambda told: told.run("make b", outcome=Outcome.REJECTED)) == 1
    assert streaks(lambda told: told.run("make clean")) == 0
    assert streaks(lambda told: told.human()) == 0


def test_failures_of_one_response_are_one_attempt() -> None:
    told = Telling().human()
    for together in (False, True, True, True):
        told.run("make", _ERROR, code=2, together=together)
    assert not list(find_failure_streak(told.history))
    assert not list(find_returning_error(told.history))


def test_an_error_returns_only_where_something_else_was_tried() -> None:
    same, changed = Telling().human(), Telling().human()
    for number in range(3):
        same.run("make", _ERROR, code=2)
        changed.run(f"make -j{number}", _ERROR, code=2).run("make clean")
    assert not list(find_returning_error(same.history))
    (finding,) = find_returning_error(changed.history)
    assert "no rule for this" in finding.message


def test_retries_that_got_through_are_information_and_the_last_word_of_the_api_is_critical() -> None:
    retried = Telling().human().notice("system/api_error", '{"error":{"message":"Overloaded"}}').say()
    shown = Telling("codex").human().notice("error", "Rate limit exceeded").human().say()
    last = Telling("gemini").human().notice("error", "[API Error: 500]")
    found = [next(iter(find_api_errors(told.history))) for told in (retried, shown, last)]
    assert [finding.severity for finding in found] == ["Info", "Warning", "Critical"]
    assert found[0].message.endswith("`Overloaded`")
    assert not list(find_api_errors(Telling("gemini").human().notice("info", "API key loaded").say().history))


def test_a_call_is_unanswered_once_the_session_went_on() -> None:
    def called(tool: str = "Read", provider: Provider = "codex") -> Telling:
        return Telling(provider).human().call(tool, {}, answered=False, outcome=Outcome.UNKNOWN)

    assert not list(find_unanswered_calls(called().history))
    assert [finding.count for finding in find_unanswered_calls(called().say().history)] == [1]
    assert [finding.count for finding in find_unanswered_calls(called().human().history)] == [1]
    interrupted = called().inject("<turn_aborted>", UserKind.INTERRUPTION).human().say()
    assert not list(find_unanswered_calls(interrupted.history))
    assert not list(find_unanswered_calls(called("web_search").say().history))


def test_an_end_on_a_failure_is_critical_where_the_model_said_nothing() -> None:
    told = Telling().human().run("make", _ERROR, code=2)
    assert [finding.severity for finding in find_ended_on_failure(told.history)] == ["Critical"]
    assert [finding.severity for finding in find_ended_on_failure(told.say("Sorry.").history)] == ["Warning"]
    assert not list(find_ended_on_failure(told.run("make").say().history))


def test_an_end_on_a_failure_names_the_turn_of_the_execution() -> None:
    told = Telling().human().say().human().run("make", _ERROR, code=2).say("Sorry.")
    assert [finding.turn for finding in find_ended_on_failure(told.history)] == [2]
