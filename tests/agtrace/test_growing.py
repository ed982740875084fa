"""Continuing while the index grows: pages are disjoint, and together they are the list that the first one began."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from agtrace_schema.requests import Sort

from tests.agtrace.asking import Asker, ClaudeLog, claude_log, query, text_of
from tests.depth import depth, part

SESSION = "fb3cff44-13ae-41a6-a6df-f287e0552835"
ARRIVING = depth(300, 1_000)

LISTS: list[tuple[str, str, dict[str, Any]]] = [
    ("list_sessions", "sessions", {"limit": 3}),
    ("list_sessions", "sessions", {"limit": 2, "has_failures": True}),
    ("list_sessions", "sessions", {"limit": 2, "query": "tide"}),
    ("list_sessions", "sessions", {"limit": 2, "path": "gauge"}),
    *(("list_sessions", "sessions", {"limit": 2, "sort": sort}) for sort in part(get_args(Sort), 0, 3)),
    ("get_project_info", "projects", {"limit": 1}),
    ("search_event_previews", "matches", {"order": "newest", "query": "tide", "limit": 7}),
    ("search_event_previews", "matches", {"query": "tide", "limit": 7, "order": "oldest"}),
    ("search_event_previews", "matches", {"query": "tide", "limit": 4, "order": "newest"}),
    ("search_event_previews", "matches", {"query": "mend", "limit": 2, "order": "newest"}),
    ("search_event_previews", "matches", {"query": "t[aeiou]de", "limit": 7, "regex": True}),
    ("search_event_previews", "matches", {"order": "newest", "query": "", "limit": 9, "failed": True}),
    ("search_event_previews", "matches", {"query": "tide", "limit": 2, "group_by": "session"}),
    ("get_session_details", "turns", {"session_id": SESSION, "max_bytes": 2_048}),
    ("get_session_details", "turns", {"session_id": SESSION, "detail_level": "turns", "max_bytes": 2_500}),
    ("get_session_details", "turns", {"session_id": SESSION, "detail_level": "steps", "max_bytes": 3_000}),
    ("get_session_details", "failures", {"session_id": SESSION, "sections": ["failures"], "max_bytes": 2_048}),
    ("get_session_details", "files", {"session_id": SESSION, "sections": ["files"], "max_bytes": 2_048}),
    ("get_reasoning_chain", "chain", {"session_id": SESSION, "limit": 3}),
]
TEXTS: list[tuple[str, dict[str, Any]]] = [
    ("get_session_details", {"session_id": SESSION, "detail_level": "full", "max_bytes": 4_096}),
    ("read_artifact", {"ref": f"ax://session/{SESSION}"}),
    ("read_artifact", {"ref": f"ax://event/{SESSION}/1"}),
    ("get_event_details", {"session_id": SESSION, "event_index": 1, "max_bytes": 2_048}),
    ("get_event_details", {"session_id": SESSION, "event_index": 1, "start_line": 40, "end_line": 900}),
]
COUNTERS = {"matches", "turn_count", "duration_seconds", "session_count", "last_activity", "tool_calls", "failed_calls"}
"""What goes on growing: a snapshot fixes what is listed and its order."""


def work(log: ClaudeLog, turns: int) -> None:
    for number in range(turns):
        log.prompt(f"Mend tide gauge {number}")
        log.write("assistant", [{"type": "thinking", "thinking": f"The tide gauge {number} " * 9, "signature": "s"}])
        log.call("Bash", {"command": f"make gauge-{number}"}, "a tide error\n" * 30, failed=number % 2 > 0)
        log.call("Edit", {"file_path": f"{log.cwd}/gauge_{number}.py", "new_string": "tide = 1"}, "ok").say("Mended.")


class Walk:
    """A walk that was begun before the events arrived: what a whole one gave, its first page, and the rest to come."""

    def __init__(self, asker: Asker, tool: str, arguments: dict[str, Any]) -> None:
        self.before = list(asker.pages(tool, **arguments))
        self.rest = asker.pages(tool, **arguments)
        self.first = next(self.rest)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Walk]:
    """Walks by tool and arguments, begun on a machine with eight sessions in two projects: then it grows."""
    home = tmp_path_factory.mktemp("growing") / "home"
    logs = [claude_log(home, SESSION)]
    logs[0].call("Bash", {"command": "seq 1 1000"}, "".join(f"tide line {n}\n" for n in range(1, 1_001)))
    logs += [
        claude_log(
            home, f"{number}1111111-0000-4000-8000-00000000000{number}", cwd=f"/home/mira/projects/p{number % 3}"
        )
        for number in range(7)
    ]
    for number, log in enumerate(logs):
        log.clock += number * 3_600
        work(log, 40 if number == 0 else 3)
    asker = Asker(home.parent / "data", home)
    asked = [(tool, arguments) for tool, _, arguments in LISTS] + TEXTS
    walks = {repr(call): Walk(asker, *call) for call in asked}
    ((events,),) = query(asker, "SELECT count(*) FROM event")
    added = claude_log(home, "eeeeeeee-0000-4000-8000-000000000009", cwd="/home/mira/projects/another")
    added.clock += 9 * 3_600
    for log, turns in ((logs[0], depth(25, 90)), (logs[3], depth(10, 30)), (added, depth(10, 30))):
        work(log, turns)
    asker.index(home)
    assert query(asker, "SELECT count(*) FROM event")[0][0] >= events + ARRIVING
    return walks


def _keys(key: str, items: list[dict[str, Any]]) -> list[str]:
    """The items without what goes on growing; of turns, which a page can split, the events that they name."""
    if key == "turns":
        return [event for item in items for event in _events(item)]
    if key == "sessions":
        return [item.get("id", item.get("session_id")) for item in items]
    return [json.dumps({k: v for k, v in item.items() if k not in COUNTERS and "token" not in k}) for item in items]


def _events(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        yield from (event for item in value for event in _events(item))
    elif isinstance(value, dict):
        yield from (f"{key} {item}" for key, item in value.items() if key.endswith("event") or key == "event_index")
        yield from (event for item in value.values() for event in _events(item))


@pytest.mark.parametrize(("tool", "key", "arguments"), LISTS, ids=lambda part: str(part)[:60])
def test_pages_are_disjoint_and_complete_while_events_arrive(
    begun: dict[str, Walk], tool: str, key: str, arguments: dict[str, Any]
) -> None:
    walk = begun[repr((tool, arguments))]
    before = [item for page in walk.before for item in page["data"][key]]
    first = walk.first["data"][key]
    assert len(before) > len(first), "one page would show nothing"
    assert _keys(key, first + [item for page in walk.rest for item in page["data"][key]]) == _keys(key, before)


@pytest.mark.parametrize(("tool", "arguments"), TEXTS, ids=lambda part: str(part)[:60])
def test_chunks_join_to_what_was_there_while_events_arrive(
    begun: dict[str, Walk], tool: str, arguments: dict[str, Any]
) -> None:
    walk = begun[repr((tool, arguments))]
    whole, text = "".join(map(_text, walk.before)), _text(walk.first)
    assert len(text) < len(whole), "one chunk would show nothing"
    assert text + "".join(map(_text, walk.rest)) == whole


def _text(value: dict[str, Any]) -> str:
    data = value["data"]
    return data["text"] if "text" in data else text_of(data["payload"])
