"""What is said of an argument that a tool can't take: what it may be, and what was given."""

from __future__ import annotations

from typing import Any

import pytest

from agtrace.problems import InvalidParameter
from agtrace.tools import TOOLS
from agtrace.tools.arguments import parse
from tests.agtrace.asking import Asker

OF_AN_EVENT = {"session_id": "3a41", "event_index": 0}


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("list_sessions", {"limit": -1}, "limit: input should be greater than or equal to 1"),
        ("list_sessions", {"limit": 51}, "limit exceeds maximum of 50"),
        ("list_sessions", {"limit": 10**400}, "limit exceeds maximum of 50"),
        ("list_sessions", {"limit": -(10**400)}, "greater than or equal to 1"),
        ("list_sessions", {"limit": 5.5}, "a number with a fractional part"),
        ("list_sessions", {"limit": None}, "limit: input should be a valid integer"),
        ("list_sessions", {"limit": True}, "limit: input should be a valid integer"),
        ("list_sessions", {"limit": "many"}, "unable to parse string as an integer"),
        ("list_sessions", {"min_tokens": -1}, "min_tokens: input should be greater than or equal to 0"),
        ("list_sessions", {"query": ""}, "query: string should have at least 1 character"),
        ("list_sessions", {"query": {"a": 1}}, "query: input should be a valid string"),
        ("list_sessions", {"since": 5}, "since: input should be a valid string"),
        ("list_sessions", {"has_failures": "perhaps"}, "has_failures: input should be a valid boolean"),
        ("list_sessions", {"fields": ["title", 3]}, "fields: input should be a valid string"),
        ("list_sessions", {"fields": " , "}, "fields: list should have at least 1 item"),
        ("list_sessions", {"provider": "claud"}, "did you mean claude_code?"),
        ("list_sessions", {"pr": "the last"}, "pr: give the number or the URL of a pull request, or any"),
        ("list_sessions", {"query": "a\ud800"}, "query: input should be a valid string"),
        ("get_session_details", {"session_id": "3a41", "sections": ["tols"]}, "did you mean tools?"),
        ("get_event_details", {"session_id": "3a41"}, "event_index is missing"),
        ("get_event_details", {**OF_AN_EVENT, "lines": 3}, "lines"),
    ],
)
def test_what_a_tool_cannot_take_is_said(tool: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        parse(TOOLS[tool].arguments, given)
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("tool", "given", "meant"),
    [
        ("list_sessions", {"limit": "5"}, {"limit": 5}),
        ("list_sessions", {"limit": 5.0}, {"limit": 5}),
        ("list_sessions", {"has_failures": "true"}, {"has_failures": True}),
        ("list_sessions", {"fields": "title, id"}, {"fields": ["title", "id"]}),
        ("list_sessions", {"pr": "#12"}, {"pr": "12"}),
        ("list_sessions", {"commit": "ABCDEF1"}, {"commit": "abcdef1"}),
        ("list_sessions", {"project_hash": "abc"}, {"project": "abc"}),
        ("list_sessions", {"query": None}, {"query": None}),
        ("get_session_details", {"session_id": "3a41", "turn_index": "turn-3"}, {"turn_index": 3}),
        ("search_event_previews", {"query": "a", "event_type": "ToolCall"}, {"event_type": "ToolCall"}),
        ("list_sessions", {"minTokens": 3, "projectHash": "abc"}, {"min_tokens": 3, "project": "abc"}),
        ("get_session_details", {"sessionId": "3a41", "turnIndex": 3}, {"session_id": "3a41", "turn_index": 3}),
        (
            "get_event_details",
            {"sessionId": "3a41", "eventIndex": 2, "startLine": 1, "endLine": "4"},
            {"session_id": "3a41", "event_index": 2, "start_line": 1, "end_line": 4},
        ),
    ],
)
def test_what_can_be_meant_only_one_way_is_taken(tool: str, given: dict[str, Any], meant: dict[str, Any]) -> None:
    found = parse(TOOLS[tool].arguments, given)
    assert {name: getattr(found, name) for name in meant} == meant


@pytest.mark.parametrize(
    ("tool", "more"),
    [("list_sessions", {}), ("search_event_previews", {"query": "tide"})],
)
def test_a_period_that_ends_before_it_begins_is_refused_by_every_list(
    samples: Asker, tool: str, more: dict[str, str]
) -> None:
    error = samples.error(tool, since="2026-08-01", until="2026-07-01", **more)
    assert error["details"]["field"] == "until" and "is before since" in error["message"]
