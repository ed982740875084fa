"""Laws: pushed in whatever portions, the server has what one push leaves; search finds what a scan finds."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from agtrace_team.server import Server
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.agtrace.asking import ClaudeLog, claude_log
from tests.depth import examples
from tests.team.conftest import new_team
from tests.team.teams import Team, index_of, own_answers
from tests.team.test_faults import contents

WORDS = ("tide", "Tide", "gauge", "é", "日本", "%s", "a_b", "\\", "'", "x" * 70, "\u2400", "🎉")
_TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(0, 2), _TEXTS),
        st.tuples(st.just("call"), st.integers(0, 2), _TEXTS),
        st.tuples(st.just("push"), st.integers(0, 2), st.just("")),
    ),
    min_size=1,
    max_size=14,
)


def _write(logs: dict[int, ClaudeLog], home: Path, what: str, number: int, text: str) -> None:
    if number not in logs:
        logs[number] = claude_log(home / ".claude", f"{number:08x}-13ae-41a6-a6df-f287e0552835")
        logs[number].prompt(f"Request {number}")
    if what == "say":
        logs[number].say(text)
    else:
        logs[number].call("Bash", {"command": text}, f"{text} failed", failed=len(text) % 2 == 0)


@settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_STEPS)
def test_pushing_bit_by_bit_leaves_what_one_push_leaves(server: Server, steps: list[tuple[str, int, str]]) -> None:
    bit_by_bit, at_once = new_team(server), new_team(server)
    for team in (bit_by_bit, at_once):
        team.add("ann")
    with tempfile.TemporaryDirectory() as folder:
        home, logs = Path(folder), dict[int, ClaudeLog]()
        _write(logs, home, "say", 0, "tide")
        for what, number, text in steps:
            if what == "push":
                bit_by_bit.push(index_of(home / "i", home / ".claude"), "ann", machine=f"machine {number}")
            else:
                _write(logs, home, what, number, text)
        database = index_of(home / "i", home / ".claude")
        bit_by_bit.push(database, "ann")
        at_once.push(index_of(home / "fresh", home / ".claude"), "ann")
        assert _without_digests(bit_by_bit) == _without_digests(at_once)
        _search_is_that_of_a_scan(bit_by_bit, database)


def _without_digests(team: Team) -> dict[str, Any]:
    """The contents but for the digests, which name the row ids of the index that was pushed."""
    return {uid: [audience, *rest] for uid, (audience, _, *rest) in contents(team).items()}


def _search_is_that_of_a_scan(team: Team, database: Path) -> None:
    own = own_answers(database)
    for word in (*WORDS, "ti", "g", "tide gauge", "nowhere"):
        wanted = {"query": word, "order": "oldest", "limit": 50}
        here, there = own.ask("search_event_previews", wanted).value, team.ask("ann", "search_event_previews", wanted)
        assert _in_order(there) == _in_order(here), word


def _in_order(answer: dict[str, Any]) -> list[Any]:
    """The matches by session: those of equal times are listed in the order in which they came."""
    return sorted(answer["data"]["matches"], key=lambda match: (match["session_id"], match["event_index"]))
