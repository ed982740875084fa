"""Lists of sessions: each filter checked against the tables, the message if nothing is found, stable pages."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agtrace.text.lines import one_line
from agtrace.text.next_call import call
from tests.agtrace.asking import Asker, call_in, claude_log, query
from tests.agtrace.terminal import agtrace_here, index_here
from tests.conftest import SAMPLES
from tests.depth import depth

FOLD = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def uids(asker: Asker, **filters: Any) -> set[str]:
    """The ids of a list, all pages, as the tables have them."""
    listed = [item["id"] for item in asker.items("list_sessions", "sessions", limit=50, **filters)]
    found = [uid for (uid,) in query(asker, "SELECT uid FROM session WHERE kind != 'warmup'")]
    whole = [shown if shown in found else next(uid for uid in found if uid.startswith(shown)) for shown in listed]
    assert len(whole) == len(set(whole))
    return set(whole)


def holding(rows: list[tuple[Any, ...]], text: str) -> set[str]:
    """The ids of rows (id, text) that contain a text, A to Z folded."""
    return {uid for uid, said in rows if text.translate(FOLD) in (said or "").translate(FOLD)}


TITLES = "SELECT uid, title FROM session WHERE kind != 'warmup'"
REQUESTS = """
SELECT uid, r.text FROM session s JOIN turn t ON t.session_id = s.id
JOIN request r ON r.session_id = s.id AND r.event_index = t.request_event WHERE s.kind != 'warmup'
"""
PATHS = """
SELECT DISTINCT uid, p.text FROM session s JOIN touched t ON t.session_id = s.id JOIN path p ON p.id = t.path_id
JOIN event e ON e.session_id = s.id AND e.event_index = t.event_index
WHERE e.superseded_by IS NULL AND e.copy_of IS NULL AND s.kind != 'warmup'
"""

# -- filters ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["surge", "The", "潮汐", "test", "%", "_", "a_", "'", "É", " the ", "no such text"])
def test_a_query_finds_what_titles_and_requests_contain(each: Asker, text: str) -> None:
    expected = holding(query(each, TITLES) + query(each, REQUESTS), text)
    assert uids(each, query=text) == expected
    assert uids(each, query=text.upper() if text.isascii() else text) == expected


@pytest.mark.parametrize("text", [".py", "INGEST", "/tests/", "readme", "%", "no such file"])
def test_a_path_finds_the_sessions_whose_own_calls_name_it(each: Asker, text: str) -> None:
    assert uids(each, path=text) == holding(query(each, PATHS), text)


def test_a_fork_has_not_touched_what_only_its_origin_did(tmp_path: Path) -> None:
    origin = claude_log(tmp_path / "logs", "aaaaaaaa-0000-4000-8000-000000000001").prompt("go")
    origin.call("Read", {"file_path": "/srv/tide.csv"}, "1").say("done")
    copy = origin.fork("bbbbbbbb-0000-4000-8000-000000000002")
    copy.prompt("on").call("Read", {"file_path": "/srv/moon.csv"}, "2").say("done")
    asker = Asker(tmp_path / "index", tmp_path / "logs")
    assert uids(asker, path="moon") == {copy.session_id}
    assert uids(asker, path="tide") == {origin.session_id}


def test_tokens_and_failures_restrict_by_what_the_list_shows(each: Asker) -> None:
    items = each.items("list_sessions", "sessions", limit=50, kind="all")
    totals = sorted(item["total_tokens"] for item in items if "total_tokens" in item)
    for least in (0, totals[0], totals[len(totals) // 2], totals[-1], totals[-1] + 1):
        found = each.items("list_sessions", "sessions", limit=50, min_tokens=least)
        assert found == [item for item in items if not least or item.get("total_tokens", 0) >= least]
    for failing in (True, False):
        found = each.items("list_sessions", "sessions", limit=50, has_failures=failing)
        assert found == [item for item in items if (item.get("failed_calls", 0) > 0) is failing]


def test_filters_restrict_together(each: Asker) -> None:
    together = {"query": "e", "path": ".", "has_failures": True, "min_tokens": 1, "provider": "claude_code"}
    alone = [uids(each, **{name: value}) for name, value in together.items()]
    assert uids(each, **together) == set.intersection(*alone)


def test_the_summary_counts_what_is_found_and_what_failed(each: Asker) -> None:
    """answers.md: `Found 12 sessions (3 with failures)`."""
    failing = len(uids(each, has_failures=True, kind="main"))
    total = len(uids(each, kind="main"))
    assert each.ask("list_sessions", kind="main")["summary"] == f"Found {total} sessions ({failing} with failures)"


# -- nothing found ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "hidden_by"),
    [
        ({"provider": "gemini", "has_failures": False}, "has_failures"),
        ({"provider": "codex", "min_tokens": 10**9}, "min_tokens"),
        ({"has_failures": True, "path": "no/such/file"}, "path"),
        ({"query": "no such text", "since": "2026-01-01"}, "query"),
        ({"query": "surge", "until": "2020-01-01"}, "until"),
        ({"query": "surge", "provider": "gemini"}, "query"),
    ],
)
def test_an_empty_list_names_the_filter_that_hides_all_and_the_call_without_it(
    samples: Asker, filters: dict[str, Any], hidden_by: str
) -> None:
    value = samples.ask("list_sessions", **filters)
    if value["data"]["sessions"]:
        pytest.skip("the samples have such a session")
    assert value["summary"] == "Found 0 sessions"
    name, arguments = call_in(value["hint"])
    assert (name, filters.keys() - arguments.keys()) == ("list_sessions", {hidden_by})
    assert f"that {hidden_by} hides" in value["hint"]
    shown = len(uids(samples, **arguments))
    assert f"shows {shown} session" in value["hint"] and shown > 0
    assert ("search_event_previews(query=" in value["hint"]) is ("query" in filters)


def test_an_empty_list_of_several_wrong_filters_offers_all_sessions(samples: Asker) -> None:
    assert uids(samples, path="\\tests\\") == uids(samples, path="/tests/") != set()
    assert {item["provider"] for item in samples.items("list_sessions", "sessions", model="GPT", branch="high-")} == {
        "codex"
    }
    value = samples.ask("list_sessions", query="no such text", path="no such file")
    assert call_in(value["hint"]) == ("list_sessions", {})
    assert f"shows all {len(uids(samples))}" in value["hint"]


@pytest.mark.parametrize("text", ["a  b", "   ", "a\n\n b\t", "\x1b[31m\x00", "\u202eabc\u2028", "'\"'", "\\ x20"])
def test_a_call_in_a_hint_keeps_every_character_of_a_text(text: str) -> None:
    assert call_in(one_line(call("list_sessions", query=text).written, 400)) == ("list_sessions", {"query": text})


def test_an_empty_index_says_where_to_look(tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    asker = Asker(tmp_path / "index", tmp_path / "nothing")
    for name, arguments in (("list_sessions", {"query": "x"}), ("list_sessions", {}), ("get_project_info", {})):
        assert "agtrace doctor" in asker.ask(name, **arguments)["hint"]


# -- pages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other", [{"query": "tides"}, {"path": "x"}, {"min_tokens": 1}, {"has_failures": True}, {"fields": "id"}]
)
def test_a_cursor_is_of_the_filters_it_was_made_with(samples: Asker, other: dict[str, Any]) -> None:
    cursor = samples.ask("list_sessions", query="e", limit=1)["pagination"]["next_cursor"]
    problem = samples.error("list_sessions", **{"query": "e", "limit": 1, "cursor": cursor} | other)
    assert (problem["code"], problem["details"]["reason"]) == ("invalid_cursor", "mismatch")


# -- what hints say --------------------------------------------------------------------------------

SIZE = re.compile(r"\(up to (\d+) KB\)")


def test_the_size_that_a_hint_names_is_that_of_the_answer(each: Asker) -> None:
    ordered = [uid for (uid,) in query(each, "SELECT uid FROM session WHERE event_count ORDER BY event_count DESC")]
    for uid, level in product({*ordered[: depth(2, 14)], *ordered[-depth(1, 8) :]}, ("summary", "turns", "steps")):
        hint = each.ask("get_session_details", session_id=uid, detail_level=level)["hint"]
        if found := SIZE.search(hint):
            follow, given = call_in(hint)
            assert len(each.anything(follow, **given).text.encode()) <= 1024 * int(found[1]), hint


def test_projects_are_listed_with_the_names_that_other_commands_take(tmp_path: Path) -> None:
    for number, folder in enumerate(("/home/mira/tidepool", "/home/mira/tidepool", "/home/mira/cinder"), 1):
        log = claude_log(tmp_path / "home", f"{number:08x}-0000-4000-8000-000000000000", cwd=folder)
        log.clock += 1_000 * number
        log.prompt("Draw the tide.").call("Bash", {"command": "make"}, "no rule", failed=True).say("Done.")
    index_here(tmp_path / "home")
    lines = agtrace_here("projects").out.splitlines()
    named = [line.split()[0] for line in lines if "2026-" in line]
    assert named == ["cinder", "tidepool"]
    for name, sessions in (("cinder", 1), ("tidepool", 2)):
        assert len(agtrace_here("sessions", "--project", name, "--json").json()["data"]["sessions"]) == sessions
    assert len(agtrace_here("projects", "--json", "--limit", "1").json()["data"]["projects"]) == 1


def test_the_project_in_which_something_happened_last_comes_first_whenever_its_sessions_began(tmp_path: Path) -> None:
    for number, folder in enumerate(("tidepool", "cinder", "lantern"), 1):
        log = claude_log(tmp_path / "home", f"{number:08x}-0000-4000-8000-000000000000", cwd=f"/home/mira/{folder}")
        log.clock += 1_000 * number
        log.prompt("Draw the tide.").clock += 86_400 * (4 - number)
        log.say("Done.")
    index_here(tmp_path / "home")
    listed = [line.split()[:3] for line in agtrace_here("projects").out.splitlines() if "2026-" in line]
    assert [name for name, *_ in listed] == ["tidepool", "cinder", "lantern"]
    assert [time for _, *time in listed] == sorted((time for _, *time in listed), reverse=True)


def test_last_is_the_session_in_which_something_happened_last_everywhere(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        log = claude_log(tmp_path / "home", f"{number:08x}-0000-4000-8000-000000000000")
        log.clock += 1_000 * (5 if number == 2 else number)
        log.prompt(f"Draw tide {number}.").call("Bash", {"command": "make"}, "done").say("Done.")
    index_here(tmp_path / "home")
    for command in ("show", "analyze", "resume"):
        assert "00000002" in agtrace_here(command, "last", "--json").out, command


def test_last_is_a_sub_agent_s_session_only_if_there_are_no_others(tmp_path: Path) -> None:
    (of_sub_agent,) = SAMPLES.rglob("agent-a3f80c1d7e5b24961.jsonl")
    index_here(of_sub_agent)
    assert agtrace_here("show", "last").code == 0
    claude_log(tmp_path / "home", "00000001-0000-4000-8000-000000000000").prompt("Draw the tide.").say("Done.")
    index_here(tmp_path / "home")
    assert "Draw the tide." in agtrace_here("show", "last").out


def test_that_there_is_nothing_is_said_with_the_stores_that_cant_be_read(tmp_path: Path) -> None:
    store = tmp_path / "logs" / ".crush" / "crush.db"
    store.parent.mkdir(parents=True)
    store.write_bytes(b"SQLite format 3\0")
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    assert asker.ask("list_sessions")["summary"] == "Found 0 sessions; 1 store can't be read: ax://health"
    health = json.loads(asker.ask("read_artifact", ref="ax://health")["data"]["text"])
    assert [line.partition(": ")[0] for line in health["index"]["unread"]] == [str(store)]
