"""Answers say what came of a turn, a call and a session, so that it needn't be opened."""

from __future__ import annotations

from contextvars import copy_context
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from agtrace.answers.service import Service
from agtrace.answers.telemetry.recorder import Origin
from agtrace.sessions.quotes import TEXT
from agtrace.settings.limits import STOP
from tests.agtrace.asking import Asker, best_in, claude_log
from tests.indexer.test_codex_families import T0, Rollout

ONE = "c0000000-0000-4000-8000-000000000001"
COMMITTED = (
    "[mend-tides 3fa9c21] Mend the tide table\n Date: today\n 2 files changed, 9 insertions(+)\n{}and more".format(
        " create mode 100644 tide\n" * 9
    )
)
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
    return asker_of(tmp_path)


def asker_of(folder: Path) -> Asker:
    return Asker(folder / "data", folder / "logs")


def test_an_overview_says_what_each_turn_came_to_and_the_last_one_once(asker: Asker) -> None:
    data = asker.ask("get_session_details", session_id=ONE)["data"]
    assert [turn.get("answer", [0, None])[1] for turn in data["turns"]] == ["The northern harbour is mended.", None]
    assert data["last_message"][1] == "The gauge is installed."
    (commit,) = (row for row in data["landmarks"] if row[1] == "commit")
    assert commit[4] == "Mend the tide table (mend-tides, 2 files changed, 9 insertions(+))"


def test_what_is_known_of_the_session_isn_t_repeated_for_one_turn(asker: Asker) -> None:
    data = asker.ask("get_session_details", session_id=ONE, detail_level="turns", turn_index=0)["data"]
    assert data.keys() == {"session_id", "turns"}
    assert [step["error"] for step in data["turns"][0]["steps"] if "error" in step] == ["make: *** no rule"]


def test_calls_stand_with_what_they_gave_and_refusals_with_the_human_s_words(asker: Asker) -> None:
    arguments = {"query": "git commit", "order": "newest", "kind": "command"}
    (match,) = asker.ask("search_event_previews", **arguments)["data"]["matches"]
    assert match["result"].startswith("[mend-tides 3fa9c21] Mend the tide table ... and more") and match["project"]
    opened = asker.ask("get_event_details", session_id=ONE, event_index=match["event_index"], around=0)["data"]
    assert opened["result"] == match["result"]
    failures = asker.ask("get_session_details", session_id=ONE, sections=["failures"])["data"]["failures"]
    assert [failure["quote"] for failure in failures if failure["outcome"] == "rejected"] == ["use pnpm"]


def test_the_best_session_comes_with_what_it_did_and_came_to(asker: Asker) -> None:
    (best,) = best_in(asker.ask("search_event_previews", query="tide table northern harbour"))["sessions"]
    assert "commit" in [row[1] for row in best["landmarks"]] and best["last_message"][1] == "The gauge is installed."
    assert [line[1:] for line in best["course"]][-2:] == [
        ["human", "Install the gauge."], ["human", "refused: npm install gauge -> use pnpm"],
    ]  # fmt: skip


def test_landmarks_are_those_near_the_best_hit_and_pull_requests_say_whether_they_were_created(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE).prompt("Mend the lights.")
    for number in range(20):
        log.call("Bash", {"command": f"git commit -m {number}"}, f"[main 3fa9c{number:02}] {number}\n 1 file changed")
        log.say("The foghorn of the pier is mended." if number == 3 else f"Light {number} is mended.")
        if number == 4:
            log.call("Bash", {"command": "gh pr create --title x"}, "https://github.com/mira/pier/pull/7")
    best = best_of(tmp_path, "foghorn pier mended")
    assert [row[2] for row in best["landmarks"]] == ["3fa9c02", "3fa9c03", "3fa9c04", "7"]
    assert best["landmarks"][-1][3] == "created"


def test_the_best_session_says_how_it_went_on_and_what_was_asked_last(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE)
    later = ["Revert it, we built that.", "Merge.", "Tag it.", "Do 0.54."]
    for request in ["Write an ebb matcher for tidal ignore lists.", *later]:
        log.prompt(request)
        log.say(f"Done with this: {len(request)}.")
    answer = asker_of(tmp_path).ask("search_event_previews", query="ebb matcher tidal ignore")
    (best,) = best_in(answer)["sessions"]
    said = [text for _, who, text in best["course"] if who == "human"]
    assert (said[0], said[-1]) == ("Revert it, we built that.", "Do 0.54.") and len(best["course"]) <= 6


def test_a_log_that_ends_on_a_call_says_so(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE)
    log.prompt("Commit the harbour lights.")
    log.say("I commit them.")
    log.call("Bash", {"command": "git commit -m lights"}, None)
    asker = asker_of(tmp_path)
    overview = asker.ask("get_session_details", session_id=ONE)["data"]
    (best,) = best_in(asker.ask("search_event_previews", query="harbour lights"))["sessions"]
    ended = ["Bash", "git commit -m lights -> (the log ends here, without a result)"]
    assert overview["open_call"][1:] == best["open_call"][1:] == ended
    log.say("It is committed.")
    assert "open_call" not in asker.ask("get_session_details", session_id=ONE)["data"]


def test_a_refused_call_is_opened_with_all_that_the_human_said(asker: Asker) -> None:
    failures = asker.ask("get_session_details", session_id=ONE, sections=["failures"])["data"]["failures"]
    assert [failure["argument"] for failure in failures] == ["make check", "npm install gauge"]
    stats = asker.ask("get_session_details", session_id=ONE)["data"]["stats"]
    assert (stats["failed_calls"], stats["cancelled_calls"], "failed_by_text" in stats) == (1, 1, False)
    assert len(asker.items("search_event_previews", "matches", query="", kind="error")) == 2
    opened = asker.ask("get_event_details", session_id=ONE, event_index=failures[-1]["call_event"])["data"]
    assert opened["result"] == "use pnpm"


def test_a_short_output_is_opened_whole_with_its_call(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE)
    log.prompt("Which names does git accept?")
    log.call("Bash", {"command": "sh check"}, "main;id 0\nmain id 1\nmain'id 0\nmain,id 1\n")
    opened = asker_of(tmp_path).ask("get_event_details", session_id=ONE, event_index=1)["data"]
    assert opened["result"] == "main;id 0 main id 1 main'id 0 main,id 1"


def test_a_text_that_is_a_little_longer_is_shown_whole(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE)
    log.prompt("Which ports are distinct?")
    log.say("Ports: " + "a default port is the same, " * 8 + "another one is distinct.")
    asker = asker_of(tmp_path)
    around = asker.ask("get_event_details", session_id=ONE, event_index=0, around=2)["data"]["around"]
    assert around[-1][2].endswith("another one is distinct.") and len(around[-1][2]) > TEXT


def test_a_failed_test_run_says_why_among_the_landmarks(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE)
    log.prompt("Test the locks.")
    failing = "--- FAIL: TestLock (0s)\n    lock_test.go:4: got one lamp\nFAIL"
    log.call("Bash", {"command": "go test ./..."}, failing, failed=True)
    log.call("Bash", {"command": "go test ./..."}, "ok  \tx.io/lock\t0.1s")
    landmarks = asker_of(tmp_path).ask("get_session_details", session_id=ONE)["data"]["landmarks"]
    assert [row[3:] for row in landmarks] == [["failed", "TestLock: lock_test.go:4: got one lamp"], ["passed"]]


@pytest.mark.parametrize(("short", "whole"), [("outcome", "turns.outcome"), ("total_events", "stats.total_events")])
def test_the_last_part_of_a_field_s_name_gives_what_the_whole_name_gives(asker: Asker, short: str, whole: str) -> None:
    given = [asker.ask("get_session_details", session_id=ONE, fields=[name])["data"] for name in (short, whole)]
    assert given[0] == given[1] and len(given[0]) > 1


def best_of(folder: Path, query: str) -> dict[str, Any]:
    (best, *_) = best_in(asker_of(folder).ask("search_event_previews", query=query))["sessions"]
    found: dict[str, Any] = best
    return found


def test_a_last_message_that_is_a_hit_is_named_as_the_last_one(tmp_path: Path) -> None:
    claude_log(tmp_path / "logs", ONE).prompt("Paint the buoys.").say("The northern buoys of the harbour are painted.")
    best = best_of(tmp_path, "northern buoys harbour painted")
    assert best["last_message"] == [1, "(the hit above)"] and 1 in [hit[0] for hit in best["hits"]]


def test_what_was_sent_in_a_connection_is_not_sent_again_but_named(asker: Asker) -> None:
    def told(query: str, connection: str | None) -> dict[str, Any]:
        answer = asker.answers.ask("search_event_previews", {"query": query}, Origin(connection=connection))
        (best,) = best_in(answer.value)["sessions"]
        return {name: best[name] for name in ("landmarks", "course", "last_message", "seen") if name in best}

    first, other = told("tide table northern harbour", "one"), told("northern harbour mended", "one")
    assert "seen" not in first and {"landmarks", "course", "last_message"} <= first.keys()
    assert other["seen"] == "search_event_previews(query='tide table northern harbour')" and "landmarks" not in other
    assert told("tide table northern harbour", "one") == first, "the same call has the same answer"
    assert all("seen" not in told("northern harbour mended", one) for one in ("two", None))


def test_an_answer_whose_request_is_cancelled_at_its_end_was_not_sent(asker: Asker) -> None:
    cancelled, origin = Event(), Origin(connection="one")
    answers = Service(asker.settings, refresh_seconds=0, log=lambda _: cancelled.set())
    context = copy_context()
    context.run(STOP.set, cancelled)
    given = context.run(answers.ask, "search_event_previews", {"query": "tide table northern harbour"}, origin)
    assert cancelled.is_set() and not given.is_error
    other = answers.ask("search_event_previews", {"query": "northern harbour mended"}, origin).value
    assert all("seen" not in session for session in best_in(other)["sessions"])


def test_a_request_that_came_to_nothing_says_so(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE).prompt("Mend the foghorn of the pier.").say("The foghorn is mended.")
    log.prompt("commit this").prompt("[Request interrupted by user]")
    course = best_of(tmp_path, "foghorn pier mended")["course"]
    assert [line[2] for line in course if line[2].startswith("commit")] == ["commit this -> (interrupted)"]


def test_what_failed_on_the_way_is_in_the_course(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE).prompt("Read the first line of the almanac.")
    log.call("Write", {"file_path": "/sea/almanac", "content": "x"}, "File has not been read yet.", failed=True)
    log.call("Read", {"file_path": "/sea/almanac"}, "Almanac of the tides").say(
        "The first line is: Almanac of the tides"
    )
    course = best_of(tmp_path, "first line of the almanac")["course"]
    assert any("failed: File has not been read yet." in line[2] for line in course)


def test_the_words_that_one_part_of_a_message_lacks_are_quoted_from_another(tmp_path: Path) -> None:
    filler = "The review goes on with what the harbour has. " * 30
    log = claude_log(tmp_path / "logs", ONE).prompt("Look at the leak.")
    log.say(
        f"The leak of the pump is in the usage text. {filler}A lighthouse is too heavy, and nobody has one. {filler}"
    )
    (text,) = (hit[2] for hit in best_of(tmp_path, "leak pump usage lighthouse")["hits"] if hit[0] == 1)
    assert "The leak of the pump is in the usage text." in text and "A lighthouse is too heavy" in text
    assert len(text) <= 500


def test_the_event_that_others_are_listed_around_is_shown_whole(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE).prompt("Why is it late?")
    log.say("Because of the tide. " * 50 + "And of the fog.").say("So it is late. " * 50)
    around = asker_of(tmp_path).ask("get_event_details", session_id=ONE, event_index=1, around=1)["data"]["around"]
    assert around[1][2].endswith("And of the fog.") and len(around[2][2]) < TEXT * 1.3


def test_an_agent_that_is_named_comes_first(tmp_path: Path) -> None:
    claude_log(tmp_path / "logs", ONE).prompt("List the orders of the harbour office by hand, the first line only.")
    Rollout(tmp_path / "codex", T0).turn("Show the orders, please.", 10).write()
    asker = Asker(tmp_path / "data", tmp_path / "logs", tmp_path / "codex")
    for query, provider in (("orders first line", "claude_code"), ("codex orders", "codex")):
        best = best_in(asker.ask("search_event_previews", query=query))["sessions"]
        assert best[0]["provider"] == provider


def test_what_the_human_ran_last_is_told_by_how_it_ended(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE).prompt("Mend the sounding of the depths.").say("The sounding is mended.")
    output = "collected 11 items\n" + "test_depth.py ....\n" * 40 + "===== 5 failed, 6 passed in 0.3s =====\n"
    log.prompt("<bash-input>uv run pytest</bash-input>").prompt(
        f"<bash-stdout>{output}</bash-stdout><bash-stderr></bash-stderr>"
    )
    course = best_of(tmp_path, "mend the sounding of the depths")["course"]
    assert "5 failed, 6 passed" in course[-1][2]


def test_leaving_a_session_is_nothing_that_came_of_it(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE).prompt("Mend the sounding of the depths.").say("The sounding is mended.")
    log.prompt("<local-command-stdout></local-command-stdout>")
    assert "course" not in best_of(tmp_path, "mend the sounding of the depths")
