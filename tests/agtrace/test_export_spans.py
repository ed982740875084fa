"""`agtrace export --otel`: a session as OpenTelemetry spans, without any of its texts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.agtrace.asking import claude_log
from tests.agtrace.terminal import agtrace_here, index_here

ONE = "6d1c2b3a-0000-4000-8000-000000000001"


def _spans(session: str) -> list[dict[str, Any]]:
    said = agtrace_here("export", session, "--otel")
    assert said.code == 0, said.err
    found = [json.loads(line) for line in said.out.splitlines()]
    return [span for line in found for scope in line["resourceSpans"][0]["scopeSpans"] for span in scope["spans"]]


def _told(span: dict[str, Any]) -> dict[str, Any]:
    values = {pair["key"]: pair["value"] for pair in span["attributes"]}
    return {name: int(v["intValue"]) if "intValue" in v else v["stringValue"] for name, v in values.items()}


def test_calls_and_responses_are_spans_of_the_session(tmp_path: Path) -> None:
    log = claude_log(tmp_path, ONE)
    log.prompt("Draw the tide.")
    log.call("Bash", {"command": "make tide"}, "wave")
    log.call("Bash", {"command": "pytest"}, "FAILED t.py", failed=True)
    log.say("Done.")
    index_here(tmp_path)
    *below, root = _spans(ONE)
    assert (root["name"], _told(root)["gen_ai.operation.name"]) == ("invoke_agent Claude Code", "invoke_agent")
    assert {span["parentSpanId"] for span in below} == {root["spanId"]} and "parentSpanId" not in root
    assert {span["traceId"] for span in [*below, root]} == {root["traceId"]}
    calls = [span for span in below if span["name"] == "execute_tool Bash"]
    assert [_told(span).get("error.type") for span in calls] == [None, "tool_error"]
    assert calls[1]["status"] == {"code": 2} and "status" not in calls[0]
    assert sum(span["name"].startswith("chat ") for span in below) == 3
    for span in [*below, root]:
        assert re.fullmatch("[0-9a-f]{32}", span["traceId"]) and re.fullmatch("[0-9a-f]{16}", span["spanId"])
        assert int(root["startTimeUnixNano"]) <= int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        assert _told(span)["gen_ai.conversation.id"] == ONE
    assert len({span["spanId"] for span in [*below, root]}) == len(below) + 1


def _sessions() -> list[dict[str, Any]]:
    shown = agtrace_here("sessions", "--limit", "50", "--json").json()["data"]["sessions"]
    return [session for session in shown if session.get("total_tokens")]


def test_tokens_of_the_spans_are_those_of_the_session(indexed: Path) -> None:
    sessions = _sessions()
    assert len(sessions) > 5
    for session in sessions:
        found = [*map(_told, _spans(session["id"]))]
        spent = [told.get(f"gen_ai.usage.{kind}_tokens", 0) for told in found for kind in ("input", "output")]
        assert sum(spent) == session["total_tokens"], session["id"]


def test_a_log_without_times_has_no_spans_and_that_is_said(indexed: Path) -> None:
    asked = agtrace_here("sessions", "--provider", "cursor", "--json").json()["data"]["sessions"]
    said = agtrace_here("export", asked[0]["id"], "--otel")
    assert (said.code, said.out) == (2, "")
    assert "has no times, which spans need; --jsonl has all of it" in said.err


def test_attributes_hold_names_and_numbers_and_no_text(indexed: Path) -> None:
    for session in _sessions():
        for span in _spans(session["id"]):
            for name, value in _told(span).items():
                assert isinstance(value, int) or re.fullmatch(r"[\w. /:-]{1,80}", value), (name, value)


@pytest.mark.parametrize("option", ["--tools", "--thinking"])
def test_texts_can_not_be_asked_for(indexed: Path, option: str) -> None:
    said = agtrace_here("export", "last", "--otel", option)
    assert said.code == 2 and "has no texts" in said.err
