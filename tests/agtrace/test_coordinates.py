"""Coordinates lead to the same place wherever they are shown: in previews, at every level, in event details."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.agtrace.asking import Asker, query
from tests.conftest import LOGS
from tests.depth import depth

EVENTS = depth(40, 100)
_HEADER = re.compile(r"^## event (\d+) · (?:turn (\d+)(?: step (\d+))? · )?(\w+)", re.M)


@pytest.fixture(scope="module")
def indexed(request: pytest.FixtureRequest) -> Asker:
    """Of the samples, and of the real logs where they are."""
    found: Asker = request.getfixturevalue("everything" if LOGS.is_dir() else "samples")
    return found


def chosen(asker: Asker) -> Iterator[tuple[str, int]]:
    """Events of all sessions, each type alike often."""
    events = query(
        asker,
        "SELECT s.uid, e.event_index, e.type FROM event e JOIN session s ON s.id = e.session_id "
        "WHERE e.superseded_by IS NULL ORDER BY s.uid, e.event_index",
    )
    dice = random.Random(300)
    by_type: dict[int, list[tuple[str, int]]] = {}
    for uid, index, kind in events:
        by_type.setdefault(kind, []).append((uid, index))
    for number in range(EVENTS):
        yield dice.choice(by_type[sorted(by_type)[number % len(by_type)]])


def test_the_coordinates_of_an_event_are_the_same_in_previews_levels_and_details(indexed: Asker) -> None:
    """Session prefix, turn, step and event index."""
    for uid, index in chosen(indexed):
        event = indexed.ask("get_event_details", session_id=uid, event_index=index)["data"]
        place = (event["event_index"], event.get("turn_index"), event.get("step_index"))
        assert event["session_id"] == uid
        assert place[0] == index
        preview = found(indexed, uid, index)
        if preview is not None:
            assert (preview["event_index"], preview.get("turn_index")) == place[:2]
            assert preview["event_type"] == event["event_type"]
            again = indexed.ask("get_event_details", session_id=preview["session_id"], event_index=index)["data"]
            assert again["origin"] == event["origin"]
        turn = place[1]
        assert place in in_full(indexed, uid, turn)
        if turn is not None:
            overview = indexed.ask("get_session_details", session_id=uid, **only(turn))["data"]["turns"]
            assert [shown["turn_index"] for shown in overview] == [place[1]]
        assert place in in_steps(indexed, uid, turn)
        if place[2] is not None:
            assert place[1:] in in_turns(indexed, uid, turn)


def found(asker: Asker, uid: str, index: int) -> dict[str, Any] | None:
    """The preview of an event, searched by a piece of its text; None where it has no text."""
    text = searchable(asker, uid, index)
    piece = max(re.split(r"[\n\x00-\x1f\x7f]", text), key=len)[:40]
    if len(piece.strip()) < 3 or "redacted" in piece:
        return None
    matches = asker.items("search_event_previews", "matches", order="newest", query=piece, session_id=uid, limit=50)
    return next(match for match in matches if match["event_index"] == index)


def only(turn_index: int | None) -> dict[str, int]:
    return {} if turn_index is None else {"turn_index": turn_index}


def searchable(asker: Asker, uid: str, index: int) -> str:
    event = asker.ask("get_event_details", session_id=uid, event_index=index)["data"]
    if event["event_type"] == "TokenUsage":
        return ""
    if event["event_type"] == "ToolCall":
        return str(event["payload"]["name"])
    return asker.body(uid, index)


@cache
def in_full(asker: Asker, uid: str, turn_index: int | None) -> set[tuple[int, int | None, int | None]]:
    """The coordinates in the headers of level full."""
    pages = asker.pages(
        "get_session_details", session_id=uid, detail_level="full", max_bytes=102_400, **only(turn_index)
    )
    text = "".join(page["data"]["text"] for page in pages)
    return {
        (int(found[1]), None if found[2] is None else int(found[2]), None if found[3] is None else int(found[3]))
        for found in _HEADER.finditer(text)
    }


@cache
def in_steps(asker: Asker, uid: str, turn_index: int | None) -> set[tuple[int, int | None, int | None]]:
    """The coordinates of all events that level steps names."""
    places = set()
    turns = asker.items(
        "get_session_details", "turns", session_id=uid, detail_level="steps", max_bytes=102_400, **only(turn_index)
    )
    for shown in turns:
        index = shown.get("turn_index")
        places.add((shown.get("user_event"), index, None))
        places |= {(event["event_index"], index, None) for event in shown.get("events", [])}
        for step in shown.get("steps", []):
            named = [
                step.get("usage_event"),
                *(step.get(part, {}).get("event_index") for part in ("reasoning", "message")),
            ]
            named += [tool.get(key) for tool in step.get("tools", []) for key in ("call_event", "result_event")]
            places |= {(event, index, step.get("step_index")) for event in named if event is not None}
    return places


@cache
def in_turns(asker: Asker, uid: str, turn_index: int | None) -> set[tuple[int, int]]:
    """(turn, step) of all steps at level turns."""
    turns = asker.items("get_session_details", "turns", session_id=uid, detail_level="turns", **only(turn_index))
    return {(shown["turn_index"], step["step_index"]) for shown in turns for step in shown["steps"]}
