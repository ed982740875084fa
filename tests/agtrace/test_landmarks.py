"""What a session did is asked in one call: which made a commit, which opened a pull request, how the tests ended."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.agtrace.asking import Asker, claude_log, query
from tests.agtrace.terminal import agtrace_here, index_here

ONE, TWO = "11111111-0000-4000-8000-000000000001", "22222222-0000-4000-8000-000000000002"
PULL = "https://github.com/owner/sea/pull/104"
COMMIT = "git commit -m 'Fix the tide'"


@pytest.fixture(scope="module")
def asker(tmp_path_factory: pytest.TempPathFactory) -> Asker:
    """Two sessions: one tests, commits and opens a pull request, the other only reads of it."""
    folder = tmp_path_factory.mktemp("landmarks")
    log = claude_log(folder / "home", ONE).prompt("Fix the tide")
    log.call("Bash", {"command": "pytest"}, "Exit code 1\n=== 1 failed in 0.3s ===", failed=True)
    log.call("Bash", {"command": "pytest 2>&1 | tail -1"}, "=== 4 passed in 0.3s ===")
    log.call("Bash", {"command": COMMIT}, "[main 3fa9c21d] Fix the tide\n 1 file changed\n")
    log.call("Bash", {"command": "ls -t logs && gh pr create --title 'Mend the tide'"}, f"{PULL}\n")
    for number in range(30):
        log.call("Bash", {"command": "npm run build"}, f"built {number}")
    log.raw({"type": "pr-link", "sessionId": ONE, "prNumber": 104, "prUrl": PULL})
    other = claude_log(folder / "home", TWO).prompt("What did we do?")
    other.call("Bash", {"command": "git log"}, "commit 3fa9c21d\n[main 3fa9c21d] Fix the tide\n")
    other.call("Bash", {"command": "gh pr view 104"}, f"{PULL}\n")
    return Asker(folder / "data", folder / "home", still=True)


def ids(asker: Asker, **filters: Any) -> list[str]:
    return [item["id"] for item in asker.items("list_sessions", "sessions", **filters)]


@pytest.mark.parametrize("given", ["3fa9", "3FA9C21", "3fa9c21d", "3fa9c21d" + "0" * 32])
def test_the_session_that_made_a_commit_is_one_call_away(asker: Asker, given: str) -> None:
    assert ids(asker, commit=given) == [ONE[:8]]


@pytest.mark.parametrize("given", ["104", "#104", PULL, f"{PULL}/files#diff-1"])
def test_so_is_the_one_that_opened_a_pull_request(asker: Asker, given: str) -> None:
    (item,) = asker.ask("list_sessions", pr=given)["data"]["sessions"]
    assert item["id"] == ONE[:8]
    assert item["done"] == {"commits": 1, "pull_requests": ["104"], "last_tests": "passed"}


def test_a_list_by_commit_or_pull_request_shows_it_and_the_hint_opens_it(asker: Asker) -> None:
    for given, kind, name in (({"commit": "3fa9c21"}, "commit", "3fa9c21d"), ({"pr": "104"}, "pull_request", "104")):
        answer = asker.ask("list_sessions", **given)
        (item,) = answer["data"]["sessions"]
        event_index, *made = item["landmarks"][0]
        assert made[0] == kind and name.startswith(made[1])
        if kind == "pull_request":
            assert made[3] == f"{PULL} Mend the tide"
        opened = asker.run(answer["hint"])["data"]
        assert opened["event_index"] == event_index
    assert all("landmarks" not in item for item in asker.items("list_sessions", "sessions"))


def test_those_that_made_any_commit_or_pull_request_are_found_without_knowing_which(asker: Asker) -> None:
    assert ids(asker, commit="any") == ids(asker, pr="ANY") == [ONE[:8]]


@pytest.mark.parametrize("given", [{"commit": "4fa9"}, {"pr": "105"}, {"pr": "https://github.com/owner/lake/pull/104"}])
def test_what_no_session_did_is_not_found_and_the_hint_says_so(asker: Asker, given: dict[str, Any]) -> None:
    answer = asker.ask("list_sessions", **given)
    assert answer["data"]["sessions"] == []
    assert "2 sessions" in answer["hint"]


@pytest.mark.parametrize(
    ("given", "field"), [({"commit": "3f"}, "commit"), ({"pr": "the first one"}, "pr"), ({"pr": "pull/104"}, "pr")]
)
def test_a_hash_that_is_too_short_and_no_pull_request_are_refused(
    asker: Asker, given: dict[str, Any], field: str
) -> None:
    assert asker.error("list_sessions", **given)["details"]["field"] == field


def test_a_list_says_what_sessions_did_where_that_is_asked_for(asker: Asker) -> None:
    plain = asker.ask("list_sessions")["data"]["sessions"]
    asked = asker.ask("list_sessions", fields="id,done.last_tests")["data"]["sessions"]
    assert not any("done" in item for item in plain)
    assert sorted(asked, key=len) == [{"id": TWO[:8]}, {"id": ONE[:8], "done": {"last_tests": "passed"}}]


def test_the_landmarks_of_a_session_come_in_order_two_kilobytes_a_page(asker: Asker) -> None:
    pages = list(asker.pages("get_session_details", session_id=ONE, sections="landmarks"))
    assert all(len(json.dumps(page, ensure_ascii=False, separators=(",", ":")).encode()) <= 2_048 for page in pages)
    found = [item for page in pages for item in page["data"]["landmarks"]]
    assert len(found) == 34
    assert [tuple((*item, None, None)[1:4]) for item in found[:5]] == [
        ("test_run", "pytest", "failed"),
        ("test_run", "pytest", "passed"),
        ("commit", "3fa9c21d", None),
        ("pull_request", "104", "created"),
        ("build", "npm run build", "passed"),
    ]
    places = query(asker, "SELECT event_index FROM landmark l JOIN session s ON s.id = l.session_id WHERE uid = ? "
                          "AND coalesce(verdict, '') != 'linked' ORDER BY event_index, number", ONE)  # fmt: skip
    assert [item[0] for item in found] == [place for (place,) in places]


def test_the_overview_of_a_session_shows_what_tells_how_it_went(asker: Asker) -> None:
    every = asker.items("get_session_details", "landmarks", session_id=ONE, sections=["landmarks"])
    shown = asker.ask("get_session_details", session_id=ONE)["data"]
    told = shown["landmarks"]
    assert told == [row for row in every if row in told] and 0 < len(told) <= 6
    assert {row[1] for row in told} >= {"commit", "pull_request", "test_run"} and "branch" not in {
        row[1] for row in told
    }
    assert shown.get("total_landmarks", len(told)) == len(every)
    assert "landmarks" not in asker.ask("get_session_details", session_id=TWO)["data"]


def test_a_session_that_did_nothing_has_no_landmarks(asker: Asker) -> None:
    data = asker.ask("get_session_details", session_id=TWO, sections=["landmarks", "stats"])["data"]
    assert data["landmarks"] == [] and "done" not in data["stats"]


def test_a_fork_has_not_done_what_its_origin_did(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", ONE).prompt("Fix the tide")
    log.call("Bash", {"command": COMMIT}, "[main 3fa9c21d] Fix the tide\n")
    fork = log.path.with_name(f"{TWO}.jsonl")
    shutil.copy(log.path, fork)
    fork.write_text(fork.read_text("utf-8").replace(f'"sessionId": "{ONE}"', f'"sessionId": "{TWO}"'), "utf-8")
    claude_log(tmp_path / "home", TWO).prompt("And now?").say("Nothing.")
    asker = Asker(tmp_path / "data", tmp_path / "home")
    assert len(ids(asker)) == 2
    assert len(ids(asker, commit="3fa9c21d")) == 1


def test_the_command_line_says_what_a_session_did(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGTRACE_DATA_DIR", str(asker.settings.data_dir))
    assert "1 commit, opened pull request 104, last tests passed" in agtrace_here("show", ONE).out
    listed = agtrace_here("sessions", "--commit", "3fa9c21d").out
    assert ONE[:8] in listed and "3fa9c21d" in listed
    listed = agtrace_here("show", ONE, "--sections", "landmarks").out
    assert "landmarks: 34" in listed and "3fa9c21d  Fix the tide" in listed


def test_what_has_no_detail_is_listed_too(tmp_path: Path) -> None:
    claude_log(tmp_path / "home", ONE).prompt("x").call("Bash", {"command": "gh pr merge 9 --squash"}, "")
    index_here(tmp_path / "home")
    assert "#9 merged" in agtrace_here("sessions", "--pr", "9").out


def test_an_analysis_and_a_report_sum_up_what_was_done(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGTRACE_DATA_DIR", str(asker.settings.data_dir))
    done = {"commits": 1, "pull_requests": ["104"], "last_tests": "passed"}
    assert asker.ask("analyze_session", session_id=ONE)["data"]["done"] == done
    assert "Done: 1 commit, opened pull request 104, last tests passed" in agtrace_here("analyze", ONE).out
    said = "1 commit, 1 pull request, 2 test runs (1 failed), 30 builds"
    assert said in " ".join(agtrace_here("report").out.split())
    assert said in agtrace_here("report", "--html", "-").out
    assert "| test run | 2 | 1 | 1 |" in agtrace_here("report", "--markdown").out
