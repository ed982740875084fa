"""What humans asked for, as a section of a session, and the figures of a session in its stats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agtrace.asking import Asker, claude_log, query
from tests.agtrace.terminal import agtrace_here

COUNTED = "superseded_by IS NULL AND copy_of IS NULL"


def said_by_humans(asker: Asker, uid: str) -> list[tuple[int, int | None]]:
    """The events of a session in which a human or a parent speaks, with their turns."""
    return query(
        asker,
        "SELECT e.event_index, e.turn_index FROM event e JOIN session s ON s.id = e.session_id "
        f"LEFT JOIN name n ON n.id = e.name_id WHERE s.uid = ? AND e.type = 0 AND n.text IN ('human', 'task') "
        f"AND {COUNTED} ORDER BY 1",
        uid,
    )


def test_requests_are_a_humans_or_a_parents_words(each: Asker) -> None:
    for (uid,) in query(each, "SELECT uid FROM session"):
        items = each.items("get_session_details", "requests", session_id=uid, sections=["requests"])
        assert [(item["event_index"], item.get("turn_index")) for item in items] == said_by_humans(each, uid)
        assert all(len(item["text"]) <= 200 and "\n" not in item["text"] for item in items)


def test_the_stats_of_a_session_are_the_measures_of_lists(each: Asker) -> None:
    for measure in ("failure_run", "edits", "compactions"):
        for item in each.items("list_sessions", "sessions", limit=50, sort=measure)[:8]:
            stats = each.ask("get_session_details", session_id=item["id"], sections="stats")["data"]["stats"]
            assert stats.get(measure, 0) == item[measure]
    for (uid,) in query(each, "SELECT uid FROM session ORDER BY event_count DESC LIMIT 20"):
        stats = each.ask("get_session_details", session_id=uid, sections="stats")["data"]["stats"]
        assert stats.get("human_requests", 0) == len(said_by_humans(each, uid))


def test_failures_that_only_a_text_tells_of_are_told_apart(samples: Asker) -> None:
    for id, failed, by_text in (("ccde789b", 2, 1), ("338b9da1", 1, 1), ("d41f7a52", None, None)):
        stats = samples.ask("get_session_details", session_id=id, sections="stats")["data"]["stats"]
        assert stats.get("failed_by_text") == by_text and failed in (None, stats["failed_calls"])


@pytest.fixture
def asked(tmp_path: Path) -> Asker:
    log = claude_log(tmp_path / "logs", "aaaaaaaa-0000-4000-8000-000000000000")
    log.prompt("Mend the gauge.\nIt is late.").say("done")
    log.prompt("<command-name>/compact</command-name>").prompt("[Request interrupted by user]")
    for number in range(60):
        log.prompt(f"Now gauge {number}").say("done")
    return Asker(tmp_path / "index", tmp_path / "logs")


def test_commands_and_interruptions_are_no_requests(asked: Asker) -> None:
    session: dict[str, Any] = {"session_id": "aaaaaaaa", "sections": ["requests"]}
    items = asked.items("get_session_details", "requests", **session, max_bytes=2_048)
    assert [item["text"] for item in items] == ["Mend the gauge. It is late.", *(f"Now gauge {n}" for n in range(60))]
    assert len(list(asked.pages("get_session_details", **session, max_bytes=2_048))) > 1


def test_the_hint_opens_the_first_request(asked: Asker) -> None:
    hint = asked.ask("get_session_details", session_id="aaaaaaaa", sections=["requests"])["hint"]
    assert "the first request" in hint
    assert asked.run(hint)["data"]["payload"]["text"].startswith("Mend the gauge.")


def test_the_command_line_lists_all_requests(indexed: Path) -> None:
    said = agtrace_here("show", "d41f7a52", "--sections", "requests")
    assert said.code == 0 and "requests: 44" in said.out and "Get an overview of tidepool" in said.out
