"""Where tokens went: missed caches, the same file again, a context that was compacted."""

from __future__ import annotations

from agtrace_schema.events import UserKind

from agtrace.health.examine import token_shares
from agtrace.health.facts.context import compactions, figures
from tests.detecting.histories import Telling

_AUTO = 'Conversation compacted\n{"trigger":"auto","preTokens":150000}'
_MANUAL = _AUTO.replace("auto", "manual")


def test_a_compaction_told_twice_counts_once() -> None:
    told = Telling().human().run("make").notice("system/compact_boundary", _AUTO)
    told.inject("This session is being continued", UserKind.COMPACTION_SUMMARY).run("make").say()
    assert len(compactions(told.history)) == 1
    told.notice("system/compact_boundary", _AUTO).notice("system/compact_boundary", _MANUAL)
    assert len(compactions(told.history)) == 3


def test_what_is_no_finding_is_a_figure() -> None:
    told = Telling().human().usage(500).notice("system/api_error", "overloaded").call("Read", {}, answered=False).say()
    told.notice("system/compact_boundary", _AUTO)
    known = figures(told.history)
    assert (known.api_errors, known.unanswered_calls, known.compactions) == (1, 1, 1)
    assert known.cache_missed_tokens is None


def _reads(told: Telling, path: str = "/w/src/app.py", times: int = 1, text: str = "x = 1\n" * 100) -> Telling:
    for _ in range(times):
        told.call("Read", {"file_path": path}, text, reads=(path,))
    return told


def test_the_largest_shares_are_told_by_turn_tool_and_file() -> None:
    told = Telling().human().usage(500)
    _reads(told, "/w/a.py", text="x" * 400)
    _reads(told, "/w/b.py", text="x" * 800)
    told.human().usage(900).run("make", "x" * 40)
    shares = token_shares(told.history)
    assert [(share.name, share.tokens) for share in shares.turns] == [("2", 900), ("1", 500)]
    assert [(share.name, share.tokens) for share in shares.tools] == [("Read", 300), ("Bash", 10)]
    assert [(share.name, share.tokens) for share in shares.files] == [("/w/b.py", 200), ("/w/a.py", 100)]
