"""search_events, the deprecated search: off unless requested, and it leads to its replacement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agtrace.answers.desk import Answers
from agtrace.answers.log import silent
from agtrace.problems import SettingError
from agtrace.settings import load
from agtrace.tools import TOOLS, tools_for
from tests.agtrace.asking import Asker, call_in, check, claude_log


@pytest.fixture
def asker(tmp_path: Path) -> Asker:
    """Three events that speak of the tide."""
    log = claude_log(tmp_path / "logs", "fb3cff44-13ae-41a6-a6df-f287e0552835")
    for day in ("first", "second", "third"):
        log.prompt(f"The {day} 'tide' of the week")
    return Asker(tmp_path / "data", tmp_path / "logs")


def old(asker: Asker, **arguments: Any) -> dict[str, Any]:
    answers = Answers(replace(asker.settings, search_events=True), log=silent)
    given = answers.ask("search_events", arguments)
    check(given, 20_480 if arguments.get("limit", 10) > 10 else 10_240)
    return given.value


def test_it_is_offered_only_where_the_user_says_so(asker: Asker) -> None:
    assert "search_events" not in TOOLS
    assert tools_for(asker.settings) == TOOLS
    for value, offered in (("1", True), ("0", False), ("", False)):
        settings = load({"AGTRACE_DATA_DIR": "data", "AGTRACE_SEARCH_EVENTS": value})
        assert ("search_events" in tools_for(settings)) == offered
    with pytest.raises(SettingError, match="AGTRACE_SEARCH_EVENTS"):
        load({"AGTRACE_DATA_DIR": "data", "AGTRACE_SEARCH_EVENTS": "maybe"})


def test_it_finds_what_the_new_search_finds_and_its_hint_is_the_new_call(asker: Asker) -> None:
    for full in (False, True):
        answer = old(asker, pattern="'tide'", limit=2, include_full_payload=full)
        name, arguments = call_in(answer["hint"])
        assert (name, arguments) == ("search_event_previews", {"order": "newest", "query": "'tide'", "limit": 2})
        assert "get_event_details" in answer["hint"]
        assert answer["data"] == asker.ask(name, **arguments)["data"]


def test_its_cursor_goes_on_here_and_there(asker: Asker) -> None:
    cursor = old(asker, pattern="tide", limit=2)["pagination"]["next_cursor"]
    here = old(asker, pattern="tide", limit=2, cursor=cursor)["data"]["matches"]
    there = asker.ask("search_event_previews", order="newest", query="tide", limit=2, cursor=cursor)["data"]["matches"]
    assert here == there
    assert len(here) == 1


def test_a_pattern_too_long_for_a_hint_is_not_quoted_in_it(asker: Asker) -> None:
    assert len(old(asker, pattern="tide " * 300)["hint"]) <= 400
