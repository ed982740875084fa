"""The events around one, a line each; and an argument's name elsewhere is told its name here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agtrace.asking import Asker, claude_log, query

ONE = "0badc0de-0000-4000-8000-000000000001"


@pytest.fixture
def asker(tmp_path: Path) -> Asker:
    """A session with a question, a call that fails far down in its output, and an answer."""
    log = claude_log(tmp_path / "logs", ONE).prompt("Why is the gauge late?").say("I look at it.")
    log.call("Bash", {"command": "make check"}, "ok\n" * 300 + "Error: the gauge is late", failed=True)
    log.say("It is late.").prompt("Thanks")
    return Asker(tmp_path / "data", tmp_path / "logs")


def test_the_events_around_one_are_a_line_each_and_a_call_has_its_result(asker: Asker) -> None:
    data = asker.ask("get_event_details", session_id=ONE, event_index=2, around=20)["data"]
    assert data["around"] == [
        [0, "human", "Why is the gauge late?"],
        [1, "message", "I look at it."],
        [2, "Bash", "make check -> failed: Error: the gauge is late"],
        [4, "message", "It is late."],
        [5, "human", "Thanks"],
    ]


def test_so_many_lines_before_and_after_it_are_listed_however_many_events_they_are(samples: Asker) -> None:
    for session, events in query(samples, "SELECT uid, event_count FROM session WHERE event_count > 60 LIMIT 5"):
        for index, most in ((0, 1), (20, 3), (events - 1, 9)):
            lines = samples.ask("get_event_details", session_id=session, event_index=index, around=most)["data"]
            listed = [line[0] for line in lines["around"]]
            assert listed == sorted(listed) and most <= len(listed) <= 2 * most + 1
            assert index != 20 or sum(one > index for one in listed) == most


def test_a_result_stands_in_the_line_of_its_call(asker: Asker) -> None:
    for index, shown in ((4, [2, 4, 5]), (3, [1, 2, 4])):
        data = asker.ask("get_event_details", session_id=ONE, event_index=index, around=1)["data"]
        assert [line[0] for line in data["around"]] == shown


def test_lines_of_other_events_cannot_be_asked_for_with_a_part_of_this_one(asker: Asker) -> None:
    error = asker.error("get_event_details", session_id=ONE, event_index=2, around=3, mode="minimal")
    assert error["details"]["field"] == "around"


def test_an_unknown_argument_is_answered_with_the_one_that_is_meant(samples: Asker) -> None:
    for tool, given, meant in (
        ("get_event_details", "event", "event_index"), ("get_session_details", "turn", "turn_index"),
        ("list_sessions", "agent", "provider"), ("list_sessions", "order", "sort"), ("read_artifact", "uri", "ref"),
        ("search_event_previews", "role", "kind"), ("search_event_previews", "querry", "query"),
    ):  # fmt: skip
        error = samples.error(tool, **{given: "x"})
        assert error["details"]["nearest"] == meant and f"did you mean {meant}?" in error["message"]


@pytest.mark.parametrize(
    ("kind", "sql"),
    [
        ("command", "program_id IS NOT NULL"),
        ("edit", "EXISTS (SELECT 1 FROM touched t WHERE (t.session_id, t.event_index) = (e.session_id, e.event_index)"
         " AND t.access = 'write')"),
    ],
)  # fmt: skip
def test_calls_are_told_apart_by_what_they_do(samples: Asker, kind: str, sql: str) -> None:
    listed = samples.items("search_event_previews", "matches", query="", order="oldest", kind=kind, limit=50)
    counted = query(samples, f"SELECT count(*) FROM event e WHERE {sql} AND own IS NULL AND superseded_by IS NULL")
    assert [(len(listed),)] == counted and {match["event_type"] for match in listed} == {"ToolCall"}
