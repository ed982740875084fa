"""Pages compared with the plain scan: following the cursors yields the same, even while the index grows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from agtrace_schema.codes import EVENT_TYPE_CODES, OUTCOME_CODES
from agtrace_schema.events import EventType, Outcome

from tests.agtrace.asking import Asker, claude_log, query
from tests.conftest import SAMPLES
from tests.contents import texts
from tests.depth import depth

Id = tuple[str, int]
"""The whole id of a session and an event_index."""


class Row(NamedTuple):
    """An event of the plain scan."""

    uid: str
    event_index: int
    folded: bytes
    """Its text in small letters."""
    ts: int
    row: int
    type: EventType
    tool: str | None
    """Or the kind of a notification."""
    outcome: Outcome | None
    provider: str
    project_hash: str | None


@pytest.fixture(scope="module")
def rows(each: Asker) -> list[Row]:
    """Every event that a search may find, newest first."""
    return scan(each)


def scan(asker: Asker) -> list[Row]:
    """The events of the index that are not superseded, newest first, with their texts."""
    connection = sqlite3.connect(asker.settings.database)
    facts = {
        (uid, index): (
            ts,
            row,
            EVENT_TYPE_CODES[kind],
            name,
            None if outcome is None else OUTCOME_CODES[outcome],
            *more,
        )
        for uid, index, ts, row, kind, name, outcome, *more in connection.execute(
            "SELECT s.uid, e.event_index, e.ts, e.id, e.type, n.text, e.outcome, s.provider, p.hash FROM event e "
            "JOIN session s ON s.id = e.session_id LEFT JOIN name n ON n.id = e.name_id "
            "LEFT JOIN project p ON p.id = s.project_id WHERE (e.superseded_by IS NULL OR e.superseded_by < 0)"
        )
    }
    found = [
        Row(uid, index, folded(text), *facts[uid, index])
        for uid, index, text, _ in texts(connection)
        if (uid, index) in facts
    ]
    connection.close()
    return sorted(found, key=lambda row: (row.ts, row.row), reverse=True)


def folded(text: str) -> bytes:
    return text.encode("utf-8", "replace").lower()  # bytes: A to Z only


def wanted(rows: list[Row], query: str, keep: Callable[[Row], bool] = lambda row: True) -> list[Id]:
    """What a scan finds."""
    text = folded(query)
    return [(row.uid, row.event_index) for row in rows if text in row.folded and keep(row)]


def whole_id(asker: Asker) -> Callable[[str], str]:
    connection = sqlite3.connect(asker.settings.database)
    known = [uid for (uid,) in connection.execute("SELECT uid FROM session")]
    connection.close()

    def resolve(short: str) -> str:
        found = [uid for uid in known if uid == short] or [uid for uid in known if uid.startswith(short)]
        assert len(found) == 1, f"{short} is shown for {found}"
        return found[0]

    return resolve


def hits(asker: Asker, *, most: int = 100_000, **arguments: Any) -> list[Id]:
    """What a search finds, its pages joined until there are so many."""
    resolve, found = whole_id(asker), []
    for page in asker.pages("search_event_previews", order="newest", **arguments):
        found += [(resolve(match["session_id"]), match["event_index"]) for match in page["data"]["matches"]]
        if len(found) >= most:
            break
    return found[:most]


# -- search --------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 11])
@pytest.mark.parametrize("query", ["traceback", "潮", "no such text in any log"])
def test_the_size_of_a_page_changes_nothing(each: Asker, rows: list[Row], query: str, limit: int) -> None:
    most = depth(30 * limit, 300)
    assert hits(each, most=most, query=query, limit=limit) == wanted(rows, query)[:most]


@pytest.mark.parametrize("most", [2_048, 10_240])
def test_pages_cut_short_by_bytes_lose_nothing(each: Asker, rows: list[Row], most: int) -> None:
    assert hits(each.with_most(most), query="error:") == wanted(rows, "error:")


def test_every_page_counts_the_same_total(each: Asker, rows: list[Row]) -> None:
    total, before = len(wanted(rows, "traceback")), 0
    for page in each.pages("search_event_previews", order="newest", query="traceback", limit=7):
        count = {"total_count": len(page["data"]["matches"]), "total_exact": True} | page["pagination"]
        assert count["total_count"] == total if count["total_exact"] else before < count["total_count"] <= total
        before += len(page["data"]["matches"])


FILTERS: dict[str, tuple[dict[str, Any], Callable[[Row], bool]]] = {
    "message": ({"kind": "message"}, lambda row: row.type == "Message"),
    "thought": ({"kind": "thought"}, lambda row: row.type == "Reasoning"),
    "call": ({"kind": "call"}, lambda row: row.type == "ToolCall"),
    "output": ({"kind": "output"}, lambda row: row.type == "ToolResult"),
    "error": (
        {"kind": "error"},
        lambda row: (
            (row.type == "ToolResult" and row.outcome in ("failed", "rejected", "interrupted"))
            or (row.type == "Notification" and "error" in (row.tool or "").lower())
        ),
    ),
    "notification": ({"kind": "notification"}, lambda row: row.type == "Notification"),
    "since": ({"since": "2026-10-06T12:33:00Z"}, lambda row: row.ts >= _ms("2026-10-06T12:33:00+00:00")),
    "until": ({"until": "2026-10-06"}, lambda row: row.ts < _ms("2026-10-07T00:00:00+00:00")),
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_leaves_what_the_scan_leaves(each: Asker, rows: list[Row], name: str) -> None:
    arguments, keep = FILTERS[name]
    assert hits(each, query="fail", limit=50, **arguments) == wanted(rows, "fail", keep)


@pytest.mark.thorough
def test_a_search_within_a_session_or_a_project_stays_there(each: Asker, rows: list[Row]) -> None:
    uid = max({row.uid for row in rows}, key=lambda uid: sum(row.uid == uid for row in rows))
    assert hits(each, query="e", limit=50, session_id=uid) == wanted(rows, "e", lambda row: row.uid == uid)
    project = next(row.project_hash for row in rows if row.project_hash)
    for given in (project, project[:8], project[:8].upper()):
        found = hits(each, query="error", limit=50, project_hash=given)
        assert found == wanted(rows, "error", lambda row: row.project_hash == project)


# -- lists ---------------------------------------------------------------------------------------

_SESSIONS = """
SELECT uid FROM session s LEFT JOIN project p ON p.id = s.project_id
WHERE s.kind != 'warmup' AND (s.kind != 'subagent' OR s.parent_session IS NULL) AND {}
ORDER BY coalesce(started_at, 0) DESC, s.id DESC
"""


@pytest.mark.parametrize("limit", [10, 50])
@pytest.mark.parametrize(
    ("arguments", "condition"),
    [
        ({}, "1"),
        ({"provider": "gemini"}, "provider = 'gemini'"),
        ({"since": "2026-09-22T13:06:00Z"}, "coalesce(ended_at, 0) >= 1790082360000"),
        ({"until": "2026-09-22"}, "nullif(started_at, 0) < 1790121600000"),
    ],
)
def test_the_pages_of_a_list_of_sessions_are_the_sessions(
    each: Asker, limit: int, arguments: dict[str, Any], condition: str
) -> None:
    resolve = whole_id(each)
    pages = list(each.pages("list_sessions", limit=limit, **arguments))
    listed = [item for page in pages for item in page["data"]["sessions"]]
    assert [resolve(item["id"]) for item in listed] == column(each, _SESSIONS.format(condition))
    assert {page.get("pagination", {}).get("total_count", len(listed)) for page in pages} == {len(listed)}


def test_the_pages_of_projects_are_the_projects(each: Asker) -> None:
    listed = each.items("get_project_info", "projects", limit=3)
    counts = query(
        each,
        "SELECT count(*) FROM repository_folder f JOIN session s USING (project_id) "
        "WHERE kind != 'warmup' AND (kind != 'subagent' OR parent_session IS NULL) "
        "GROUP BY f.repository_id ORDER BY max(ended_at) DESC NULLS LAST, f.repository_id DESC",
    )
    assert [item["session_count"] for item in listed] == [count for (count,) in counts]
    assert len({item["name"] for item in listed}) == len({item["hash"] for item in listed}) == len(listed)


# -- while the index grows -----------------------------------------------------------------------


def test_a_project_that_becomes_the_latest_during_a_walk_keeps_its_place_in_it(tmp_path: Path) -> None:
    logs = [
        claude_log(tmp_path / "logs", f"{number}a5e0000-0000-4000-8000-000000000000", cwd=f"/srv/p{number}")
        for number in range(3)
    ]
    for number, log in enumerate(logs):
        log.clock += 1_000 * number
        log.prompt("Draw the tide.").clock += 5_000
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    pages = asker.pages("get_project_info", limit=1)
    found = [next(pages)["data"]["projects"][0]["name"]]
    logs[0].say("Drawn.")
    asker.index()
    found += [item["name"] for page in pages for item in page["data"]["projects"]]
    assert found == ["p2", "p1", "p0"]
    assert [item["name"] for item in asker.items("get_project_info", "projects", limit=1)] == ["p0", "p2", "p1"]


def test_a_document_that_is_written_again_does_not_disturb_a_walk(tmp_path: Path) -> None:
    """Gemini CLI rewrites its JSON documents whole; what was shown on the first page's index is still there."""
    folder = "32b1891e2bed43befd48da1b4c20b2c96669a00ff44e9d70b6a0eecd131bed00/chats"
    document = tmp_path / "logs" / folder / "session-2026-09-22T13-05-ccde789b.json"
    document.parent.mkdir(parents=True)
    text = (SAMPLES / "gemini" / "tmp" / folder / document.name).read_text()
    document.write_text(text)
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    before = hits(asker, query="tidepool", limit=50)
    first = asker.ask("search_event_previews", order="newest", query="tidepool", limit=2)
    document.write_text(text.replace("2026-09-22T13:07", "2026-09-22T13:08"))
    asker.index()
    rest = hits(asker, query="tidepool", limit=50, cursor=first["pagination"]["next_cursor"])
    assert rest == before[2:]


def test_a_cursor_of_a_large_index_takes_at_most_64_characters(tmp_path: Path) -> None:
    """A search between two times where event ids have six digits: a model reads every character of a cursor."""
    claude_log(tmp_path / "logs", "00000001-0000-4000-8000-000000000000").prompt("tide")
    asker = Asker(tmp_path / "data", tmp_path / "logs")
    connection = sqlite3.connect(asker.settings.database)
    connection.execute("UPDATE sqlite_sequence SET seq = 900000 WHERE name IN ('event', 'session')")
    connection.commit()
    connection.close()
    for number in range(30):
        claude_log(tmp_path / "logs", f"{number + 10:08}-0000-4000-8000-000000000000").prompt("tide").say("a tide").say(
            "b tide"
        ).say("c tide")
    asker.index()
    between = {"since": "2026-09-01T10:00:00Z", "until": "2026-12-01T10:00:00Z", "limit": 7}
    assert len(asker.items("search_event_previews", "matches", order="newest", query="tide", **between)) == 121
    assert len(asker.items("list_sessions", "sessions", **between)) == 31


# -- relative times ------------------------------------------------------------------------------


def test_relative_times_are_counted_from_now(samples: Asker) -> None:
    """7d before 9 November is after 1 November; a walk keeps the window of its first page."""
    now = [datetime(2026, 11, 9, 12, tzinfo=UTC).timestamp()]
    asker = Asker(samples.settings.data_dir, now=lambda: now[0])
    resolve = whole_id(asker)
    recent = [resolve(item["id"])[:8] for item in asker.items("list_sessions", "sessions", since="7d", until="today")]
    assert "d41f7a52" in recent and "338b9da1" not in recent and "e97a4b06" not in recent
    earlier = hits(asker, query="e", since="3w", until="2w", limit=50)
    assert {"e97a4b06", "agent-a3"} <= {uid[:8] for uid, _ in earlier}
    assert "d41f7a52" not in {uid[:8] for uid, _ in earlier}
    first = asker.ask("search_event_previews", order="newest", query="", since="6d", limit=10)
    whole = hits(asker, query="", since="6d", limit=50)
    now[0] += 1_200
    rest = hits(asker, query="", since="6d", limit=10, cursor=first["pagination"]["next_cursor"])
    assert whole[10:] == rest


# -- ids -----------------------------------------------------------------------------------------


def test_every_session_that_is_shown_can_be_opened(each: Asker) -> None:
    """Whatever id an answer shows is accepted by every tool that takes one: here of lists and session heads.

    Usually of every third session.
    """
    shown: set[str | None] = set()
    for item in each.items("list_sessions", "sessions", limit=50)[:: depth(3, 1)]:
        head = each.ask("get_session_details", session_id=item["id"])["data"]
        shown |= {item["id"], head["session_id"], *(child["id"] for child in head.get("children", []))}
        shown |= {item.get("parent_id"), head.get("parent_id")}
    refused = {id for id in shown - {None} if each.anything("analyze_session", session_id=id).is_error}
    assert refused == set()


def test_every_project_that_is_shown_can_be_filtered_by(each: Asker) -> None:
    for item in each.items("get_project_info", "projects", limit=50):
        listed = each.ask("list_sessions", project=item["name"], limit=50)
        assert listed.get("pagination", {}).get("total_count", len(listed["data"]["sessions"])) == item["session_count"]
        each.ask("search_event_previews", order="newest", query="e", project=item["hash"])


def test_every_event_and_turn_that_is_shown_can_be_opened(each: Asker) -> None:
    found = each.items("search_event_previews", "matches", order="newest", query="failed", limit=50)
    for match in found[: depth(12, 50)]:
        opened = each.ask("get_event_details", session_id=match["session_id"], event_index=match["event_index"])["data"]
        session = {"session_id": match["session_id"]}
        for link in ("call_event", "result_event", "previous_event", "next_event"):
            if link in opened:
                linked = each.ask("get_event_details", **session, event_index=opened[link])["data"]
                assert linked["event_index"] == opened[link]
        if "turn_index" in opened:
            details = each.ask("get_session_details", **session, detail_level="turns", turn_index=opened["turn_index"])
            assert [turn["turn_index"] for turn in details["data"]["turns"]] == [opened["turn_index"]]


def _ms(iso: str) -> int:
    return round(datetime.fromisoformat(iso).timestamp() * 1000)


def column(asker: Asker, sql: str) -> list[Any]:
    return [row[0] for row in query(asker, sql)]
