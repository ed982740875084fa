"""The aftermath of a failure: the same call later, or one that begins alike, and the changes in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agtrace.asking import Asker, claude_log

SESSION = "fb3cff44-13ae-41a6-a6df-f287e0552835"
BUILD = "python -m build --wheel -q && pip install -q dist/*.whl && "


@pytest.fixture
def later(tmp_path: Path) -> Any:
    """What an event of a session tells about what came later; the session is written by a function."""

    def told(write: Any, event_index: int) -> dict[str, Any] | None:
        write(claude_log(tmp_path / "home", SESSION).prompt("Mend it."))
        asker = Asker(tmp_path / "data", tmp_path / "home")
        return asker.ask("get_event_details", session_id=SESSION, event_index=event_index)["data"].get("later")

    return told


def test_the_same_call_that_succeeded_is_named_with_the_changes_before_it(later: Any) -> None:
    def write(log: Any) -> None:
        log.call("Bash", {"command": "pytest"}, "1 failed", failed=True)  # events 1, 2
        log.call("Edit", {"file_path": "/p/a.py", "new_string": "1"}, "ok")  # 3, 4
        log.call("Bash", {"command": "pytest"}, "1 failed", failed=True)  # 5, 6
        log.call("Write", {"file_path": "/p/b.py", "content": "2"}, "ok")  # 7, 8
        log.call("Bash", {"command": "pytest"}, "1 passed")  # 9, 10

    expected = {"same_call": True, "succeeded": 9, "result_event": 10, "failed_again": 1, "changes": [3, 7]}
    assert later(write, 2) == expected | {"last_change": "file_path: /p/b.py content: 2"}


@pytest.mark.parametrize(
    ("between", "made"),
    [
        (["bun run lint:fix 2>&1 | tail -5"], 3),
        (["npm ci", "git diff", "bun run lint 2>&1 | grep error"], 3),
        (["git diff", "ls src", "pytest -q", "npx eslint src | head -3"], None),
    ],
)
def test_the_last_command_that_changed_something_before_it_is_named(
    later: Any, between: list[str], made: int | None
) -> None:
    def write(log: Any) -> None:
        log.call("Bash", {"command": "bun run lint 2>&1 | head -20"}, "1 error", failed=True)  # events 1, 2
        for command in between:
            log.call("Bash", {"command": command}, "done")
        log.call("Bash", {"command": "bun run lint 2>&1 | head -20"}, "0 errors")

    assert later(write, 2).get("command") == made


def test_a_command_that_failed_in_between_changed_nothing(later: Any) -> None:
    def write(log: Any) -> None:
        log.call("Bash", {"command": "make"}, "error", failed=True)
        log.call("Bash", {"command": "npm ci"}, "error", failed=True).call("Bash", {"command": "make"}, "done")

    assert "command" not in later(write, 1)


def test_a_change_that_failed_is_no_change(later: Any) -> None:
    def write(log: Any) -> None:
        log.call("Bash", {"command": "pytest"}, "1 failed", failed=True)  # events 1, 2
        log.call("Edit", {"file_path": "/p/a.py", "new_string": "1"}, "String to replace not found", failed=True)
        log.call("Edit", {"file_path": "/p/a.py", "new_string": "1"}, None)  # 5: its end isn't known
        log.call("Bash", {"command": "pytest"}, "1 passed")  # 6, 7

    expected = {"same_call": True, "succeeded": 6, "result_event": 7, "changes": [5]}
    assert later(write, 2) == expected | {"last_change": "/p/a.py + 1"}


def test_a_call_tells_the_same_as_its_result(later: Any) -> None:
    def write(log: Any) -> None:
        log.call("Bash", {"command": "make"}, "error", failed=True).call("Bash", {"command": "make"}, "done")

    assert later(write, 1) == later(lambda log: None, 2) == {"same_call": True, "succeeded": 3, "result_event": 4}


def test_a_call_that_begins_alike_serves_where_the_same_never_succeeded(later: Any) -> None:
    def write(log: Any) -> None:
        log.call("Bash", {"command": BUILD + "python -c 'import x'"}, "ModuleNotFoundError", failed=True)
        log.call("Bash", {"command": "ls"}, "x")
        log.call("Bash", {"command": BUILD + "python -m x"}, "works")

    assert later(write, 2) == {"same_call": False, "succeeded": 5, "result_event": 6}


@pytest.mark.parametrize("command", ["pytest tests/other.py", "true"])
def test_another_call_is_no_remedy(later: Any, command: str) -> None:
    def write(log: Any) -> None:
        log.call("Bash", {"command": "cargo build --release"}, "error", failed=True)
        log.call("Bash", {"command": command}, "ok").call("Read", {"file_path": "cargo build --release"}, "ok")

    assert later(write, 2) is None


@pytest.mark.parametrize(("failed", "asked"), [(True, 4), (False, 2)], ids=["succeeded before", "went well"])
def test_without_a_failure_and_a_later_success_there_is_no_aftermath(later: Any, failed: bool, asked: int) -> None:
    def write(log: Any) -> None:
        log.call("Bash", {"command": "make"}, "done").call("Bash", {"command": "make"}, "made", failed=failed)

    assert later(write, asked) is None


def test_the_failing_import_of_the_samples_leads_to_the_file_that_mended_it(samples: Asker) -> None:
    told = samples.ask("get_event_details", session_id="8c0d35f1", event_index=7)["data"]["later"]
    change = samples.ask("get_event_details", session_id="8c0d35f1", event_index=told["changes"][0])
    assert change["data"]["payload"]["arguments"]["file_path"].endswith("render/__init__.py")
