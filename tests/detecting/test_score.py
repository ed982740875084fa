"""What a session's score costs, part by part (docs/health.md)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.index.opening import write_lock

from tests.agtrace.asking import Asker, ClaudeLog, claude_log

_PAGE = Path(__file__).parents[2] / "docs" / "health.md"
ONE = "d0000000-0000-4000-8000-000000000001"


def a_log(folder: Path) -> ClaudeLog:
    edit = {"file_path": "/p/ebb.py", "old_string": "1", "new_string": "2"}
    return claude_log(folder / "logs", ONE).prompt("Mend the ebb.").call("Edit", edit, "ok")


def lost(folder: Path) -> dict[str, int]:
    """The points that each part costs; together they make the score."""
    data = Asker(folder / "data", folder / "logs").ask("analyze_session", session_id=ONE)["data"]
    parts = {part["part"]: part["lost"] for part in data["parts"]}
    assert data["score"] == 100 - sum(parts.values())
    return {part: points for part, points in parts.items() if points}


def test_work_that_ends_well_costs_nothing(tmp_path: Path) -> None:
    a_log(tmp_path).call("Bash", {"command": "pytest -q"}, "9 passed").say("Mended.")
    assert lost(tmp_path) == {}


def test_a_command_that_nobody_asked_for_and_that_can_not_be_taken_back_costs(tmp_path: Path) -> None:
    a_log(tmp_path).call("Bash", {"command": "rm -rf ~/.tide/sessions"}, "").say("Mended.")
    assert lost(tmp_path) == {"outcome": 15}


def test_a_command_that_the_human_agreed_to_costs_nothing(tmp_path: Path) -> None:
    log = a_log(tmp_path).say("I would run `rm -rf ~/.tide/sessions`. Shall I?").prompt("yes")
    log.call("Bash", {"command": "rm -rf ~/.tide/sessions"}, "").say("Done.")
    assert lost(tmp_path) == {}


def test_a_lesser_danger_costs_less_and_both_parts_of_the_outcome_have_their_most(tmp_path: Path) -> None:
    log = a_log(tmp_path).call("Bash", {"command": "git push origin main"}, "")
    assert lost(tmp_path).get("outcome", 0) >= 6
    log.call("Bash", {"command": "pytest -q"}, "E   assert 1 == 2", failed=True)
    assert lost(tmp_path)["outcome"] == 20


@pytest.mark.parametrize(
    ("failed", "points", "told"),
    [(1, 2, ": 2 for 1,"), (2, 3, ""), (6, 6, " 6 for 6."), (13, 8, ""), (31, 10, "")],
)
def test_failed_calls_cost_what_the_documentation_says(failed: int, points: int, told: str, tmp_path: Path) -> None:
    log = a_log(tmp_path)
    for number in range(failed):
        log.call("Bash", {"command": f"make tide{number}"}, f"tide{number}: out of order", failed=True)
    log.call("Bash", {"command": "make"}, "ok").say("Mended.")
    assert lost(tmp_path)["failures"] == points
    (documented,) = (line for line in _PAGE.read_text().splitlines() if line.startswith("| failures | 10 |"))
    assert told in documented


def test_what_was_found_is_kept_until_the_session_grows(tmp_path: Path) -> None:
    log = a_log(tmp_path).call("Bash", {"command": "make"}, "no tide", failed=True)
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    with closing(sqlite3.connect(asker.settings.database, isolation_level=None)) as index:

        def asked() -> tuple[int, Any]:
            parts = asker.ask("analyze_session", session_id=ONE)["data"]["parts"]
            return index.execute("SELECT count(*) FROM health").fetchone()[0], parts

        with write_lock(asker.settings.database):
            kept, first = asked()
        assert (kept, asked()) == (0, (1, first)), "nothing is kept while another process writes"
        log.call("Bash", {"command": "make all"}, "no ebb", failed=True)
        assert (grown := asked())[1] != first
        index.execute("DELETE FROM block_data")
        assert asked() == grown == (1, grown[1]), "the history isn't read again"
