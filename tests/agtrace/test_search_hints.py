"""What a search says in addition to its hits: links, sessions, words that were not found, and next calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agtrace.asking import Asker, call_in, claude_log

ONE, TWO = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"


@pytest.fixture
def asker(tmp_path: Path) -> Asker:
    """Two sessions in which a setting changed several times."""
    first = claude_log(tmp_path / "logs", ONE, cwd="/srv/one")
    first.prompt("set the gauge interval").call("Edit", {"file_path": "/srv/one/Gauge.toml"}, "interval = 5")
    first.prompt("again").call("Bash", {"command": "make check"}, "interval is wrong", failed=True).say("it fails")
    second = claude_log(tmp_path / "logs", TWO, cwd="/srv/two")
    second.clock += 1_000
    second.prompt("why is the gauge late?").say("Its interval was 5.").say("Now it is 9.")
    second.call("Read", {"file_path": "/srv/two/gauge.toml"}, 'said "interval": 9\tat C:\\gauge')
    return Asker(tmp_path / "data", tmp_path / "logs")


def search(asker: Asker, text: str, **arguments: Any) -> dict[str, Any]:
    return asker.ask("search_event_previews", **{"order": "newest", "query": text, **arguments})


def led_to(asker: Asker, answer: dict[str, Any]) -> dict[str, Any]:
    """What the call in the hint gives."""
    return asker.run(answer["hint"])


# -- previews and their links ----------------------------------------------------------------------


def test_a_preview_names_the_other_half_of_its_execution_and_quotes_it_only_if_it_is_not_listed(
    samples: Asker,
) -> None:
    asked = {"order": "newest", "query": "", "tool": "Bash", "limit": 50}
    for page in list(samples.pages("search_event_previews", **asked))[:2]:
        listed = {(match["session_id"], match["event_index"]): match for match in page["data"]["matches"]}
        for match in listed.values():
            if (match["session_id"], match.get("result_event")) in listed:
                assert not match.keys() & {"error", "result"}
            assert ("call_event" in match) is (match["event_type"] == "ToolResult")
        opened = samples.ask("get_event_details", session_id=match["session_id"], event_index=match["event_index"])
        for link in ("call_event", "result_event"):
            assert match.get(link) == opened["data"].get(link)


def test_tool_inputs_and_outputs_are_found_as_they_stand_also_where_json_escapes_them(asker: Asker) -> None:
    for text in ('"interval": 9\tat C:\\gauge', "/srv/two/gauge.toml", "make check", "interval is wrong"):
        assert len(search(asker, text)["data"]["matches"]) == 1, text


def test_a_call_that_failed_shows_the_line_that_tells_why(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE).prompt("Draw the chart.")
    log.call("Bash", {"command": "draw tide"}, "reading\nError: no such gauge: cormorant\nat line 3", failed=True)
    log.call("Bash", {"command": "draw tide --all"}, "drawn")
    found = Asker(tmp_path / "data", tmp_path / "logs").items(
        "search_event_previews", "matches", query="draw tide", order="oldest", kind="command"
    )
    assert [match.get("error") for match in found] == ["Error: no such gauge: cormorant", None]


def test_a_search_that_finds_nothing_says_how_many_sessions_it_looked_into(samples: Asker) -> None:
    listed = samples.items("list_sessions", "sessions", provider="gemini")
    total, some = len(listed), listed[0]["id"]
    nothing = samples.ask("search_event_previews", query="zqxjkv", order="newest", provider="gemini")
    assert nothing["summary"] == f"Found 0 events containing 'zqxjkv' in {total} sessions"
    inside = samples.ask("search_event_previews", query="zqxjkv", order="newest", session_id=some)
    assert inside["summary"] == "Found 0 events containing 'zqxjkv'"


def test_sessions_that_only_started_or_were_asked_once_are_searched_too(tmp_path: Path) -> None:
    """Hidden from lists, reachable by search and by their id."""
    claude_log(tmp_path / "logs", ONE).write("user", "Warmup", isSidechain=True, agentId="a1").say("ready, one-shot")
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    (match,) = search(asker, "one-shot")["data"]["matches"]
    assert asker.ask("get_session_details", session_id=match["session_id"])["success"]


# -- sessions --------------------------------------------------------------------------------------


def test_hits_by_session_show_each_session_once_with_its_newest_hit_and_their_number(asker: Asker) -> None:
    answer = search(asker, "interval", group_by="session")
    sessions = answer["data"]["matches"]
    assert [(item["session_id"], item["hits"], item["event_index"]) for item in sessions] == [
        (TWO[:8], 2, 4),
        (ONE[:8], 3, 5),
    ]
    assert sessions[0]["title"] == "why is the gauge late?"
    assert answer["summary"] == "Found 2 sessions containing 'interval'"
    older = search(asker, "interval", group_by="session", order="oldest")["data"]["matches"]
    assert [(item["session_id"], item["event_index"]) for item in older] == [(ONE[:8], 0), (TWO[:8], 1)]


def test_every_page_of_sessions_fits_and_together_they_are_the_sessions_with_hits(samples: Asker) -> None:
    asked = {"query": "test", "limit": 50}
    found = samples.with_most(2_048).items("search_event_previews", "matches", group_by="session", **asked)
    assert len({item["session_id"] for item in found}) == len(found)
    every = samples.items("search_event_previews", "matches", order="newest", **asked)
    assert sum(item["hits"] for item in found) == len(every)
    assert [item["session_id"] for item in found] == list(dict.fromkeys(match["session_id"] for match in every))


# -- words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ['it\'s "wrong"', "a\tb  c", "\\ x", "潮 \u2028 y", "\x00 \u0085 z", "x" * 300 + " y"])
def test_no_query_makes_a_hint_that_is_no_call(tmp_path: Path, text: str) -> None:
    claude_log(tmp_path / "logs", ONE).prompt(" ".join(reversed(text.split())) + " " + text.replace("\t", "-"))
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    for arguments in ({}, {"tool": "Bash"}, {"failed": True}):
        answer = search(asker, text, **arguments)
        if answer["data"]["matches"]:
            continue
        led_to(asker, answer)


# -- filters, ids and own calls --------------------------------------------------------------------


def test_filters_that_hide_everything_are_named_with_the_call_without_them(asker: Asker) -> None:
    answer = search(asker, "interval", session_id=TWO, tool="Bash", since="2020-01-01")
    assert "finds 5, without session_id, tool, since" in answer["hint"]
    assert call_in(answer["hint"]) == ("search_event_previews", {"query": "interval", "order": "newest"})
    assert len(led_to(asker, answer)["data"]["matches"]) == 5
    assert call_in(search(asker, "wr.ng", regex=True, failed=False)["hint"])[1] == {
        "order": "newest",
        "query": "wr.ng",
        "regex": True,
    }


def test_only_calls_that_name_a_file_are_found_by_its_path_and_their_results(asker: Asker) -> None:
    found = search(asker, "", path="GAUGE.toml")["data"]["matches"]
    assert [(match["session_id"], match["event_index"]) for match in found] == [
        (TWO[:8], 4), (TWO[:8], 3), (ONE[:8], 2), (ONE[:8], 1),
    ]  # fmt: skip
    assert search(asker, "5", path="gauge")["data"]["matches"][0]["event_index"] == 2


@pytest.mark.parametrize("given", [ONE, ONE[:8], f" {ONE[:13].upper().lower()} "])
def test_an_id_that_stands_in_no_text_leads_to_its_session(asker: Asker, given: str) -> None:
    """A look-up by id is one call."""
    answer = search(asker, given)
    assert call_in(answer["hint"]) == ("get_session_details", {"session_id": ONE[:8]})
    assert led_to(asker, answer)["data"]["session_id"].startswith(ONE[:8])


def test_where_nothing_helps_the_hint_is_still_a_call(asker: Asker) -> None:
    answer = search(asker, "zebra", order="best")
    assert led_to(asker, answer)["data"]["sessions"]
    assert led_to(asker, search(asker, "zebra quagga", order="best"))["data"]["sessions"]


def test_an_empty_index_has_no_matches_and_still_a_hint(tmp_path: Path) -> None:
    asker = Asker(tmp_path / "data", tmp_path)
    for arguments in ({}, {"group_by": "session"}, {"order": "oldest", "path": "x"}):
        assert "hint" in search(asker, "two words", **arguments)


def test_what_hits_can_be_grouped_by_is_said_where_it_is_something_else(asker: Asker) -> None:
    error = asker.error("search_event_previews", query="tide", group_by="sessions")
    assert error["details"] == {"field": "group_by", "allowed": ["session"], "nearest": "session"}
