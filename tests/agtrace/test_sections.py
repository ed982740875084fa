"""Sections of a session: each checked against the tables, paged to its end, and requested alone."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.agtrace.asking import Asker, ClaudeLog, call_in, claude_log, query

SURGE, LARGE, LOOP = "e97a4b06", "d41f7a52", "01a0ec9d"
ONE = "aaaaaaaa-0000-4000-8000-000000000001"
LISTS = ("children", "turns", "tools", "files", "failures", "models")

OWN = "e.superseded_by IS NULL AND e.copy_of IS NULL"
OWN_EVENTS = f"SELECT e.event_index FROM event e JOIN session s ON s.id = e.session_id WHERE s.uid = ? AND {OWN}"


def sessions(asker: Asker) -> list[str]:
    """The largest sessions, and those with copies and with sub-agents."""
    found = query(asker, "SELECT uid FROM session ORDER BY event_count DESC LIMIT 6")
    found += query(asker, "SELECT uid FROM session WHERE copied_events LIMIT 2")
    found += query(asker, "SELECT uid FROM session WHERE id IN (SELECT parent_session FROM session) LIMIT 2")
    return list(dict.fromkeys(uid for (uid,) in found))


def section(asker: Asker, uid: str, name: str, **arguments: Any) -> list[dict[str, Any]]:
    """A list alone, its pages joined; each page is of that list only."""
    pages = list(asker.pages("get_session_details", session_id=uid, sections=name, **arguments))
    assert all(page["data"].keys() == {"session_id", name} for page in pages)
    items = [item for page in pages for item in page["data"][name]]
    assert all(page["pagination"]["total_count"] == len(items) for page in pages if "total_count" in page["pagination"])
    return items


def calls(asker: Asker, uid: str) -> list[dict[str, Any]]:
    """The tool executions of a session that are its own, as level steps shows them."""
    turns = asker.items("get_session_details", "turns", session_id=uid, detail_level="steps", max_bytes=102_400)
    own = {index for (index,) in query(asker, OWN_EVENTS, uid)}
    found = [
        tool | {"turn_index": turn.get("turn_index")}
        for turn in turns
        for step in turn.get("steps", [])
        for tool in step.get("tools", [])
    ]
    return [tool for tool in found if tool.get("call_event") in own]


# -- what each says --------------------------------------------------------------------------------


@pytest.mark.thorough
def test_tools_and_failures_are_those_of_the_executions(each: Asker) -> None:
    for uid in sessions(each):
        executions = calls(each, uid)
        used = Counter(tool["call"]["name"] or "unknown tool" for tool in executions)
        failed = Counter(tool["call"]["name"] or "unknown tool" for tool in executions if tool["outcome"] == "failed")
        tools = section(each, uid, "tools")
        assert {tool["name"]: (tool["calls"], tool["failed"]) for tool in tools} == {
            name: (count, failed[name]) for name, count in used.items()
        }
        assert [tool["calls"] for tool in tools] == sorted(used.values(), reverse=True)
        ill = [tool for tool in executions if tool["outcome"] in ("failed", "rejected", "interrupted")]
        places = ("turn_index", "call_event", "result_event", "outcome")
        assert [{key: item.get(key) for key in places} for item in section(each, uid, "failures")] == [
            {key: tool.get(key) for key in places} for tool in sorted(ill, key=lambda tool: tool["call_event"])
        ]
        stats = each.ask("get_session_details", session_id=uid, sections="stats")["data"]["stats"]
        assert stats["failed_calls"] == sum(tool["failed"] for tool in tools)
        assert stats["tool_calls"] == sum(tool["calls"] for tool in tools)


def test_files_are_those_that_own_calls_name(each: Asker) -> None:
    touched = f"""
        SELECT t.access, count(*) FROM touched t JOIN session s ON s.id = t.session_id
        JOIN event e ON e.session_id = s.id AND e.event_index = t.event_index WHERE s.uid = ? AND {OWN} GROUP BY 1
    """
    for uid in sessions(each):
        files = section(each, uid, "files")
        counts = dict(query(each, touched, uid))
        assert sum(file["reads"] for file in files) == counts.get("read", 0)
        assert sum(file["writes"] for file in files) == counts.get("write", 0)
        assert len({file["path"] for file in files}) == len(files)
        assert [file["writes"] for file in files] == sorted((file["writes"] for file in files), reverse=True)


def test_models_add_up_to_the_session(each: Asker) -> None:
    for uid in sessions(each):
        stats = each.ask("get_session_details", session_id=uid, sections="stats")["data"]["stats"]
        models = section(each, uid, "models")
        assert sum(model["responses"] for model in models) == stats["responses"]
        assert sum(model.get("total_tokens", 0) for model in models) == stats.get("total_tokens", 0)


def without(item: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != name}


def test_turns_and_children_are_those_of_the_overview(each: Asker) -> None:
    for uid in sessions(each):
        overview = each.ask("get_session_details", session_id=uid)["data"]
        assert section(each, uid, "children")[:10] == overview.get("children", [])
        turns = each.items("get_session_details", "turns", session_id=uid)
        assert section(each, uid, "turns") == [without(turn, "answer") for turn in turns]


def test_the_facts_of_a_session_are_parted_into_session_and_stats(each: Asker) -> None:
    for uid in sessions(each):
        overview = each.ask("get_session_details", session_id=uid)["data"]
        stats = each.ask("get_session_details", session_id=uid, sections=["stats"])["data"]
        session = each.ask("get_session_details", session_id=uid, sections=["session"])["data"]
        assert stats == {"session_id": uid, "stats": overview["stats"]}
        apart = {
            "stats",
            "turns",
            "children",
            "total_children",
            "landmarks",
            "total_landmarks",
            "last_message",
            "open_call",
        }
        assert session == {key: value for key, value in overview.items() if key not in apart}


# -- several, and one to its end -------------------------------------------------------------------


@pytest.mark.parametrize("given", ["session,stats,tools,files,failures,turns", ["failures", "tools", "tools"]])
def test_several_sections_begin_each_and_name_the_call_for_the_rest(samples: Asker, given: Any) -> None:
    value = samples.ask("get_session_details", session_id=LARGE, sections=given)
    names = given.split(",") if isinstance(given, str) else given
    whole = {name: section(samples, LARGE, name) for name in names if name in LISTS}
    for name, items in whole.items():
        assert value["data"][name] == items[:10]
        assert value["data"][f"total_{name}"] == len(items)
    rest = next(name for name in names if len(whole.get(name, [])) > 10)
    _, onward = call_in(value["hint"])
    assert onward["sections"] == [rest] and f"the other {len(whole[rest]) - 10} {rest}" in value["hint"]
    assert samples.items("get_session_details", rest, **onward) == whole[rest][10:]


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("most", [2_048, 15_360])
def test_a_section_is_walked_to_its_end_whatever_fits_a_page(each: Asker, name: str, most: int) -> None:
    for uid in sessions(each)[:4]:
        assert section(each, uid, name, max_bytes=most) == section(each, uid, name)


def test_a_walk_shows_what_there_was_when_it_began(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", ONE)
    for number in range(40):
        log.prompt(f"tide {number}").call(
            f"read_the_tide_gauge_{number}", {"file_path": f"/srv/{number}.csv"}, "no", failed=True
        )
        log.used(5, 7, model=f"model-{number}")
        _sub_agent(log, number)
    asker = Asker(tmp_path / "index", tmp_path / "logs")
    whole = {name: section(asker, ONE, name) for name in LISTS}
    assert [len(whole[name]) for name in LISTS] == [40, 40, 40, 40, 40, 40]
    walks = {name: asker.pages("get_session_details", session_id=ONE, sections=name, max_bytes=2_048) for name in LISTS}
    pages = {name: [next(walk)] for name, walk in walks.items()}
    for number in (3, 7, 39, 41, 42):
        log.prompt("more").call(f"read_the_tide_gauge_{number}", {"file_path": f"/srv/{number}.csv"}, "no", failed=True)
        log.used(5, 7, model=f"model-{number}")
        _sub_agent(log, 100 + number)
    asker.index()
    keys = {"children": "id", "turns": "id", "tools": "name", "files": "path", "failures": "call_event"}
    keys["models"] = "model"
    for name, key in keys.items():
        walked = [item[key] for page in [*pages[name], *walks[name]] for item in page["data"][name]]
        assert walked == [item[key] for item in whole[name]], name
        assert len(pages[name][0]["data"][name]) < 40


def _sub_agent(parent: ClaudeLog, number: int) -> None:
    name = f"{number:016x}"
    log = claude_log(parent.path.parent, ONE)
    log.path = parent.path.parent / ONE / "subagents" / f"agent-{name}.jsonl"
    log.path.parent.mkdir(parents=True, exist_ok=True)
    log.clock += 10 * number
    log.write("user", "look", isSidechain=True, agentId=name)


def test_sections_and_fields_go_together(samples: Asker) -> None:
    found = section(samples, LARGE, "failures", fields="failures.quote")
    assert all(item.keys() == {"turn_index", "call_event", "result_event", "quote"} for item in found)
    assert samples.ask("get_session_details", session_id=LARGE, sections="stats", fields="stats.cost_usd")["data"][
        "stats"
    ].keys() == {"cost_usd"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"sections": "tols"}, "did you mean tools?"),
        ({"sections": []}, ""),
        ({"sections": "tools", "detail_level": "steps"}, "level summary only"),
        ({"sections": "tools", "turn_index": 0}, "whole session"),
    ],
)
def test_sections_that_can_not_be_given_are_refused(samples: Asker, arguments: dict[str, Any], said: str) -> None:
    problem = samples.error("get_session_details", session_id=SURGE, **arguments)
    assert (problem["code"], problem["details"]["field"]) == ("invalid_parameter", "sections")
    assert said in problem["message"]


# -- failures in the overview ----------------------------------------------------------------------


def test_the_overview_names_the_turns_in_which_something_failed(each: Asker) -> None:
    for uid in sessions(each):
        data = each.ask("get_session_details", session_id=uid, max_bytes=2_048)["data"]
        turns = section(each, uid, "turns")
        failing = [turn["turn_index"] for turn in turns if turn["failed_tools"] and "copied" not in turn]
        expected = {"total": len(failing), "turns": failing[:20]} if failing else None
        assert data.get("failing_turns") == expected


def test_the_summary_says_how_the_last_turn_ended(each: Asker) -> None:
    """answers.md: `Session fb3cff44: failed (3520 s, 812 events)`."""
    for uid in sessions(each):
        turns = section(each, uid, "turns")
        summary = each.ask("get_session_details", session_id=uid)["summary"]
        outcome = turns[-1]["outcome"] if turns else "unknown"
        why = r" \((?:open call|no answer|no turns)\)" if outcome == "unknown" else ""
        assert re.search(f": {outcome}{why}, ", summary)


def test_a_turn_is_named_by_its_id_or_its_number(samples: Asker) -> None:
    for name, more in (("get_session_details", {"detail_level": "turns"}), ("get_reasoning_chain", {})):
        for turn in samples.ask("get_session_details", session_id=SURGE)["data"]["turns"]:
            by_id, by_number = (
                samples.ask(name, session_id=SURGE, turn_index=given, **more)
                for given in (turn["id"], turn["turn_index"])
            )
            assert by_id["data"] == by_number["data"]
    assert samples.error("get_session_details", session_id=SURGE, turn_index="turn-x")["code"] == "invalid_parameter"
