"""The figures about index and server are those of what happened."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agtrace.answers.service import Service
from agtrace.answers.status import Metrics
from agtrace.settings import load
from agtrace.settings.model import Http
from agtrace.shaping.shape import Answer
from tests.agtrace.asking import Asker, claude_log
from tests.faults.serving import SLOW

SESSION = "fb3cff44-13ae-41a6-a6df-f287e0552835"


@pytest.fixture
def asker(tmp_path: Path) -> Asker:
    """Three sessions, one with a long output."""
    output = "\n".join(f"{number:05} {'high water ' * 9}" for number in range(1_000))
    claude_log(tmp_path / "logs", SESSION).prompt("When is the tide?").call("Bash", {"command": "tides"}, output)
    for number in (1, 2):
        claude_log(tmp_path / "logs", f"{number:08}-0000-4000-8000-000000000000").prompt("tide")
    return Asker(tmp_path / "data", tmp_path / "logs")


def test_the_index_is_told_by_its_state_its_lag_and_its_size(asker: Asker) -> None:
    index = asker.answers.health().index
    assert (index.state, index.problem) == ("ready", None)
    assert (index.sessions, index.events, index.logs) == (3, 5, 3)
    assert index.bytes >= asker.settings.database.stat().st_size > 0
    assert index.newest_event is not None and index.newest_event.startswith("2026-")


def test_answers_are_told_by_number_size_and_whether_they_fitted(asker: Asker) -> None:
    assert (asker.answers.health().answers or Metrics().health()).count == 0
    first = asker.ask("list_sessions", limit=2)
    asker.ask("list_sessions", limit=2, cursor=first["pagination"]["next_cursor"])
    whole = asker.ask("get_event_details", session_id="fb3cff44", event_index=2)
    asker.error("get_session_details", session_id="nobody")
    asker.error("list_sessions", limit=51)
    told = asker.answers.health().answers
    assert told is not None
    assert (told.count, told.errors) == (5, 2)
    assert told.error_codes == {"invalid_parameter": 1, "session_not_found": 1}
    assert told.by_tool == {"get_event_details": 1, "get_session_details": 1, "list_sessions": 3}
    largest = len(json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode())
    assert told.largest_bytes == largest > told.mean_bytes > told.median_bytes > 0
    assert (told.continuable, told.continued, told.continued_share) == (2, 1, 0.5)


def test_more_than_one_answer_in_twenty_that_did_not_fit_is_an_alert() -> None:
    metrics, fitted = Metrics(), Answer("{}", {"success": True})
    for _ in range(19):
        metrics.record("list_sessions", {}, fitted, 2)
    assert not metrics.health().oversized_alert
    metrics.record("list_sessions", {}, replace(fitted, asked_bytes=20_000), 2)
    told = metrics.health()
    assert (told.oversized_attempts, told.oversized_share, told.oversized_alert) == (1, 0.05, False)
    metrics.record("list_sessions", {}, replace(fitted, asked_bytes=20_000), 2)
    assert metrics.health().oversized_alert


class Uncountable(dict[str, Any]):
    """Arguments that nobody can look into."""

    def get(self, *key: Any) -> Any:
        raise RuntimeError("it can't be counted")


def test_an_answer_is_given_though_it_can_not_be_counted(asker: Asker) -> None:
    assert asker.answers.ask("list_sessions", Uncountable(limit=2)).value["success"]


def test_what_did_not_fit_is_logged_with_what_it_would_have_taken(asker: Asker) -> None:
    logged: list[Any] = []
    answers = Service(asker.settings, log=logged.append)
    answers.ask("get_event_details", {"session_id": "fb3cff44", "event_index": 2})
    answers.ask("list_sessions", {})
    assert logged[0]["asked_bytes"] > 80_000 > 10_240 >= logged[0]["bytes"]
    assert "asked_bytes" not in logged[1] and logged[0]["decisions"] == ["chunked"]
    assert {"at", "bytes", "decisions", "level", "ms", "request_bytes"} <= logged[1].keys()


@pytest.mark.thorough
def test_the_figures_wait_for_no_question(asker: Asker) -> None:
    """A search may take half a minute; who asks whether the process lives is answered meanwhile."""
    answers = Service(replace(asker.settings, search_timeout_seconds=1), log=lambda record: None)
    answers.ask("list_sessions", {})
    searching = threading.Thread(target=answers.ask, args=("search_event_previews", SLOW))
    searching.start()
    told = answers.health()
    assert (told.index.state, told.index.sessions) == ("ready", 3)
    assert searching.is_alive()
    searching.join()


def test_a_configuration_is_told_from_another_and_what_is_wrong_with_it(asker: Asker, tmp_path: Path) -> None:
    """What can't be used is said, and done without; the token is no part of it."""
    told = asker.answers.health().configuration
    assert told.problem is None
    other = Service(replace(asker.settings, max_response_bytes=20_000), log=lambda record: None).health()
    assert other.configuration.version != told.version
    secret = replace(asker.settings, http=Http(token="a-token-of-the-tests"))
    assert secret.version == told.version and "a-token" not in repr(secret)
    wrong = Service(replace(asker.settings, prices=tmp_path / "none.json"), log=lambda record: None).health()
    assert "none.json" in (wrong.configuration.problem or "")


def test_a_machine_without_an_index_is_not_ready_and_one_that_can_not_have_it_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    answers = Service(load({"AGTRACE_DATA_DIR": str(tmp_path / "file")}), log=lambda record: None)
    index = answers.health().index
    assert (index.state, index.sessions) == ("building", 0)
    assert "can't create the index" in (index.problem or "")
