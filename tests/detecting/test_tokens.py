"""Where tokens went: missed caches, the same file again, a context that was compacted."""

from __future__ import annotations

import pytest
from agtrace_schema.events import UserKind

from agtrace.health.detectors.context import (
    compactions,
    find_cache_misses,
    find_compaction_mid_task,
    find_large_results,
)
from agtrace.health.examine import token_shares
from agtrace.health.facts.changes import files_read
from agtrace.health.history import History, Usage
from tests.detecting.histories import Telling, only_call

_AUTO = 'Conversation compacted\n{"trigger":"auto","preTokens":150000}'
_MANUAL = _AUTO.replace("auto", "manual")


def _usages(*figures: tuple[int, int], seconds: int = 60, window: int | None = None) -> History:
    """Responses by their whole input and what of it was read from the cache."""
    usages = [
        Usage(n, 0, n, 1_000_000 + n * seconds * 1000, "m", whole - read, 0, read, 10, window)
        for n, (whole, read) in enumerate(figures)
    ]
    return History("claude_code", list(usages), 1)


def test_misses_are_found_if_they_cost_much() -> None:
    misses = [(90_000, 89_000), (91_000, 0), (92_000, 9_000), (93_000, 0), (94_000, 93_000)]
    (finding,) = find_cache_misses(_usages(*misses))
    assert (finding.count, finding.events) == (3, (1, 2, 3))
    assert f"{90_000 + 82_000 + 92_000:,} tokens" in finding.message
    assert not list(find_cache_misses(_usages(*misses[:3])))


def test_a_cache_that_expired_or_a_cleared_conversation_is_no_miss() -> None:
    misses = [(30_000, 0)] * 6
    assert not list(find_cache_misses(_usages(*misses, seconds=300)))
    assert not list(find_cache_misses(_usages(*[(200_000, 190_000), (9_000, 0)] * 4)))


def test_a_compaction_told_twice_counts_once() -> None:
    told = Telling().human().run("make").notice("system/compact_boundary", _AUTO)
    told.inject("This session is being continued", UserKind.COMPACTION_SUMMARY).run("make").say()
    assert [compaction.automatic for compaction in compactions(told.history)] == [True]
    told.notice("system/compact_boundary", _AUTO).notice("system/compact_boundary", _MANUAL)
    assert [compaction.automatic for compaction in compactions(told.history)] == [True, True, False]


def test_a_compaction_that_the_human_asked_for_is_not_automatic() -> None:
    codex = Telling("codex").human().say().inject("/compact", UserKind.COMMAND).notice("compacted", "[9 items]")
    claude = Telling().human().say().inject("A summary", UserKind.COMPACTION_SUMMARY)
    claude.inject("<command-name>/compact</command-name>", UserKind.COMMAND)
    gemini = Telling("gemini").human().notice("info", "Chat history compressed from 90,000 to 9,000 tokens.")
    assert [c.automatic for told in (codex, claude, gemini) for c in compactions(told.history)] == [False, False, True]


def test_mid_task_needs_executions_of_the_turn_on_both_sides() -> None:
    before = Telling().human().run("make").notice("system/compact_boundary", _AUTO)
    assert not list(find_compaction_mid_task(before.history))
    assert not list(find_compaction_mid_task(before.human().run("make").history))
    within = Telling().human().run("make").notice("system/compact_boundary", _AUTO).run("make")
    assert not list(find_compaction_mid_task(within.history))
    within.notice("system/compact_boundary", _AUTO).run("make")
    assert [finding.count for finding in find_compaction_mid_task(within.history)] == [2]


def _reads(told: Telling, path: str = "/w/src/app.py", times: int = 1, text: str = "x = 1\n" * 100) -> Telling:
    for _ in range(times):
        told.call("Read", {"file_path": path}, text, reads=(path,))
    return told


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("cat src/app.py", ("src/app.py",)),
        ("sed -n '1,80p' src/app.py", ("src/app.py",)),
        ("cd src && nl -ba app.py | sed -n '1,20p'", ("app.py",)),
        ("head -n 20 a.md b.md", ("a.md", "b.md")),
        ("cat src/app.py > copy.py", ()),
        ("sed -i s/a/b/ src/app.py", ()),
        ("cat src/app.py && make", ()),
        ("grep -n x src/app.py", ()),
        ("ls src", ()),
    ],
)
def test_commands_that_show_files_are_known(command: str, files: tuple[str, ...]) -> None:
    assert files_read(only_call("Bash", {"command": command}, "text")) == files


def test_large_results_are_counted_together() -> None:
    told = Telling().human()
    for size in (39_999, 40_000, 70_000):
        told.run(f"cat log{size}", "x" * size)
    told.call("Read", {"file_path": "a.py"}, "x" * 90_000)
    (finding,) = find_large_results(told.history)
    assert (finding.count, finding.severity) == (2, "Warning")
    assert "110,000 characters (about 27,500 tokens)" in finding.message


def test_the_largest_shares_are_told_by_turn_tool_and_file() -> None:
    told = Telling().human().usage(500)
    _reads(told, "/w/a.py", text="x" * 400)
    _reads(told, "/w/b.py", text="x" * 800)
    told.human().usage(900).run("make", "x" * 40)
    shares = token_shares(told.history)
    assert [(share.name, share.tokens) for share in shares.turns] == [("2", 900), ("1", 500)]
    assert [(share.name, share.tokens) for share in shares.tools] == [("Read", 300), ("Bash", 10)]
    assert [(share.name, share.tokens) for share in shares.files] == [("/w/b.py", 200), ("/w/a.py", 100)]
