"""Requested fields: only these are shown, with those that identify an item."""

from __future__ import annotations

from typing import Any

import pytest
from agtrace_schema.answers import SessionHead, SessionItem

from tests.agtrace.asking import Asker

SURGE, LARGE = "e97a4b06", "d41f7a52"


def details(asker: Asker, session_id: str = SURGE, **arguments: Any) -> dict[str, Any]:
    """The data of a session."""
    data: dict[str, Any] = asker.ask("get_session_details", session_id=session_id, **arguments)["data"]
    return data


# -- what is kept ----------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [["kind", "total_tokens"], "kind,total_tokens", " kind , total_tokens,"])
def test_a_list_shows_the_fields_asked_for_and_the_id(samples: Asker, given: Any) -> None:
    whole = samples.items("list_sessions", "sessions", limit=50)
    found = samples.items("list_sessions", "sessions", limit=50, fields=given)
    assert found == [{key: item[key] for key in item if key in ("id", "kind", "total_tokens")} for item in whole]


def test_a_session_without_a_title_shows_its_request_where_titles_are_asked_for(samples: Asker) -> None:
    asked = samples.items("list_sessions", "sessions", fields="id,title", limit=50)
    whole = samples.items("list_sessions", "sessions", limit=50)
    expected = [
        {key: one[key] for key in ("id", "title" if "title" in one else "snippet") if key in one} for one in whole
    ]
    assert asked == expected
    assert any("snippet" in item for item in asked) and any("title" in item for item in asked)


@pytest.mark.thorough
def test_every_field_of_a_model_can_be_asked_for(samples: Asker) -> None:
    for field in set(SessionItem.__struct_fields__) - {"title"}:
        assert all(item.keys() <= {"id", field} for item in samples.items("list_sessions", "sessions", fields=field))
    whole = details(samples)
    for field in SessionHead.__struct_fields__:
        kept = {"session_id", field} & whole.keys()
        assert details(samples, fields=[field]) == {key: whole[key] for key in whole if key in kept}


def test_a_dotted_name_is_a_field_of_a_part(samples: Asker) -> None:
    whole = details(samples)
    found = details(samples, fields="stats.total_tokens,stats.failed_calls,children.kind")
    assert found == {
        "session_id": whole["session_id"],
        "children": [{"id": child["id"], "kind": child["kind"]} for child in whole["children"]],
        "stats": {name: whole["stats"][name] for name in ("failed_calls", "total_tokens")},
    }
    assert details(samples, fields="stats,stats.total_tokens")["stats"] == whole["stats"]


def test_turns_keep_their_index_and_steps_theirs(samples: Asker) -> None:
    assert details(samples, fields="turns.outcome") == {
        "session_id": details(samples)["session_id"],
        "turns": [
            {"id": turn["id"], "turn_index": turn["turn_index"], "outcome": turn["outcome"]}
            for turn in details(samples)["turns"]
        ],
    }
    for turn in details(samples, detail_level="turns", fields="turns.steps.summary")["turns"]:
        assert turn.keys() == {"turn_index", "steps"}
        assert all(step.keys() == {"step_index", "first_event", "summary"} for step in turn["steps"])
    turns = details(samples, detail_level="steps", fields="turns.steps.tools.outcome")["turns"]
    tools = [tool for turn in turns for step in turn.get("steps", []) for tool in step.get("tools", [])]
    assert tools and all(tool.keys() <= {"outcome", "call_event", "result_event"} for tool in tools)


@pytest.mark.parametrize("level", ["summary", "turns", "steps"])
def test_turns_that_are_not_asked_for_take_no_pages(samples: Asker, level: str) -> None:
    value = samples.ask("get_session_details", session_id=LARGE, detail_level=level, fields="title")
    assert value["data"].keys() == {"session_id", "title"} and "pagination" not in value


def test_fields_make_room_for_more_turns_on_a_page(samples: Asker) -> None:
    """44 turns are two pages and more; their outcomes are a third of one."""
    value = samples.ask("get_session_details", session_id=LARGE, fields="turns.outcome")
    assert len(value["data"]["turns"]) == 44
    assert not value["pagination"]["has_more"]
    assert len(list(samples.pages("get_session_details", session_id=LARGE))) > 1


@pytest.mark.thorough
@pytest.mark.parametrize("level", ["turns", "steps"])
def test_a_walk_with_fields_leaves_nothing_out(samples: Asker, level: str) -> None:
    def places(**arguments: Any) -> list[tuple[Any, Any]]:
        turns = samples.items("get_session_details", "turns", session_id=LARGE, detail_level=level, **arguments)
        return list(
            dict.fromkeys((t.get("turn_index"), s.get("step_index")) for t in turns for s in t.get("steps", []))
        )

    assert places(fields="turns.steps") == places()


def test_the_text_of_a_session_stays_whatever_is_asked_for(samples: Asker) -> None:
    data = details(samples, detail_level="full", fields="title")
    assert data.keys() == {"session_id", "title", "text"}
    assert data["text"] == details(samples, detail_level="full")["text"][: len(data["text"])]


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments", "given", "nearest"),
    [
        ("list_sessions", {}, "titel", "title"),
        ("list_sessions", {}, ["id", "total_token"], "total_tokens"),
        ("get_session_details", {"session_id": SURGE}, "turns.outcomes", "turns.outcome"),
        ("get_session_details", {"session_id": SURGE}, "cost_usd", "stats.cost_usd"),
        ("get_session_details", {"session_id": SURGE}, "stats.total_token", "stats.total_tokens"),
        ("get_session_details", {"session_id": SURGE}, "turns.steps", None),
        ("get_session_details", {"session_id": SURGE, "detail_level": "full"}, "turns", None),
        ("get_session_details", {"session_id": SURGE, "sections": "tools"}, "tools.call", "tools.calls"),
    ],
)
def test_an_unknown_field_is_refused_with_those_that_are_known(
    samples: Asker, tool: str, arguments: dict[str, Any], given: Any, nearest: str | None
) -> None:
    problem = samples.error(tool, **arguments, fields=given)
    assert (problem["code"], problem["details"]["field"]) == ("invalid_parameter", "fields")
    if nearest:
        assert problem["details"]["nearest"] == nearest
        assert f"did you mean {nearest}?" in problem["message"]
    allowed = problem["details"]["allowed"]
    assert isinstance(allowed, list) and allowed
    assert samples.ask(tool, **arguments, fields=nearest or allowed[0])["success"]


@pytest.mark.parametrize(
    "given", ["", ",", [], [""], 3, {"title": True}, [3], "a" * 5_000, "stats.", ".", "潮", "a.b.c"]
)
def test_odd_fields_are_refused_and_no_defect(samples: Asker, given: Any) -> None:
    for tool, arguments in (("list_sessions", {}), ("get_session_details", {"session_id": SURGE})):
        assert samples.error(tool, **arguments, fields=given)["code"] == "invalid_parameter"
