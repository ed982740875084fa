"""Ranked search: which events it may show, and that it follows every append."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.agtrace.asking import Asker, best_in, claude_log, query
from tests.conftest import SAMPLES
from tests.depth import part

ONE, TWO = (f"0badc0de-0000-4000-8000-00000000000{number}" for number in (1, 2))
SEARCH = "mcp__agtrace__search_event_previews"
QUERIES = ("database is locked", "surge warning on the map", "flaky test high water")
FILTERS: dict[str, dict[str, Any]] = {
    "provider": {"provider": "codex"},
    "event_type": {"event_type": "Message"},
    "kind": {"kind": "error"},
    "tool": {"tool": "Bash"},
    "failed": {"failed": True},
    "since": {"since": "2026-10-01"},
    "until": {"until": "2026-10-01"},
    "path": {"path": "tidepool"},
    "session_id": {"session_id": "d41f7a52"},
    "several": {"provider": "claude_code", "tool": "Bash", "since": "2026-10-01"},
}


def ranked(asker: Asker, text: str, **filters: Any) -> list[dict[str, Any]]:
    """The sessions that a search shows with their best events."""
    found: list[dict[str, Any]] = best_in(asker.ask("search_event_previews", query=text, **filters))["sessions"]
    return found


def holding(asker: Asker, word: str) -> set[tuple[Any, ...]]:
    """The events in which the ranking index has a word."""
    return set(
        query(
            asker,
            "SELECT s.uid, e.event_index FROM ranked JOIN event e ON e.id = ranked.rowid JOIN session s "
            "ON s.id = e.session_id WHERE ranked MATCH ? AND coalesce(e.superseded_by, -1) < 0 AND e.copy_of IS NULL",
            word,
        )
    )


@pytest.mark.parametrize("name", part([*FILTERS], 0, 2))
def test_every_event_that_is_shown_passes_the_filters(samples: Asker, name: str) -> None:
    filters = FILTERS[name]
    everything = samples.items("search_event_previews", "matches", query="", order="newest", limit=50, **filters)
    passing = {(match["session_id"], match["event_index"]) for match in everything}
    for text in QUERIES:
        value = samples.ask("search_event_previews", query=text, **filters)
        for session in best_in(value)["sessions"]:
            shown = {(session["session_id"], event_index) for event_index, _, _ in session["hits"]}
            assert shown and shown <= passing


def test_every_event_that_is_shown_holds_a_word_of_the_query(samples: Asker) -> None:
    for text in QUERIES:
        for session in ranked(samples, text):
            for event_index, _, _ in session["hits"]:
                body = samples.body(session["session_id"], event_index).lower()
                assert any(word[:4] in body for word in text.split() if len(word) > 2)


def test_a_ranking_that_grew_with_every_append_is_that_of_a_fresh_index(tmp_path: Path) -> None:
    files = [path for path in sorted(SAMPLES.rglob("*.jsonl")) if path.stat().st_size < 400_000]
    copies = {path: tmp_path / "logs" / path.relative_to(SAMPLES) for path in files}
    for copy in copies.values():
        copy.parent.mkdir(parents=True, exist_ok=True)
    grown = Asker(tmp_path / "grown", tmp_path / "logs")
    for share in (0.3, 0.6, 1.0):
        for path, copy in copies.items():
            content = path.read_bytes()
            copy.write_bytes(content[: int(len(content) * share)])
        grown.index(tmp_path / "logs")
    fresh = Asker(tmp_path / "fresh", tmp_path / "logs")
    size = query(grown, "SELECT count(*) FROM ranked_docsize")
    assert query(grown, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'ranked_size'") == size > [(100,)]
    assert query(fresh, "SELECT count(*) FROM ranked_docsize") == size
    for word in ("locked", "tests", "lanternfish"):
        assert holding(fresh, word) and holding(grown, word) == holding(fresh, word)
    for text in QUERIES:
        one, other = (asker.ask("search_event_previews", query=text)["data"] for asker in (grown, fresh))
        assert one == other


def test_a_session_that_only_asked_does_not_outrank_the_one_that_knows(tmp_path: Path) -> None:
    knows = claude_log(tmp_path / "logs", ONE).prompt("The pelican nest is wet.")
    knows.call("Bash", {"command": "lift-nest --pelican"}, "lifted").say("I lifted the pelican nest; it is dry now.")
    asks = claude_log(tmp_path / "logs", TWO)
    asks.clock += 5_000
    asks.prompt("How did we get the pelican nest dry?").say("Let me search how the pelican nest got dry.")
    asks.call(SEARCH, {"query": "pelican nest dry"}, "Best matches").say("The pelican nest was lifted, so it is dry.")
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    assert [session["session_id"] for session in ranked(asker, "pelican nest dry")] == [ONE]
    assert asker.ask("search_event_previews", query="search how the pelican", order="newest")["data"]["matches"]


def test_a_call_and_its_result_are_one_hit_that_says_whether_it_failed(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE).prompt("Paint the hull.")
    log.call("Bash", {"command": "paint --colour turquoise hull"}, "no turquoise left in the locker", failed=True)
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    (session,) = ranked(asker, "turquoise locker paint")
    (hit,) = [hit for hit in session["hits"] if hit[1] == "Bash"]
    assert hit[2] == "paint --colour turquoise hull -> failed: no turquoise left in the locker"


def test_of_the_best_session_a_few_hits_are_shown(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE).prompt("Where does the pelican nest?")
    for text in (
        "Pelican eggs were counted yesterday.", "Fishermen feed every pelican after sunset.",
        "Ringed pelican chicks: seventeen.", "Beware, that pelican bites tourists.",
        "Somebody painted another pelican green.", "Customs officers adopted one pelican.",
    ):  # fmt: skip
        log.say(text)
    (session,) = ranked(Asker(tmp_path / "data", tmp_path / "logs"), "pelican")
    assert len(session["hits"]) == 3


def test_the_pages_of_a_ranked_search_are_all_events_with_a_word_each_once(samples: Asker) -> None:
    every = {place for word in ("surge", "warning") for place in holding(samples, word)}
    for limit in (10, 50):
        pages = [*samples.pages("search_event_previews", query="surge warning", limit=limit)]
        found = [(match["session_id"], match["event_index"]) for page in pages for match in page["data"]["matches"]]
        assert len(found) == len(set(found)) >= 0.9 * len(every) > limit
        assert {page["pagination"]["order"] for page in pages} == {"best"}


def test_a_part_of_a_word_is_found_literally_before_what_has_its_words(samples: Asker) -> None:
    listed = samples.items("search_event_previews", "matches", query="atabase is lock", order="newest")
    value = samples.ask("search_event_previews", query="atabase is lock")
    assert value["summary"].startswith(f"Found in {len(listed)} events, then best matches by words")
    first = [(match["session_id"], match["event_index"]) for match in value["data"]["matches"]]
    assert {*first[: len(listed)]} == {(match["session_id"], match["event_index"]) for match in listed}


def test_of_matches_grouped_or_not_only_the_fields_asked_for_are_sent(samples: Asker) -> None:
    for asked in ({"group_by": "session"}, {}):
        value = samples.ask("search_event_previews", query="database is locked", fields="hits,timestamp", **asked)
        kept = {"session_id", "event_index", "timestamp"} | ({"hits"} if asked else set())
        assert value["data"].keys() == {"matches"} and all(one.keys() == kept for one in value["data"]["matches"])


def test_a_ranking_index_that_is_missing_is_made_again(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE).prompt("Where does the pelican nest?")
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    with closing(sqlite3.connect(asker.settings.database)) as connection, connection:
        connection.execute("DROP TABLE ranked")
    log.say("On the breakwater.")
    asker.index()
    assert len(asker.items("search_event_previews", "matches", query="pelican nest breakwater")) == 2


def test_a_session_of_the_project_that_is_named_comes_before_others_that_say_the_same(tmp_path: Path) -> None:
    for number, folder in enumerate(("harbour-map", "tide-tables", "quay")):
        uid = f"{number}badc0de-0000-4000-8000-000000000001"
        claude_log(tmp_path / "logs", uid, cwd=f"/srv/{folder}").prompt("Mend the pelican").say(
            "The pelican is mended."
        )
    for number in range(20):
        claude_log(tmp_path / "logs", f"{number:08}-0000-4000-8000-000000000001").prompt("Hello").say("Hello!")
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    for folder in ("harbour-map", "tide-tables", "quay"):
        assert ranked(asker, f"pelican of {folder}")[0]["project"] == folder


def test_words_that_stand_nowhere_are_named_and_the_answer_is_short(samples: Asker) -> None:
    value = samples.ask("search_event_previews", query="terraform database locked")
    assert best_in(value)["nowhere"] == ["terraform"] and len(best_in(value)["sessions"]) <= 2
    assert value["summary"].startswith("Only weak matches by words")
    assert re.search(r"nowhere in \d+ sessions: terraform", value["summary"])


def test_failures_of_the_model_s_api_are_ranked(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE).prompt("Mend the tide.")
    log.write(
        "system",
        "Quota exceeded for cormorant models",
        subtype="api_error",
        level="error",
        retryAttempt=1,
        maxRetries=2,
    )
    claude_log(tmp_path / "logs", TWO).prompt("Mend the charts.").say("Mended.")
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    value = asker.ask("search_event_previews", query="cormorant quota exceeded yesterday", kind="error")
    assert ONE.startswith(best_in(value)["sessions"][0]["session_id"])
    assert "cormorant" in best_in(value)["sessions"][0]["hits"][0][2]


def test_a_query_of_which_a_single_word_is_spelled_differently_is_answered(tmp_path: Path) -> None:
    claude_log(tmp_path / "logs", ONE).prompt("Which color palette do the pelican charts use?").say("Viridis.")
    claude_log(tmp_path / "logs", TWO).prompt("Mend the palette of the charts.").say("Mended.")
    for number in range(20):
        claude_log(tmp_path / "logs", f"{number:08}-0000-4000-8000-000000000001").prompt("Hello").say("Hello!")
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    value = asker.ask("search_event_previews", query="kolor palette pelican charts")
    assert value["summary"].startswith("Partial matches by words") and value["summary"].endswith("; nowhere: kolor")
    assert ONE.startswith(best_in(value)["sessions"][0]["session_id"])
    for fewer in ("kolor palette charts", "kolor gradient pelican charts"):
        assert asker.ask("search_event_previews", query=fewer)["summary"].startswith("Only weak matches")


@pytest.mark.parametrize(
    ("written", "asked"),
    [("color", "colour"), ("behaviour", "behavior"), ("normalize", "normalise"), ("catalog", "catalogue")],
)
def test_words_are_found_as_they_are_spelled_on_the_other_side_of_the_atlantic(
    tmp_path: Path, written: str, asked: str
) -> None:
    claude_log(tmp_path / "logs", ONE).prompt(f"Mend the {written} of the charts.").say("Mended.")
    for number in range(20):
        claude_log(tmp_path / "logs", f"{number:08}-0000-4000-8000-000000000001").prompt("Mend the charts").say(
            "Hello!"
        )
    value = Asker(tmp_path / "data", tmp_path / "logs").ask(
        "search_event_previews", query=f"mend the {asked} of charts"
    )
    assert value["summary"].startswith("Best matches by words") and "nowhere" not in value["summary"]
    assert ONE.startswith(best_in(value)["sessions"][0]["session_id"])


def test_a_word_in_the_middle_of_a_long_output_is_not_said_to_stand_nowhere(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE).prompt("Where is the cormorant?")
    log.call("Bash", {"command": "cat birds"}, "gull\n" * 900 + "albatross\n" + "gull\n" * 900)
    for _ in range(30):
        log.say("Something else.")
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    best = best_in(asker.ask("search_event_previews", query="cormorant cat birds gull albatross zebra"))
    assert best["nowhere"] == ["zebra"]


def test_weak_matches_say_which_words_the_best_session_lacks(tmp_path: Path) -> None:
    """Not those in the middle of a long output, which the ranking index lacks but the session has."""
    one = claude_log(tmp_path / "logs", ONE).prompt("Count the zebras of the harbour in the kelp by lantern.")
    one.call("Bash", {"command": "cat birds"}, "gull\n" * 900 + "albatross\n" + "gull\n" * 900)
    two = claude_log(tmp_path / "logs", TWO).prompt("Draw the cormorant and the albatross.").say("Painted crimson.")
    for log in (one, two):
        for number in range(30):
            log.say(f"Something else, number {number}.")
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    query = "zebras harbour kelp lantern cormorant albatross crimson painted"
    best = best_in(asker.ask("search_event_previews", query=query))
    assert best["sessions"][0]["title"].startswith("Count the zebras")
    assert best["lacking"] == ["cormorant", "crimson", "painted"]
    assert "lacking" not in best_in(asker.ask("search_event_previews", query="zebras harbour kelp"))


def test_a_search_for_an_error_begins_with_what_worked_after_it(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", "7c0f5a52-0000-4000-8000-000000000001").prompt("Draw the chart of the tide.")
    error = "Exit code 1\nError: Cannot find stylesheet harbour.sass"
    log.call("Bash", {"command": "npm run sass"}, error, failed=True)
    edit = {"file_path": "a.sass", "old_string": "a\n" + "same\n" * 99 + "c", "new_string": "b\n" + "same\n" * 99 + "c"}
    log.call("Edit", edit, "updated")
    log.call("Bash", {"command": "npm install harbour"}, "added 1 package")
    log.call("Bash", {"command": "npm run sass"}, "compiled")
    asker = Asker(tmp_path, tmp_path / "home")
    best = best_in(asker.ask("search_event_previews", query="Cannot find stylesheet harbour"))
    assert next(iter(best)) == "worked"
    assert (best["worked"]["text"], len(best["worked"]["changes"])) == ("npm run sass", 1)
    assert best["worked"]["command"][1] == "npm install harbour"
    assert best["worked"]["last_change"] == "a.sass + b - a", "what is new first, and nothing that stays"
    opened = asker.ask("get_event_details", session_id="7c0f5a52", event_index=best["worked"]["succeeded"])
    assert opened["data"]["outcome"] == "ok"


def test_the_session_that_has_the_query_as_a_text_comes_first_even_in_the_middle_of_an_output(tmp_path: Path) -> None:
    one, other = "a0000000-0000-4000-8000-000000000001", "a0000000-0000-4000-8000-000000000002"
    log = claude_log(tmp_path / "logs", one).prompt("Look at the pier.")
    log.call("Bash", {"command": "make pier"}, "plank\n" * 300 + "harbour script failed (code 2)\n" + "plank\n" * 300)
    log = claude_log(tmp_path / "logs", other).prompt("Why did the script of the harbour fail?")
    log.say("The harbour's script failed as a code was wrong.").say("A script for the harbour, which failed.")
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    first, *_ = best_in(asker.ask("search_event_previews", query="harbour script failed"))["sessions"]
    assert first["session_id"] == one
    assert "harbour script failed (code 2)" in first["hits"][0][2]


def test_a_query_that_only_a_text_of_the_program_has_whole_is_not_claimed_to_be_found(tmp_path: Path) -> None:
    words = "kubernetes ingress certificate renewal"
    log = claude_log(tmp_path / "logs", ONE).prompt("Mend the crane.").say("The crane is mended.")
    log.prompt(f"<local-command-stdout>{words}</local-command-stdout>")
    other = claude_log(tmp_path / "logs", TWO).prompt("Paint the certificate of the harbour.")
    for number in range(30):
        other.say(f"Something else, number {number}.")
    value = Asker(tmp_path / "data", tmp_path / "logs").ask("search_event_previews", query=words)
    assert not value["summary"].startswith("Best matches")
