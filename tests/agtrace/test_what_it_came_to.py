"""Answers say what came of a turn, a call and a session, so that it needn't be opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agtrace.asking import Asker, claude_log

ONE = "c0000000-0000-4000-8000-000000000001"
COMMITTED = "[mend-tides 3fa9c21] Mend the tide table\n Date: today\n 2 files changed, 9 insertions(+)\nand more"
REFUSED = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nuse pnpm"


@pytest.fixture
def asker(tmp_path: Path) -> Asker:
    log = claude_log(tmp_path / "logs", ONE)
    log.prompt("Mend the tide table of the northern harbour.")
    log.call("Bash", {"command": "git commit -m 'Mend the tide table'"}, COMMITTED)
    log.call("Bash", {"command": "make check"}, "Exit code 2\nmake: *** no rule\nerror: tides missing", failed=True)
    log.say("The northern harbour is mended.")
    log.prompt("Install the gauge.")
    log.call("Bash", {"command": "npm install gauge"}, REFUSED, failed=True)
    log.say("The gauge is installed.")
    return Asker(tmp_path / "data", tmp_path / "logs")


def test_an_overview_says_what_each_turn_came_to_and_the_last_one_once(asker: Asker) -> None:
    data = asker.ask("get_session_details", session_id=ONE)["data"]
    assert [turn.get("answer", [0, None])[1] for turn in data["turns"]] == ["The northern harbour is mended.", None]
    assert data["last_message"][1] == "The gauge is installed."
    (commit,) = (row for row in data["landmarks"] if row[1] == "commit")
    assert commit[4] == "Mend the tide table (mend-tides, 2 files changed, 9 insertions(+))"


def test_what_is_known_of_the_session_isn_t_repeated_for_one_turn(asker: Asker) -> None:
    data = asker.ask("get_session_details", session_id=ONE, detail_level="turns", turn_index=0)["data"]
    assert data.keys() == {"session_id", "turns"}
    assert [step["error"] for step in data["turns"][0]["steps"] if "error" in step] == ["Exit code 2"]


def test_calls_stand_with_what_they_gave_and_refusals_with_the_human_s_words(asker: Asker) -> None:
    arguments = {"query": "git commit", "order": "newest", "kind": "command"}
    (match,) = asker.ask("search_event_previews", **arguments)["data"]["matches"]
    assert match["result"].startswith("[mend-tides 3fa9c21] Mend the tide table ... and more") and match["project"]
    opened = asker.ask("get_event_details", session_id=ONE, event_index=match["event_index"], around=0)["data"]
    assert opened["result"] == match["result"]
    failures = asker.ask("get_session_details", session_id=ONE, sections=["failures"])["data"]["failures"]
    assert [failure["quote"] for failure in failures if failure["outcome"] == "rejected"] == ["use pnpm"]


def test_the_best_session_comes_with_what_it_did_and_came_to(asker: Asker) -> None:
    (best,) = asker.ask("search_event_previews", query="tide table northern harbour")["data"]["best"]["sessions"]
    assert "commit" in [row[1] for row in best["landmarks"]] and best["last_message"][1] == "The gauge is installed."


@pytest.mark.parametrize(("short", "whole"), [("outcome", "turns.outcome"), ("total_events", "stats.total_events")])
def test_the_last_part_of_a_field_s_name_gives_what_the_whole_name_gives(asker: Asker, short: str, whole: str) -> None:
    given = [asker.ask("get_session_details", session_id=ONE, fields=[name])["data"] for name in (short, whole)]
    assert given[0] == given[1] and len(given[0]) > 1
