"""Loops, edits and requests: cases that aren't among the labelled sessions of tests/health."""

from __future__ import annotations

import cProfile
import random
from typing import Any

import pytest
from agtrace_indexer.providers.registry import AGENTS
from agtrace_schema.events import Outcome, UserKind

from agtrace.health.detectors import DETECTORS
from agtrace.health.facts.changes import changes
from agtrace.health.finding import EVIDENCE
from agtrace.health.history import Call, History, Message
from agtrace.text.numbers import duration
from tests.detecting.histories import Telling, only_call

_PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n keep = 0\n-x = 1\n+x = 2\n+\n+}\n*** End Patch"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Edit", {"file_path": "a.py", "old_string": "keep = 0\nx = 1", "new_string": "keep = 0\n    x = 2\n\n}"}),
        ("replace", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}),
        ("MultiEdit", {"file_path": "a.py", "edits": [{"old_string": "x = 1", "new_string": "x = 2"}]}),
        ("mcp__fs__edit_file", {"path": "a.py", "edits": [{"oldText": "x = 1", "newText": "x = 2"}]}),
        ("apply_patch", _PATCH),
        ("apply_patch", {"input": _PATCH}),
        ("shell", {"command": ["apply_patch", _PATCH]}),
        ("exec_command", {"cmd": f"apply_patch <<'EOF'\n{_PATCH}\nEOF"}),
        ("exec", 'await tools.apply_patch("' + _PATCH.replace("\n", "\\n") + '");'),
        ("apply_patch", {"changes": {"a.py": {"update": {"unified_diff": "@@ -1 +1 @@\n-x = 1\n+x = 2\n"}}}}),
    ],
)
def test_every_editing_tool_tells_which_lines_change(tool: str, arguments: Any) -> None:
    (change,) = changes(only_call(tool, arguments, writes=("a.py",)))
    assert (change.path, set(change.removed), set(change.added), change.whole) == ("a.py", {"x = 1"}, {"x = 2"}, False)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Write", {"file_path": "a.py", "content": "x = 2\n"}),
        ("write_file", {"file_path": "a.py", "content": "x = 2"}),
        ("apply_patch", "*** Begin Patch\n*** Add File: a.py\n+x = 2\n*** End Patch"),
    ],
)
def test_a_file_written_as_a_whole(tool: str, arguments: Any) -> None:
    (change,) = changes(only_call(tool, arguments, writes=("a.py",)))
    assert (change.path, set(change.added), change.whole) == ("a.py", {"x = 2"}, True)


def test_a_text_that_shows_a_patch_is_none() -> None:
    (change,) = changes(only_call("Write", {"file_path": "a.md", "content": _PATCH}, writes=("a.md",)))
    assert (change.path, change.whole) == ("a.md", True)


# -- all of them -----------------------------------------------------------------------------------


def _anything(random_: random.Random) -> History:
    """A session that does a few things again and again, each of which may be odd."""
    told = Telling(random_.choice(list(AGENTS)))
    kinds = random_.sample(range(8), random_.randint(1, 3))
    commands = random_.sample(["make", "npm test", "grep x y", "sleep 1", "cat a", "cd 'x", "", "git diff | head"], 2)
    outcomes = random_.sample(list(Outcome), 2)
    for _ in range(random_.randrange(40)):
        kind, together = random_.choice(kinds), random_.random() < 0.1
        outcome = random_.choice(outcomes)
        if kind == 0:
            told.human(random_.choice(["", "go on", "Mend the parser of dates", "日付の解析を直してください"]))
        elif kind == 1:
            told.inject(random_.choice(["", "x"]), random_.choice(list(UserKind)))
        elif kind == 2:
            told.say(random_.choice(["", "Fine."]), together=together)
        elif kind == 3:
            told.notice(random_.choice(["api_error", "error", "compacted"]), "prompt is too long")
        elif kind == 4:
            told.edit("a.py", f"x = {random_.randrange(3)}", f"x = {random_.randrange(3)}", outcome=outcome)
        elif kind == 5:
            odd: Any = random_.choice([None, [], {}, "x", 7, {"command": [1, None]}, {"edits": [3], "path": 1}])
            told.call(random_.choice(["Bash", "Edit", "apply_patch", "exec"]), odd, outcome=outcome, writes=("a",))
        else:
            told.run(random_.choice(commands), "r", outcome=outcome, exit_code=1, answered=random_.random() < 0.9)
    for entry in told.entries:
        if isinstance(entry, (Call, Message)) and random_.random() < 0.05:
            entry.step = None
    return told.history


def test_no_history_is_an_error_and_findings_are_few_and_ordered() -> None:
    """A finding names at most five events, each of this session, in file order."""
    for seed in range(400):
        history = _anything(random.Random(seed))
        known = {entry.event_index for entry in history.entries} | {call.evidence for call in history.calls}
        for detector in DETECTORS:
            found = list(detector.find(history))
            assert found == list(detector.find(history)), "the same history gives the same findings"
            for finding in found:
                assert 1 <= len(finding.events) <= EVIDENCE
                assert sorted(set(finding.events)) == list(finding.events)
                assert known.issuperset(finding.events)


def _work(events: int) -> int:
    """How many functions are called, built-in ones as well, to look through so many events."""
    told = Telling().human()
    while told.event < events:
        number = told.event
        told.human(f"Change module {number} so that parser {number % 97} and writer {number % 89} agree on dates")
        told.run(f"make {number % 50}", "no", code=number % 3).edit("a.py", f"x = {number % 9}", f"x = {number % 7}")
    history, profile = told.history, cProfile.Profile()
    for detector in DETECTORS:
        profile.runcall(lambda find=detector.find: list(find(history)))
    return sum(entry.callcount for entry in profile.getstats())


def test_five_times_as_many_events_are_five_times_the_work() -> None:
    """Counted, not timed: machines are noisy."""
    assert _work(5_000) < 6.5 * _work(1_000)


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [(5_000, "5 s"), (60_000, "1 min"), (3_599_000, "1 h"), (3_900_000, "1 h 5 min"), (90_000_000, "1 d 1 h")],
)
def test_durations_are_said_in_two_units(milliseconds: int, words: str) -> None:
    assert duration(milliseconds) == words
