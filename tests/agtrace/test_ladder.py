"""The ladder: what is dropped first, what stays until the end, and that omissions are reported."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from agtrace_indexer.redact import redact_json
from hypothesis import given, settings
from hypothesis import strategies as st

from agtrace.index.trouble import Freshness
from agtrace.shaping.ladder import OPTIONAL, RUNGS, down, shortened
from agtrace.shaping.replies import Reply
from agtrace.shaping.shape import answer
from tests.agtrace.asking import check
from tests.depth import examples

READY = Freshness("ready")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=80), inner, max_size=8),
    max_leaves=60,
)


def turn(number: int, *, failed: int = 0) -> dict[str, Any]:
    return {"turn_index": number, "user_message": "Mend the tide gauge " * 8, "failed_tools": failed, "version": "2.1"}


def rungs(value: Any, budget: int = 4_096) -> list[tuple[Any, dict[str, Any] | None]]:
    return list(down(value, budget))


@settings(max_examples=examples(40), deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=20), VALUES, max_size=8), st.integers(2_048, 20_000))
def test_any_payload_fits_any_budget_as_valid_json(data: dict[str, Any], budget: int) -> None:
    given_answer = answer(Reply("Some data", data, budget, counts={"total": 7}), READY)
    check(given_answer, budget)
    if given_answer.asked_bytes is None:
        assert given_answer.value["data"] == json.loads(orjson.dumps(redact_json(data)))
    else:
        assert given_answer.asked_bytes > budget


@pytest.mark.thorough
@settings(max_examples=examples(30), deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=20), VALUES, max_size=6))
def test_what_is_left_out_is_told(data: dict[str, Any]) -> None:
    known = _untabled(data)
    for smaller, told in rungs(known)[1:]:
        assert (told is None) == (_untabled(smaller) == known)


def test_names_that_are_cut_are_told_and_of_two_that_begin_alike_the_first_is_kept() -> None:
    short, told = shortened({"a" * 9: 1, "a" * 8: 2, "aaaa": 3, "b": "c" * 9}, 6)
    assert short == {"aaa...": 1, "aaaa": 3, "b": "ccc..."}
    assert told == ["aaa...: 6 of 9 chars of the name", "aaa...: left out", "b: 6 of 9 chars"]


def _untabled(value: Any) -> Any:
    """Tables as the lists of objects that they were; columns that an object didn't have are null."""
    if isinstance(value, list):
        return [_untabled(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"columns", "rows"} and isinstance(value["rows"], list):
        rows = [zip(value["columns"], row, strict=True) for row in value["rows"]]
        return [{key: _untabled(cell) for key, cell in row if cell is not None} for row in rows]
    return {key: _untabled(item) for key, item in value.items() if item is not None}


def test_optional_fields_go_first_and_identifying_ones_never() -> None:
    head = {
        "session_id": "fb3cff44",
        "version": "2.1.212",
        "log": "a.jsonl",
        "stats": {"tokens": {}, "failed_calls": 3},
    }
    smaller, told = rungs(head)[1]
    assert smaller == {"session_id": "fb3cff44", "stats": {"failed_calls": 3}}
    assert told == {"reason": "bytes", "paths": ["version: left out", "log: left out", "stats.tokens: left out"]}
    assert not OPTIONAL & {"id", "session_id", "event_index", "turn_index", "outcome", "failed_calls", "title"}


def test_a_field_of_a_log_is_never_taken_for_one_of_ours() -> None:
    call = {"name": "Write", "arguments": {"version": "1", "log": "x"}}
    assert rungs({"call": call})[1] == ({"call": call}, None)


def test_rows_become_a_table_without_loss() -> None:
    found = {"turns": [{"turn_index": n, "outcome": "success"} for n in range(4)]}
    smaller, told = next((value, told) for value, told in rungs(found) if value != found)
    assert smaller == {"turns": {"columns": ["turn_index", "outcome"], "rows": [[n, "success"] for n in range(4)]}}
    assert told is None


def test_a_list_keeps_its_first_its_last_and_what_failed() -> None:
    found = {"turns": [turn(number, failed=number in (40, 77)) for number in range(100)]}
    smaller, told = rungs(found)[5]
    rows = smaller["turns"]["rows"]
    assert [row[0] for row in rows] == [0, 1, 2, 3, 4, 5, 6, 40, 77, 97, 98, 99]
    assert told is not None and (told["shown"], told["total"], told["omitted_failures"]) == (12, 100, 0)


def test_failures_keep_a_quarter_of_the_budget_and_the_rest_of_them_is_counted() -> None:
    found = {"turns": [turn(number, failed=1) for number in range(500)]}
    for (smaller, told), rung in zip(rungs(found)[1:], RUNGS, strict=True):
        if rung.items:
            assert told is not None and told["total"] == 500
            assert told["shown"] + told["omitted_failures"] == 500
            beyond = len(orjson.dumps(smaller["turns"]["rows"])) - rung.items * 100
            assert beyond <= 4_096 // 4 + 100
