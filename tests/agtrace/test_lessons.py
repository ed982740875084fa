"""Lessons: what keeps failing across sessions, and what worked in the end, with the events that show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agtrace.asking import Asker, ClaudeLog, claude_log
from tests.agtrace.terminal import agtrace_here, index_here

MISSING = "Exit code 1\nError: Cannot find module 'left-pad'"


def session(folder: Path, number: int) -> ClaudeLog:
    return claude_log(folder, f"{number:08x}-0000-4000-8000-000000000000").prompt(f"Mend the tide, part {number}.")


def learned(folder: Path, *arguments: str) -> list[dict[str, object]]:
    index_here(folder)
    return agtrace_here("lessons", "--json", *arguments).json()["lessons"]  # type: ignore[no-any-return]


def test_what_worked_after_another_command_is_told_with_both_events(tmp_path: Path) -> None:
    for number in (1, 2):
        log = session(tmp_path, number).call("Bash", {"command": "npm test"}, MISSING, failed=True)
        log.call("Bash", {"command": "npm ci"}, "added 3 packages").call("Bash", {"command": "npm test"}, "ok")
    (lesson,) = learned(tmp_path)
    assert lesson["advice"] == (
        "Before `npm test`, run `npm ci`: otherwise it fails with “Error: Cannot find module 'left-pad'”."
    )
    assert (lesson["times"], lesson["sessions"], lesson["overcome"], lesson["how"]) == (2, 2, 2, "before")
    assert all(agtrace_here("show", str(lesson[reference])).out for reference in ("failed", "succeeded"))


def test_every_failure_counts_also_those_of_one_stretch(tmp_path: Path) -> None:
    for number in (1, 2):
        log = session(tmp_path, number)
        for _ in range(number + 1):
            log.call("Bash", {"command": "npm test"}, MISSING, failed=True)
        log.call("Bash", {"command": "npm ci"}, "added 3 packages").call("Bash", {"command": "npm test"}, "ok")
    (lesson,) = learned(tmp_path)
    assert (lesson["times"], lesson["sessions"]) == (5, 2)


def test_another_command_of_the_same_program_is_what_works_instead(tmp_path: Path) -> None:
    wrong, right = "terraform apply -var-file prod", "terraform apply -var-file=prod.tfvars"
    for number in (1, 2):
        log = session(tmp_path, number)
        log.call("Bash", {"command": wrong}, "Exit code 1\nError: Too many command line arguments", failed=True)
        log.call("Bash", {"command": right}, "Apply complete!")
    (lesson,) = learned(tmp_path)
    assert lesson["advice"] == (
        f"Instead of `{wrong}`, run `{right}`: the first fails with “Error: Too many command line arguments”."
    )


def test_a_wrapper_that_breaks_whatever_it_runs_is_one_lesson(tmp_path: Path) -> None:
    for number, (task, error) in enumerate((("lint", "no such option"), ("lint --all", "a tty is missing")), 1):
        log = session(tmp_path, number)
        log.call("Bash", {"command": f"rtk bun run {task}"}, f"Exit code 2\nerror: {error}", failed=True)
        log.call("Bash", {"command": f"bun run {task}"}, "ok")
    (lesson,) = learned(tmp_path)
    assert str(lesson["advice"]).startswith("Instead of `rtk bun run lint --all`, run `bun run lint --all`: ")


@pytest.mark.parametrize("remedy", ["rm -rf build", "git push --force", "git commit --no-verify -m ebb"])
def test_what_destroys_is_never_advised(tmp_path: Path, remedy: str) -> None:
    words = "git push" if "push" in remedy else "git commit -m ebb" if "commit" in remedy else "make build"
    for number in (1, 2):
        log = session(tmp_path, number).call(
            "Bash", {"command": words}, "Exit code 1\nerror: it is rejected", failed=True
        )
        log.call("Bash", {"command": remedy}, "").call("Bash", {"command": words}, "ok")
    assert learned(tmp_path) == []


def test_what_worked_in_one_session_alone_is_no_lesson(tmp_path: Path) -> None:
    log = session(tmp_path, 1)
    for _ in range(3):
        log.call("Bash", {"command": "python tide.py"}, "Exit code 127\npython: command not found", failed=True)
        log.call("Bash", {"command": "python3 tide.py"}, "ok")
    assert learned(tmp_path) == []


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("pytest", "Exit code 1\nFAILED tests/test_tide.py::test_ebb - AssertionError: 3 != 4\n1 failed in 0.1s"),
        ("grep -rn tide src", "Exit code 1"),
        ("tsc --noEmit", "Exit code 2\nsrc/tide.ts(3,1): error TS2322: Type 'string' is not assignable."),
    ],
)
def test_what_the_work_was_about_is_no_lesson(tmp_path: Path, command: str, error: str) -> None:
    for number in (1, 2, 3):
        session(tmp_path, number).call("Bash", {"command": command}, error, failed=True)
    assert learned(tmp_path) == []


def test_what_failed_once_or_with_another_error_is_no_lesson(tmp_path: Path) -> None:
    session(tmp_path, 1).call("Bash", {"command": "npm run sass"}, MISSING, failed=True)
    other = "Exit code 1\nError: unknown option '--fast'"
    session(tmp_path, 2).call("Bash", {"command": "npm run sass --fast"}, other, failed=True)
    assert learned(tmp_path) == []
    assert "with the same error" in agtrace_here("lessons").out


def test_what_was_overcome_differently_each_time_names_no_fix(tmp_path: Path) -> None:
    for number, fix in enumerate(("npm ci", "make deps", "corepack enable"), 1):
        log = session(tmp_path, number).call("Bash", {"command": "npm run sass"}, MISSING, failed=True)
        log.call("Bash", {"command": fix}, "done").call("Bash", {"command": "npm run sass"}, "ok")
    assert learned(tmp_path) == []
    said = agtrace_here("lessons").out
    assert "\n1 more recurring failure has no proven fix:\n" in said
    assert "; it succeeded afterwards: agtrace show " in said


def test_what_is_missing_makes_the_failure(tmp_path: Path) -> None:
    for number, missing in enumerate(("numpy", "yaml", "attrs"), 1):
        error = f"Exit code 1\nModuleNotFoundError: No module named '{missing}'"
        session(tmp_path, number).call("Bash", {"command": "python tide.py"}, error, failed=True)
    assert learned(tmp_path) == []
    assert "Nothing failed with the same error" in agtrace_here("lessons").out


def test_a_command_that_formats_is_neither_its_own_remedy_nor_what_an_edit_was(tmp_path: Path) -> None:
    for number in (1, 2):
        log = session(tmp_path, number).call(
            "Bash", {"command": "make fmt && make lint"}, "Exit code 1\nmain.go:3: error: x is unused", failed=True
        )
        log.call("Bash", {"command": "make fmt && make lint && make test"}, "ok")
        log.call("Bash", {"command": "make lint"}, "Exit code 1\nmain.go:9: error: y is unused", failed=True)
        log.call("Edit", {"file_path": "main.go", "old_string": "y", "new_string": "_"}, "ok")
        log.call("Bash", {"command": "make fmt"}, "ok").call("Bash", {"command": "make lint"}, "ok")
    assert learned(tmp_path) == []


def test_an_agent_reads_the_lessons_of_a_project(tmp_path: Path) -> None:
    for number in (1, 2):
        log = session(tmp_path / "home", number).call("Bash", {"command": "npm test"}, MISSING, failed=True)
        log.call("Bash", {"command": "npm ci"}, "added").call("Bash", {"command": "npm test"}, "ok")
    asker = Asker(tmp_path, tmp_path / "home")
    answer = asker.ask("read_artifact", ref="ax://lessons/tidepool")["data"]["text"]
    assert "Before `npm test`, run `npm ci`" in answer and "ax://event/" in answer
    assert "0 lessons" in asker.ask("read_artifact", ref="ax://lessons/tidepool?since=2100-01-01")["summary"]
    assert asker.error("read_artifact", ref="ax://lessons/nowhere")["code"]


def test_a_report_has_the_lessons(tmp_path: Path) -> None:
    for number in (1, 2):
        log = session(tmp_path, number).call("Bash", {"command": "npm test"}, MISSING, failed=True)
        log.call("Bash", {"command": "npm ci"}, "added").call("Bash", {"command": "npm test"}, "ok")
    index_here(tmp_path)
    assert "Before `npm test`, run `npm ci`" in agtrace_here("report").out
    assert "What keeps failing" in agtrace_here("report", "--markdown").out
    assert "What keeps failing" in agtrace_here("report", "--html", "-").out


@pytest.mark.parametrize("again", [True, False])
def test_what_a_linter_complains_of_is_a_lesson_if_a_command_of_its_own_mends_it(tmp_path: Path, again: bool) -> None:
    error = "Exit code 1\n$ biome check\n  × Formatter would have printed the following content:\n Found 1 error."
    for number in (1, 2):
        log = session(tmp_path, number).call("Bash", {"command": "bun run lint 2>&1 | head -20"}, error, failed=True)
        log.call("Bash", {"command": "bun run lint:fix 2>&1 | tail -5"}, "Fixed 1 file.")
        if again:
            log.call("Bash", {"command": "bun run lint 2>&1 | tail -3"}, "No fixes applied.")
    (lesson,) = learned(tmp_path)
    how = "Instead of `bun run lint`, run" if lesson["how"] == "instead" else "Before `bun run lint`, run"
    assert str(lesson["advice"]).startswith(f"{how} `bun run lint:fix`: ")
    assert str(lesson["advice"]).endswith("with “× Formatter would have printed the following content: Found 1 error”.")


def test_the_calls_that_a_score_counts_say_which_failed_and_which_got_no_result(tmp_path: Path) -> None:
    log = session(tmp_path / "logs", 1).call("Read", {"file_path": "/w/a"}, None).say("It goes on.")
    log.call("Bash", {"command": "make"}, "Exit code 2\nerror: no tide", failed=True).say("It failed.")
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    parts = asker.ask("analyze_session", session_id="00000001")["data"]["parts"]
    (why,) = (one["why"] for one in parts if one["part"] == "failures")
    assert why == "1 of 2 tool calls failed (50%), 1 of 2 tool calls never got a result"
