"""Cursors: their contents, their lifetime, and the reasons for which they are refused."""

from __future__ import annotations

import base64
import string
from pathlib import Path

import pytest
from agtrace_indexer.redact import load_key
from hypothesis import given
from hypothesis import strategies as st

from agtrace.problems import InvalidCursor
from agtrace.shaping.cursors import Cursors

KEY = bytes(range(32))
NOON = 1_790_000_000.0
QUERY = {"query": "database is locked", "provider": "codex"}
POSITIONS = st.lists(st.integers(-(2**62), 2**62), max_size=6).map(tuple)


def cursors(now: float = NOON, *, key: bytes = KEY, ttl: int = 3600) -> Cursors:
    return Cursors(key, ttl, lambda: now)


def refusal(cursor: str, *, tool: str = "search_event_previews", using: Cursors | None = None, **query: object) -> str:
    with pytest.raises(InvalidCursor) as refused:
        (using or cursors()).read(tool, query or QUERY, cursor)
    assert "without a cursor" in refused.value.message
    return str(refused.value.details["reason"])


@given(POSITIONS)
def test_a_cursor_gives_back_its_position(position: tuple[int, ...]) -> None:
    made = cursors().make("list_sessions", QUERY, position)
    assert cursors().read("list_sessions", QUERY, made) == position


def test_the_same_call_gives_the_same_cursor_within_half_its_lifetime() -> None:
    first = cursors(NOON // 1800 * 1800).make("list_sessions", QUERY, (1, 2))
    assert cursors(NOON // 1800 * 1800 + 1799).make("list_sessions", QUERY, (1, 2)) == first


@pytest.mark.parametrize("ttl", [1, 2, 3, 600, 3600])
def test_a_cursor_lives_at_least_as_long_as_the_setting_says_and_not_twice_as_long(ttl: int) -> None:
    made = cursors(ttl=ttl).make("list_sessions", QUERY, (7,))
    assert cursors(NOON + ttl - 0.001, ttl=ttl).read("list_sessions", QUERY, made) == (7,)
    late = cursors(NOON + 2 * ttl + 1, ttl=ttl)
    assert refusal(made, tool="list_sessions", using=late) == "expired"


def test_a_cursor_is_valid_after_a_restart(tmp_path: Path) -> None:
    made = cursors(key=load_key(tmp_path / "data" / "cursor.key")).make("list_sessions", QUERY, (7,))
    assert cursors(key=load_key(tmp_path / "data" / "cursor.key")).read("list_sessions", QUERY, made) == (7,)


@pytest.mark.parametrize(
    "query",
    [
        {**QUERY, "query": "database is open"},
        {"order": "newest", "query": "database is locked"},
        {**QUERY, "failed": True},
    ],
)
def test_a_cursor_of_another_query_is_a_mismatch(query: dict[str, object]) -> None:
    made = cursors().make("search_event_previews", QUERY, (7,))
    assert refusal(made, **query) == "mismatch"


def test_a_cursor_of_another_tool_is_malformed() -> None:
    made = cursors().make("search_event_previews", QUERY, (7,))
    assert refusal(made, tool="list_sessions") == "malformed"


@pytest.mark.parametrize("changed", [{"limit": 50}, {"cursor": "before"}, {"max_bytes": 4096}, {"since": None}])
def test_the_page_size_is_no_part_of_the_query(changed: dict[str, object]) -> None:
    made = cursors().make("search_event_previews", QUERY, (7,))
    assert cursors().read("search_event_previews", QUERY | changed, made) == (7,)


@given(st.integers(0, 10**6), st.sampled_from(string.ascii_letters + string.digits + "-_."))
def test_a_cursor_with_one_changed_character_is_malformed(place: int, character: str) -> None:
    made = cursors().make("search_event_previews", QUERY, (1_790_000_000_000, 4711, 5000))
    place %= len(made)
    tampered = made[:place] + character + made[place + 1 :]
    if tampered != made:
        assert refusal(tampered) == "malformed"


@given(st.text(max_size=80))
def test_any_text_that_is_no_cursor_is_malformed(text: str) -> None:
    assert refusal(text) == "malformed"


def test_nothing_of_the_query_can_be_read_out_of_a_cursor() -> None:
    """The same position of two queries differs in nothing but the fingerprint and the signature."""
    one, other = (
        base64.urlsafe_b64decode(cursors().make("t", {"query": query}, (7,)).partition(".")[0] + "==")
        for query in ("a", "a much longer query about the database")
    )
    assert len(one) == len(other)
    assert one[4:] == other[4:] and one != other
