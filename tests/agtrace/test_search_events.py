"""search_events, the deprecated search: it isn't listed, and leads to its replacement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agtrace.tools import TOOLS
from tests.agtrace.asking import Asker, call_in, claude_log


@pytest.fixture
def asker(tmp_path: Path) -> Asker:
    """Three events that speak of the tide."""
    log = claude_log(tmp_path / "logs", "fb3cff44-13ae-41a6-a6df-f287e0552835")
    for day in ("first", "second", "third"):
        log.prompt(f"The {day} 'tide' of the week")
    return Asker(tmp_path / "data", tmp_path / "logs")


def old(asker: Asker, **arguments: Any) -> dict[str, Any]:
    return asker.ask("search_events", **arguments)


def test_it_is_answered_though_it_is_not_listed(asker: Asker) -> None:
    assert "search_events" not in TOOLS
    (found,) = old(asker, pattern="second", event_type="User", include_full_payload=True)["data"]["matches"]
    assert found["payload"] == {"text": "The second 'tide' of the week"}
    assert old(asker, pattern="second", event_type="Message")["data"]["matches"] == []


def test_it_finds_what_the_new_search_finds_and_its_hint_is_the_new_call(asker: Asker) -> None:
    answer = old(asker, pattern="'tide'", limit=2)
    name, arguments = call_in(answer["hint"])
    assert (name, arguments) == ("search_event_previews", {"order": "newest", "query": "'tide'", "limit": 2})
    assert "get_event_details" in answer["hint"]
    assert answer["data"] == asker.ask(name, **arguments)["data"]


def test_its_cursor_goes_on(asker: Asker) -> None:
    assert len(asker.items("search_events", "matches", pattern="tide", limit=2)) == 3
