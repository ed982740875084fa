"""A few questions about an index of mutated logs, whose answers must keep the contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, get_args

from agtrace_schema.requests import GroupBy, Sort

from tests.agtrace.asking import Asker, query

Call = tuple[str, dict[str, Any]]

_LEVELS = ("summary", "turns", "steps", "full")
_MODES = ("minimal", "standard", "verbose")


def questions(data: Path, logs: Path, random: Random, count: int) -> Iterator[str]:
    """Ask this many questions; yield what is wrong with the answers."""
    if not count:
        return
    asker = Asker(data, logs, still=True)
    sessions = query(asker, "SELECT uid, event_count, turn_count FROM session WHERE length(uid) <= 200 ORDER BY id")
    for _ in range(count):
        name, arguments = one_call(sessions, random)
        try:
            given = asker.anything(name, **arguments)
        except AssertionError as error:
            yield f"{name}({arguments}): {str(error)[-1_500:]}"
            continue
        if given.is_error and given.value["error"]["code"] not in EXPECTED:
            yield f"{name}({arguments}): {given.text[:400]}"


EXPECTED = frozenset({"invalid_event_index", "invalid_range", "session_not_found", "ambiguous_session_prefix"})
"""The errors with which any log may be answered."""


def one_call(sessions: list[tuple[Any, ...]], random: Random) -> Call:
    """Return a tool and arguments for it, given the sessions with their numbers of events and turns."""
    uid, events, turns = random.choice(sessions) if sessions else ("none", 1, 1)
    at = random.randrange(max(events, 1) + 1)
    other = random.choice([row[0] for row in sessions if row[0] != uid] or ["none"])
    words = random.choice(("", "a", "the", "潮", "\x1b[31m", "error", "type", '"', "test "))
    calls: tuple[Call, ...] = (
        ("list_sessions", {"limit": 50}),
        ("list_sessions", {"sort": random.choice(get_args(Sort))}),
        ("count_events", {"group_by": random.choice(get_args(GroupBy)), "limit": 50}),
        ("get_session_details", {"session_id": uid, "sections": ["requests", "stats"]}),
        ("get_project_info", {}),
        ("get_session_details", {"session_id": uid, "detail_level": random.choice(_LEVELS)}),
        (
            "get_session_details",
            {"session_id": uid, "detail_level": "turns", "turn_index": random.randrange(turns + 1)},
        ),
        ("analyze_session", {"session_id": uid}),
        ("compare_sessions", {"id1": uid, "id2": other}),
        ("search_event_previews", {"order": "newest", "query": words, "limit": 50}),
        ("search_event_previews", {"query": words, "session_id": uid, "group_by": "session"}),
        ("get_event_details", {"session_id": uid, "event_index": at}),
        ("get_event_details", {"session_id": uid, "event_index": at, "mode": random.choice(_MODES)}),
        ("get_reasoning_chain", {"session_id": uid}),
        ("read_artifact", {"ref": f"ax://session/{uid}"}),
        ("read_artifact", {"ref": f"ax://analysis/{uid}"}),
        ("read_artifact", {"ref": random.choice(("ax://report", "ax://health"))}),
    )
    return random.choice(calls)
