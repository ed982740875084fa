"""Findings about the outcome: what was announced, refused, denied, reviewed and left."""

from __future__ import annotations

import json

import pytest
from agtrace_schema.events import Outcome

from agtrace.health.detectors.dangers import find_dangerous_commands
from agtrace.health.detectors.outcome import find_review_problems
from agtrace.health.facts.corrections import corrections
from agtrace.health.facts.ending import unanswered
from tests.detecting.histories import Telling

_NO = "The user doesn't want to proceed with this tool use. The tool use was rejected."
_RULE = "Claude requested permissions to use WebSearch, but you haven't granted it yet."


def refused(told: Telling, command: str = "make", text: str = _NO) -> Telling:
    return told.run(command, text, outcome=Outcome.REJECTED)


def test_a_refusal_without_a_word_is_a_silent_correction() -> None:
    (found,) = corrections(refused(Telling().human(), "rm ebb").history)
    assert (found.how, found.quote) == ("silent", "Bash `rm ebb`")
    (found,) = corrections(refused(Telling().human(), "rm ebb").human("What time is it?").say("Noon.").history)
    assert found.how == "silent"


@pytest.mark.parametrize(
    "words", ["sorry, continue", "oops, wrong key. Please go ahead.", "Go on.", "misclick", "继续"]
)
def test_a_refusal_by_mistake_is_none(words: str) -> None:
    assert not corrections(refused(Telling().human()).human(words).say("On it.").history)


def test_what_a_rule_refused_is_no_correction() -> None:
    assert not corrections(refused(Telling().human(), text=_RULE).history)


def test_several_calls_refused_at_once_are_one_correction() -> None:
    told = refused(Telling().human()).run("make b", _NO, outcome=Outcome.REJECTED, together=True)
    assert len(corrections(told.history)) == 1


def test_a_command_that_was_proposed_before_a_yes_was_asked_for() -> None:
    told = Telling().human("It hangs.").say("I would run `rm -rf ~/sea` and start again. Shall I?")
    assert not list(find_dangerous_commands(told.human("yes").run("rm -rf ~/sea").history))
    (unasked,) = find_dangerous_commands(Telling().human("It hangs.").run("rm -rf ~/sea").history)
    assert (unasked.severity, "without being asked" in unasked.message) == ("Critical", True)


def test_a_folder_that_the_session_made_may_be_deleted() -> None:
    told = Telling().human("Try it.").run("mkdir -p ~/trial && touch ~/trial/a").run("rm -rf ~/trial")
    assert not list(find_dangerous_commands(told.history))
    assert list(find_dangerous_commands(told.run("rm -rf ~/trial ~/sea").history))


def reviewed(told: Telling, *problems: tuple[str, str]) -> Telling:
    findings = [{"title": title, "code_location": {"absolute_file_path": path}} for title, path in problems]
    return told.notice("exited_review_mode", json.dumps({"review_output": {"findings": findings}}))


def test_a_review_counts_for_the_files_that_the_session_changed() -> None:
    told = Telling("codex").human().edit("src/sea.py", "a", "b")
    reviewed(
        told, ("[P1] It floods", "/x/src/sea.py"), ("[P1] It ebbs", "/x/src/moon.py"), ("[P3] A comma", "/x/src/sea.py")
    )
    (finding,) = find_review_problems(told.history)
    assert finding.message == "A review or the CI found problems in what had been done: `[P1] It floods`"
    assert not list(find_review_problems(reviewed(Telling("codex").human(), ("[P1] It floods", "/x/sea.py")).history))


def test_a_result_that_does_not_say_whose_it_is_answers_the_call_before_it() -> None:
    told = Telling().human().call("Bash", {"command": "ls"}, answered=False, outcome=Outcome.UNKNOWN)
    told.call("unknown", None, "a b")
    told.entries[-1].event_index = told.entries[-1].result_event or 0
    assert not list(unanswered(told.say("Two files.").history))
    left = Telling().human().call("Bash", {"command": "ls"}, answered=False, outcome=Outcome.UNKNOWN).say("Hm.")
    assert len(list(unanswered(left.history))) == 1
